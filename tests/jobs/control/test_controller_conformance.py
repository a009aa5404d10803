"""The same demands on every kind of controller, over real processes. A new kind adds a case; see docs/adapters.md.

The worker writes its pid to `pids` when it has come up. Whether it is there is asked of the kernel, not of the controller.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wizard.errors import RunbookError
from wizard.jobs.control.interface import AlreadyRunning, Controller, NotSupported, StillRunning
from wizard.jobs.control.open import open_controller
from wizard.jobs.registry import load_registry

SECRET = "hunter2-argument"
WORKER = """
import os, signal, sys, time
if os.path.exists("stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("pids", "a").write(f"{os.getpid()}\\n")
while not os.path.exists("end"): time.sleep(0.02)
"""
# What stands behind `kind: command`: starts the worker apart from itself, and knows it by its pid.
MANAGER = """
import os, signal, subprocess, sys, time
def alive():
    try:
        with open(f"/proc/{open('managed').read()}/stat") as about:
            return about.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
verb = sys.argv[1]
if verb == "start":
    child = subprocess.Popen([sys.executable, "worker.py"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    open("managed", "w").write(str(child.pid))
elif verb == "stop":
    os.kill(int(open("managed").read()), signal.SIGTERM)
else:
    sys.exit(9 if os.path.exists("confused") else 0 if alive() else 3)
"""


class Stand:
    def __init__(self, root: Path, control: dict[str, Any]) -> None:
        self.root = root
        (root / "worker.py").write_text(WORKER)
        (root / "manager.py").write_text(MANAGER)
        job = {"checkpoint": "./checkpoint", "source": {"format": "json", "path": "./in"}, "control": control}
        job["sink"] = {"format": "parquet", "path": "./out", "key": ["id"]}
        (root / "jobs.yaml").write_text(json.dumps({"version": 1, "jobs": {"job": job}}))

    @property
    def controller(self) -> Controller:
        """As another process would have it: nothing is remembered."""
        registry = load_registry(self.root / "jobs.yaml")
        return open_controller(registry, registry.jobs["job"])

    def workers(self) -> list[int]:
        pids = (self.root / "pids").read_text().split() if (self.root / "pids").exists() else []
        return [int(pid) for pid in pids if self._alive(int(pid))]

    def until(self, count: int) -> None:
        deadline = time.monotonic() + 20
        while len(self.workers()) != count:
            assert time.monotonic() < deadline, f"{len(self.workers())} workers, not {count}"
            time.sleep(0.02)

    @staticmethod
    def _alive(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False


def process(root: Path) -> dict[str, Any]:
    return {"kind": "process", "start": [sys.executable, "worker.py", "--password", SECRET], "stop_timeout": 10}


def command(root: Path) -> dict[str, Any]:
    os.chdir(root)  # the program is named by a path relative to the registry
    told: dict[str, Any] = {
        verb: [sys.executable, str(root / "manager.py"), verb, "--password", SECRET]
        for verb in ("start", "stop", "status")
    }
    return {"kind": "command", **told, "stop_timeout": 10}


def spark_rest(root: Path) -> dict[str, Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = [sys.executable, "worker.py", "--password", SECRET]
    return {"kind": "spark-rest", "url": f"http://127.0.0.1:{port}", "query_name": "job", "start": start}


MANAGED = {"process": process, "command": command}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    yield tmp_path
    os.chdir(before)


def ended(stand: Stand) -> None:
    for pid in stand.workers():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=sorted(MANAGED))
def stand(request: pytest.FixtureRequest, here: Path) -> Iterator[Stand]:
    made = Stand(here, MANAGED[request.param](here))
    yield made
    ended(made)


@pytest.fixture(params=sorted([*MANAGED, "spark-rest"]))
def unsure(request: pytest.FixtureRequest, here: Path) -> Iterator[Stand]:
    """One whose controller cannot find out whether the job runs."""
    made = Stand(here, {**MANAGED, "spark-rest": spark_rest}[request.param](here))
    if request.param == "process":
        (here / "runs/control").mkdir(parents=True)
        (here / "runs/control/job.pid").write_text("not a pid")
    (here / "confused").touch()
    yield made
    ended(made)


def test_a_job_is_started_once_and_stopped_is_gone(stand: Stand) -> None:
    assert stand.controller.status().state == "stopped"
    stand.controller.start()
    stand.until(1)
    assert stand.controller.status().state == "running"
    with pytest.raises(AlreadyRunning, match="nothing was started"):
        stand.controller.start()
    assert len(stand.workers()) == 1
    stand.controller.stop()
    assert stand.workers() == [] and stand.controller.status().state == "stopped"
    stand.controller.stop()
    assert stand.controller.status().state == "stopped"


def test_a_job_that_ends_by_itself_is_stopped_and_can_be_started_again(stand: Stand) -> None:
    stand.controller.start()
    stand.until(1)
    (stand.root / "end").touch()
    stand.until(0)
    assert stand.controller.status().state == "stopped"
    (stand.root / "end").unlink()
    stand.controller.start()
    stand.until(1)
    stand.controller.stop()
    assert stand.workers() == []


def test_a_job_that_ignores_the_word_is_ended_or_told_and_never_taken_for_stopped(stand: Stand) -> None:
    (stand.root / "stubborn").touch()
    stand.controller.start()
    stand.until(1)
    try:
        stand.controller.stop(timeout=0.5)
    except StillRunning as told:
        assert "\n" not in str(told)
        assert len(stand.workers()) == 1 and stand.controller.status().state == "running"
    else:
        assert stand.workers() == [] and stand.controller.status().state == "stopped"


def test_what_cannot_be_found_out_is_unknown_and_nothing_is_started(unsure: Stand) -> None:
    status = unsure.controller.status()
    assert status.state == "unknown" and status.says and "\n" not in status.says
    with pytest.raises((NotSupported, RunbookError)) as told:
        unsure.controller.start()
    assert "\n" not in str(told.value)
    assert unsure.workers() == []


def test_no_secret_of_a_command_is_shown(unsure: Stand) -> None:
    status = unsure.controller.status()
    assert SECRET not in status.says + json.dumps(status.evidence, default=str)
    with pytest.raises(RunbookError) as told:
        unsure.controller.start()
    assert SECRET not in str(told.value)
