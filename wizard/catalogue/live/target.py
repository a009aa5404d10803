"""The batch to go back to, and whether everything reaches back that far."""

from __future__ import annotations

import itertools
import json
import re
from datetime import UTC, datetime
from typing import Any

from wizard.catalogue.live.binding import answer, probe
from wizard.catalogue.live.careful import careful
from wizard.catalogue.live.known import batch_of, offsets_of
from wizard.catalogue.live.sink import cut_to
from wizard.catalogue.world import Seen, World, fails, holds, unknown
from wizard.checkpoint.logfile import Unreadable
from wizard.checkpoint.offsets import OffsetEntry, SourceOffset, log_offset
from wizard.checkpoint.reader import Checkpoint, read_checkpoint
from wizard.checkpoint.rollback import read_offsets
from wizard.checkpoint.state import missing_ssts
from wizard.diagnosis.diagnose import diagnose
from wizard.diagnosis.held import made_anew
from wizard.diagnosis.subject import subject_of
from wizard.errors import BadInput
from wizard.jobs.model import Source
from wizard.sources.files import look_at_inputs
from wizard.sources.interface import OffsetSource, TableSource, as_offsets, lost
from wizard.sources.open import open_source
from wizard.store import Store, open_store
from wizard.text import some

PARTITIONS = "spark.sql.shuffle.partitions"


@answer("target.by_batch")
def by_batch(world: World, text: str) -> dict[str, int]:
    seen = _with_batches(world)
    if not re.fullmatch(r"\d{1,19}", text.strip()):
        raise BadInput(f"{text!r} is not a batch number; {_choice(seen)}")
    return _chosen(seen, int(text))


@answer("target.by_time")
def by_time(world: World, text: str) -> dict[str, int]:
    seen = _with_batches(world)
    at = _milliseconds(text.strip())
    entries = _entries(world, seen)
    before = [entry.batch for entry in entries if entry.timestamp_ms is not None and entry.timestamp_ms < at]
    if not before:
        times = [entry.timestamp_ms for entry in entries if entry.timestamp_ms is not None]
        first = datetime.fromtimestamp(min(times) / 1000, UTC).isoformat() if times else "not known"
        raise BadInput(f"no batch was planned before {text}; the first one that is still logged: {first}")
    return _chosen(seen, min(max(before), seen.committed if seen.committed is not None else -1))


@answer("target.by_offset")
def by_offset(world: World, text: str) -> dict[str, int]:
    seen = _with_batches(world)
    try:
        wanted = json.loads(text)
    except ValueError:
        wanted = None
    if not isinstance(wanted, dict | int) or isinstance(wanted, bool):
        raise BadInput(
            f'{text!r} is not an offset; give one as in offsets/, such as {{"topic": {{"0": 23}}}}, or a number for files'
        )
    fitting = [e.batch for e in _entries(world, seen) if any(_ends_by(s.offset, wanted) for s in e.sources)]
    done = [batch for batch in fitting if batch in seen.commit_names.ids]
    if not done:
        raise BadInput(f"no batch that is still logged ends at or before {text}; {_choice(seen)}")
    return _chosen(seen, max(done))


@probe("target.offsets")
@careful
def offsets(world: World) -> Seen:
    batch = batch_of(world)
    store = open_store(world.job.checkpoint)
    seen = read_checkpoint(store)
    if seen.continuous or seen.async_progress or seen.bare is not None:
        kind = "continuous" if seen.continuous else "asynchronous" if seen.async_progress else "a single log"
        return unknown(f"this checkpoint is {kind}: it keeps no batch by batch log")
    if seen.unlisted:
        return unknown(*(f"{path} cannot be listed: {why}" for path, why in seen.unlisted.items()))
    if seen.metadata is not None and seen.fence is None:
        # The id is what an output knows the batches by; the diagnosis blocks a replay without it, and so does the walk.
        return (unknown if seen.metadata.why == "denied" else fails)(f"{seen.metadata}; restore it, or reset")
    if seen.planned is None or batch > seen.planned:
        return fails(f"the newest planned batch is {seen.planned}")
    wanted = range(max(batch - 1, 0), seen.planned + 1)
    if missing := [each for each in wanted if each not in seen.offset_names.ids]:
        return fails(f"offsets/{missing[0]} is not there, and Spark needs the chosen batch, the one before and no hole")
    if batch not in seen.commit_names.ids:
        return fails(f"commits/{batch} is not there: the chosen batch was never finished, or its commit is gone")
    commit = seen.commits.get(batch)
    if isinstance(commit, Unreadable):
        return fails(str(commit))
    read = store.map(lambda each: read_offsets(store, each), wanted)
    needed = [entry for entry in read if isinstance(entry, Unreadable) and entry.path in _last_two(batch)]
    if needed:
        return (unknown if needed[0].why in ("denied", "newer") else fails)(str(needed[0]))
    entries = [entry for entry in read if isinstance(entry, OffsetEntry) and entry.batch >= batch]
    for before, after in itertools.pairwise(entries):
        old, new = before.confs.get(PARTITIONS), after.confs.get(PARTITIONS)
        if old and new and old != new:
            return fails(f"batch {after.batch} repartitioned the state from {old} to {new}")
    return holds(f"offsets {wanted.start} to {seen.planned} and commits/{batch} are there, without a repartition")


@probe("target.state")
@careful
def state(world: World) -> Seen:
    batch = batch_of(world)
    store = open_store(world.job.checkpoint)
    seen = read_checkpoint(store)
    version = batch + 1
    if not seen.state.stores:
        if seen.state_missed:
            return unknown("there is no state/, and the watermark has moved: if the job keeps state, it is lost")
        return unknown("state/ holds no store this tool can read") if seen.state_entries else holds("no state is kept")
    if seen.foreign_provider:
        return unknown(f"the state is kept by {seen.foreign_provider}, which this tool cannot read")
    if errors := [f"{files.directory}: {files.error}" for files in seen.state.stores if files.error]:
        return unknown(*errors)
    if broken := seen.state.lacking(version):
        gone = broken[0].break_before(version, seen.state.provider)
        return fails(f"state version {version} cannot be loaded in {len(broken)} stores: {gone}")
    for operator in seen.operators:
        if operator.on_disk < operator.needed:
            return fails(f"operator {operator.id} has {operator.on_disk} of its {operator.needed} partitions")
    if seen.state.provider == "rocksdb":
        lost = [each for files in seen.state.stores if (each := missing_ssts(store, files, version))]
        if lost:
            return fails(lost[0] if isinstance(lost[0], str) else f"{lost[0][0]} is gone")
    return holds(f"state version {version} is whole in all {len(seen.state.stores)} stores")


@probe("target.source_log")
@careful
def source_log(world: World) -> Seen:
    batch = batch_of(world)
    store = open_store(world.job.checkpoint)
    seen = read_checkpoint(store)
    entry = offsets_of(store, batch)
    if isinstance(entry, str):
        return fails(entry)
    lines = []
    for source in entry.sources:
        log = seen.source_logs.get(source.id)
        at = log_offset(source.offset)
        if source.kind == "file" and at is not None:
            if log is None:
                return fails(f"sources/{source.id} is not there")
            if missing := log.names.missing_up_to(at):
                return fails(f"sources/{source.id}/{missing[0]} is not there")
            lines.append(f"sources/{source.id} is whole up to {at}")
        elif log is not None and log.kind == "unknown" and log.names.ids:
            return unknown(f"sources/{source.id} is a log this tool cannot read")
        else:
            lines.append(f"source {source.id} ({source.kind}) keeps no log that has to go back")
    return holds(*lines)


@probe("target.source_rows")
@careful
def source_rows(world: World) -> Seen:
    batch = batch_of(world)
    store = open_store(world.job.checkpoint)
    seen = read_checkpoint(store)
    entry = offsets_of(store, batch)
    if isinstance(entry, str):
        return fails(entry)
    if len(entry.sources) != len(world.job.sources):
        return unknown(f"the registry names {len(world.job.sources)} sources, batch {batch} has {len(entry.sources)}")
    looked = [
        _rows_after(store, seen, source, declared)
        for source, declared in zip(entry.sources, world.job.sources, strict=True)
    ]
    for truth in ("fails", "unknown"):
        if found := [each for each in looked if each.truth == truth]:
            return Seen(found[0].truth, tuple(line for each in found for line in each.evidence))
    return holds(*(line for each in looked for line in each.evidence))


@probe("target.sink_log")
@careful
def sink_log(world: World) -> Seen:
    foreign = [found for found in diagnose(subject_of(world.job)).findings if found.code == "SINK_OLDER"]
    if foreign:
        return unknown(*(f"{found.message} ({found.evidence}); {found.meaning}" for found in foreign))
    return cut_to(world, batch_of(world))


def _rows_after(store: Store, seen: Checkpoint, source: SourceOffset, declared: Source) -> Seen:
    if source.kind == "file":
        log = seen.source_logs.get(source.id)
        if log is None:
            return fails(f"sources/{source.id} is not there")
        report = look_at_inputs(store, log)
        at = log_offset(source.offset)
        if gone := report.missing_after(-1 if at is None else at):
            return fails(f"{len(gone)} input files of later batches are gone: {some(gone, 3)}")
        return unknown(report.unknown) if report.unknown else holds(f"all {report.files} input files are there")
    opened = open_source(declared)
    if isinstance(opened, TableSource):
        can, why = opened.still_readable(source.offset)
        return holds(why) if can else fails(why)
    if not isinstance(opened, OffsetSource):
        return unknown(f"a source of format {declared.format} cannot be asked for its earliest rows")
    start = as_offsets(source.offset)
    if start is None:
        return unknown(f"the offsets of source {source.id} are not by topic and partition")
    ends = opened.ends()
    gone_rows = made_anew(opened, ends, seen, source.id) or lost(ends, start, None)
    return fails(*gone_rows) if gone_rows else holds(f"the source still has every row from {json.dumps(start)} on")


def _last_two(batch: int) -> tuple[str, str]:
    return f"offsets/{batch}", f"offsets/{batch - 1}"


def _with_batches(world: World) -> Checkpoint:
    seen = read_checkpoint(open_store(world.job.checkpoint))
    if not seen.commit_names.ids or not seen.offset_names.ids:
        raise BadInput(f"{world.job.checkpoint} holds no finished batch to go back to; a reset may do")
    return seen


def _choice(seen: Checkpoint) -> str:
    done = sorted(seen.commit_names.ids & seen.offset_names.ids)
    return f"the batches there are: {done[0]} to {done[-1]}" if done else "there is none"


def _chosen(seen: Checkpoint, batch: int) -> dict[str, int]:
    if batch not in seen.commit_names.ids or batch not in seen.offset_names.ids:
        raise BadInput(f"batch {batch} is not in the checkpoint as planned and committed; {_choice(seen)}")
    return {"batch": batch}


def _entries(world: World, seen: Checkpoint) -> list[OffsetEntry]:
    store = open_store(world.job.checkpoint)
    read = store.map(lambda each: read_offsets(store, each), sorted(seen.offset_names.ids))
    return [entry for entry in read if isinstance(entry, OffsetEntry)]


def _milliseconds(text: str) -> int:
    if re.fullmatch(r"\d{12,14}", text):
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(
            f"{text!r} is not a time; write one such as 2026-03-01T09:30:00Z, or milliseconds since 1970"
        ) from None
    if at.tzinfo is None:
        raise BadInput(f"{text!r} names no time zone; add Z or an offset such as +01:00")
    return int(at.timestamp() * 1000)


def _ends_by(offset: Any, wanted: Any) -> bool:
    """Whether a batch that ends at `offset` ends at or before `wanted`, in every partition that names."""
    if isinstance(wanted, int):
        at = log_offset(offset)
        return at is not None and at <= wanted
    if isinstance(offset, dict) and set(wanted) == {"logOffset"}:
        return _ends_by(offset, log_offset(wanted))
    if not isinstance(offset, dict) or not wanted:
        return False
    for topic, partitions in wanted.items():
        there = offset.get(topic)
        if not isinstance(there, dict) or not isinstance(partitions, dict):
            return False
        for partition, limit in partitions.items():
            at = there.get(str(partition))
            if not isinstance(at, int) or not isinstance(limit, int) or at > limit:
                return False
    return True
