"""Checkpoint against sink: what a restart would skip, and what it would write twice."""

from __future__ import annotations

from collections.abc import Iterator

from wizard.checkpoint.offsets import OffsetEntry
from wizard.checkpoint.reader import Checkpoint
from wizard.diagnosis.findings import Finding, finding
from wizard.sinks.interface import SinkReport
from wizard.text import is_are, plural, some

_CLOCKS_MS = 2_000  # by which two machines' clocks may differ
_SAYS = {
    "SINK_UNREADABLE": "the sink cannot be read",
    "SINK_LOG_UNREADABLE": "the sink's log cannot be parsed",
    "SINK_LOG_HOLE": "the sink's log has a hole",
    "SINK_LOG_ABSENT": "the sink holds data files and has no log",
    "SINK_FILES_GONE": "files that the sink's log lists are gone",
    "SINK_ORPHANS": "the sink holds data files that its log does not list",
    "SINK_MOVED": "the sink's log names files under another path: the output was moved or copied",
}


def cross_check(checkpoint: Checkpoint, sink: SinkReport) -> Iterator[Finding]:
    for problem in sink.problems:
        yield finding(problem.code, _SAYS[problem.code], problem.evidence)
    if checkpoint.unlisted:
        return
    committed = checkpoint.committed if checkpoint.committed is not None else -1
    planned = checkpoint.planned if checkpoint.planned is not None else -1
    if not sink.exists:
        if committed >= 0:
            yield finding(
                "SINK_ABSENT", f"batches up to {committed} are committed and the sink is not there", sink.path
            )
        return
    if any(problem.code == "SINK_UNREADABLE" for problem in sink.problems):
        return
    yield from _older(checkpoint, sink)
    last = sink.last_batch
    if sink.log is not None and (blocking := [k for k in sink.log.orphan_crcs if k > (-1 if last is None else last)]):
        yield finding(
            "ORPHAN_CRC", f"_spark_metadata/.{blocking[0]}.crc has no main file", f"{sink.path}: {some(blocking)}"
        )
    seen = f"sink holds batch {last}; checkpoint planned {planned if planned >= 0 else 'none'}, committed {committed if committed >= 0 else 'none'}"
    if last is not None and last > planned:
        yield finding("SINK_AHEAD", f"{_range(planned + 1, last)} would be skipped without an error", seen)
    elif last is not None and last < committed and not sink.sparse:
        yield finding(
            "SINK_BEHIND",
            f"{_range(last + 1, committed)} {is_are(committed - last)} committed and not in the sink",
            seen,
        )
    elif last is not None and sink.format == "delta" and sink.details.get("emptied_at") is not None:
        yield finding(
            "SINK_EMPTIED",
            f"batches up to {last} are committed and the table holds no rows",
            f"emptied by version {sink.details['emptied_at']} of {sink.path}",
        )
    elif last is None and committed >= 0:
        yield from _remembers_nothing(checkpoint, sink, committed)


def _older(checkpoint: Checkpoint, sink: SinkReport) -> Iterator[Finding]:
    """Rows that another query wrote. Files are told by their time: a batch is planned before its files are written, and
    those that were there before are of another run of its number. Told of the first batch while it is still logged, and
    of every one that both logs still have by itself."""
    other = sink.details.get("rows_of_another")
    if other is not None and sink.last_batch is not None:
        told = f"query {other} besides {checkpoint.query_id}, which is at batch {sink.last_batch}"
        yield finding("SINK_OLDER", f"the table holds rows of query {other} too", told)
        return
    began = checkpoint.offsets.get(0)
    if isinstance(began, OffsetEntry) and began.timestamp_ms and sink.oldest_ms is not None:
        before = began.timestamp_ms - sink.oldest_ms
        if before > _CLOCKS_MS:
            yield finding(
                "SINK_OLDER",
                f"the output holds files from {before / 1000:.0f} s before this checkpoint began",
                f"oldest file in the log {sink.oldest_ms}, offsets/0 planned at {began.timestamp_ms}",
            )
            return
    for batch, written in sorted(sink.written.items()):
        entry = checkpoint.offsets.get(batch)
        planned = entry.timestamp_ms if isinstance(entry, OffsetEntry) else None
        if planned and planned - written > _CLOCKS_MS:
            yield finding(
                "SINK_OLDER",
                f"the output's files of batch {batch} are {(planned - written) / 1000:.0f} s older than this checkpoint's batch",
                f"written {written}, offsets/{batch} planned at {planned}",
            )
            return


def _remembers_nothing(checkpoint: Checkpoint, sink: SinkReport, committed: int) -> Iterator[Finding]:
    if sink.format in ("delta", "jdbc"):
        others = [app for app in sink.details.get("transactions", {}) if app != checkpoint.query_id]
        if others:
            yield finding(
                "SINK_ANOTHER_QUERY",
                f"the table knows {plural(len(others), 'other writer')} and not query {checkpoint.query_id}",
                some([f"{app} at {sink.details['transactions'][app]}" for app in others]),
            )
        elif sink.rows == 0:
            yield finding("SINK_BEHIND", f"batches up to {committed} are committed and the table is empty", sink.path)
    elif sink.files == 0:  # None: a kind that was not looked at
        yield finding("SINK_BEHIND", f"batches up to {committed} are committed and the sink is empty", sink.path)


def _range(first: int, last: int) -> str:
    return f"batch {first}" if first == last else f"batches {first} to {last}"
