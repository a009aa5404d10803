"""One walk a job; the second operator is told who is there, or what was left behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from stand import ANSWERS, JOB, Stand, fork, words


def test_the_second_operator_is_told_who_walks_and_after_a_kill_what_to_type(stand: Stand) -> None:
    command = [sys.executable, "-m", "wizard.cli", "reset", JOB, "--jobs", stand.jobs, "--plain"]
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 60
        while not stand.run_ids() and time.monotonic() < deadline:
            time.sleep(0.05)
        run, before = stand.only_run(), stand.tree()
        code, said = fork(words(stand, "resume", JOB, given=ANSWERS["resume"]))
        assert code == 6, said
        assert f"pid {first.pid}" in said and run in said
        code, said = fork(words(stand, "continue", run))
        assert code == 6, said
        assert stand.tree() == before and stand.run_ids() == [run]
    finally:
        first.kill()
        first.communicate()
    code, said = fork(words(stand, "resume", JOB, given=ANSWERS["resume"]))
    assert code == 8, said
    assert f"`runbook continue {run}`" in said
    code, said = fork(words(stand, "continue", run, given=ANSWERS["reset"]))
    assert code == 0, said
    stand.finish()
    assert stand.found() == stand.expected()


def test_a_lock_left_before_the_first_entry_does_not_block_the_job_for_ever(stand: Stand, tmp_path: Path) -> None:
    holder = "import sys; from wizard.engine.lock import Locks; Locks(*sys.argv[1:3], sys.argv[3:]).take()"
    run = f"reset-{JOB}-20260101T000000-abcd"
    subprocess.run([sys.executable, "-c", holder, str(stand.runs), run, JOB], check=True)
    before = stand.tree()
    code, said = fork(words(stand, "reset", JOB, given={"place": "leave"}))
    assert code == 8 and f"`runbook continue {run}`" in said, said
    code, said = fork(words(stand, "continue", run))
    assert code == 3 and "nothing was done" in said, said
    code, said = fork(words(stand, "reset", JOB, given={"place": "leave"}))
    assert code == 3, said
    assert stand.tree() == before
