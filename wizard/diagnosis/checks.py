"""What is wrong with a checkpoint, as far as its own files show it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from wizard.checkpoint.filelog import LogNames
from wizard.checkpoint.logfile import Unreadable
from wizard.checkpoint.offsets import OffsetEntry, log_offset
from wizard.checkpoint.reader import PARTITIONS, Checkpoint
from wizard.diagnosis.findings import Finding, finding
from wizard.diagnosis.restart import Restart, leftovers, repartition_to_finish, schemas_gone, short_of_partitions
from wizard.text import batches, is_are, plural, some


def check(checkpoint: Checkpoint, restart: Restart) -> Iterator[Finding]:
    if not checkpoint.exists:
        yield finding("CHECKPOINT_ABSENT", "there is no checkpoint", checkpoint.url)
        return
    for path, error in checkpoint.unlisted.items():
        yield finding("UNLISTED", f"{path} cannot be listed", error)
    if checkpoint.bare is not None:
        what = f"{plural(len(checkpoint.bare.files), 'file')}, {plural(checkpoint.bare.entries, 'entry', 'entries')}"
        yield finding(
            "BARE_LOG", f"this is one log ({checkpoint.bare.kind}), not a checkpoint", f"{checkpoint.url}: {what}"
        )
        yield from _entries(checkpoint)
        return
    if not _looks_like_one(checkpoint):
        seen = some(checkpoint.foreign) or "it is empty"
        yield finding("NOT_A_CHECKPOINT", "this is not a checkpoint", f"{checkpoint.url}: {seen}")
        return
    yield from _metadata(checkpoint)
    yield from _entries(checkpoint)
    yield from _strangers(checkpoint)
    if not checkpoint.unlisted:  # else what was not seen would be told as missing
        yield from _batches(checkpoint)
        yield from _crcs(checkpoint, restart)
        yield from _state(checkpoint, restart)
        yield from _sources(checkpoint)


def _looks_like_one(checkpoint: Checkpoint) -> bool:
    return bool(
        checkpoint.metadata is None or checkpoint.metadata.why != "missing"
        or checkpoint.offset_names.ids or checkpoint.commit_names.ids
        or checkpoint.source_logs or checkpoint.state_entries or checkpoint.has_commits_dir
    )  # fmt: skip


def _metadata(checkpoint: Checkpoint) -> Iterator[Finding]:
    problem = checkpoint.metadata
    if checkpoint.fence is not None:
        yield finding("FENCED", "the checkpoint is fenced by a walk", f"metadata: runbook_lock {checkpoint.fence}")
    elif problem is not None:
        code = "METADATA_MISSING" if problem.why == "missing" else "METADATA_UNREADABLE"
        yield finding(code, str(problem), problem.path)


def _batches(checkpoint: Checkpoint) -> Iterator[Finding]:
    planned, committed = checkpoint.planned, checkpoint.committed
    offsets, commits = checkpoint.offset_names, checkpoint.commit_names
    if planned is None:
        if committed is not None:
            yield finding("COMMITS_WITHOUT_OFFSETS", "commits are there and no offsets", f"newest commit {committed}")
        elif left := leftovers(checkpoint):
            yield finding("HALF_DELETED", f"{left[0]} is left beside empty offsets", some(left))
        for log in checkpoint.source_logs.values():
            if log.initial is not None:
                yield finding(
                    "START_PINNED", f"source {log.id} remembers where it began", f"sources/{log.id}/0: {log.initial}"
                )
        return
    if checkpoint.continuous:
        yield finding("CONTINUOUS_MODE", "this is a continuous query", f"offsets/{planned} has an empty metadata line")
        return
    holes = offsets.holes
    if checkpoint.async_progress:
        yield finding(
            "ASYNC_PROGRESS", "only some batches are logged", f"offsets and commits {some(sorted(offsets.ids))}"
        )
    elif planned and planned - 1 not in offsets.ids:
        yield finding("OFFSETS_GAP", f"offsets/{planned - 1} is not there", f"newest offsets {planned}")
    elif holes:
        yield finding("OFFSETS_HOLES", "older offsets are missing", f"missing {some(holes)}")
    if committed is not None and committed > planned:
        yield finding(
            "COMMITS_AHEAD",
            f"commits/{committed} is ahead of offsets/{planned}",
            f"committed {committed}, planned {planned}",
        )
    in_flight = checkpoint.in_flight
    skipped = committed is not None and planned - committed > 1 and not checkpoint.async_progress
    if len(in_flight) > 1 or (in_flight and skipped):
        yield finding(
            "COMMITS_BEHIND",
            f"{batches(in_flight)} {is_are(len(in_flight))} planned and not committed",
            f"planned {planned}, committed {committed if commits.ids else 'none'}",
        )
    elif in_flight:
        yield finding(
            "BATCH_IN_FLIGHT", f"batch {planned} was in flight", f"offsets/{planned} and no commits/{planned}"
        )


def _entries(checkpoint: Checkpoint) -> Iterator[Finding]:
    planned, committed = checkpoint.planned, checkpoint.committed
    for log, entries, needed in (
        ("offsets", checkpoint.offsets, {planned, (planned or 0) - 1}),
        ("commits", checkpoint.commits, {committed}),
    ):
        for batch, entry in entries.items():
            if not isinstance(entry, Unreadable):
                continue
            if entry.why == "newer":
                yield finding("NEWER_FORMAT", f"{entry.path} {entry.detail}", str(entry))
            elif batch in needed:
                code = "OFFSETS_UNREADABLE" if log == "offsets" else "COMMIT_UNREADABLE"
                yield finding(code, f"{entry.path} {entry.detail}", str(entry))
            else:
                yield finding("OLD_ENTRY_UNREADABLE", f"{entry.path} {entry.detail}", str(entry))
    for bad in checkpoint.damaged:
        code = "NEWER_FORMAT" if bad.why == "newer" else "OPERATOR_METADATA_UNREADABLE"
        yield finding(code, f"{bad.path} {bad.detail}", str(bad))


def _crcs(checkpoint: Checkpoint, restart: Restart) -> Iterator[Finding]:
    """Only one for a batch still to be written blocks: older ones lie there for ever."""
    following = restart.batch if restart.batch is not None else (checkpoint.planned or 0)
    logs: list[tuple[str, LogNames, int]] = [
        ("offsets", checkpoint.offset_names, (checkpoint.planned if checkpoint.planned is not None else -1) + 1),
        ("commits", checkpoint.commit_names, following),
    ]
    logs += [
        (f"sources/{log.id}", log.names, (log.names.latest if log.names.latest is not None else -1) + 1)
        for log in checkpoint.source_logs.values()
    ]
    for directory, names, first in logs:
        blocking = [k for k in names.orphan_crcs if k >= first]
        if blocking:
            yield finding(
                "ORPHAN_CRC", f"{directory}/.{blocking[0]}.crc has no main file", f"{directory}: {some(blocking)}"
            )
        if names.temporary:
            yield finding(
                "TEMPORARY_FILES",
                f"{plural(len(names.temporary), 'temporary file')} in {directory}",
                some(names.temporary),
            )


def _state(checkpoint: Checkpoint, restart: Restart) -> Iterator[Finding]:
    planned = checkpoint.planned
    if planned is None:
        return
    if checkpoint.state_missed:
        yield finding(
            "STATE_ABSENT", "there is no state/, and the watermark has moved", f"offsets/{planned}: batchWatermarkMs"
        )
    if checkpoint.foreign_provider:
        return  # its names of files say nothing here
    needed = planned + 1 if checkpoint.committed == planned else planned
    broken = [each for each in checkpoint.state.lacking(needed) if each.directory not in checkpoint.lost_ssts]
    if broken:
        names = [files.break_before(needed, checkpoint.state.provider) for files in broken]
        yield finding(
            "STATE_BROKEN", f"state version {needed} cannot be loaded in {plural(len(broken), 'store')}", some(names)
        )
    for directory, lost in checkpoint.lost_ssts.items():
        yield finding(
            "STATE_BROKEN",
            f"state version {needed} cannot be loaded in {directory}",
            lost if isinstance(lost, str) else some(lost),
        )
    # Batch 0 loads none and makes them all; a repartition has still to make them.
    short = short_of_partitions(checkpoint) if needed and not repartition_to_finish(checkpoint) else []
    if short:
        who = f"operator {short[0].id} lacks" if len(short) == 1 else f"{len(short)} operators lack"
        seen = [f"operator {op.id}: {op.on_disk} of {op.needed} on disk" for op in short]
        yield finding("STATE_BROKEN", f"{who} partitions", some(seen))
    for operator, paths in checkpoint.lost_schemas.items():
        code = "STATE_SCHEMA_GONE" if paths[0] in schemas_gone(checkpoint) else "STATE_SCHEMA_MOVED"
        yield finding(code, f"operator {operator} looks for the schema of its state elsewhere", some(paths, 2))
    stale = sorted(
        {v for files in checkpoint.state.stores for kind in files.files.values() for v in kind if v > planned + 1}
    )
    if stale:
        yield finding("STATE_STALE", f"state is ahead of batch {planned}", f"versions {some(stale)}")
    strangers = [f"{files.directory}/{name}" for files in checkpoint.state.stores for name in files.foreign]
    if strangers:
        yield finding("STATE_FOREIGN", f"{plural(len(strangers), 'foreign file')} among the state", some(strangers))


def _sources(checkpoint: Checkpoint) -> Iterator[Finding]:
    entries = [entry for _, entry in sorted(checkpoint.offsets.items()) if isinstance(entry, OffsetEntry)]
    for before, after in itertools.pairwise(entries):
        if len(before.sources) != len(after.sources) and not after.continuous:
            yield finding(
                "SOURCES_DIFFER",
                f"batch {after.batch} has {plural(len(after.sources), 'source')}, batch {before.batch} has {len(before.sources)}",
                f"offsets/{before.batch}, offsets/{after.batch}",
            )
        old, new = before.confs.get(PARTITIONS), after.confs.get(PARTITIONS)
        if old != new and old and new:
            yield finding(
                "REPARTITIONED",
                f"{PARTITIONS} went from {old} to {new} at batch {after.batch}",
                f"offsets/{after.batch}",
            )
    if repartition_to_finish(checkpoint):
        said = f"batch {checkpoint.planned} repartitions the state and has no commit"
        yield finding("REPARTITION_UNFINISHED", said, f"offsets/{checkpoint.planned}: {PARTITIONS}")
    for source in checkpoint.sources:
        log = checkpoint.source_logs.get(source.id)
        if log is None or source.kind != "file":
            continue
        at, latest = log_offset(source.offset), log.names.latest
        if log.problem is not None:
            yield finding("SOURCE_LOG_BROKEN", str(log.problem), log.problem.path)
        elif at is not None and at >= 0 and (latest is None or latest < at):
            yield finding(
                "SOURCE_LOG_BROKEN",
                f"sources/{source.id} ends at {latest}, the offsets are at {at}",
                f"sources/{source.id}",
            )
        elif latest is not None and (holes := log.names.missing_up_to(latest)):
            yield finding(
                "SOURCE_LOG_BROKEN",
                f"sources/{source.id}/{holes[0]} is not there",
                f"missing {some(holes)}, newest {latest}",
            )


def _strangers(checkpoint: Checkpoint) -> Iterator[Finding]:
    if checkpoint.foreign:
        yield finding(
            "FOREIGN_FILES",
            f"{plural(len(checkpoint.foreign), 'foreign entry', 'foreign entries')} at the root",
            some(checkpoint.foreign),
        )
    for directory, names in (("offsets", checkpoint.offset_names), ("commits", checkpoint.commit_names)):
        if names.foreign:
            yield finding(
                "FOREIGN_FILES", f"{plural(len(names.foreign), 'foreign file')} in {directory}", some(names.foreign)
            )
