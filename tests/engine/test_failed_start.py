"""A job that does not come up, or goes down again: the fence is lifted by then, and `continue` starts it all the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from stand import ANSWERS, JOB, STANDIN, Stand, differing, fork, words

from wizard.engine.walk import Walk

DOES_NOT_COME_UP = """
import os, sys
sys.path.insert(0, {here!r})
if os.path.exists({flag!r}):
    if open({flag!r}).read():
        import standin
        job = standin.Job(sys.argv[2], sys.argv[4])
        job.start()
        job.step("files")
    sys.exit("no such port")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def wrapped(stand: Stand, *, half: bool = False) -> Path:
    """The job fails at once, or halfway through its first batch, as long as this file is there."""
    flag, wrapper = stand.root / "flag", stand.root / "wrapper.py"
    flag.write_text("half" if half else "")
    wrapper.write_text(DOES_NOT_COME_UP.format(here=str(Path(STANDIN).parent), flag=str(flag)))
    registry = stand.root / "jobs.yaml"
    registry.write_text(registry.read_text().replace(f"[python, {STANDIN}", f"[python, {wrapper}, {STANDIN}"))
    return flag


def test_one_that_went_down_with_the_machine_is_started_again_by_a_continue(stand: Stand) -> None:
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"]), lambda: die_at("moving"))
    assert code == -9, said
    stand.stop()
    code, said = fork(words(stand, "continue", stand.only_run(), given=ANSWERS["reset"]))
    assert code == 0 and "its job is down: the step is taken again" in said, said
    assert stand.runs_now(JOB)
    stand.finish()
    assert stand.found() == stand.expected()


def die_at(step: str) -> None:
    def told(walk: Walk, kind: str, **says: Any) -> None:
        if (kind, says.get("step")) == ("step", step):
            os.kill(os.getpid(), signal.SIGKILL)

    Walk.tell = told  # type: ignore[method-assign]


@pytest.mark.parametrize("path", ["reset", "replay"])
def test_it_is_started_again_by_a_continue_and_taken_back_by_an_undo(path: str, stand: Stand) -> None:
    flag = wrapped(stand)
    before = stand.tree()
    code, said = fork(words(stand, path, JOB, given=ANSWERS[path]))
    assert code == 4 and "no such port" in said, said
    run = stand.only_run()
    flag.unlink()
    code, said = fork(words(stand, "continue", run, given=ANSWERS[path]))
    assert code == 0, said
    stand.finish()
    assert stand.found() == stand.expected()
    code, said = fork(words(stand, "undo", run, confirm=None))
    assert code == 0, said
    assert differing(stand.tree(), before) == []


def test_it_is_not_started_over_half_a_batch_that_a_reader_would_see_twice(stand: Stand) -> None:
    stand.add_reader()
    registry = stand.root / "jobs.yaml"
    registry.write_text(registry.read_text().replace("path: ./out}", "path: './out/part-*'}"))
    flag = wrapped(stand, half=True)
    code, said = fork(words(stand, "replay", JOB, given=ANSWERS["replay"]))
    assert code == 4, said
    flag.unlink()
    code, said = fork(words(stand, "continue", stand.only_run(), given=ANSWERS["replay"]))
    assert code == 5 and "requires in_flight.clean" in said, said
    assert not stand.runs_now(JOB)
