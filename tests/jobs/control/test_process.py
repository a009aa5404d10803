"""`kind: process` on real processes: what is started survives, what is stopped is gone, and nobody else is touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wizard.errors import BadInput, ExitCode, RunbookError
from wizard.jobs.control import process as module
from wizard.jobs.control import processes
from wizard.jobs.control.interface import AlreadyRunning, NotStarted, NotSupported, StillRunning
from wizard.jobs.control.open import open_controller
from wizard.jobs.control.process import ProcessController
from wizard.jobs.model import ProcessControl
from wizard.jobs.registry import load_registry

OBEYS = """
import os, signal, sys, time
def end(*_):
    print("stopped between batches", flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
open("ready", "w").write(str(os.getpid()))
while True: time.sleep(0.05)
"""
IGNORES = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("ready", "w").write(str(os.getpid()))
while True: time.sleep(0.05)
"""
# The first process obeys; its child ignores SIGTERM and, as PySpark's worker daemon does, leaves the process group.
LEAVES_A_CHILD = """
import os, signal, sys, time
if os.fork() == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open("child", "w").write(str(os.getpid()))
    while True: time.sleep(0.05)
while not os.path.exists("child") or not open("child").read(): time.sleep(0.01)
open("ready", "w").write(str(os.getpid()))
while True: time.sleep(0.05)
"""
# The first process waits for its child when it is told to stop, as one that waits for its JVM's batch does.
NEEDS_ITS_CHILD = """
import os, signal, sys, time
child = os.fork()
if child == 0:
    while not os.path.exists("told"): time.sleep(0.02)
    time.sleep(0.3)
    open("batch", "w").write("committed")
    os._exit(0)
def end(*_):
    open("told", "w").close()
    _, code = os.waitpid(child, 0)
    sys.exit(0 if code == 0 else 9)
signal.signal(signal.SIGTERM, end)
open("ready", "w").write(str(os.getpid()))
while True: time.sleep(0.05)
"""

Make = Callable[..., ProcessController]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[ProcessController] = []

    def make(program: str, watch: float = 0.1, **options: object) -> ProcessController:
        (tmp_path / "job.py").write_text(program)
        control = ProcessControl(("python", "job.py", str(tmp_path)), str(tmp_path), **options)  # type: ignore[arg-type]
        made.append(ProcessController("ingest", control, tmp_path / "runs/control/ingest.pid", watch))
        return made[-1]

    yield make
    for process in processes.processes():
        command = processes.command_of(process.pid)
        if command and command[1] == str(tmp_path) and process.pid != os.getpid():
            os.kill(process.pid, signal.SIGKILL)


def wait_for(path: Path) -> int:
    deadline = time.monotonic() + 10
    while not path.exists() or not path.read_text():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)
    return int(path.read_text())


def runs(pid: int) -> bool:
    """By another way than the code under test: /proc/PID/status, in words."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_job_is_started_survives_the_one_who_started_it_and_stops_when_asked(make: Make, tmp_path: Path) -> None:
    make(OBEYS)
    registry = tmp_path / "jobs.yaml"
    registry.write_text(
        "version: 1\njobs:\n  ingest:\n    checkpoint: ./cp\n    source: {format: json, path: ./in}\n"
        "    sink: {format: delta, path: ./out, key: [id]}\n"
        f"    control: {{kind: process, start: [python, job.py, {tmp_path}]}}\n"
    )
    program = (
        "from wizard.jobs.control.open import open_controller; from wizard.jobs.registry import load_registry\n"
        f"r = load_registry({str(registry)!r}); open_controller(r, r.jobs['ingest']).start()"
    )
    asked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, "", "")
    pid = wait_for(tmp_path / "ready")
    assert Path(f"/proc/{pid}/exe").readlink() == Path(sys.executable).resolve()
    assert os.getsid(pid) != os.getsid(0)
    loaded = load_registry(registry)
    controller = open_controller(loaded, loaded.jobs["ingest"])
    assert isinstance(controller, ProcessController)
    controller.watch = 0.1
    status = controller.status()
    assert (status.state, status.evidence["pids"]) == ("running", [pid])
    assert status.since is not None and abs(status.since - time.time()) < 30

    told: list[str] = []
    controller.stop(say=told.append)
    assert told == [f"asked ingest (pid {pid}) to stop; it has 60 s"]
    assert not runs(pid)
    status = controller.status()
    assert (status.state, status.evidence["exit_code"]) == ("stopped", 7)
    assert status.evidence["last_lines"][-1] == "stopped between batches"
    controller.stop()  # what is stopped may be stopped
    controller.start()  # and started again: the log goes on, nothing of the last run is taken for this one
    assert controller.status().state == "running"
    assert (tmp_path / "runs/control/ingest.log").read_text().count("runbook starts") == 2
    controller.stop()


def test_one_that_ignores_the_request_is_ended_the_hard_way(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEFTOVER_SECONDS", 0.5)
    controller = make(IGNORES, stop_timeout=0.3)
    controller.start()
    pid = wait_for(tmp_path / "ready")
    told: list[str] = []
    controller.stop(say=told.append)
    assert told[-1] == "ingest did not stop in 0.3 s; ending it the hard way"
    assert not runs(pid)
    assert controller.status().says == "it ended with signal SIGKILL"


def test_a_child_that_left_the_group_and_ignores_signals_is_gone_too(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEFTOVER_SECONDS", 0.5)
    controller = make(LEAVES_A_CHILD)
    controller.start()
    first, child = wait_for(tmp_path / "ready"), wait_for(tmp_path / "child")
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while runs(first) and time.monotonic() < deadline:
        time.sleep(0.01)
    status = controller.status()
    assert (status.state, status.evidence["pids"]) == ("running", [child])
    with pytest.raises(AlreadyRunning, match=r"ingest is running already .its first process ended, pid \d+ did not"):
        controller.start()
    controller.stop()
    assert not runs(child)
    assert controller.status().state == "stopped"


def test_only_the_first_process_is_asked_so_that_it_can_finish_its_batch(make: Make, tmp_path: Path) -> None:
    controller = make(NEEDS_ITS_CHILD)
    controller.start()
    wait_for(tmp_path / "ready")
    controller.stop()
    assert (tmp_path / "batch").read_text() == "committed"
    assert controller.status().evidence["exit_code"] == 0


def test_a_job_without_its_supervisor_is_still_known_and_stopped(make: Make, tmp_path: Path) -> None:
    controller = make(OBEYS)
    controller.start()
    pid = wait_for(tmp_path / "ready")
    os.kill(json.loads(controller.pid_file.read_text())["supervisor"]["pid"], signal.SIGKILL)
    time.sleep(0.1)
    assert controller.status().evidence["pids"] == [pid]
    with pytest.raises(AlreadyRunning):
        controller.start()
    controller.stop()
    assert not runs(pid)
    assert controller.status().says == "it ended, and nothing was left to record how"


def test_one_that_dies_at_once_is_told_with_its_exit_code_and_last_line(make: Make) -> None:
    controller = make("import sys\nprint('booting')\nsys.exit('port 4040 is taken')\n", watch=10)
    with pytest.raises(NotStarted) as caught:
        controller.start()
    assert str(caught.value) == f"ingest ended at once with exit code 1: port 4040 is taken; see {controller.log}"
    assert caught.value.exit_code == ExitCode.ERROR
    assert controller.status().state == "stopped"


def test_one_that_dies_at_once_leaves_no_child_behind(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEFTOVER_SECONDS", 0.5)
    controller = make(LEAVES_A_CHILD.replace('open("ready"', 'sys.exit(3)\nopen("ready"'), watch=10)
    with pytest.raises(NotStarted, match="exit code 3"):
        controller.start()
    assert not runs(wait_for(tmp_path / "child"))


def test_one_that_is_done_at_once_is_no_failure(make: Make) -> None:
    controller = make("print('nothing to do')\n", watch=10)
    controller.start()
    assert controller.status().evidence["exit_code"] == 0


def test_of_many_starts_at_once_one_wins(make: Make, tmp_path: Path) -> None:
    controller = make(OBEYS.replace('"ready"', '"ready." + str(os.getpid())'))
    outcomes: list[str] = []
    barrier = threading.Barrier(8)

    def start() -> None:
        barrier.wait()
        try:
            controller.start()
            outcomes.append("started")
        except RunbookError as error:
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(outcomes) - {"Locked", "AlreadyRunning"}) == ["started"]
    assert outcomes.count("started") == 1
    time.sleep(0.3)
    assert len(list(tmp_path.glob("ready.*"))) == 1
    controller.pid_file.unlink()  # even then the lock, and then the process table, keep a second one out
    with pytest.raises(RunbookError):
        controller.start()
    (ready,) = tmp_path.glob("ready.*")
    os.kill(int(ready.suffix[1:]), signal.SIGTERM)


def test_a_pid_that_is_another_process_by_now_is_not_taken_for_ours(make: Make, tmp_path: Path) -> None:
    controller = make(OBEYS)
    controller.start()
    wait_for(tmp_path / "ready")
    controller.stop()
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        record = json.loads(controller.pid_file.read_text())
        # The bystander has the pids of both, as if they had been recycled; only the start times differ.
        record["job"]["pid"] = record["supervisor"]["pid"] = other.pid
        controller.pid_file.write_text(json.dumps(record))
        assert controller.status().state == "stopped"
        controller.stop()
        assert other.poll() is None
        controller.start()  # the bystander does not keep the job from being started
        assert controller.status().state == "running"
        controller.stop()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_one_that_someone_started_by_hand_is_seen_and_left_alone(make: Make, tmp_path: Path) -> None:
    controller = make(OBEYS)
    with subprocess.Popen([sys.executable, "job.py", str(tmp_path)], cwd=tmp_path) as other:
        wait_for(tmp_path / "ready")
        status = controller.status()
        assert (status.state, status.evidence["pids"]) == ("unknown", [other.pid])
        for act in (controller.start, controller.stop):
            with pytest.raises(
                NotSupported, match=rf"pid {other.pid} runs the same command and was not started from here"
            ):
                act()
        assert other.poll() is None
        other.terminate()
    assert controller.status().state == "stopped"


@pytest.mark.parametrize("text", ["", "12345", "{}", '{"job": 1}', "[]", '{"job": {"pid": "1"}}', "\0\0"])
def test_a_pid_file_that_is_not_ours_is_unknown_and_nothing_is_started_over_it(make: Make, text: str) -> None:
    controller = make(OBEYS)
    controller.pid_file.parent.mkdir(parents=True)
    controller.pid_file.write_text(text)
    status = controller.status()
    assert status.state == "unknown"
    assert status.says.startswith(f"{controller.pid_file} cannot be read: it is not one of ours; ")
    with pytest.raises(NotSupported, match="nothing was started"):
        controller.start()
    assert controller.pid_file.read_text() == text


def test_a_pid_file_of_another_machine_is_unknown(make: Make, tmp_path: Path) -> None:
    controller = make("")
    controller.start()
    record = json.loads(controller.pid_file.read_text())
    controller.pid_file.write_text(json.dumps({**record, "host": "elsewhere"}))
    assert controller.status().state == "unknown"
    assert controller.status().says.startswith("it was started on elsewhere, and this is ")


def test_environment_and_directory_are_those_of_the_registry(make: Make, tmp_path: Path) -> None:
    program = "import os; open('seen', 'w').write(os.environ['ZONE'] + ' ' + os.environ['HOME'] + ' ' + os.getcwd())"
    controller = make(program, watch=10, env={"ZONE": "a b; $c"})
    controller.start()
    assert (tmp_path / "seen").read_text() == f"a b; $c {os.environ['HOME']} {tmp_path}"


@pytest.mark.parametrize(
    ("start", "cwd", "told"),
    [
        (
            ("no-such-program-here", "x"),
            ".",
            "no such program no-such-program-here; install it, or correct control.start",
        ),
        (("./plain", "x"), ".", "permission denied to run ./plain; make it executable, or correct control.start"),
        (("./noformat", "x"), ".", "./noformat cannot be run: Exec format error; correct control.start"),
        (("python", "x"), "gone", "no directory {tmp}/gone to start it in; make it, or correct cwd"),
    ],
)
def test_a_program_that_cannot_be_run_is_told_in_one_line(
    tmp_path: Path, start: tuple[str, ...], cwd: str, told: str
) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    (tmp_path / "noformat").write_bytes(b"\x00\x01\x02")
    (tmp_path / "noformat").chmod(0o755)
    controller = ProcessController("ingest", ProcessControl(start, str(tmp_path / cwd)), tmp_path / "ingest.pid")
    with pytest.raises(BadInput) as caught:
        controller.start()
    assert str(caught.value) == f"control.start of job ingest: {told.format(tmp=tmp_path)}"
    assert not controller.pid_file.exists()
    assert controller.status().state == "stopped"


def test_no_room_for_the_log_is_told_and_nothing_is_started(make: Make, tmp_path: Path) -> None:
    controller = make(OBEYS)
    controller.log.parent.mkdir(parents=True)
    controller.log.symlink_to("/dev/full")
    with pytest.raises(RunbookError) as caught:
        controller.start()
    assert str(caught.value) == f"ingest was not started: {controller.log}: No space left on device; make room"
    assert caught.value.exit_code == ExitCode.ERROR
    assert not (tmp_path / "ready").exists()


def test_a_directory_that_cannot_be_written_is_told(make: Make, tmp_path: Path) -> None:
    controller = make(OBEYS)
    (tmp_path / "runs").write_text("a file where a directory should be")
    with pytest.raises(RunbookError, match=r"ingest was not started: .*runs.*: Not a directory; make it writable"):
        controller.start()


def test_a_pid_file_that_cannot_be_written_leaves_nothing_running(make: Make, tmp_path: Path) -> None:
    controller = make(OBEYS)
    controller.pid_file.parent.mkdir(parents=True)
    long = controller.pid_file.with_name("x" * 250 + ".pid")  # its own name fits, that of the file beside it does not
    controller = ProcessController("ingest", controller.control, long)
    controller.log, controller.exit_file, controller.lock = (tmp_path / name for name in ("log", "exit", "lock"))
    with pytest.raises(RunbookError, match=r"ingest was not started: .*: File name too long"):
        controller.start()
    assert controller.status().state == "stopped"  # among others: nobody runs the same command


def test_what_cannot_be_ended_is_said(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LEFTOVER_SECONDS", 0.1)
    controller = make(IGNORES, stop_timeout=0.1)
    controller.start()
    pid = wait_for(tmp_path / "ready")
    with monkeypatch.context() as stuck:
        stuck.setattr(module.os, "kill", lambda *_: None)  # as for a process that the kernel does not let go
        with pytest.raises(StillRunning, match=rf"ingest: pid {pid} cannot be ended; end them by hand"):
            controller.stop()
    controller.stop(timeout=0.1)


def test_ps_tells_the_same_processes_as_proc(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], process_group=0) as other:
        by_proc = {process.pid: process.group for process in processes._from_proc()}
        by_ps = {process.pid: process for process in processes._from_ps()}
        assert by_ps[other.pid].group == by_proc[other.pid] == other.pid
        assert by_ps[os.getpid()].group == by_proc[os.getpid()]
        started = time.mktime(time.strptime(by_ps[other.pid].started, "%a %b %d %H:%M:%S %Y")) - time.timezone
        assert abs(started - time.time()) < 30
        other.kill()


def test_the_supervisor_is_light() -> None:
    program = "import sys, runpy; runpy.run_path(sys.argv[1], run_name='x'); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, module.supervise.__file__],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {name.split(".")[0] for name in done.stdout.split()} & {"wizard", "yaml", "jsonschema", "asyncio"} == set()
