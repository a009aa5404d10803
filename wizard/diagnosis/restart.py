"""What Spark does with this checkpoint at the next start: which batch, run again or new; or refused, and with which error.

The rules were run on 3.5, 4.1, 4.2 and 4.3: tests/diagnosis/test_restart_on_spark.py proves them again on 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from wizard.checkpoint.logfile import Unreadable
from wizard.checkpoint.offsets import OffsetEntry, log_offset
from wizard.checkpoint.reader import PARTITIONS, Checkpoint
from wizard.checkpoint.stateful import Operator
from wizard.diagnosis.spark_version import SparkVersion, too_old
from wizard.text import batches, is_are

Action = Literal["fresh", "next", "rerun", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Restart:
    """`batch` is the first to run. `error` is what start() or the first batch raises. `says` is for the operator."""

    action: Action
    batch: int | None
    says: str
    error: str | None = None
    loads_state: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"action": self.action, "batch": self.batch, "says": self.says, "error": self.error}


def predict(checkpoint: Checkpoint, version: SparkVersion) -> Restart:
    planned, committed = checkpoint.planned, checkpoint.committed
    if not checkpoint.exists:
        return Restart("fresh", 0, "starts at batch 0 under a new query id")
    if checkpoint.bare is not None:
        return Restart("unknown", None, f"this is one log ({checkpoint.bare.kind}), not a whole checkpoint")
    if checkpoint.unlisted:
        return Restart("unknown", None, f"{', '.join(checkpoint.unlisted)} could not be listed")
    refusal = _metadata(checkpoint, version)
    if refusal is not None:
        return refusal
    if planned is None:
        return _nothing_planned(checkpoint, version)
    refusal = _newest(checkpoint, planned, committed)
    if refusal is not None:
        return refusal
    if (newer := too_old(version, checkpoint)) is not None:
        return _refused(f"{newer[0]} was written by a newer Spark than {version}", newer[1])
    if checkpoint.continuous:
        return _continuous(checkpoint, committed)
    if checkpoint.async_progress:
        return _source_log(checkpoint) or _async(checkpoint, planned, committed)
    refusal = _logs(checkpoint, planned)
    if refusal is not None:
        return refusal
    if repartition_to_finish(checkpoint):
        return _unfinished(planned, version)
    again = committed != planned
    batch = planned if again else planned + 1
    refusal = _source_log(checkpoint) or _state(checkpoint, batch)
    if refusal is not None:
        return refusal
    if committed is not None and committed > planned:
        return _ahead(planned, committed, batch)
    blocked = _blocked_write(checkpoint, batch, again)
    if blocked is not None:
        return blocked
    set_as_it_was = _format_2(checkpoint, version)
    if not again:
        return Restart("next", batch, f"goes on with batch {batch}{set_as_it_was}", loads_state=batch)
    lost = [b for b in checkpoint.in_flight if b < planned]
    says = f"runs batch {planned} again with the same offsets"
    if lost:
        says += f", and only that one: {batches(lost)} {is_are(len(lost))} planned, not committed, and skipped"
    return Restart("rerun", batch, says + set_as_it_was, loads_state=batch)


def _unfinished(planned: int, version: SparkVersion) -> Restart:
    error = "[STREAMING_UNFINISHED_REPARTITION_DETECTED]"
    if version.at_least(4, 2) is not True:
        error += ", or before 4.2 [CANNOT_LOAD_STATE_STORE]"
    return _refused(f"batch {planned} is a repartition of the state that was not finished", error, planned)


def _format_2(checkpoint: Checkpoint, version: SparkVersion) -> str:
    """4.2 was seen to fail with CANNOT_LOAD_STATE_STORE when started with another format; 4.3 takes the checkpoint's."""
    if checkpoint.state.format != 2 or version.at_least(4, 3):
        return ""
    return ", if stateStore.checkpointFormatVersion=2 is set as it was"


def _continuous(checkpoint: Checkpoint, committed: int | None) -> Restart:
    """It reads the newest commit and the offsets of that epoch, whatever is planned after it."""
    if committed is None:
        return Restart("next", 0, "continuous mode: nothing is committed, so it begins again at epoch 0")
    entry = checkpoint.offsets.get(committed)
    if committed not in checkpoint.offset_names.ids:
        error = f"Batch {committed} was committed without end epoch offsets!"
        return _refused(f"offsets/{committed} is not there, and continuous mode goes on from the last commit", error)
    if isinstance(entry, Unreadable):
        return _refused(str(entry), _log_error(entry))
    return Restart("next", committed + 1, f"continuous mode: goes on from the last commit, epoch {committed + 1}")


def _async(checkpoint: Checkpoint, planned: int, committed: int | None) -> Restart:
    """With the option on, the offsets that are logged before the newest are where batch M begins."""
    before = max((batch for batch in checkpoint.offset_names.ids if batch < planned), default=None)
    if committed is not None and committed > planned:
        return _ahead(planned, committed)
    if committed == planned:
        told = Restart("next", planned + 1, f"goes on with batch {planned + 1}")
    else:
        told = Restart("rerun", planned, f"runs what came after batch {before} again, as batch {planned}")
    if before == planned - 1:
        return told
    says = f"{told.says}, if async progress tracking is on; else fails: batch {planned - 1} doesn't exist"
    return replace(told, says=says)


def _ahead(planned: int, committed: int, loads_state: int | None = None) -> Restart:
    return Restart(
        "refused", planned, f"runs batch {planned} once more, then fails: commits/{committed} is ahead of the offsets",
        f"[CONCURRENT_STREAM_LOG_UPDATE] Multiple streaming jobs detected for {planned}", loads_state,
    )  # fmt: skip


def _refused(says: str, error: str, batch: int | None = None) -> Restart:
    return Restart("refused", batch, says, error)


def _metadata(checkpoint: Checkpoint, version: SparkVersion) -> Restart | None:
    problem = checkpoint.metadata
    if problem is None:
        return None
    if problem.why == "missing":
        if not (checkpoint.offset_names.ids or checkpoint.commit_names.ids):
            return None
        text = "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE]"
        refuses = version.at_least(4, 2)
        if refuses is None:
            return Restart(
                "unknown",
                None,
                f"metadata is missing: 4.2 and later refuse with {text}, earlier ones take a new query id",
            )
        return _refused("metadata is missing", text) if refuses else None
    errors = {
        "empty": "MismatchedInputException: No content to map due to end-of-input",
        "cut": "JsonEOFException: Unexpected end-of-input",
        "shape": "org.json4s.MappingException: No usable value for id",
    }
    return _refused(str(problem), errors.get(problem.why, "the file cannot be read"))


def _nothing_planned(checkpoint: Checkpoint, version: SparkVersion) -> Restart:
    if checkpoint.commit_names.ids:
        return _refused("commits are there and no offsets", _no_offsets_error(version))
    if leftovers(checkpoint):
        refuses = version.at_least(4, 1)
        text = "[STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY] the location should be empty on batch 0"
        if refuses is None:
            return Restart(
                "unknown", 0, f"half deleted: 4.1 and later refuse with {text}, earlier ones run over what is left"
            )
        if refuses:
            return _refused(f"half deleted: {leftovers(checkpoint)[0]} is left beside empty offsets", text)
        return Restart("fresh", 0, "starts at batch 0 over the old state", loads_state=0)
    return Restart("fresh", 0, "starts at batch 0", loads_state=0)


def leftovers(checkpoint: Checkpoint) -> list[str]:
    """What is left of a checkpoint whose logs are empty: from 4.1 any file there keeps Spark from starting at batch 0."""
    left = ["state/"] if checkpoint.state_entries else []
    for log, names in (("offsets", checkpoint.offset_names), ("commits", checkpoint.commit_names)):
        left += [f"{log}/{name}" for name in (*names.temporary, *names.foreign)]
        left += [f"{log}/.{batch}.crc" for batch in names.orphan_crcs]
    return left


def _no_offsets_error(version: SparkVersion) -> str:
    """Every release refuses commits without offsets, each with words of its own."""
    if version.at_least(4, 2):
        return "assertion failed"
    if version.at_least(4, 1) is False:
        return "[CONCURRENT_STREAM_LOG_UPDATE] Multiple streaming jobs detected for 0"
    return "assertion failed, or [STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY] on 4.1"


def _newest(checkpoint: Checkpoint, planned: int, committed: int | None) -> Restart | None:
    """Every mode reads the newest offsets and the newest commit at start."""
    commit = checkpoint.commits.get(committed) if committed is not None else None
    for entry in (checkpoint.offsets.get(planned), commit):
        if isinstance(entry, Unreadable):
            return _refused(str(entry), _log_error(entry))
    return None


def _logs(checkpoint: Checkpoint, planned: int) -> Restart | None:
    """A micro-batch query also reads the offsets before the newest; `_newest` has seen that those can be read."""
    if planned == 0:
        return None
    last, before = checkpoint.offsets.get(planned), checkpoint.offsets.get(planned - 1)
    if planned - 1 not in checkpoint.offset_names.ids:
        return _refused(
            f"offsets/{planned - 1} is not there, and Spark needs the last two", f"batch {planned - 1} doesn't exist"
        )
    if isinstance(before, Unreadable):
        return _refused(str(before), _log_error(before))
    if isinstance(last, OffsetEntry) and before is not None and len(last.sources) != len(before.sources):
        now, was = len(last.sources), len(before.sources)
        return _refused(
            f"offsets/{planned} has {now} sources and offsets/{planned - 1} has {was}: no query has both",
            f"There are [{now}] sources in the checkpoint offsets and now there are [{was}], or the reverse",
        )
    return None


def _log_error(problem: Unreadable) -> str:
    if problem.why == "cut" and "version line" in problem.detail:
        return "next on empty iterator"
    return {
        "empty": f"Failed to read log file {problem.path}. Incomplete log file",
        "cut": "Unexpected end-of-input",
        "version": "[MALFORMED_LOG_FILE] failed to read correct log version",
        "newer": "[INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION], unless the Spark that starts is as new as the one that wrote it",
        "not-text": "[MALFORMED_LOG_FILE]",
    }.get(problem.why, "the log entry cannot be read")


def _source_log(checkpoint: Checkpoint) -> Restart | None:
    for source in checkpoint.sources:
        log = checkpoint.source_logs.get(source.id)
        if source.kind != "file" or log is None:
            continue
        at = log_offset(source.offset)
        latest = log.names.latest
        if at is not None and at >= 0 and (latest is None or latest < at):
            return _refused(
                f"sources/{source.id} ends at {latest}, the offsets are at {at}", f"batch {at} doesn't exist"
            )
        if latest is not None and (holes := log.names.missing_up_to(latest)):
            name = f"sources/{source.id}/{holes[0]}"
            return _refused(f"{name} is not there", f"{name} doesn't exist (latestId: {latest})")
    return None


def _blocked_write(checkpoint: Checkpoint, batch: int, again: bool) -> Restart | None:
    """On a local disk a checksum without its file keeps Spark from writing that file: what the first batch writes."""
    logs = [("commits", checkpoint.commit_names, batch)]
    if not again:
        logs.insert(0, ("offsets", checkpoint.offset_names, batch))
        logs += [
            (f"sources/{log.id}", log.names, (log.names.latest if log.names.latest is not None else -1) + 1)
            for log in checkpoint.source_logs.values()
        ]
    for directory, names, written in logs:
        if written in names.orphan_crcs:
            says = f"batch {batch} fails when it writes {directory}/{written}: .{written}.crc is there without its file"
            error = f"Multiple streaming queries are concurrently using {directory}"
            return _refused(says, error, batch)
    return None


def _state(checkpoint: Checkpoint, batch: int) -> Restart | None:
    if checkpoint.foreign_provider:
        return Restart(
            "unknown", batch, f"the state is kept by {checkpoint.foreign_provider}, whose files are not read here"
        )
    for lost in checkpoint.lost_ssts.values():
        what = lost if isinstance(lost, str) else f"{lost[0]} is gone"
        return _refused(
            f"state version {batch} cannot be loaded: {what}", "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED]", batch
        )
    broken = checkpoint.state.lacking(batch)
    if broken:
        provider = checkpoint.state.provider
        name = broken[0].break_before(batch, provider)
        kind = "CANNOT_READ_DELTA_FILE_NOT_EXISTS" if provider == "hdfs" else "CANNOT_READ_STREAMING_STATE_FILE"
        return _refused(
            f"state version {batch} cannot be loaded: {name} is gone", f"[CANNOT_LOAD_STATE_STORE.{kind}] {name}", batch
        )
    if gone := schemas_gone(checkpoint):
        return _refused(f"the schema of the state is looked for at {gone[0]}", f"File {gone[0]} does not exist", batch)
    if batch and (short := short_of_partitions(checkpoint)):
        op = short[0]
        says = f"operator {op.id} has {op.on_disk} of its {op.needed} partitions"
        return _refused(says, "[CANNOT_LOAD_STATE_STORE]", batch)
    return None


def short_of_partitions(checkpoint: Checkpoint) -> list[Operator]:
    """Operators with fewer partitions on disk than the next batch loads."""
    return [op for op in checkpoint.operators if op.on_disk < op.needed]


def schemas_gone(checkpoint: Checkpoint) -> list[str]:
    """Schema files that transformWithState reads at start; a join of state format 3 only makes their directory anew."""
    names = {op.id: op.name or "" for op in checkpoint.operators}
    return [
        path for op, paths in checkpoint.lost_schemas.items() if "transformWithState" in names[op] for path in paths
    ]


def repartition_to_finish(checkpoint: Checkpoint) -> bool:
    """An offline repartition is a batch of its own, told by its number of partitions; this one has no commit."""
    planned, done = checkpoint.planned, -1 if checkpoint.committed is None else checkpoint.committed
    if not planned or done >= planned:
        return False
    last, before = checkpoint.offsets.get(planned), checkpoint.offsets.get(planned - 1)
    old, new = (e.confs.get(PARTITIONS) if isinstance(e, OffsetEntry) else None for e in (before, last))
    return bool(old and new and old != new)
