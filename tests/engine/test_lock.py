"""One walk a job: of two at once one wins, and a lock left behind names its run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stand import ANSWERS, JOB, Stand, fork, words

from wizard.engine import start, undo
from wizard.engine.events import Event
from wizard.engine.lock import Locks, read_lock
from wizard.engine.operator import Nobody, Prepared
from wizard.engine.walk import Walk
from wizard.errors import InDoubt, JournalUnwritable, Locked
from wizard.jobs.registry import load_registry
from wizard.runbook.model import Do

HOLDER = """
import sys, time
from wizard.engine.lock import Locks
Locks(sys.argv[1], "reset-a-20260101T000000-aaaa", ["a", "b"]).take()
print("held", flush=True)
time.sleep(60)
"""


def holder(runs: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(runs)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_the_second_walk_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(Locked, match=f"pid {process.pid}.*reset-a-20260101T000000-aaaa"):
            Locks(str(tmp_path), "reset-b-20260101T000000-bbbb", ["b", "c"]).take()
        # All or none: `c` was free, and is free again.
        assert read_lock(str(tmp_path), "c") is None
    finally:
        process.kill()
        process.communicate()


def test_a_lock_left_behind_is_in_doubt_and_taken_over_only_by_its_own_run(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.kill()
    process.communicate()
    with pytest.raises(InDoubt, match="runbook continue reset-a-20260101T000000-aaaa"):
        Locks(str(tmp_path), "reset-b-20260101T000000-bbbb", ["a"]).take()
    mine = Locks(str(tmp_path), "reset-a-20260101T000000-aaaa", ["a", "b"])
    mine.take()
    mine.release()
    assert read_lock(str(tmp_path), "a") is None


def test_a_recycled_pid_is_not_taken_for_the_holder(tmp_path: Path) -> None:
    locks = Locks(str(tmp_path), "reset-a-20260101T000000-aaaa", ["a"])
    locks.take()
    told = read_lock(str(tmp_path), "a")
    assert told is not None
    (tmp_path / "locks/a.json").write_text(json.dumps({**told, "started": "1"}))
    with pytest.raises(InDoubt):
        Locks(str(tmp_path), "reset-a-20260101T000001-bbbb", ["a"]).take()


def test_a_lock_of_another_host_is_never_called_stale(tmp_path: Path) -> None:
    locks = Locks(str(tmp_path), "reset-a-20260101T000000-aaaa", ["a"])
    locks.take()
    told = read_lock(str(tmp_path), "a")
    assert told is not None
    (tmp_path / "locks/a.json").write_text(json.dumps({**told, "host": "elsewhere"}))
    with pytest.raises(Locked, match="elsewhere"):
        Locks(str(tmp_path), "reset-a-20260101T000001-bbbb", ["a"]).take()


def killed_before_it_deletes() -> None:
    carry_out = Walk._carry_out

    def killed(walk: Walk, step: Do, effects: Any, done: int = 0) -> Any:
        if step.action == "checkpoint.delete":
            os.kill(os.getpid(), signal.SIGKILL)
        return carry_out(walk, step, effects, done)

    Walk._carry_out = killed  # type: ignore[method-assign]


def test_the_run_of_another_host_is_taken_over_by_who_names_that_host_and_by_nobody_else(stand: Stand) -> None:
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"]), killed_before_it_deletes)
    assert code == -signal.SIGKILL, said
    run = stand.only_run()
    lock = stand.runs / f"locks/{JOB}.json"
    holder = {**json.loads(lock.read_bytes()), "host": "elsewhere"}
    lock.write_text(json.dumps(holder))
    for command in ("continue", "undo"):
        code, said = fork([command, run, "--jobs", stand.jobs, "--no-input"])
        assert code == 6 and f"`runbook continue {run} --gone elsewhere`" in said, said
    for host in ("another", holder["host"].upper()):
        code, said = fork(["undo", run, "--gone", host, "--jobs", stand.jobs, "--no-input"])
        assert code == 2 and f"--gone {host}: {run} holds no lock from there" in said, said
    assert json.loads(lock.read_bytes()) == holder
    code, said = fork(["undo", run, "--gone", "elsewhere", "--jobs", stand.jobs, "--no-input"])
    assert code == 0 and not lock.exists(), said


def test_of_many_at_once_exactly_one_wins(tmp_path: Path) -> None:
    program = """
import sys, time
from wizard.engine.lock import Locks
from wizard.errors import RunbookError
while time.time() < float(sys.argv[3]): pass
try:
    Locks(sys.argv[1], sys.argv[2], ["b", "a"]).take()
except RunbookError as error:
    print(int(error.exit_code))
else:
    print("won", flush=True)
    time.sleep(3)
"""
    import time

    at = str(time.time() + 1.5)
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), f"reset-a-20260101T00000{n}-aaaa", at],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    said = sorted(racer.communicate()[0].strip() for racer in racers)
    assert said == ["6", "6", "6", "won"]


def test_runs_that_cannot_be_written_is_exit_code_7(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where the directory should be")
    with pytest.raises(JournalUnwritable):
        Locks(str(tmp_path / "runs"), "reset-a-20260101T000000-aaaa", ["a"]).take()


def test_a_run_of_which_only_the_lock_was_left_is_let_go_and_that_is_told(stand: Stand) -> None:
    """Killed between its last entry and letting go. Neither way of picking it up may stay silent about it."""
    registry = load_registry(stand.jobs)
    told: list[Event] = []
    operator = Prepared({"place": "leave"}, None, Nobody(told.append))
    run = start.begin(registry, JOB, "reset", operator).run
    lock = stand.runs / f"locks/{JOB}.json"
    for pick_up, kind in ((start.pick_up, "end"), (undo.undo, "undone")):
        Locks(registry.runs, run, [JOB]).take()
        lock.write_text(json.dumps({**json.loads(lock.read_text()), "started": "1"}))
        told.clear()
        pick_up(registry, run, operator)
        assert [event["event"] for event in told] == [kind] and not lock.exists()
        assert kind == "undone" or (told[0]["outcome"] == "aborted" and "only its lock was left" in told[0]["says"])
