"""Two cells of the gauntlet, one that must be refused and one that must end row-exact; `make gauntlet` runs them all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GAUNTLET = Path(__file__).parents[2] / "gauntlet/gauntlet.py"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, GAUNTLET, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def cell(**more: Any) -> dict[str, Any]:
    told = {"scenario": "retention", "job": "sensor-raw-ingest", "path": "reset", "verdict": "safe", "source": 900}
    return told | {"result": "row-exact", "right": True, "rows": 900} | more


@pytest.mark.spark
def test_what_is_blocked_is_refused_and_what_is_safe_ends_row_exact(tmp_path: Path) -> None:
    chosen = ("killed-after-sink-write:backfill", "killed-after-sink-write:resume")
    done = run("--json", "--dir", tmp_path, *(word for name in chosen for word in ("--only", name)))
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    refused, walked = map(json.loads, done.stdout.splitlines())
    assert (refused["verdict"], refused["result"]) == ("blocked", "refused, untouched (exit 3)")
    assert (walked["verdict"], walked["result"]) == ("safe", "row-exact")
    # 500 records, then twice 150, then 100 while the job was down.
    assert (walked["source"], walked["rows"], walked["missing"], walked["doubled"]) == (900, 900, 0, 0)


def test_a_cell_that_is_not_as_promised_is_told_and_fails_the_run(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    bad = cell(right=False, result="resolved, not row-exact", missing=3)
    results.write_text(json.dumps(bad) + "\n")
    done = run("--results", results, "--continue", "--only", "retention:reset")
    assert done.returncode == 1
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("retention")]
    assert row.split()[3:8] == ["safe", "WRONG", "resolved,", "not", "row-exact"]
    assert "1 of 1 cells are not as promised" in done.stderr


def test_what_the_naive_order_gives_stands_beside_each_path(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    by_hand = cell(path="by hand", verdict="", result="not exact", missing=292, doubled=7)
    results.write_text("".join(json.dumps(each) + "\n" for each in (cell(), by_hand)))
    done = run("--results", results, "--continue", "--only", "retention:reset")
    assert done.returncode == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("retention")]
    assert row.endswith("292 missing, 7 doubled")


def test_a_cell_that_there_is_not_is_told(tmp_path: Path) -> None:
    done = run("--only", "retention:nowhere")
    assert (done.returncode, done.stderr.strip()) == (
        2,
        "--only retention:nowhere: there is no such cell; write SCENARIO or SCENARIO:PATH",
    )
