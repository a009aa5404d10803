"""Stopped: the controller says so, and the checkpoint does not move."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import fsspec
import pytest

from wizard.jobs.control.interface import Controller, NotSupported, Say, State, Status, Unmanaged, silent
from wizard.jobs.control.stopped import Watch, fingerprint, stopped
from wizard.jobs.model import DEFAULT_RUNNING, DEFAULT_STOPPED, CommandControl, Job, Sink, Source


@dataclass
class Says(Controller):
    """A controller that is told what to say, one answer after the other; the last one stays."""

    answers: list[State] = field(default_factory=lambda: ["stopped"])

    def status(self) -> Status:
        state = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Status(state, f"it is {state}", {"asked": "me"})

    def start(self) -> None:
        raise NotImplementedError

    def stop(self, timeout: float | None = None, say: Say = silent) -> None:
        raise NotImplementedError


def a_job(checkpoint: Path | str, settle: float = 0.4) -> Job:
    control = CommandControl(("a",), ("b",), ("c",), DEFAULT_RUNNING, DEFAULT_STOPPED, settle_seconds=settle)
    return Job("clean", str(checkpoint), (Source("json"),), Sink("delta"), control=control)


def test_a_quiet_checkpoint_of_a_stopped_job_holds_after_the_stated_time(checkpoint: Path) -> None:
    newest = {
        kind: max(int(p.name) for p in (checkpoint / kind).iterdir() if p.name.isdigit())
        for kind in ("offsets", "commits")
    }
    files = sum(1 for path in checkpoint.rglob("*") if path.is_file())
    told: list[str] = []
    began = time.monotonic()
    proof = stopped(a_job(checkpoint), Says(), say=told.append)
    assert time.monotonic() - began >= 0.4
    assert proof.outcome == "holds"
    assert told == ["watching the checkpoint of clean for 0 s"]
    seen = proof.evidence["checkpoint"]
    assert seen.pop("unmoved_seconds") >= 0.4
    assert seen == {"files": files, **newest}


@pytest.mark.parametrize(("answers", "outcome"), [(["running"], "fails"), (["unknown"], "unknown")])
def test_what_the_controller_does_not_call_stopped_is_not(checkpoint: Path, answers: list[State], outcome: str) -> None:
    assert stopped(a_job(checkpoint, settle=60), Says(answers)).outcome == outcome


@pytest.mark.parametrize(("second", "outcome"), [("running", "fails"), ("unknown", "unknown")])
def test_a_job_that_comes_back_while_it_is_watched_is_not_stopped(
    checkpoint: Path, second: State, outcome: str
) -> None:
    proof = stopped(a_job(checkpoint, settle=0.1), Says(["stopped", second]))
    assert (proof.outcome, proof.says) == (outcome, f"it was stopped and is not now: it is {second}")


def test_a_checkpoint_that_moves_under_a_stopped_job_fails(checkpoint: Path) -> None:
    timer = threading.Timer(0.2, (checkpoint / "offsets/999").write_text, ["v1\n{}"])
    timer.start()
    began = time.monotonic()
    proof = stopped(a_job(checkpoint, settle=5), Says())
    timer.join()
    assert proof.outcome == "fails"
    assert proof.says.endswith("but the checkpoint moves: something else runs on it")
    assert proof.evidence["checkpoint"]["offsets"] == 999
    assert time.monotonic() - began < 4  # told when it is seen, not at the end


def test_what_was_seen_unmoved_is_not_waited_for_again_until_it_moves(checkpoint: Path) -> None:
    watch = Watch(str(checkpoint))
    assert stopped(a_job(checkpoint), Says(), watch).outcome == "holds"
    told: list[str] = []
    assert stopped(a_job(checkpoint), Says(), watch, told.append).outcome == "holds"
    assert told == []
    (checkpoint / "commits/999").write_text("v1\n{}")
    began = time.monotonic()
    assert stopped(a_job(checkpoint), Says(), watch, told.append).outcome == "holds"
    assert time.monotonic() - began >= 0.4
    assert len(told) == 1


def test_every_kind_of_write_shows(checkpoint: Path) -> None:
    file = next(path for path in sorted((checkpoint / "commits").iterdir()) if path.name.isdigit())
    seen = {fingerprint(str(checkpoint)).digest}

    def moved() -> bool:
        digest = fingerprint(str(checkpoint)).digest
        new = digest not in seen
        seen.add(digest)
        return new

    assert not moved()
    (checkpoint / "state/0/0").mkdir(parents=True, exist_ok=True)
    (checkpoint / "state/0/0/77.delta").write_bytes(b"x")
    assert moved()
    (checkpoint / "offsets/.888.tmp").write_text("")
    assert moved()
    text = file.read_bytes()
    file.write_bytes(text + b" ")
    assert moved()
    os.utime(file, ns=(1, 1))
    assert moved()
    file.unlink()
    assert moved()


def test_a_remote_checkpoint_is_watched_too() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/watched/offsets/0", b"v1")
    memory.pipe("/watched/state/0/0/1.delta", b"x")
    watch = Watch("memory://watched")
    proof = stopped(a_job("memory://watched", settle=0.1), Says(), watch)
    assert (proof.outcome, proof.evidence["checkpoint"]["files"]) == ("holds", 2)
    memory.pipe("/watched/state/0/0/1.delta", b"xy")
    assert watch.look() == 0
    memory.rm("/watched", recursive=True)


def test_a_checkpoint_that_is_not_there_and_stays_away_is_no_hindrance(tmp_path: Path) -> None:
    proof = stopped(a_job(tmp_path / "none", settle=0.1), Says())
    assert (proof.outcome, proof.evidence["checkpoint"]["files"]) == ("holds", 0)


def test_a_checkpoint_that_cannot_be_listed_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "offsets").symlink_to("offsets")  # a loop: no user, not even root, can list it
    (tmp_path / "cp").mkdir()
    (tmp_path / "cp/state").symlink_to(tmp_path / "offsets")
    proof = stopped(a_job(tmp_path / "cp", settle=0.1), Says())
    assert proof.outcome == "unknown"
    assert "cp" in proof.says


def test_a_job_without_control_is_unknown_and_left_to_the_operator() -> None:
    controller = Unmanaged("clean", "jobs.yaml")
    assert controller.status().state == "unknown"
    for act, verb in ((controller.start, "started"), (controller.stop, "stopped")):
        with pytest.raises(NotSupported, match=f"jobs.yaml does not say how clean is {verb}"):
            act()
