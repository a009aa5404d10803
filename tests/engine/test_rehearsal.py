"""A rehearsal walks for real on a clone: nothing live moves, the report is right, and no clone is left."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from kill_driver import Counted, interrupt
from stand import ANSWERS, JOB, ROWS, Stand, differing, fork, words


def live(stand: Stand) -> dict[str, Any]:
    found = {name: mark for name, mark in stand.everything().items() if not name.startswith(str(stand.runs))}
    del found[str(stand.root)]  # a directory of runs was made in it
    return found


def left(stand: Stand) -> list[str]:
    return [str(path) for path in stand.runs.glob("rehearsals/*")]


def report(said: str) -> dict[str, Any]:
    told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return dict(next(event for event in told if event["event"] == "report"))


@pytest.mark.parametrize("path", ["reset", "replay", "resume"])
def test_it_is_row_exact_on_the_clone_and_nothing_live_is_touched(path: str, stand: Stand) -> None:
    before = live(stand)
    code, said = fork(words(stand, "rehearse", path, JOB, "--json", given=ANSWERS[path], confirm=None))
    assert code == 0, said
    told = report(said)
    assert (told["path"], told["job"], told["outcome"], told["error"]) == (path, JOB, "resolved", None)
    assert told["rows_before"]["truth"] == told["rows_after"]["truth"] == "holds"
    assert f"{4 * 8} of {4 * 8} source rows" in told["rows_before"]["evidence"][0]
    assert f"{2 * ROWS} of {2 * ROWS} source rows" in told["rows_after"]["evidence"][0]
    files = [path for place in (stand.checkpoint, stand.sink) for path in place.rglob("*") if path.is_file()]
    assert told["cloned"] == {"files": len(files), "bytes": sum(path.stat().st_size for path in files)}
    assert differing(live(stand), before) == []
    assert left(stand) == [] and stand.run_ids() == []


def test_a_walk_that_fails_is_reported_with_what_the_job_said_and_no_clone_is_left(stand: Stand) -> None:
    (stand.root / "log/t/0").rename(stand.root / "partition")  # the job cannot read its source
    (stand.root / "log/t/0").mkdir()
    before = live(stand)
    given = ANSWERS["reset"] | {"loss": {"option": "accept", "typed": "rows that the source no longer has are lost"}}
    code, said = fork(words(stand, "rehearse", "reset", JOB, "--json", given=given, confirm=None))
    assert code == 4, said
    told = report(said)
    assert told["outcome"] == "hand_over" and told["rows_after"]["truth"] != "holds"
    assert differing(live(stand), before) == []
    assert left(stand) == []


def test_it_refuses_before_it_clones_and_leaves_nothing(stand: Stand) -> None:
    before = live(stand)
    code, said = fork(words(stand, "rehearse", "reset", JOB, given={"place": "leave"}, confirm=None))
    assert code == 3, said
    assert differing(live(stand), before) == [] and left(stand) == []


@pytest.mark.parametrize("n", [3, 40, 120, 170])
def test_ctrl_c_at_any_point_leaves_no_clone_and_no_job(n: int, stand: Stand, tmp_path: Path) -> None:
    before = live(stand)
    command = words(stand, "rehearse", "reset", JOB, given=ANSWERS["reset"], confirm=None)
    code, said = fork(command, lambda: Counted(stand.root, n, interrupt) and None)
    assert code == 128 + signal.SIGINT, said
    assert said.strip().splitlines()[-1].startswith("runbook: "), said
    assert "nothing" in said.strip().splitlines()[-1]
    assert differing(live(stand), before) == []
    assert left(stand) == []
    running = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(stand.root).encode() in _read(path)]
    assert running == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
