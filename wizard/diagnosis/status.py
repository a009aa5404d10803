"""A job in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wizard.diagnosis.diagnose import Diagnosis, Subject, diagnose
from wizard.errors import RunbookError
from wizard.secrets import mask
from wizard.text import MARKS, SEVERITIES, Paint, ago, columns, printable, size, span


@dataclass(frozen=True, slots=True)
class Status:
    """`diagnosis` is None where the job could not be looked at; one such job does not hide the others."""

    job: str
    diagnosis: Diagnosis | None
    error: str | None = None
    quarantine: dict[str, float] | None = None  # what walks of this job have put aside; None where it cannot be told

    def as_dict(self) -> dict[str, Any]:
        if self.diagnosis is None:
            return {"job": self.job, "error": self.error, "quarantine": self.quarantine}
        full = self.diagnosis.as_dict()
        return {
            "job": self.job,
            "checkpoint": full["checkpoint"],
            "batches": full["batches"],
            "last_batch_at_ms": full["last_batch_at_ms"],
            "findings": [found["code"] for found in full["findings"]],
            "paths": {name: path["verdict"] for name, path in full["paths"].items()},
            "quarantine": self.quarantine,
        }


def status_of(job: str, subject: Subject, kept: Callable[[str], dict[str, float]] | None = None) -> Status:
    """`kept` says what is in quarantine for a job: files, bytes, oldest_seconds."""
    try:
        aside = kept(job) if kept else None
    except (RunbookError, OSError):
        aside = None  # the runs cannot be read; the job can be looked at all the same
    try:
        return Status(job, diagnose(subject), quarantine=aside)
    except RunbookError as error:
        return Status(job, None, mask(str(error)), aside)


def status_lines(found: list[Status], paint: Paint) -> list[str]:
    rows = [["", "JOB", "COMMITTED", "IN FLIGHT", "LAST PLANNED", "RESUME", "STATE"]]
    rows += [_row(one) for one in found]
    if any(one.quarantine and one.quarantine["files"] for one in found):
        rows = [[*row[:-1], cell, row[-1]] for row, cell in zip(rows, ["QUARANTINE", *map(_aside, found)], strict=True)]
    header, *rest = columns(rows)
    out = [paint(header, "dim")]
    for one, line in zip(found, rest, strict=True):
        colour = "red" if one.diagnosis is None or one.diagnosis.errors else "green"
        out.append(paint(line[:1], colour, "bold") + line[1:])
    return out


def _aside(one: Status) -> str:
    if one.quarantine is None:
        return "?"
    if not one.quarantine["files"]:
        return "–"
    return f"{size(int(one.quarantine['bytes']))}, {span(one.quarantine['oldest_seconds'])}"


def _row(one: Status) -> list[str]:
    seen = one.diagnosis
    if seen is None:
        return [SEVERITIES["error"][0], one.job, "–", "–", "–", "–", printable(one.error or "")]
    checkpoint, latest = seen.checkpoint, seen.checkpoint.latest_offsets
    mark = SEVERITIES["error"][0] if seen.errors else MARKS["safe"][0]
    return [
        mark,
        one.job,
        "–" if checkpoint.committed is None else str(checkpoint.committed),
        ", ".join(str(batch) for batch in checkpoint.in_flight[:3]) or "–",
        ago(latest.timestamp_ms if latest else None),
        seen.paths["resume"]["verdict"],
        printable(mask(seen.errors[0].message if seen.errors else seen.restart.says)),
    ]
