"""The output: emptied, taken back, or cleaned of what the batch in flight had already written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wizard import durable
from wizard.catalogue.effects import DeltaEmpty, DeltaRestore, Effect, Keep, Move
from wizard.catalogue.live import tables
from wizard.catalogue.live.binding import action, probe
from wizard.catalogue.live.careful import careful
from wizard.catalogue.live.known import batch_of, chosen_identity, query_id, remember
from wizard.catalogue.live.rows import smallest_and_largest
from wizard.catalogue.world import Plan, Seen, World, fails, holds, unknown
from wizard.checkpoint.reader import read_checkpoint
from wizard.datafiles import shape
from wizard.errors import RunbookError
from wizard.jobs.graph import readers
from wizard.jobs.paths import canonical, is_glob, is_inside, overlaps
from wizard.sinks.delta import DeltaSink, cannot_write, way_back
from wizard.sinks.file_sink import LOG, FileSink
from wizard.sinks.interface import SinkReport
from wizard.sinks.open import FILE_FORMATS
from wizard.sinks.rollback import CannotGoBack, DeltaCut, FileCut, delta_cut, file_cut, orphans, same_files
from wizard.sinks.rows import output_files
from wizard.store import open_store
from wizard.text import batches, plural, some

_COUNTED = 1000  # data files whose footers are read for a preview


@probe("in_flight.clean")
@careful
def in_flight_clean(world: World) -> Seen:
    seen = read_checkpoint(open_store(world.job.checkpoint))
    if seen.unlisted:
        return unknown(*(f"{path} cannot be listed: {why}" for path, why in seen.unlisted.items()))
    if not seen.in_flight:
        return holds(f"no batch is in flight; the last one committed is {seen.committed}")
    what = f"{batches(seen.in_flight)} in flight"
    kind = _kind(world)
    if kind == "table":
        return tables.in_flight(world, seen.in_flight, seen.committed)
    if kind is None:
        return unknown(f"{what}, and what a {world.job.sink.format} output makes of a batch twice is not known")
    report = _report(world, query_id(world))
    if not report.exists:
        return holds(f"{what}, and there is no output yet")
    if any(problem.code == "SINK_UNREADABLE" for problem in report.problems):
        return unknown(what, *(problem.evidence for problem in report.problems))
    if kind == "file":
        if report.last_batch is None and report.files:
            return unknown(f"{what}, and the output has no {LOG}: it is written by code of your own")
        once = f"{what}; {LOG} takes a batch once, and its newest is {report.last_batch}"
        left = plural(report.details.get("orphans", 0), "data file")
        if not report.details.get("orphans"):
            return holds(once)
        # Whoever reads the directory as a whole goes by its log, and never sees them.
        if listing := _listing(world):
            return fails(f"{what}; {left} outside {LOG}, and {', '.join(listing)} goes by the listing, not by the log")
        return holds(once, f"{left} outside {LOG}: only a reader that lists the directory sees them")
    if report.last_batch is not None:
        return holds(f"{what}; the table takes a batch of this query once, and its newest is {report.last_batch}")
    if report.files == 0:
        return holds(f"{what}, and the table holds no rows")
    return unknown(f"{what}, and the table keeps no batch number of query {query_id(world)}")


@probe("sink.empty")
@careful
def empty(world: World) -> Seen:
    kind, path = _kind(world), world.job.sink.path or ""
    if kind == "table":
        return tables.empty(world)
    if kind == "file":
        left = durable.names(path)
        return fails(f"{path} still holds {some(left)}") if left else holds(f"{path} holds nothing, no {LOG} either")
    if kind == "delta":
        report = _report(world, None)
        if report.problems:
            return unknown(*(problem.evidence for problem in report.problems))
        if report.files:
            rows = "unknown" if report.rows is None else str(report.rows)
            return fails(f"{path} holds {plural(report.files, 'file')}, rows: {rows}")
        if not report.exists:
            return holds(f"there is no table at {path}")
        known = report.details["transactions"]
        old = f"; the ids it remembers ({some(sorted(known))}) are of queries before, a new query has a new one"
        return holds(f"{path} holds no rows at version {report.details['version']}{old if known else ''}")
    return _not_known(world)


@probe("sink.at_target")
@careful
def at_target(world: World) -> Seen:
    batch = batch_of(world)
    if _kind(world) == "table":
        return tables.at_target(world, batch)
    cut = _cut(world, batch)
    if isinstance(cut, CannotGoBack):
        return fails(cut.says) if cut.known else unknown(cut.says)
    if isinstance(cut, FileCut):
        if cut.empty:
            return holds(f"{LOG} ends with batch {batch}, and every data file is in it")
        return fails(
            f"{LOG} ends with {cut.last}; {plural(len(cut.data), 'file')} of later batches, "
            f"{plural(len(cut.orphans), 'file')} in no log"
        )
    path = world.job.sink.path or ""
    if cut.to == cut.version or same_files(path, cut.version, cut.to):
        return holds(f"version {cut.version} of {path} holds the rows of version {cut.to}, the end of batch {batch}")
    return fails(
        f"version {cut.version} of {path} holds {batches(cut.batches)} too; batch {batch} ends at version {cut.to}"
    )


@probe("sink.accepts_replay")
@careful
def accepts_replay(world: World) -> Seen:
    batch = batch_of(world)
    kind = _kind(world)
    if kind is None:
        return _not_known(world)
    old = query_id(world)
    identity = chosen_identity(world) or old
    if kind == "table":
        return tables.accepts(world, batch, identity)
    if kind == "delta" and identity is None:
        return unknown("the query's id is lost; the table may remember its batches")
    report = _report(world, identity)
    if any(problem.code in ("SINK_UNREADABLE", "SINK_LOG_UNREADABLE") for problem in report.problems):
        return unknown(*(problem.evidence for problem in report.problems))
    if kind == "file" and report.last_batch is None and report.files:
        return unknown(f"the output has no {LOG}: it is written by code of your own, which may remember batch numbers")
    who = LOG if kind == "file" else f"for query {identity} the table"
    if report.last_batch is not None and report.last_batch > batch:
        return fails(
            f"{who} remembers batch {report.last_batch}: {batches(range(batch + 1, report.last_batch + 1))} would be skipped"
        )
    changed = f"; the id is new (it was {old})" if identity != old else ""
    return holds(
        f"{who} remembers {'no batch' if report.last_batch is None else f'batch {report.last_batch}'}{changed}"
    )


@action("sink.truncate")
def truncate(world: World) -> Plan:
    kind, path = _known(world), world.job.sink.path or ""
    if kind == "table":
        plan = tables.truncate(world)
        return replace(plan, remember=_noted(world)) if plan.effects else plan
    if kind == "delta":
        report = _report(world, None)
        if report.problems:
            raise RunbookError(f"{report.problems[0].evidence}; it cannot be emptied")
        if not report.files:
            return Plan((), notes=(f"{path} holds no rows",))
        version = int(report.details["version"])
        if why := cannot_write(path):
            raise RunbookError(f"{why}; it was not emptied")
        return Plan(
            (DeltaEmpty(path, version, report.rows),),
            _noted(world),
            (way_back(path, version), *_stuck_after_undo(world)),
        )
    names = durable.names(path)
    if not names:
        return Plan((), notes=(f"{path} holds nothing",))
    # The log first: a reader then lists the directory, and sees the rows as they were until they go.
    ordered = tuple(sorted(names, key=lambda name: (name != LOG, name)))
    effects = (Keep.of(path), Move.of(path, quarantine(world), ordered))
    return Plan(effects, _noted(world), _rows_in(path, world.job.sink.format))


def _stuck_after_undo(world: World) -> tuple[str, ...]:
    """Said before: an undo brings the rows back by a commit, and a stream that reads the table fails on the history."""
    return tuple(
        f"{name} reads this table as a stream: after an undo it must be reset too, or be left with what it has"
        for name in readers(world.registry)[world.job.name]
        if any(source.format == "delta" for source in world.registry.jobs[name].sources)
    )


def _rows_in(path: str, format: str) -> tuple[str, ...]:
    """For the preview: what the output's own log counts as rows. Too many files, or unreadable ones, are not counted."""
    try:
        files = output_files(path, format.lower()).files
        if len(files) > _COUNTED:
            return ()
        rows = sum(shape(file, ()).rows for file in files)
    except RunbookError:
        return ()
    return (f"{plural(rows, 'row')} in {plural(len(files), 'data file')} of its log go",)


def _noted(world: World) -> dict[str, Any]:
    """Which offsets the output held before it was begun to be emptied: half of it would say something else."""
    if world.job.name in world.memory.get("held", {}):
        return {}
    try:
        held = smallest_and_largest(world.job)
    except RunbookError:
        return {}  # the key does not tell; then nobody has claimed that the source can rebuild it
    return remember(world, "held", [[*group, *ends] for group, ends in held.items()])


@action("sink.rollback")
def rollback(world: World) -> Plan:
    kind, batch = _known(world), batch_of(world)
    if kind == "table":
        return tables.rollback(world, batch)
    cut = _cut(world, batch)
    if isinstance(cut, CannotGoBack):
        raise RunbookError(f"{cut.says}; the output cannot be taken back to batch {batch}")
    if isinstance(cut, FileCut):
        return _moves(world, cut)
    path = world.job.sink.path or ""
    if cut.to == cut.version or same_files(path, cut.version, cut.to):
        return Plan((), notes=(f"the table ends with batch {batch} already",))
    if why := cannot_write(path):
        raise RunbookError(f"{why}; it was not taken back")
    notes = (f"{batches(cut.batches)} of this query go", way_back(path, cut.version))
    return Plan((DeltaRestore(path, cut.version, cut.to),), notes=notes)


@action("sink.clear_in_flight")
def clear_in_flight(world: World) -> Plan:
    kind, path = _known(world), world.job.sink.path or ""
    seen = read_checkpoint(open_store(world.job.checkpoint))
    if not seen.in_flight:
        return Plan((), notes=("no batch is in flight",))
    if kind == "table":
        return replace(tables.clear(world, seen.committed), remember=_cleared(world, seen.committed))
    if kind == "delta":
        raise RunbookError(
            f"{path}: which rows came from {batches(seen.in_flight)} is not known, as the table keeps no batch number of this "
            "query; replay to a batch that is whole, or reset"
        )
    found = orphans(open_store(path))
    if isinstance(found, CannotGoBack):
        raise RunbookError(f"{found.says}; what {batches(seen.in_flight)} wrote cannot be told from the rest")
    return replace(_moves(world, found), remember=_cleared(world, seen.committed))


def _cleared(world: World, committed: int | None) -> dict[str, Any]:
    """Where the job stood when this was done: once it is past that, what was cleared is not to come back."""
    return remember(world, "cleared", {"committed": committed})


def _listing(world: World) -> list[str]:
    """Jobs that read this output by a pattern, or from above or below: Spark then lists files and looks into no log."""
    here = canonical(world.job.sink.path or "")
    return [
        name
        for name in readers(world.registry)[world.job.name]
        for source in world.registry.jobs[name].sources
        if source.path and canonical(source.path) != here and _meet(canonical(source.path), here)
    ]


def _meet(place: str, here: str) -> bool:
    return overlaps(place, here) if is_glob(place) else is_inside(place, here) or is_inside(here, place)


def cut_to(world: World, batch: int) -> Seen:
    """Whether the output can be taken back to a batch."""
    if _kind(world) == "table":
        return tables.cut_to(world, batch)
    cut = _cut(world, batch)
    if isinstance(cut, CannotGoBack):
        return fails(cut.says) if cut.known else unknown(cut.says)
    if isinstance(cut, DeltaCut):
        return holds(
            f"batch {batch} ends at version {cut.to}, whose files are all there; the table is at {cut.version}"
        )
    return holds(f"{LOG} reaches from {batch} to {cut.last}; {plural(len(cut.data), 'file')} of later batches would go")


def quarantine(world: World) -> str:
    return durable.join(world.quarantine, world.job.name, "sink")


def _moves(world: World, cut: FileCut) -> Plan:
    path = world.job.sink.path or ""
    if cut.empty:
        return Plan((), notes=("nothing has to go",))
    effects: list[Effect] = [Keep.of(path)]
    for below, names in cut.by_directory():
        source, target = (durable.join(place, below) if below else place for place in (path, quarantine(world)))
        effects.append(Move.of(source, target, names))
    notes = [
        f"{plural(len(cut.orphans), 'file')} in no log go too: left by a batch that was killed, or foreign; e.g. {each}"
        for each in cut.orphans[:1]
    ]
    return Plan(tuple(effects), notes=tuple(notes))


def _cut(world: World, batch: int) -> FileCut | DeltaCut | CannotGoBack:
    kind, path = _kind(world), world.job.sink.path or ""
    if kind == "file":
        return file_cut(open_store(path), batch)
    if kind == "delta":
        return delta_cut(path, query_id(world), batch)
    return CannotGoBack(_not_known(world).evidence[0], known=False)


def _kind(world: World) -> str | None:
    sink = world.job.sink
    if tables.is_table(world.job):
        return "table"
    if not sink.path:
        return None
    return "file" if sink.format in FILE_FORMATS else "delta" if sink.format == "delta" else None


def _known(world: World) -> str:
    kind = _kind(world)
    if kind is None:
        raise RunbookError(f"{_not_known(world).evidence[0]}; do it by hand, with what wrote it")
    return kind


def _not_known(world: World) -> Seen:
    return unknown(f"an output of format {world.job.sink.format} is not one this tool can look into")


def _report(world: World, identity: str | None) -> SinkReport:
    store = open_store(world.job.sink.path or "")
    sink = DeltaSink(store) if world.job.sink.format == "delta" else FileSink(store, world.job.sink.format)
    return sink.report(identity)
