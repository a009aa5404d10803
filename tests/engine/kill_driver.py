"""Walks the stand-in job over and over; each walk is ended at another one of its changes, and then picked up or taken back.

    python kill_driver.py SCRATCH CASE HOW SECONDS SEED

CASE is one of `CASES`: a path, and the world it is walked in. A change is a file or directory made, written, renamed, linked, cut or removed below the workspace, a process started or
signalled, and each journal line twice more: half written, and written. HOW says what is done about the n-th of them:

    continue     kill -9 before it; then `runbook continue` → the rows of an uninterrupted walk
    undo         kill -9 before it; then `runbook undo` → the bytes and directories from before the walk
    again        kill -9 in the walk, and once more in the `continue`; then `continue`
    undo-again   the whole walk, then kill -9 in the `undo`; then `undo`
    interrupt    Ctrl-C before it → 130 and one line; then `continue`

All of them in random order until SECONDS are over (0: all of them). Prints how many of how many as JSON.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from stand import ANSWERS, JOB, READER, Stand, apart, differing, fork, fresh, impatient, words

from wizard.engine import journal
from wizard.engine.lock import read_lock

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
ELSEWHERE = {"os.kill", "subprocess.Popen"}  # changes that have no path
MARKS = {"half a line", "a line"}


@dataclass(frozen=True)
class Case:
    """`reader`: a second job runs, and has read all that the output shows. `hole`: rows that a batch read and lost."""

    path: str
    sink: str = "parquet"
    cut: str = "files"
    reader: bool = False
    hole: bool = False
    given: dict[str, Any] = field(default_factory=dict)


_BESIDE = {"place": "beside", "ready": "now", "keep": "retire", "beside_who": "stop", "beside_readers_too": "reset"}
_READER = {"who": "stop", "readers_too": "reset"}
CASES = {
    "reset": Case("reset"),
    "replay": Case("replay"),
    "resume": Case("resume"),
    "backfill": Case("backfill", hole=True),
    "beside": Case("reset", given=_BESIDE),
    "reset-reader": Case("reset", reader=True, given=_READER),
    "replay-reader": Case("replay", reader=True, given=_READER),
    "beside-reader": Case("reset", reader=True, given=_BESIDE),
    # The reader has what the batch in flight had written, which is gone.
    "resume-reader": Case("resume", cut="log", reader=True, given=_READER),
    # The reader had the rows before they were lost.
    "backfill-reader": Case("backfill", reader=True, hole=True, given=_READER),
    "reset-delta": Case("reset", sink="delta"),
    "replay-delta": Case("replay", sink="delta"),
    "resume-delta": Case("resume", sink="delta", cut="log"),
    "backfill-delta": Case("backfill", sink="delta", hole=True),
}


class Counted:
    """Counts the changes of this process, and does something about the n-th."""

    def __init__(self, root: Path, n: int, then: Callable[[], None], told: Path | None = None) -> None:
        self.root, self.left, self.then, self.count = str(root), n, then, 0
        self.told, self.busy = told, False
        _mark_journal_writes()
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.busy or not self._changes(event, arguments):
            return
        self.count += 1
        if self.told is not None:
            self.busy = True
            self.told.write_text(str(self.count))
            self.busy = False
        if self.count == self.left:
            self.then()

    def _changes(self, event: str, arguments: tuple[object, ...]) -> bool:
        if event in MARKS:
            # A signal that Python sees does not cut a write in two; only a kill does.
            return event == "a line" or self.then is die
        if event in ELSEWHERE:
            return True
        if event == "open":
            flags = arguments[2]
            if not (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
                return False
        elif event not in CHANGES:
            return False
        return str(arguments[0]).startswith(self.root)


def _mark_journal_writes() -> None:
    real, append = os.write, journal.Journal._write

    def write(handle: int, data: bytes) -> int:
        if bytes(data[:6]) != b'{"seq"':
            return real(handle, data)
        half = len(data) // 2
        written = real(handle, data[:half])
        sys.audit("half a line")
        return written + real(handle, data[half:])

    def marked(self: journal.Journal, entry: journal.Entry) -> None:
        append(self, entry)
        sys.audit("a line")

    os.write = write
    journal.Journal._write = marked  # type: ignore[method-assign]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


class Sweep:
    def __init__(self, scratch: Path, name: str, how: str) -> None:
        self.scratch, self.name, self.case, self.how = scratch, name, CASES[name], how
        self.given = ANSWERS[self.case.path] | self.case.given
        apart(self._build)
        built = Stand(scratch / "w")
        self.expected, self.before = built.expected(), built.tree()
        kept = scratch / "pristine"
        (scratch / "w").rename(kept)
        self.pristine = Stand(kept)
        self.text = ""

    def _build(self) -> None:
        case = self.case
        built = Stand.build(self.scratch / "w", sink=case.sink, cut=case.cut, reader=case.reader)
        if case.path == "backfill":
            built.can_be_run_over_a_range()
        if case.hole:
            built.lose()
        if case.path == "resume" and case.reader:
            built.lose_newest()

    def fresh(self) -> Stand:
        made = fresh(self.pristine, self.scratch / "w")
        if self.case.reader:
            made.start(READER)
        return made

    def walk(self, stand: Stand, n: int = 0, then: Callable[[], None] = die, *what: str) -> int:
        command = words(stand, *(what or (self.case.path, JOB)), given=self.given)
        return self.fork(command, (lambda: Counted(stand.root, n, then) and None) if n else None)

    def fork(self, command: list[str], before: Callable[[], None] | None = None) -> int:
        code, self.text = fork(command, before)
        return code

    def count(self, *first: str) -> int:
        """The changes of an uninterrupted walk, or of an undo after one."""
        stand, told = self.fresh(), self.scratch / "count"
        if first:
            assert self.walk(stand) == 0, self.said()
            first = (*first, stand.only_run())
        command = words(stand, *(first or (self.case.path, JOB)), given=self.given)
        assert self.fork(command, lambda: Counted(stand.root, 0, die, told) and None) == 0, self.said()
        self.proved(stand) if not first else stand.stop_all()
        return int(told.read_text())

    def said(self) -> str:
        return self.text[-3000:]

    def run_of(self, stand: Stand) -> str | None:
        """The run that the next walk is told to pick up: as an operator finds it, from the words of exit 8."""
        if read_lock(str(stand.runs), JOB) is None and not stand.run_ids():
            return None  # killed before it began
        code = self.walk(stand)
        if code == 0:
            return ""  # it had changed nothing, or was over; the new walk went through
        assert code == 8, f"exit {code}: {self.said()}"
        told = re.search(r"`runbook (continue|undo) (\S+)`", self.said())
        assert told, self.said()
        return told[2]

    def proved(self, stand: Stand) -> None:
        """Every row once, in all outputs; who ran before runs; nobody holds the job; the journal holds."""
        assert not self.case.reader or stand.runs_now(READER), self.said()
        apart(stand.finish)
        for name in stand.jobs_there:
            found = stand.found(name)
            assert found == self.expected, f"{name}: missing {self.expected - found}, extra {found - self.expected}"
        assert read_lock(str(stand.runs), JOB) is None
        for run in stand.run_ids():
            chain = journal.read_chain(str(stand.runs / run / "journal.jsonl"))
            assert chain.bad is None and (chain.torn is None or not chain.entries), chain

    def picked_up(self, stand: Stand) -> None:
        run = self.run_of(stand)
        if run:
            code = self.walk(stand, 0, die, "continue", run)
            if code == 3:  # it had not come as far as an entry in its journal
                assert "nothing was done" in self.said(), self.said()
                run = None
            else:
                assert code == 0, f"continue: exit {code}: {self.said()}"
        if run is None:
            assert self.walk(stand) == 0, self.said()
        self.proved(stand)

    def taken_back(self, stand: Stand) -> None:
        ids = stand.run_ids() or ([told["run"]] if (told := read_lock(str(stand.runs), JOB)) else [])
        if not ids:
            assert stand.tree() == self.before
            return
        code = self.fork(words(stand, "undo", ids[0], confirm=None))
        said = self.said()
        if code in (2, 3):
            assert "nothing" in said, said
        else:
            assert code == 0, f"undo: exit {code}: {said}"
        # One that the walk had not stopped yet is stopped by the undo, which says so.
        told = re.search(rf"{READER} (ran and was stopped|has read rows that its source no longer shows)", said)
        assert not self.case.reader or stand.runs_now(READER) or told, said
        now = stand.tree()
        if self.case.path == "resume" and "stays" in said:
            # What a resumed job has committed is not taken back, and that is said.
            assert not [name for name in self.before if now.get(name) != self.before[name]]
            if f"{READER} has read rows that its source no longer shows" in said:
                # As it was, it would read twice what has come back since: it is left stopped, and reset as it is told.
                assert not stand.runs_now(READER), said
                assert self.fork(words(stand, "reset", READER, given={"place": "in_place"}, confirm=READER)) == 0
            self.proved(stand)
            return
        assert now == self.before, f"{differing(now, self.before)}\n{said}"
        assert read_lock(str(stand.runs), JOB) is None

    def trial(self, n: int, second: int) -> None:
        stand = self.fresh()
        try:
            if self.how == "undo-again":
                assert self.walk(stand) == 0, self.said()
                command = words(stand, "undo", stand.only_run(), confirm=None)
                code = self.fork(command, lambda: Counted(stand.root, n, die) and None)
                assert code in (0, -9), f"exit {code}: {self.said()}"
                if code == -9:
                    self.taken_back(stand)
                else:
                    assert stand.tree() == self.before
                return
            code = self.walk(stand, n, interrupt if self.how == "interrupt" else die)
            if self.how == "interrupt":
                self.interrupted(code)
            else:
                assert code in (0, -9), f"exit {code}: {self.said()}"
            if code == 0:
                self.proved(stand)
                return
            if self.how == "again" and stand.run_ids():
                code = self.walk(stand, second, die, "continue", stand.only_run())
                assert code in (0, -9, 3), f"exit {code}: {self.said()}"
            (self.taken_back if self.how == "undo" else self.picked_up)(stand)
        except BaseException as error:
            error.add_note(f"{self.name}, {self.how}: change {n}, second {second}")
            raise
        finally:
            stand.stop_all()

    def interrupted(self, code: int) -> None:
        said = self.said()
        if code == 0:
            return  # the last changes come after the end of the walk
        assert code == 130, f"exit {code}: {said}"
        last = said.strip().splitlines()[-1]
        assert last.startswith("runbook: interrupted"), said
        assert "nothing was" in last or "runbook continue" in last, last
        assert "Traceback" not in said, said


def main(scratch: Path, name: str, how: str, seconds: float, seed: int) -> None:
    os.environ["STANDIN_ENDS_WITH"] = str(os.getpid())
    impatient()
    sweep = Sweep(scratch, name, how)
    total = sweep.count(*(("undo",) if how == "undo-again" else ()))
    order = list(range(1, total + 1))
    chance = random.Random(seed)
    chance.shuffle(order)
    deadline = time.monotonic() + seconds
    tried = wrong = 0
    for n in order:
        if seconds and time.monotonic() > deadline:
            break
        try:
            sweep.trial(n, chance.randint(1, max(2, total - n)))
        except AssertionError:
            wrong += 1
            traceback.print_exc()  # and on to the next: one run of all of them tells all that is wrong
        tried += 1
    print(json.dumps({"case": name, "how": how, "changes": total, "tried": tried, "wrong": wrong}))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))
