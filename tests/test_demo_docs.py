"""The walk that the README shows, command by command, on a demo built for it; and `make demo` without a terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RUNBOOK = Path(sys.executable).with_name("runbook")
BLOCK = re.compile(r"^```console demo\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.spark


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_walk_in_the_readme_ends_row_exact_and_can_be_taken_back(tmp_path: Path) -> None:
    (block,) = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) == len(block.splitlines()), "a block of commands to run in turn, with nothing between them"
    built = run([str(RUNBOOK), "demo", "--json"], tmp_path)
    assert built.returncode == 0, built.stderr
    broken = json.loads(built.stdout)["counts"]["raw"]
    assert broken["missing"] > 0
    try:
        for command in commands:
            done = run([str(RUNBOOK), *shlex.split(command)[1:]], tmp_path)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
            if command.endswith("--finish"):
                counted = run([str(RUNBOOK), "demo", "--count", "--json"], tmp_path)
                assert counted.returncode == 0
                exact = json.loads(counted.stdout)
                assert all(stage["missing"] == stage["extra"] == stage["wrong"] == 0 for stage in exact.values())
                assert exact["raw"]["rows"] == exact["source"]["rows"] > broken["rows"]
        again = json.loads(run([str(RUNBOOK), "demo", "--count", "--json"], tmp_path).stdout)
        assert again["raw"] == broken, "undone, the output is as broken as it was"
    finally:
        run([str(RUNBOOK), "demo", "--finish"], tmp_path)
