"""From evidence to a diagnosis: one object, printed for people or as JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wizard.checkpoint.offsets import OffsetEntry, log_offset
from wizard.checkpoint.reader import Checkpoint, read_checkpoint
from wizard.checkpoint.state import ranges
from wizard.diagnosis.checks import check
from wizard.diagnosis.crosscheck import cross_check
from wizard.diagnosis.explain import Explanation
from wizard.diagnosis.explain_report import seen as seen_in_log
from wizard.diagnosis.findings import Finding, finding, worst_first
from wizard.diagnosis.reach import Reach, reach
from wizard.diagnosis.restart import Restart, predict
from wizard.diagnosis.spark_version import SparkVersion, spark_version, too_old
from wizard.diagnosis.verdicts import Evidence, verdicts
from wizard.secrets import mask_all
from wizard.sinks.file_sink import FileSink
from wizard.sinks.interface import SinkReport
from wizard.sinks.open import open_sink
from wizard.sources.files import InputReport, look_at_inputs
from wizard.store import Store, open_store
from wizard.text import is_are, plural, some

if TYPE_CHECKING:
    from wizard.diagnosis.held import Asked
    from wizard.jobs.model import Job
    from wizard.sources.open import Described

_GAP_FACTOR = 10
_GAP_AT_LEAST_MS = 60_000


@dataclass(frozen=True, slots=True)
class Subject:
    """What to look at: a job of the registry, or paths given by hand."""

    checkpoint: str
    sink: str | None = None
    sink_format: str | None = None
    spark_version: str | None = None
    key: tuple[str, ...] = ()
    idempotent: bool | None = None
    sources: int | None = None
    job: str | None = None
    reads: tuple[Described, ...] = ()  # its sources, to be asked what they hold
    tried: str = ""  # what was seen when a batch was written to a copy of the sink twice
    aggregates: bool = False  # its rows are not rows of the source
    consumers: tuple[Job, ...] = ()  # the jobs that read its output, to be asked what they have read
    sink_options: Mapping[str, str] = field(default_factory=dict, repr=False)  # a password may be among them


@dataclass(frozen=True, slots=True)
class Diagnosis:
    subject: Subject
    checkpoint: Checkpoint
    sink: SinkReport | None
    version: SparkVersion
    restart: Restart
    restarts: tuple[dict[str, Any], ...]
    findings: tuple[Finding, ...]
    reach: Reach
    paths: dict[str, dict[str, Any]]
    explanation: Explanation | None = None

    @property
    def errors(self) -> list[Finding]:
        return [found for found in self.findings if found.severity == "error"]

    def as_dict(self) -> dict[str, Any]:
        return mask_all(self._as_dict())  # type: ignore[no-any-return]

    def _as_dict(self) -> dict[str, Any]:
        ck = self.checkpoint
        return {
            "checkpoint": ck.url,
            "job": self.subject.job,
            "query_id": ck.query_id,
            "spark_version": {"release": str(self.version).split(" ")[0], "inferred": self.version.inferred},
            "mode": "continuous" if ck.continuous else "async-progress" if ck.async_progress else "micro-batch",
            "batches": {
                "first": ck.first,
                "planned": ck.planned,
                "committed": ck.committed,
                "in_flight": list(ck.in_flight),
            },
            "watermark_ms": ck.latest_offsets.watermark_ms if ck.latest_offsets else None,
            "last_batch_at_ms": ck.latest_offsets.timestamp_ms if ck.latest_offsets else None,
            "sources": [
                {"index": index, "id": source.id, "kind": source.kind, "offset": source.offset}
                for index, source in enumerate(ck.sources)
            ],
            "operators": [
                {
                    "id": op.id,
                    "name": op.name,
                    "stores": list(op.stores),
                    "partitions": op.partitions,
                    "inferred": op.inferred,
                }
                for op in ck.operators
            ],
            "state": _state(ck),
            "confs": ck.confs,
            "sink": _sink(self.sink),
            "restart": self.restart.as_dict(),
            "restarts": list(self.restarts),
            **(
                {"bare_log": {"kind": ck.bare.kind, "files": list(ck.bare.files), "entries": ck.bare.entries}}
                if ck.bare
                else {}
            ),
            "findings": [found.as_dict() for found in self.findings],
            "paths": self.paths,
            **({"log": self.explanation.as_dict()} if self.explanation else {}),
        }


def diagnose(subject: Subject, explanation: Explanation | None = None) -> Diagnosis:
    store = open_store(subject.checkpoint)
    checkpoint = read_checkpoint(store)
    version = spark_version(subject.spark_version, checkpoint)
    restart = predict(checkpoint, version)
    sink, unknown_sink = _look_at_sink(subject, checkpoint)
    inputs = _inputs(store, checkpoint)
    found = [*check(checkpoint, restart), *unknown_sink, *_input_findings(checkpoint, restart, inputs)]
    if sink is not None:
        found += cross_check(checkpoint, sink)
    found += _registry(subject, checkpoint, version)
    held = _ask_sources(subject, checkpoint)
    if held:
        from wizard.diagnosis.held import source_findings

        found += source_findings(checkpoint, held)
    if subject.consumers:
        from wizard.diagnosis.consumers import consumer_findings

        found += consumer_findings(subject.consumers)
    cause = explanation.cause if explanation else None
    told_by = {explanation.query_id, cause.query_id} - {None} if explanation and cause else set()
    if cause is not None and checkpoint.query_id and told_by and checkpoint.query_id not in told_by:
        found.append(
            finding(
                "LOG_OF_ANOTHER_QUERY",
                f"the log is of query {told_by.pop()}, the checkpoint of {checkpoint.query_id}",
                f"line {cause.line}: {cause.signature.code}",
            )
        )
        cause = None
    if explanation is not None and cause is not None:
        found.append(
            finding(
                "LOG_SIGNATURE",
                f"the log shows {cause.signature.code}: {cause.signature.title}",
                seen_in_log(explanation, cause),
            )
        )
    findings = worst_first(found)
    back = reach(checkpoint, sink, inputs, held)
    paths = verdicts(
        Evidence(checkpoint, restart, findings, back, sink, inputs, held, subject.key, subject.aggregates, cause)
    )
    return Diagnosis(
        subject, checkpoint, sink, version, restart, _restarts(checkpoint), findings, back, paths, explanation
    )


def _look_at_sink(subject: Subject, checkpoint: Checkpoint) -> tuple[SinkReport | None, list[Finding]]:
    if subject.sink is None and subject.sink_format is None:
        return None, []
    sink = open_sink(subject.sink, subject.sink_format, subject.sink_options, subject.key)
    if sink is None:
        unknown = finding(
            "SINK_UNKNOWN_KIND", f"no reader for a sink of kind {subject.sink_format}", subject.sink or "no path"
        )
        report = SinkReport(
            subject.sink_format or "unknown", subject.sink or "", exists=True, idempotent=subject.idempotent
        )
        return report, [unknown]
    report = sink.report(checkpoint.query_id)
    if isinstance(sink, FileSink) and report.log is not None:
        report = replace(report, written=sink.written(report.log, checkpoint.offsets))
    if report.idempotent is None and subject.idempotent is not None:
        seen = {"tried": subject.tried} if subject.tried else {}
        report = replace(report, idempotent=subject.idempotent, details=report.details | seen)
    return report, []


def _ask_sources(subject: Subject, checkpoint: Checkpoint) -> dict[str, Asked]:
    if not subject.reads:
        return {}  # a checkpoint given by hand: nothing says where its sources are
    from wizard.diagnosis.held import ask_sources

    return ask_sources(subject.reads, checkpoint)


def _inputs(store: Store, checkpoint: Checkpoint) -> dict[str, InputReport]:
    return {
        source.id: look_at_inputs(store, log)
        for source in checkpoint.sources
        if source.kind == "file" and (log := checkpoint.source_logs.get(source.id)) is not None
    }


def _input_findings(checkpoint: Checkpoint, restart: Restart, inputs: dict[str, InputReport]) -> list[Finding]:
    """Only the batch that runs again reads old input; new batches list the directory anew, and know a file by its time."""
    out = [
        finding(
            "INPUT_TOUCHED",
            f"{plural(len(report.touched), 'input file')} of source {name} {is_are(len(report.touched))} newer than when read",
            some(report.touched, 3),
        )
        for name, report in inputs.items()
        if report.touched
    ]
    if restart.action != "rerun" or restart.batch is None:
        return out
    here, before = checkpoint.offsets.get(restart.batch), checkpoint.offsets.get(restart.batch - 1)
    for source in here.sources if isinstance(here, OffsetEntry) else ():
        start = (
            next((log_offset(s.offset) for s in before.sources if s.id == source.id), None)
            if isinstance(before, OffsetEntry)
            else None
        )
        end = log_offset(source.offset)
        if source.id in inputs and end is not None:
            gone = inputs[source.id].missing_between(-1 if start is None else start, end)
            if gone:
                files = f"{plural(len(gone), 'input file')} of batch {restart.batch} {is_are(len(gone))} gone"
                out.append(finding("INPUT_GONE", files, some(gone, 3)))
    return out


def _registry(subject: Subject, checkpoint: Checkpoint, version: SparkVersion) -> Iterator[Finding]:
    here = len(checkpoint.sources)
    if subject.sources is not None and here and here != subject.sources:
        yield finding(
            "SOURCES_DIFFER",
            f"the registry names {plural(subject.sources, 'source')}, the checkpoint has {here}",
            f"offsets/{checkpoint.planned}",
        )
    if (newer := too_old(version, checkpoint)) is not None:
        yield finding("SPARK_TOO_OLD", f"{newer[0]} was written by a newer Spark than {version}", newer[1])


def _restarts(checkpoint: Checkpoint) -> tuple[dict[str, Any], ...]:
    """Where the stream stood still: from the batches' own times, and from the runs that Spark recorded."""
    timed = [
        (e.batch, e.timestamp_ms)
        for _, e in sorted(checkpoint.offsets.items())
        if isinstance(e, OffsetEntry) and e.timestamp_ms
    ]
    gaps = [(b, later - earlier) for (a, earlier), (b, later) in itertools.pairwise(timed) if b == a + 1]
    usual = sorted(gap for _, gap in gaps)[len(gaps) // 2] if gaps else 0
    found: dict[int, dict[str, Any]] = {
        batch: {"before_batch": batch, "gap_ms": gap, "by": "gap", "inferred": True}
        for batch, gap in gaps
        if gap > max(_GAP_AT_LEAST_MS, _GAP_FACTOR * usual)
    }
    for batch in checkpoint.run_starts:
        if batch:
            found[batch] = {
                "before_batch": batch,
                "gap_ms": dict(gaps).get(batch),
                "by": "operator metadata",
                "inferred": False,
            }
    return tuple(found[batch] for batch in sorted(found))


def _state(checkpoint: Checkpoint) -> dict[str, Any]:
    state = checkpoint.state
    whole = state.whole
    groups: dict[tuple[int, str, tuple[tuple[int, int], ...]], list[int]] = {}
    for files in state.stores:
        groups.setdefault((files.operator, files.store, ranges(files.whole)), []).append(files.partition)
    return {
        "provider": state.provider,
        "format": state.format,
        "versions": {"min": min(whole, default=None), "max": max(whole, default=None)},
        "stores": [
            {
                "operator": op,
                "store": name,
                "partitions": [list(r) for r in ranges(parts)],
                "whole": [list(r) for r in versions],
            }
            for (op, name, versions), parts in sorted(groups.items())
        ],
    }


def _sink(sink: SinkReport | None) -> dict[str, Any] | None:
    if sink is None:
        return None
    return {
        "format": sink.format,
        "path": sink.path,
        "exists": sink.exists,
        "last_batch": sink.last_batch,
        "idempotent": sink.idempotent,
        "rows": sink.rows,
        "files": sink.files,
        "bytes": sink.bytes,
        **sink.details,
    }
