"""How an aggregate is to be proved, as the registry says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from wizard.jobs.model import Counts
from wizard.jobs.registry import lint_registry, load_registry


def write(tmp_path: Path, counts: str, mode: str = "update") -> Path:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "version: 1\njobs:\n  a:\n    checkpoint: ./c\n    source: {format: json, path: ./in}\n"
        f"    output_mode: {mode}\n    control: {{kind: process, start: [x]}}\n"
        f"    sink: {{format: delta, path: ./o, key: [sensor, hour], counts: {counts}}}\n"
    )
    return path


def test_counts_are_read_as_written(tmp_path: Path) -> None:
    path = write(tmp_path, "{column: readings, of: id, where: {quality: good, level: 3}, by: [sensor]}")
    assert lint_registry(path) == []
    assert load_registry(path).jobs["a"].sink.counts == Counts(
        "readings", "id", ("sensor",), {"quality": "good", "level": 3}
    )
    assert load_registry(write(tmp_path, "{column: readings, of: id}")).jobs["a"].sink.counts == Counts(
        "readings", "id"
    )


@pytest.mark.parametrize(
    ("counts", "mode", "told"),
    [
        ("{column: readings}", "update", "J002 sink.counts of job a lacks of; add it"),
        ('{column: "", of: id}', "update", "J002 sink.counts.column of job a is empty; name a column of the output"),
        ("{column: r, of: id, by: sensor}", "update", "J002 sink.counts.by of job a must be a list; write [sensor]"),
        (
            "{column: r, of: id, were: {a: b}}",
            "update",
            "J003 sink.counts of job a has no key were; did you mean where?",
        ),
        ("{column: r, of: id, where: {a: [b]}}", "update", "J002 sink.counts.where.a of job a must be"),
        ("{column: r, of: id, by: [s, S]}", "update", "J206 counts.by of a names s twice"),
        ("{column: Hour, of: id}", "update", "J206 counts.column of a is Hour, which identifies a row"),
        ("{column: r, of: id}", "append", "J207 a appends a window only when it is closed"),
    ],
)
def test_counts_that_cannot_be_meant_are_told(tmp_path: Path, counts: str, mode: str, told: str) -> None:
    problems = [f"{problem.code} {problem.message}" for problem in lint_registry(write(tmp_path, counts, mode))]
    assert [problem[: len(told)] for problem in problems] == [told]
