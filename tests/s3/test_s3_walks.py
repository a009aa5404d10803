"""`runbook reset` and its undo where checkpoint, output and runs are on S3: whole, with a store that fails, and killed.

Rows of the output are compared with the records of the log, and bytes with those from before, by code that knows
nothing of the tool. `make test` tries a few of the places to be killed at; RUNBOOK_ALL_SCENARIOS=1 every one.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from s3stand import S3Stand
from stand import ANSWERS, JOB, differing, fork, words

if TYPE_CHECKING:
    from faults import Faults

EVERY = os.environ.get("RUNBOOK_ALL_SCENARIOS") == "1"
CHANGES = ("put_object", "copy_object", "delete_object", "delete_objects")


@pytest.fixture
def stand(tmp_path: Path, behind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Stand]:
    monkeypatch.setenv("STANDIN_ENDS_WITH", str(os.getpid()))
    made = S3Stand.at(tmp_path / "w", behind)
    yield made
    made.stop()


def walk(stand: S3Stand, *first: str, before: Any = None, confirm: str | None = JOB) -> tuple[int, str]:
    return fork(
        words(stand, *first, given=ANSWERS["replay" if first[0] == "replay" else "reset"], confirm=confirm), before
    )


def proved(stand: S3Stand) -> None:
    stand.finish()
    assert stand.found() == stand.expected()
    assert stand.objects("runs/locks") == {}


def test_a_reset_rebuilds_every_row_and_undo_brings_every_byte_back(stand: S3Stand) -> None:
    before = stand.tree()
    code, said = walk(stand, "reset", JOB)
    assert code == 0, said
    (run,) = stand.run_ids()
    kept = stand.objects(f"runs/{run}/quarantine")
    assert set(before.values()) - {before["conf.yaml"], before["jobs.yaml"]} <= set(kept.values())
    proved(stand)
    code, said = fork(["status", "--jobs", stand.jobs, "--json"])
    assert code == 0 and json.loads(said)[0]["quarantine"]["files"] >= len(before) - 2, said
    code, said = fork(["audit", "verify", run, "--jobs", stand.jobs])
    assert code == 0, said
    code, said = walk(stand, "undo", run, confirm=None)
    assert code == 0, said
    assert stand.tree() == before, differing(stand.tree(), before)
    code, said = fork(["purge", run, "--jobs", stand.jobs, "--confirm", run])
    assert code == 0, said
    assert stand.objects(f"runs/{run}/quarantine") == {}
    assert stand.tree() == before


def test_a_replay_takes_both_back_to_a_batch_and_undo_brings_every_byte_back(stand: S3Stand) -> None:
    before = stand.tree()
    code, said = walk(stand, "replay", JOB)
    assert code == 0, said
    (run,) = stand.run_ids()
    proved(stand)
    code, said = walk(stand, "undo", run, confirm=None)
    assert code == 0, said
    assert stand.tree() == before, differing(stand.tree(), before)


def test_diagnose_reads_a_checkpoint_on_s3(stand: S3Stand) -> None:
    code, said = fork(["diagnose", "--checkpoint", f"{stand.url}/checkpoint", "--sink", f"{stand.url}/out", "--json"])
    assert code == 0, said
    told = json.loads(said)
    assert (told["batches"]["planned"], told["batches"]["committed"], told["batches"]["in_flight"]) == (3, 2, [3])
    assert told["sink"]["last_batch"] == 2
    code, said = fork(["diagnose", "--checkpoint", f"{stand.url}/none"])
    assert (code, "there is no such directory" in said) == (2, True), said


FAULTS = [
    ("503", b"x-amz-copy-source:", "continue"),
    ("hang", b"POST ", "undo"),
    ("cut", b"x-amz-copy-source:", "continue"),
    ("503", b"POST ", "undo"),
    ("hang", b"x-amz-copy-source:", "continue"),
    ("cut", b"POST ", "undo"),
]  # in the middle of the copies; at the delete


@pytest.mark.parametrize(("fault", "where", "then"), FAULTS if EVERY else FAULTS[:2])
def test_a_store_that_fails_in_the_middle_stops_the_walk_and_nothing_is_lost(
    fault: str, where: bytes, then: str, stand: S3Stand, proxy: Faults
) -> None:
    before = stand.tree()
    {"503": proxy.fail, "hang": proxy.hang, "cut": proxy.cut}[fault](
        1 << 30, when=where, skip=4 if where != b"POST " else 0
    )
    code, said = walk(stand, "reset", JOB)
    proxy.heal()
    assert code == 4, said
    assert "does not answer" in said and "Traceback" not in said, said
    (run,) = stand.run_ids()
    assert f"runbook continue {run}" in said or f"runbook undo {run}" in said, said
    code, said = walk(stand, then, run, confirm=JOB if then == "continue" else None)
    assert code == 0, said
    if then == "continue":
        proved(stand)
    else:
        assert stand.tree() == before, differing(stand.tree(), before)


def test_a_store_that_goes_away_altogether_stops_the_walk_in_doubt(stand: S3Stand, proxy: Faults) -> None:
    """The journal is there too, so not even the failure can be written down."""
    proxy.fail(1 << 30, skip=160)
    code, said = walk(stand, "reset", JOB)
    proxy.heal()
    assert code in (1, 4, 7), said
    assert "does not answer" in said and "Traceback" not in said, said
    code, said = walk(stand, "reset", JOB)
    assert code in (0, 8), said
    if code == 8:
        told = re.search(r"`runbook continue (\S+)`", said)
        assert told, said
        code, said = walk(stand, "continue", told[1])
        assert code == 0, said
    proved(stand)


class Killed:
    """Ends its own process before the n-th change it makes on S3; counts them in a file where n is 0."""

    def __init__(self, n: int, told: Path | None = None) -> None:
        from wizard.s3 import S3

        real, self.count = S3._call_s3, 0
        outer = self

        async def call(fs: Any, method: str, *rest: Any, **arguments: Any) -> Any:
            if method in CHANGES:
                outer.count += 1
                if told is not None:
                    told.write_text(str(outer.count))
                if outer.count == n:
                    os.kill(os.getpid(), signal.SIGKILL)
            return await real(fs, method, *rest, **arguments)

        S3._call_s3 = call


def test_killed_at_a_change_a_walk_is_picked_up_or_taken_back(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STANDIN_ENDS_WITH", str(os.getpid()))
    counted = S3Stand.at(tmp_path / "count", f"{bucket}/count")
    code, said = walk(counted, "reset", JOB, before=lambda: Killed(0, tmp_path / "counted") and None)
    counted.stop()
    assert code == 0, said
    changes = int((tmp_path / "counted").read_text())
    order = list(range(1, changes + 1))
    random.Random(20261118).shuffle(order)
    tried = 0
    for n in order if EVERY else order[:1]:
        for then in ("continue", "undo"):
            stand = S3Stand.at(tmp_path / f"{n}-{then}", f"{bucket}/{n}-{then}")
            before = stand.tree()
            try:
                code, said = walk(stand, "reset", JOB, before=lambda n=n: Killed(n) and None)
                assert code in (-9, 0), said
                if code == -9:
                    ended(stand, then, before)
                tried += 1
            except AssertionError as error:
                error.add_note(f"killed before change {n} of {changes}, then {then}")
                raise
            finally:
                stand.stop()
    with capsys.disabled():
        print(f"\n  a reset on S3: killed at {tried} of {2 * changes} places", end="")


def ended(stand: S3Stand, then: str, before: dict[str, str]) -> None:
    locks = stand.objects("runs/locks")
    runs = stand.run_ids()
    if not runs and not locks:
        assert stand.tree() == before
        return
    code, said = walk(stand, "reset", JOB)  # an operator learns the run from the refusal of the next walk
    if code == 0:
        proved(stand)
        return
    assert code == 8, said
    told = re.search(r"`runbook (?:continue|undo) (\S+)`", said)
    assert told, said
    code, said = walk(stand, then, told[1], confirm=JOB if then == "continue" else None)
    if code in (2, 3) and "nothing" in said:
        assert stand.tree() == before
    else:
        assert code == 0, said
        if then == "continue":
            proved(stand)
        else:
            assert stand.tree() == before, differing(stand.tree(), before)
