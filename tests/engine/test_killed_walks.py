"""Killed anywhere, a walk is picked up or taken back: on the stand-in job all of it, on real Spark some of it.

A change is a file operation, a journal line or a signal (kill_driver.py); a case is a path and the world it is walked in:
with a job that reads the output, beside the old one, on a Delta table. `make test` tries as many of the changes as fit in
its time, in a random order that is always the same; `make gauntlet` (RUNBOOK_ALL_SCENARIOS=1) tries every one. What was
tried is printed. The rows of a backfill come from a stand-in for Spark too; what Spark stages, killed or not, is tested in
tests/spark and tests/catalogue.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kill_driver import CASES

DRIVER = Path(__file__).with_name("kill_driver.py")
EVERY = os.environ.get("RUNBOOK_ALL_SCENARIOS") == "1"
SEED = 20261118


# How many seconds of each go into `make test`; those that are not here are left to the long run.
SECONDS = {
    ("reset", "continue"): 5,
    ("reset", "undo"): 3,
    ("reset", "undo-again"): 3,
    ("reset", "interrupt"): 2,
    ("replay", "continue"): 3,
    ("replay", "undo"): 2,
    ("replay", "again"): 2,
    ("resume", "continue"): 2,
    ("backfill", "continue"): 2,
    ("beside", "continue"): 2,
    ("beside", "undo"): 2,
    ("reset-reader", "continue"): 3,
    ("reset-reader", "undo"): 3,
    ("replay-delta", "undo"): 2,
    ("resume-reader", "continue"): 2,
}
ALL = [(case, how) for case in CASES for how in ("continue", "undo", "again", "undo-again", "interrupt")]


@pytest.mark.parametrize(("case", "how"), ALL if EVERY else SECONDS)
def test_ended_at_any_change_a_walk_is_picked_up_or_taken_back(
    case: str, how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        sys.executable,
        str(DRIVER),
        str(tmp_path),
        case,
        how,
        str(0 if EVERY else SECONDS[case, how]),
        str(SEED),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=7200 if EVERY else 300, check=False)
    assert ran.returncode == 0, ran.stderr[-6000:]
    told = json.loads(ran.stdout)
    with capsys.disabled():
        print(f"\n  {case}, {how}: {told['tried']} of {told['changes']} changes tried", end="")
    assert told["tried"] == told["changes"] if EVERY else told["tried"] >= 1
