"""A bounded hole filled beside the live stream: the range pinned, the job's own code run over it, its rows published.

The rows are made in a process of its own and staged in the run's directory. Of them only those whose key the output
lacks are published, so a backfill that is repeated, or was killed in the middle, adds nothing twice.
"""

from __future__ import annotations

import hashlib
import json
import sys
from datetime import UTC, datetime
from typing import Any

from wizard import durable
from wizard.catalogue.effects import DeltaAppend, Effect, Program, PublishFiles, Record, Write
from wizard.catalogue.effects.record import fingerprint
from wizard.catalogue.live.binding import action, answer, probe
from wizard.catalogue.live.range import (
    Range,
    committed,
    files_up_to,
    in_words,
    of_batches,
    of_offsets,
    of_times,
    rows_in,
)
from wizard.catalogue.live.rows import examples_of, in_range
from wizard.catalogue.world import Plan, Seen, World, fails, holds, unknown
from wizard.checkpoint.filelog import read_names
from wizard.checkpoint.reader import read_checkpoint
from wizard.errors import BadInput, RunbookError
from wizard.jobs.control.open import open_controller
from wizard.jobs.control.stopped import Watch, stopped
from wizard.jobs.graph import consumers
from wizard.jobs.model import ProcessControl
from wizard.jobs.paths import canonical, is_inside
from wizard.sinks.delta import BACKFILL
from wizard.sinks.file_sink import LOG
from wizard.sources.interface import as_offsets
from wizard.sources.open import FILES
from wizard.store import local_path, open_store
from wizard.text import plural, some

_PIPELINE = "wizard.spark.run"
_START_SECONDS, _ROWS_A_SECOND = 10.0, 20_000  # for the preview: the order of magnitude, on two cores


@answer("range.by_offsets")
def range_by_offsets(world: World, text: str) -> Range:
    return of_offsets(world.job, text)


@answer("range.by_batches")
def range_by_batches(world: World, text: str) -> Range:
    return of_batches(world.job, text)


@answer("range.by_time")
def range_by_time(world: World, text: str) -> Range:
    return of_times(world.job, text)


@action("range.pin")
def range_pin(world: World) -> Plan:
    wanted = _answered(world)
    return Plan((), {"range": wanted}, (in_words(wanted),))


@probe("range.pinned")
def range_pinned(world: World) -> Seen:
    pinned = world.memory.get("range")
    if pinned is None:
        return fails("no range has been written down in this walk")
    if pinned != world.answers.get("range"):
        return fails(f"the range written down ({in_words(pinned)}) is not the one given last")
    return holds(in_words(pinned))


@probe("range.unprocessed")
def range_unprocessed(world: World) -> Seen:
    wanted = _answered(world)
    try:
        ck, newest = committed(world.job)
        if newest is None:
            return fails("the live stream has committed no batch yet: it will read the whole range itself")
        where = f"batch {newest.batch}, the newest committed one,"
        if "files" in wanted:
            read = set(files_up_to(world.job, ck, newest.sources[0].offset))
            ahead = [path for path in wanted["files"] if path not in read]
            if ahead:
                return fails(f"{plural(len(ahead), 'file')} of the range {where} has not read, e.g. {ahead[0]}")
            return holds(f"{where} is past all {len(wanted['files'])} files of the range")
    except RunbookError as error:
        return unknown(str(error))
    stands = as_offsets(newest.sources[0].offset)
    if stands is None:
        return unknown(f"the offsets of {where} are not those of a log: {str(newest.sources[0].offset)[:80]}")
    ahead = [
        f"{topic} partition {p}: the range ends at {n - 1}, {where} at {stands.get(topic, {}).get(p, 0) - 1}"
        for topic, parts in wanted["end"].items()
        for p, n in parts.items()
        if n > stands.get(topic, {}).get(p, 0)
    ]
    return fails(*ahead) if ahead else holds(f"{where} is past the range: {json.dumps(stands)}")


@probe("backfill.apart")
def backfill_apart(world: World) -> Seen:
    job, place = world.job, canonical(_place(world))
    for what, path in (("checkpoint", job.checkpoint), ("output", job.sink.path)):
        if path and (is_inside(place, canonical(path)) or is_inside(canonical(path), place)):
            return fails(f"{_place(world)} and the {what} {path} are one inside the other; set `runs` elsewhere")
    try:
        durable.names(world.place)
        live = read_checkpoint(open_store(job.checkpoint)).query_id
    except (RunbookError, OSError) as error:
        return unknown(f"{world.place} or {job.checkpoint} cannot be listed: {error}")
    return holds(f"rows are staged in {_place(world)}; the id is {_app(world)}, the live query's {live}")


@probe("backfill.repeatable")
def backfill_repeatable(world: World) -> Seen:
    job = world.job
    if not job.sink.key:
        return unknown(f"the sink of {job.name} has no key in the registry, so rows that are there cannot be left out")
    if job.sink.counts is not None or job.output_mode != "append":
        return fails(
            f"{job.name} writes an aggregate ({job.output_mode}): its rows are not rows of the range; replay or reset it"
        )
    try:
        operators = read_checkpoint(open_store(job.checkpoint)).operators
    except RunbookError as error:
        return unknown(str(error))
    if operators:
        named = ", ".join(operator.name or f"operator {operator.id}" for operator in operators)
        return fails(
            f"{job.name} keeps state ({named}): what it makes of a range depends on the rows before; replay it"
        )
    if not isinstance(job.control, ProcessControl) or _PIPELINE not in job.control.start:
        return unknown(
            f"how to run the code of {job.name} over a range is not known; run it by hand, in batch, beside the stream"
        )
    return holds(f"rows whose [{', '.join(job.sink.key)}] the output has are left out")


@probe("sink.admits_backfill")
def sink_admits_backfill(world: World) -> Seen:
    job = world.job
    if job.sink.format == "delta":
        return holds("a Delta table takes a second writer: each commit is checked against the others")
    if job.sink.format not in FILES:
        return unknown(f"whether a sink of format {job.sink.format} takes a second writer is not known")
    watch = world.watches.setdefault(job.checkpoint, Watch(job.checkpoint))
    proof = stopped(job, open_controller(world.registry, job), watch, world.say)
    newest = read_names(listing.files if (listing := open_store(job.sink.path or "").list(LOG)) else ()).latest
    if proof.outcome == "holds" and newest in read_checkpoint(open_store(job.checkpoint), recent=1).in_flight:
        # What is added to the log now comes after that batch, and the output is compared as of the last commit.
        return unknown(f"batch {newest} is in the output and not committed; resume {job.name}, then fill the range")
    return Seen(proof.outcome, (f"a file output has one log and one writer. {job.name}: {proof.says}",), proof.evidence)


@action("live.record")
def live_record(world: World) -> Plan:
    return Plan((Record(world.job.name, world.job.checkpoint, _recorded(world)),))


@probe("live.recorded")
def live_recorded(world: World) -> Seen:
    noted = _noted(world)
    return (
        noted
        if isinstance(noted, Seen)
        else holds(f"{len(noted['files'])} files of {noted['root']} in {_recorded(world)}")
    )


@probe("live.unchanged")
def live_unchanged(world: World) -> Seen:
    noted = _noted(world)
    if isinstance(noted, Seen):
        return noted
    try:
        now = fingerprint(noted["root"])
        state = open_controller(world.registry, world.job).status().state
    except (RunbookError, OSError) as error:
        return unknown(str(error))
    before = noted["files"]
    changed = sorted(name for name, mark in before.items() if name in now and now[name] != mark)
    gone, new = sorted(before.keys() - now.keys()), sorted(now.keys() - before.keys())
    if changed:
        return fails(f"{plural(len(changed), 'file')} of {noted['root']} changed: {some(changed)}")
    # A stopped job writes nothing and purges nothing. One that runs does both, and never touches its newest batch.
    if noted["state"] == state == "stopped" and (gone or new):
        return fails(f"{noted['root']}: {some([*gone, *new])} came or went though the job is stopped")
    if gone and (not new or set(gone) & _newest(before)):
        return fails(f"{plural(len(gone), 'file')} of {noted['root']} gone: {some(gone)}")
    live = f"; the live job wrote {len(new)} and purged {len(gone)}" if new else ""
    return holds(f"{len(before) - len(gone)} files of {noted['root']} are the same, byte for byte{live}")


@action("backfill.run")
def backfill_run(world: World) -> Plan:
    job, wanted = world.job, _pinned(world)
    if local_path(world.place) is None:
        raise BadInput(
            f"{world.place} is not on this machine, and a backfill stages its rows there; set `runs` to a local path"
        )
    if job.sink.path is None:
        raise BadInput(f"the sink of {job.name} has no path in the registry, so nothing can be put into it")
    staged = staged_for(world, wanted)
    asked, log = durable.join(durable.parent(staged), "range.json"), durable.join(durable.parent(staged), "spark.log")
    program = (sys.executable, "-m", "wizard.spark.backfill", job.name, "--jobs", world.registry.path)
    options = ("--range", asked, "--to", staged, "--name", _hash(world, wanted), "--end-with-stdin")
    rows = rows_in(wanted)
    seconds = None if rows is None else _START_SECONDS + rows / _ROWS_A_SECOND
    about = f"run {job.name} over {in_words(wanted)}, without the rows that {job.sink.path} has"
    publish: Effect = (
        DeltaAppend(job.sink.path, staged, _app(world), job.sink.key)
        if job.sink.format == "delta"
        else PublishFiles(job.name, job.sink.path, staged)
    )
    return Plan(
        (
            Write.of(world, asked, json.dumps(wanted, indent=1), "the range, for the program that reads it"),
            Program(
                (*program, *options),
                durable.join(staged, "manifest.json"),
                log,
                about,
                seconds,
            ),
            publish,
        ),
        notes=_too_late_for(world),
    )


def _too_late_for(world: World) -> tuple[str, ...]:
    """Said before: a consumer's watermark has gone on, and Spark drops what is older without an error."""
    found = []
    for name in consumers(world.registry, world.job.name):
        latest = read_checkpoint(open_store(world.registry.jobs[name].checkpoint), recent=1).latest_offsets
        if latest is not None and latest.watermark_ms:
            at = datetime.fromtimestamp(latest.watermark_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            found.append(
                f"{name} drops what is older than its watermark, {at}, without an error: if rows of the range are, "
                f"reset {name} afterwards"
            )
    return tuple(found)


@probe("backfill.written")
def backfill_written(world: World) -> Seen:
    return _compared(world, twice_is_wrong=True)


@probe("backfill.visible")
def backfill_visible(world: World) -> Seen:
    """Read anew, through the output's own log: a file it does not name is not seen by anybody."""
    return _compared(world, twice_is_wrong=False)


def _compared(world: World, *, twice_is_wrong: bool) -> Seen:
    job, wanted = world.job, world.memory.get("range", world.answers.get("range"))
    if wanted is None or not job.sink.key or job.sink.path is None:
        return unknown("there is no range, or the output has no key or no path in the registry")
    try:
        answer, as_of = in_range(job, wanted, world.say)
    except (RunbookError, OSError) as error:
        return unknown(str(error))
    rows, gaps, twice = answer["expected"], answer["missing"], answer["doubled"]
    wrong = []
    if gaps["rows"]:
        wrong.append(
            f"{gaps['rows']} of {rows} rows of the range are not in the output: {examples_of(gaps['examples'])}"
        )
    if twice["keys"] and twice_is_wrong:
        wrong.append(
            f"{twice['keys']} rows of the range are in the output more than once: {examples_of(twice['examples'])}"
        )
    data = {"rows": rows, "gaps": gaps["rows"], "duplicates": twice["keys"]}
    if wrong:
        return fails(*wrong, **data)
    how = "exactly once" if twice_is_wrong else "for a reader to see"
    return holds(f"all {rows} rows of the range are there {how} ({as_of})", **data)


def _answered(world: World) -> Range:
    wanted: Range | None = world.answers.get("range")
    if wanted is None:
        raise BadInput("no range was given; answer which rows are missing first")
    return wanted


def _pinned(world: World) -> Range:
    wanted: Range | None = world.memory.get("range")
    if wanted is None:
        raise BadInput("the range is not pinned; begin the backfill again")
    return wanted


def _place(world: World) -> str:
    return durable.join(world.place, "backfill")


def staged_for(world: World, wanted: Range) -> str:
    """Where the rows of a range are staged: a walk that comes to fill another range must not find those of the first."""
    return durable.join(_place(world), _hash(world, wanted), "staged")


def _recorded(world: World) -> str:
    return durable.join(_place(world), "live.json")


def _noted(world: World) -> dict[str, Any] | Seen:
    try:
        data = durable.read(_recorded(world))
        if data is None:
            return fails(f"no fingerprint has been taken: {_recorded(world)} is not there")
        noted: dict[str, Any] = json.loads(data)
        return noted
    except (RunbookError, OSError, ValueError) as error:
        return unknown(f"{_recorded(world)} cannot be read: {error}")


def _newest(files: dict[str, Any]) -> set[str]:
    """What a live job never removes: its id, and the newest of its offsets and commits."""
    kept = {"metadata"}
    for log in ("offsets", "commits"):
        numbers = [
            int(name.partition("/")[2])
            for name in files
            if name.startswith(f"{log}/") and name.partition("/")[2].isdigit()
        ]
        kept |= {f"{log}/{max(numbers)}"} if numbers else set()
    return kept


def _hash(world: World, wanted: Range) -> str:
    told = json.dumps([world.job.name, wanted, world.run], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _app(world: World) -> str:
    """The transaction id of the backfill: never the live query's, under which Delta would skip it."""
    return f"{BACKFILL}{_hash(world, _answered(world))}"
