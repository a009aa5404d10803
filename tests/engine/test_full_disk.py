"""No journal, no action; and a quarantine that fills up loses nothing."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import permissions
import pytest
from stand import ANSWERS, JOB, Stand, differing, fork, words

SHM = Path("/dev/shm")


def limited(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def marks(stand: Stand) -> dict[str, object]:
    """Bytes and times of everything but the runs."""
    return {name: mark for name, mark in stand.everything().items() if not name.startswith(str(stand.runs))}


def live(stand: Stand) -> dict[str, object]:
    found = marks(stand)
    del found[str(stand.root)]  # a directory of runs may have been made in it
    return found


def test_a_file_in_the_place_of_the_runs_is_exit_7_and_nothing_is_touched(stand: Stand) -> None:
    stand.runs.write_text("not a directory")
    before = stand.everything()
    for path in ("reset", "replay", "resume"):
        code, said = fork(words(stand, path, JOB, given=ANSWERS[path]))
        assert code == 7, said
        assert str(stand.runs) in said
    assert stand.everything() == before
    stand.runs.unlink()


@pytest.mark.skipif(not permissions.bind(), reason=permissions.WHY_NOT)
def test_runs_that_may_not_be_written_are_exit_7_and_nothing_is_touched(stand: Stand) -> None:
    stand.runs.mkdir(mode=0o555)
    before = stand.everything()
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"]))
    assert code == 7, said
    assert stand.everything() == before


@pytest.mark.parametrize("size", [0, 250, 1200])
def test_a_journal_without_room_is_exit_7_and_nothing_is_touched(size: int, stand: Stand) -> None:
    """0: not even the lock fits; 250: the lock does, the first entry does not; 1200: one entry or two do."""
    before = live(stand)
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"]), lambda: limited(size))
    assert code == 7, said
    assert differing(live(stand), before) == []
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"]))
    assert code == 0, said
    stand.finish()
    assert stand.found() == stand.expected()


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Stand]:
    """The runs, and with them the quarantine, on another disk: every move is a copy. One data file is a large one."""
    if not SHM.is_dir() or SHM.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system to copy to")
    runs = Path(tempfile.mkdtemp(dir=SHM))
    made = Stand.build(tmp_path / "w", runs=runs, value=os.urandom(20_000))
    yield made
    made.stop()
    shutil.rmtree(runs)


def test_a_full_quarantine_stops_the_walk_loses_nothing_and_is_gone_on_with_when_there_is_room(far: Stand) -> None:
    before = far.tree()
    code, said = fork(words(far, "reset", JOB, given=ANSWERS["reset"]), lambda: limited(60_000))
    assert code == 4, said
    run = far.only_run()
    assert f"runbook continue {run}" in said and "File too large" in said, said
    kept = {hashlib.sha256(path.read_bytes()).hexdigest() for path in far.runs.rglob("*") if path.is_file()}
    lost = [
        name for name, mark in before.items() if mark != "directory" and mark not in kept | set(far.tree().values())
    ]
    assert lost == []
    code, said = fork(words(far, "reset", JOB, given=ANSWERS["reset"]))
    assert code == 8 and f"runbook continue {run}" in said, said
    code, said = fork(words(far, "continue", run, given=ANSWERS["reset"]))
    assert code == 0, said
    far.finish()
    assert far.found() == far.expected()
    code, said = fork(words(far, "undo", run, confirm=None))
    assert code == 0, said
    assert differing(far.tree(), before) == []


def test_a_full_quarantine_is_taken_back_byte_for_byte(far: Stand) -> None:
    before = far.tree()
    code, said = fork(words(far, "reset", JOB, given=ANSWERS["reset"]), lambda: limited(60_000))
    assert code == 4, said
    code, said = fork(words(far, "undo", far.only_run(), confirm=None))
    assert code == 0, said
    assert differing(far.tree(), before) == []
