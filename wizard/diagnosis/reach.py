"""How far back the stream can be taken: the oldest batch N such that checkpoint and sink can stand at the end of N.

Spark must then find offsets/N-1 and N, a commit of N, state version N + 1 whole in every store, and the source log up
to N's offset. Commits are never made up: format 2 names state files in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wizard.checkpoint.logfile import Unreadable
from wizard.checkpoint.offsets import OffsetEntry, log_offset
from wizard.checkpoint.reader import PARTITIONS, Checkpoint
from wizard.diagnosis.restart import short_of_partitions
from wizard.sinks.interface import SinkReport
from wizard.sources.files import InputReport

if TYPE_CHECKING:
    from wizard.diagnosis.held import Asked


@dataclass(frozen=True, slots=True)
class Reach:
    earliest: int | None
    why: str
    """Why not further back; or, without `earliest`, why not at all."""


def reach(
    checkpoint: Checkpoint,
    sink: SinkReport | None,
    inputs: Mapping[str, InputReport],
    held: Mapping[str, Asked] | None = None,
) -> Reach:
    planned = checkpoint.planned
    if checkpoint.unlisted:
        return Reach(None, f"{', '.join(checkpoint.unlisted)} could not be listed")
    if planned is None:
        return Reach(None, "no batch is planned")
    if checkpoint.bare is not None:
        return Reach(None, "this is a single log, not a whole checkpoint")
    if checkpoint.continuous:
        return Reach(None, "a continuous query has no batches to go back to")
    if checkpoint.async_progress:
        return Reach(None, "async progress tracking logs only some batches")
    if checkpoint.foreign_provider:
        return Reach(None, f"the state is kept by {checkpoint.foreign_provider}, whose files are not read here")
    if short := short_of_partitions(checkpoint):
        return Reach(None, f"operator {short[0].id} has {short[0].on_disk} of its {short[0].needed} partitions")
    earliest: int | None = None
    why = ""
    for batch in range(planned, min(checkpoint.offset_names.ids) - 1, -1):
        reason, final = _cannot_stand_at(checkpoint, sink, inputs, held or {}, batch)
        if reason is None:
            earliest, why = batch, ""
            continue
        why = why or reason
        if final:
            break
    return Reach(earliest, "everything is still there" if earliest == 0 else why)


def _cannot_stand_at(
    checkpoint: Checkpoint,
    sink: SinkReport | None,
    inputs: Mapping[str, InputReport],
    held: Mapping[str, Asked],
    batch: int,
) -> tuple[str | None, bool]:
    """Why not, and whether that holds for every older batch too."""
    offsets = checkpoint.offset_names.ids
    for needed in (batch, batch - 1):
        if needed >= 0 and needed not in offsets:
            return f"offsets/{needed} is not there, and Spark needs the last two", True
        entry = checkpoint.offsets.get(needed)
        if isinstance(entry, Unreadable):
            return f"{entry} (batch {batch} needs it)", False
    if _repartitioned(checkpoint, batch):
        return f"the state was repartitioned after batch {batch}", True
    if batch not in checkpoint.commit_names.ids:
        return f"commits/{batch} is not there", False
    if isinstance(checkpoint.commits.get(batch), Unreadable):
        return str(checkpoint.commits[batch]), False
    if checkpoint.state.stores and batch + 1 not in checkpoint.state.whole:
        return f"state version {batch + 1} is not whole in every store", False
    lost = _input(checkpoint, inputs, batch) or _records(checkpoint, held, batch)
    if lost is not None:
        return lost, True
    return _source_log(checkpoint, batch) or _sink_log(sink, batch), False


def _input(checkpoint: Checkpoint, inputs: Mapping[str, InputReport], batch: int) -> str | None:
    """Files read after `batch` are read again by a replay to it: a missing one is skipped without an error."""
    entry = checkpoint.offsets.get(batch)
    if not isinstance(entry, OffsetEntry):
        return None
    for name, report in inputs.items():
        at = log_offset(_offset_of(entry, name))
        if gone := report.missing_after(-1 if at is None else at):
            return f"input of a later batch is gone: {gone[0]}"
    return None


def _records(checkpoint: Checkpoint, held: Mapping[str, Asked], batch: int) -> str | None:
    """Records read after `batch` are read again by a replay to it."""
    entry = checkpoint.offsets.get(batch)
    if not isinstance(entry, OffsetEntry):
        return None
    for name, seen in held.items():
        if not isinstance(seen, str) and (gone := seen.lost_after(_offset_of(entry, name))):
            return f"records of a later batch are gone: {gone[0]}"
    return None


def _offset_of(entry: OffsetEntry, source: str) -> object:
    """None where nothing of the source had been read yet."""
    return next((each.offset for each in entry.sources if each.id == source), None)


def _repartitioned(checkpoint: Checkpoint, batch: int) -> bool:
    """Between `batch` and the next that was read: those in the middle of a long log are known by name only."""
    read = sorted((e for e in checkpoint.offsets.values() if isinstance(e, OffsetEntry)), key=lambda e: e.batch)
    here = next((e for e in reversed(read) if e.batch <= batch), None)
    after = next((e for e in read if e.batch > batch), None)
    old, new = (e.confs.get(PARTITIONS) if e else None for e in (here, after))
    return bool(old and new and old != new)


def _source_log(checkpoint: Checkpoint, batch: int) -> str | None:
    entry = checkpoint.offsets.get(batch)
    if not isinstance(entry, OffsetEntry):
        return None
    for source in entry.sources:
        log = checkpoint.source_logs.get(source.id)
        at = log_offset(source.offset)
        if source.kind != "file" or log is None or at is None or at < 0:
            continue
        if missing := log.names.missing_up_to(at):
            return f"sources/{source.id}/{missing[0]} is not there"
    return None


def _sink_log(sink: SinkReport | None, batch: int) -> str | None:
    if sink is None or sink.log is None:
        return None
    if sink.last_batch is None or batch > sink.last_batch:
        return f"the sink does not hold batch {batch}"
    missing = sink.log.missing_up_to(batch)
    return f"_spark_metadata/{missing[0]} is not there" if missing else None
