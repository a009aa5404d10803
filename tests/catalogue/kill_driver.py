"""Does the effects of a plan in a child that kills itself with -9 before its n-th change to a file, for every n.

    python kill_driver.py PRISTINE WORK PLACE ACTION… [target=N]

After each kill: the effects once more → the tree of an uninterrupted walk; then undo → the first tree; on a second
copy undo straight after the kill; and on a third a kill inside the undo, then undo. Prints how many kills there were.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from worlds import act, around, journalled, planned, tree

os.fsync = lambda handle: None  # a kill, unlike a power cut, loses nothing of what was written; syncing only takes time

CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.utime",
}


def killed_before(n: int, what: Callable[[], None]) -> bool:
    """True when there was an n-th change, and the child did not live to make it."""
    child = os.fork()
    if child == 0:
        left = n

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if event in CHANGES or writes:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        what()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "the effects failed by themselves"
    return False


def main(pristine: Path, work: Path, place: Path, actions: list[str], target: int | None) -> None:
    def fresh():
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(pristine, work)
        world = around(work, place=place)
        if target is not None:
            world.answers["target"] = {"batch": target}
        return world

    lives = (work / "checkpoint", work / "sink")
    world = fresh()
    before = tree(*lives)
    *first, last = actions
    done = [effect for name in first for effect in act(world, name)]
    middle = tree(*lives)
    plan = planned(world, last)
    effects = journalled(plan.effects)
    assert effects
    act(world, last)
    after, quarantine = tree(*lives), tree(place)
    assert after != middle

    def start():
        world = fresh()
        for name in first:
            act(world, name)
        return world

    def do() -> None:
        for effect in effects:
            effect.do(world)

    def undo() -> None:
        for effect in reversed([*done, *effects]):
            effect.undo(world)

    n = 0
    while True:
        n += 1
        world = start()
        more = killed_before(n, do)
        do()
        assert tree(*lives) == after, f"kill {n}: done again, the tree differs"
        assert tree(place) == quarantine, f"kill {n}: done again, the quarantine differs"
        undo()
        assert tree(*lives) == before, f"kill {n}: done again and undone, the tree differs"
        world = start()
        if not killed_before(n, do):
            break
        undo()
        assert tree(*lives) == before, f"kill {n}: undone, the tree differs"
        assert more
    undone = 0
    while True:
        undone += 1
        world = start()
        do()
        if not killed_before(undone, undo):
            break
        undo()
        now = tree(*lives)
        assert now == before, (
            f"kill {undone} of the undo, then undone: {sorted(set(now.items()) ^ set(before.items()))}"
        )
    print(n - 1, undone - 1)


if __name__ == "__main__":
    *words, final = sys.argv[1:]
    number = int(final.partition("=")[2]) if final.startswith("target=") else None
    given = words if number is not None else [*words, final]
    main(Path(given[0]), Path(given[1]), Path(given[2]), given[3:], number)
