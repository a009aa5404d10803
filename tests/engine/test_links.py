"""Checkpoint and output may be links to where the room is: a walk goes by what they lead to."""

from __future__ import annotations

import shutil

from stand import ANSWERS, JOB, Stand, differing, fork, tree, words


def linked(stand: Stand) -> None:
    (stand.root / "data").mkdir()
    for name in ("checkpoint", "out"):
        shutil.move(stand.root / name, stand.root / "data" / name)
        (stand.root / name).symlink_to(stand.root / "data" / name)


def test_a_linked_checkpoint_and_output_are_reset_and_taken_back(stand: Stand) -> None:
    linked(stand)
    before = tree(stand.root / "data")
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"]))
    assert code == 0, said
    manifests = list(stand.runs.glob("*/manifests/*"))  # they hold the configuration, whatever is in it
    assert manifests and not any(path.stat().st_mode & 0o007 for path in manifests)
    stand.stop()
    stand.finish_one(JOB)
    assert stand.found() == stand.expected()
    code, said = fork(words(stand, "undo", stand.only_run(), confirm=None))
    assert code == 0, said
    assert differing(tree(stand.root / "data"), before) == []
    assert all((stand.root / name).is_symlink() for name in ("checkpoint", "out"))


def test_a_link_that_is_re_pointed_in_between_leads_outside(stand: Stand) -> None:
    linked(stand)
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"], confirm=None))
    assert code == 4, said  # the fence is up, and nobody has confirmed the rest
    other = stand.root / "another"
    shutil.copytree(stand.root / "data/checkpoint", other)
    (stand.root / "checkpoint").unlink()
    (stand.root / "checkpoint").symlink_to(other)
    before = tree(other)
    code, said = fork(words(stand, "undo", stand.only_run(), confirm=None))
    assert code == 2 and "is not a place of its jobs" in said, said
    code, said = fork(words(stand, "continue", stand.only_run(), given=ANSWERS["reset"]))
    assert code == 5 and f"leads to {other}" in said, said
    assert tree(other) == before
