"""Two cells of the gauntlet on Kafka and Delta; `make gauntlet PROFILE=cluster` runs them all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from had import ROOT, have


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "gauntlet/gauntlet.py", "--profile", "cluster", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)


def test_its_scenarios_are_its_own() -> None:
    done = run("--only", "sink-log-deleted")  # of the embedded profile: Delta has no such log
    assert (done.returncode, done.stderr.strip()) == (
        2,
        "--only sink-log-deleted: there is no such cell; write SCENARIO or SCENARIO:PATH",
    )


@pytest.mark.spark
@pytest.mark.slow
def test_what_is_blocked_is_refused_and_what_is_safe_ends_row_exact(tmp_path: Path) -> None:
    have("kafka", "delta", "broker")
    chosen = ("rolled-back-same-id:resume", "killed-mid-batch:resume")
    done = run("--json", "--dir", tmp_path, *(word for name in chosen for word in ("--only", name)))
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    refused, walked = map(json.loads, done.stdout.splitlines())
    assert (refused["verdict"], refused["result"]) == ("blocked", "refused, untouched (exit 3)")
    assert (walked["verdict"], walked["result"]) == ("safe", "row-exact")
    # 500 records, then twice 150, 150 of which a batch was killed over, then 100 while the job was down.
    assert (walked["source"], walked["rows"], walked["missing"], walked["doubled"]) == (1050, 1050, 0, 0)
