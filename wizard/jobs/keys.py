"""Whether the declared key of a sink can identify a row, as far as names tell."""

from __future__ import annotations

from collections.abc import Iterator

from wizard.jobs.model import Job, Severity

# Sinks nothing can be read back from: a key would prove nothing there.
_UNREADABLE = frozenset(("console", "noop", "memory", "foreach"))
_LOGS = frozenset(("kafka", "log"))
_COARSE = frozenset(
    {"date", "day", "dt", "ds", "hour", "minute", "month", "year", "week", "topic", "partition", "timestamp", "ts"}
    | {"time", "event_time", "event_date"}
)
# Written anew by each attempt: a replayed row would come out as another row.
_OF_THE_RUN = frozenset(
    {"batch_id", "batchid", "processing_time", "processed_at", "ingested_at", "ingest_time", "ingestion_time"}
    | {"loaded_at", "inserted_at"}
)

Finding = tuple[str, Severity, str]


def key_problems(job: Job) -> Iterator[Finding]:
    """Code, severity and message."""
    sink = job.sink
    if sink.format.lower() in _UNREADABLE:
        return
    if not sink.key:
        fix = "add key, the columns that identify a row, such as [partition, offset]"
        yield "J201", "error", f"the sink of {job.name} has no key, so no row could be proved to be there once; {fix}"
        return
    columns = [column.lower() for column in sink.key]  # Spark resolves column names without regard to case
    repeated = sorted({column for column in columns if columns.count(column) > 1})
    if repeated:
        yield "J202", "error", f"the key of {job.name} names {', '.join(repeated)} twice; take one out"
    yield from _identity(job, set(columns))
    if volatile := sorted(_OF_THE_RUN.intersection(columns)):
        what = f"{', '.join(volatile)} in the key of {job.name} differs each time a row is written"
        yield "J205", "warning", f"{what}; key by what comes from the source"


def counts_problems(job: Job) -> Iterator[Finding]:
    counts = job.sink.counts
    if counts is None:
        return
    by = [column.lower() for column in counts.by]
    if repeated := sorted({column for column in by if by.count(column) > 1}):
        yield "J206", "error", f"counts.by of {job.name} names {', '.join(repeated)} twice; take one out"
    if counts.column.lower() in (*by, *(column.lower() for column in job.sink.key)):
        what = f"counts.column of {job.name} is {counts.column}, which identifies a row"
        yield "J206", "error", f"{what}; name the column that holds the number"
    if job.output_mode == "append":
        what = f"{job.name} appends a window only when it is closed, so counts do not agree before that"
        yield "J207", "warning", f"{what}; expect the proof to say unknown, or write in update mode"


def _identity(job: Job, columns: set[str]) -> Iterator[Finding]:
    shown = f"the key [{', '.join(job.sink.key)}] of {job.name}"
    partitions = {column.lower() for column in job.sink.partition_by}
    logs = [source for source in job.sources if source.format.lower() in _LOGS]
    if job.output_mode != "append":
        return  # an aggregate's row is its group, and [hour] may well be one
    if columns <= _COARSE or columns == partitions:
        yield "J203", "error", f"{shown} does not identify a row, many rows share it; add what tells them apart"
    elif not logs:
        return
    elif "offset" in columns and "partition" not in columns:
        yield "J203", "error", f"{shown} does not identify a row, each partition counts its own offsets; add partition"
    elif "offset" in columns and "topic" not in columns:
        several = any("," in source.options.get("subscribe", "") for source in logs) or len(logs) > 1
        if several or any("subscribePattern" in source.options for source in logs):
            severity: Severity = "error" if several else "warning"
            yield "J203", severity, f"{shown} does not identify a row, each topic counts its own offsets; add topic"
    elif "offset" not in columns and "partition" not in columns:
        what = f"{shown} holds neither partition nor offset, so a row cannot be traced to the log"
        yield "J204", "warning", f"{what}; use [partition, offset], or be sure that it is unique"
