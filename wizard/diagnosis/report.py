"""A diagnosis as a person reads it: a summary line first, then the verdicts, the findings, the evidence."""

from __future__ import annotations

import json
from typing import Any

from wizard.diagnosis.diagnose import Diagnosis
from wizard.diagnosis.findings import Finding
from wizard.secrets import mask
from wizard.text import MARKS, SEVERITIES, Paint, ago, columns, fold, moment, printable, size, span

_WIDE = 100


def summary(diagnosis: Diagnosis) -> str:
    """One line: what state the job is in and what is the next safe thing."""
    checkpoint, restart = diagnosis.checkpoint, diagnosis.restart
    errors = diagnosis.errors
    head = diagnosis.subject.job or checkpoint.url
    if errors:
        state = f"{len(errors)} problem{'s' if len(errors) > 1 else ''}: {errors[0].message}"
    elif restart.action == "rerun":
        state = f"stopped in the middle of batch {restart.batch}; the checkpoint is whole"
    elif restart.action == "next":
        state = f"whole up to batch {checkpoint.committed}"
    else:
        state = restart.says
    return printable(mask(f"{head}: {state}"))


def lines(diagnosis: Diagnosis, paint: Paint, width: int | None = None) -> list[str]:
    """`width` is that of a terminal, where long lines are folded under their beginning."""
    bad = bool(diagnosis.errors)
    out = [paint(line, "bold", "red" if bad else "green") for line in fold(summary(diagnosis), 0, width)]
    out += ["", *_paths(diagnosis, paint, width)]
    out += _findings(diagnosis.findings, paint, width)
    out += ["", paint("Evidence", "bold")]
    rows = _evidence(diagnosis)
    at = 4 + max(len(name) for name, _ in rows)
    for line, (_, value) in zip(columns(rows), rows, strict=True):
        first, *more = fold(value, at, width)
        out += [f"  {line[: len(line) - len(value)]}{first}", *more]
    return out


def _paths(diagnosis: Diagnosis, paint: Paint, width: int | None) -> list[str]:
    out = []
    for name, path in diagnosis.paths.items():
        mark, colour = MARKS[path["verdict"]]
        reasons = [fold(printable(mask(reason)), 22, width) for reason in path["reasons"] or [""]]
        (first, *more), *others = reasons
        word = paint(f"{mark} {name:<8} {path['verdict']:<8}", colour, "bold")
        out += [f"  {word} {first}", *more]
        for reason, *rest in others:
            out += [f"{'':22}{reason}", *rest]
    return out


def _findings(findings: tuple[Finding, ...], paint: Paint, width: int | None) -> list[str]:
    if not findings:
        return ["", "  No findings."]
    out = ["", paint("Findings", "bold")]
    for found in findings:
        mark, colour = SEVERITIES[found.severity]
        first, *more = fold(printable(found.message), 6 + len(found.code), width)
        out += [f"  {paint(f'{mark} {found.code}', colour, 'bold')}  {first}", *more]
        told = [("seen ", printable(found.evidence))]
        if found.severity != "info":
            told += [("means", found.meaning), ("do   ", found.remedy)]
        for label, text in told:
            first, *more = fold(text, 12, width)
            out += [f"      {paint(label, 'dim')} {first}", *more]
    return out


def _evidence(diagnosis: Diagnosis) -> list[list[str]]:
    ck = diagnosis.checkpoint
    latest = ck.latest_offsets
    rows = [
        ["checkpoint", ck.url],
        ["query id", ck.query_id or "none"],
        ["Spark", str(diagnosis.version)],
        ["batches", _batches(diagnosis)],
        ["at start", _at_start(diagnosis)],
        ["last planned", ago(latest.timestamp_ms if latest else None)],
    ]
    if latest and latest.watermark_ms:
        rows.append(["watermark", moment(latest.watermark_ms)])
    rows += [[f"source {source.id}", f"{source.kind} at {_short(source.offset)}"] for source in ck.sources]
    for op in ck.operators:
        name = op.name or "stateful operator"
        rows.append([f"operator {op.id}", f"{name}, {op.partitions} partitions, stores {', '.join(op.stores)}"])
    if ck.state.stores:
        whole = ck.state.whole
        versions = (
            f"versions {min(whole)} to {max(whole)} whole everywhere" if whole else "no version is whole everywhere"
        )
        rows.append(["state", f"{ck.state.provider}, format {ck.state.format}, {versions}"])
    if "spark.sql.shuffle.partitions" in ck.confs:
        rows.append(
            [
                "pinned",
                f"shuffle.partitions={ck.confs['spark.sql.shuffle.partitions']} and {len(ck.confs) - 1} more (--json shows all)",
            ]
        )
    rows += [
        ["stood still", f"{span((stop['gap_ms'] or 0) / 1000)} before batch {stop['before_batch']}"]
        for stop in diagnosis.restarts
    ]
    rows.append(["sink", _sink(diagnosis) if diagnosis.sink is not None else "not looked at; name it with --sink URL"])
    return [[name, printable(mask(value))] for name, value in rows]


def _at_start(diagnosis: Diagnosis) -> str:
    restart = diagnosis.restart
    if restart.action != "refused":
        return restart.says
    return f"Spark refuses: {restart.says} ({restart.error})"


def _batches(diagnosis: Diagnosis) -> str:
    ck = diagnosis.checkpoint
    if ck.planned is None:
        return "none planned"
    flight = f", in flight {', '.join(str(b) for b in ck.in_flight[:5])}" if ck.in_flight else ", none in flight"
    return f"{ck.first} to {ck.planned} planned, {'none' if ck.committed is None else ck.committed} committed{flight}"


def _sink(diagnosis: Diagnosis) -> str:
    sink = diagnosis.sink
    assert sink is not None
    if not sink.exists:
        return f"{sink.format} at {sink.path}: not there"
    parts = [f"{sink.format} at {sink.path}", f"last batch {'none' if sink.last_batch is None else sink.last_batch}"]
    if sink.rows is not None:
        parts.append(f"{sink.rows} rows")
    if sink.files is not None:
        parts.append(f"{sink.files} files")
    if sink.bytes is not None:
        parts.append(size(sink.bytes))
    return ", ".join(parts)


def _short(offset: Any) -> str:
    text = json.dumps(offset, separators=(",", ":"))
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"
