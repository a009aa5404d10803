"""`kind: process`: a process of this machine, which goes on when `runbook` ends.

Beside the pid file (by default `<runs>/control/<job>.pid`) are `.log` with what the job wrote, `.exit` with how it ended
and `.lock`, which the supervisor holds as long as anything of the job is left: of two starts one wins.

A process is ours when it carries our token in its environment, or is in the session of our supervisor while that lives.
Pids are recycled, tokens and start times are not. The group would not do: PySpark's worker daemon leaves it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from wizard.errors import BadInput, Locked, RunbookError
from wizard.jobs.control import supervise
from wizard.jobs.control.interface import (
    AlreadyRunning,
    Controller,
    NotStarted,
    NotSupported,
    Say,
    Status,
    StillRunning,
    cannot_run,
    one_line,
    resolve_argv,
    shown,
    silent,
)
from wizard.jobs.control.processes import Process, command_of, has_in_environment, processes
from wizard.jobs.model import ProcessControl

TOKEN = "RUNBOOK_CONTROL"
WATCH_SECONDS = 3.0
"""How long a start is watched: a wrong option or a missing module shows within it."""
_SUPERVISOR_SECONDS = 30.0
_LEFTOVER_SECONDS = 5.0
"""How long what a process leaves behind may take to end by itself; Spark's JVM does, after its Python parent."""
_POLL_SECONDS = 0.05
Found = Callable[[], list[Process]]


class ProcessController(Controller):
    def __init__(self, job: str, control: ProcessControl, pid_file: Path, watch: float = WATCH_SECONDS) -> None:
        self.job = job
        self.control = control
        self.pid_file = pid_file
        stem = str(pid_file).removesuffix(".pid")
        self.log, self.exit_file, self.lock = Path(f"{stem}.log"), Path(f"{stem}.exit"), Path(f"{stem}.lock")
        self.watch = watch

    def status(self) -> Status:
        evidence: dict[str, Any] = {"pid_file": str(self.pid_file), "log": str(self.log)}
        try:
            record = self._record()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not one of ours"
            says = f"{self.pid_file} cannot be read: {reason}; see whether the job runs, then remove the file"
            return Status("unknown", says, evidence)
        if record is None:
            return self._by_hand(evidence) or Status("stopped", "it was never started from here", evidence)
        if record["host"] != _host():
            says = f"it was started on {record['host']}, and this is {_host()}; ask there, or remove {self.pid_file}"
            return Status("unknown", says, evidence)
        ours = self._ours(record)
        leader = next((process for process in ours if process.pid == record["job"]["pid"]), None)
        evidence |= {"pids": sorted(process.pid for process in ours)}
        if leader:
            return Status("running", f"pid {leader.pid}", evidence, record["at"])
        if ours:
            return Status("running", f"its first process ended, {_pids(ours)} did not", evidence, record["at"])
        return self._ended(record, evidence)

    def _by_hand(self, evidence: dict[str, Any]) -> Status | None:
        others = self._same_command()
        says = f"{_pids(others)} runs the same command and was not started from here; stop it where it was started"
        return Status("unknown", says, {**evidence, "pids": [process.pid for process in others]}) if others else None

    def _ended(self, record: dict[str, Any], evidence: dict[str, Any]) -> Status:
        ended = self._exit(record["token"])
        if ended is None and os.getuid() not in (0, record["uid"]):
            says = f"user {record['uid']} started it, whose processes may be hidden from you; ask as that user"
            return Status("unknown", says, evidence)
        if by_hand := self._by_hand(evidence):
            return by_hand
        if ended is None:
            return Status("stopped", "it ended, and nothing was left to record how", evidence)
        evidence |= {"exit_code": ended["exit_code"], "last_lines": [one_line(line) for line in ended["last_lines"]]}
        return Status("stopped", f"it ended with {_code(ended['exit_code'])}", evidence, ended["at"])

    def start(self) -> None:
        try:
            self.pid_file.parent.mkdir(parents=True, exist_ok=True)
            with self._locked() as lock:
                self.refuse_unless_stopped(self.job)
                token = self._launch(lock)
        except OSError as error:
            raise _unwritable(self.job, error, self.log) from None
        self._watch(token)

    def _launch(self, lock: IO[str]) -> str:
        token = uuid.uuid4().hex
        argv = resolve_argv(self.control.start)
        env = {**os.environ, **self.control.env, TOKEN: token}
        record = {"token": token, "host": _host(), "uid": os.getuid(), "command": shown(argv)}
        files = {"pid_file": str(self.pid_file), "log": str(self.log), "exit_file": str(self.exit_file)}
        spec = {"argv": argv, "cwd": self.control.cwd, "env": env, "record": record, **files}
        with self.log.open("a", encoding="utf-8") as log:
            # Also the test whether there is room for a log.
            log.write(f"--- {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} runbook starts {shown(argv)}\n")
            log.flush()
            try:
                done = subprocess.run(
                    [sys.executable, "-I", "-S", supervise.__file__],
                    input=json.dumps(spec).encode(),
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=env,
                    pass_fds=(lock.fileno(),),
                    timeout=_SUPERVISOR_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                _signal(self._with_token(token), signal.SIGKILL)
                raise NotStarted(f"{self.job} did not start in {_SUPERVISOR_SECONDS:.0f} s; see {self.log}") from None
        answer: dict[str, Any] = json.loads(done.stdout or "{}")
        if "file" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]), answer["file"])
        if "errno" in answer:
            error = OSError(answer["errno"], os.strerror(answer["errno"]))
            raise BadInput(cannot_run(self.job, "control.start", argv, error, self.control.cwd))
        if "job" not in answer:
            raise NotStarted(f"{self.job} did not start: {self._last_line()}; see {self.log}")
        return token

    def _watch(self, token: str) -> None:
        deadline = time.monotonic() + self.watch
        while (ended := self._exit(token)) is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        if ended and ended["exit_code"] != 0:
            _end(lambda: self._with_token(token))
            said = one_line(ended["last_lines"][-1]) if ended["last_lines"] else "it wrote nothing"
            raise NotStarted(f"{self.job} ended at once with {_code(ended['exit_code'])}: {said}; see {self.log}")

    def stop(self, timeout: float | None = None, say: Say = silent) -> None:
        status = self.status()
        if status.state == "stopped":
            return
        if status.state == "unknown":
            raise NotSupported(f"cannot stop {self.job}: {status.says}; nothing was done")
        record = self._record()
        if record is None:
            raise NotSupported(f"cannot stop {self.job}: {self.pid_file} was removed just now; look again")
        timeout = self.control.stop_timeout if timeout is None else timeout

        def found() -> list[Process]:
            return self._ours(record)

        def leader() -> list[Process]:
            return [process for process in found() if process.pid == record["job"]["pid"]]

        # The first process alone: one that stops its query between two batches needs its JVM until then.
        try:
            patience = None
            if first := leader():
                say(f"asked {self.job} (pid {first[0].pid}) to stop; it has {timeout:g} s")
                _signal(first, signal.SIGTERM)
                if not _gone(leader, timeout):
                    say(f"{self.job} did not stop in {timeout:g} s; ending it the hard way")
                    patience = 0.0
            if left := _end(found, patience):
                raise StillRunning(f"{self.job}: {_pids(left)} cannot be ended; end them by hand")
        except PermissionError:
            raise NotSupported(f"{self.job} ({_pids(found())}) is not yours to stop; run this as its user") from None
        # The supervisor has then written down how it ended, and lets go of the lock.
        _gone(lambda: [process for process in processes() if _is(process, record["supervisor"])], _LEFTOVER_SECONDS)

    @contextmanager
    def _locked(self) -> Iterator[IO[str]]:
        deadline = time.monotonic() + _LEFTOVER_SECONDS
        with self.lock.open("a") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    status = self.status()
                    if status.state == "running":
                        raise AlreadyRunning(
                            f"{self.job} is running already ({status.says}); nothing was started"
                        ) from None
                    # The supervisor of a job that has just ended lets go of it in a moment.
                    if time.monotonic() >= deadline:
                        raise Locked(
                            f"{self.job} is being started or has just ended ({self.lock}); look again"
                        ) from None
                    time.sleep(_POLL_SECONDS)
            yield file

    def _record(self) -> dict[str, Any] | None:
        """What the supervisor wrote when it started the job; ValueError when it is not of that form."""
        try:
            record = json.loads(self.pid_file.read_bytes())
        except FileNotFoundError:
            return None
        try:
            ids = [record["job"]["pid"], record["supervisor"]["pid"], record["uid"]]
            marks = [record["job"]["started"], record["supervisor"]["started"], record["token"], record["host"]]
            at = record["at"]
        except (KeyError, TypeError):
            raise ValueError("not a record") from None
        whole = all(type(number) is int for number in ids) and all(isinstance(mark, str | None) for mark in marks)
        if not whole or not record["token"] or not isinstance(at, int | float):
            raise ValueError("not a record")
        return dict(record)

    def _exit(self, token: str) -> dict[str, Any] | None:
        try:
            ended = json.loads(self.exit_file.read_bytes())
            return dict(ended) if ended["token"] == token else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or of no use: how it ended is not known

    def _ours(self, record: dict[str, Any]) -> list[Process]:
        """What is left of the job, without its supervisor."""
        running = processes()
        supervised = any(_is(process, record["supervisor"]) for process in running)
        session, token = record["supervisor"]["pid"], f"{TOKEN}={record['token']}"

        def ours(process: Process) -> bool:
            if _is(process, record["job"]):
                return True
            if supervised and (process.session == session or process.group == record["job"]["pid"]):
                return True
            return has_in_environment(process.pid, token)

        return [process for process in running if not _is(process, record["supervisor"]) and ours(process)]

    def _with_token(self, token: str) -> list[Process]:
        return [process for process in processes() if has_in_environment(process.pid, f"{TOKEN}={token}")]

    def _same_command(self) -> list[Process]:
        """Someone may have started the job by hand: the same words, in the same directory."""
        words = self.control.start
        here = os.path.realpath(self.control.cwd)

        def same(command: tuple[tuple[str, ...], str] | None) -> bool:
            if command is None or len(command[0]) < len(words) or command[1] != here:
                return False
            program, *arguments = command[0][-len(words) :]  # before a script stands its interpreter
            return _program(program) == _program(words[0]) and arguments == list(words[1:])

        return [process for process in processes() if same(command_of(process.pid))]

    def _last_line(self) -> str:
        lines = supervise.last_lines(self.log)
        return one_line(lines[-1]) if lines else "it wrote nothing"


def _end(found: Found, patience: float | None = None) -> list[Process]:
    """Wait, then SIGTERM, then SIGKILL; what is left after that. What is forked meanwhile is found the next time."""
    if not _gone(found, _LEFTOVER_SECONDS if patience is None else patience):
        _signal(found(), signal.SIGTERM)
    if not _gone(found, _LEFTOVER_SECONDS):
        _signal(found(), signal.SIGKILL)
    for _ in range(20):
        if _gone(found, _LEFTOVER_SECONDS / 20):
            break
        _signal(found(), signal.SIGKILL)
    return found()


def _gone(found: Found, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while found():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _signal(targets: Iterable[Process], number: signal.Signals) -> None:
    for process in targets:
        # Asked again right before: the pid may be another's by now.
        if supervise.start_mark(process.pid) == process.started:
            try:
                os.kill(process.pid, number)
            except ProcessLookupError:
                continue


def _is(process: Process, recorded: dict[str, Any]) -> bool:
    return (process.pid, process.started) == (recorded["pid"], recorded["started"])


def _host() -> str:
    """Pids mean something on one machine, and there within one pid namespace (a container has its own)."""
    try:
        namespace = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()} {namespace}"


def _program(word: str) -> str:
    name = Path(word).name
    return "python" if name.startswith("python") else name


def _pids(found: list[Process]) -> str:
    return ("pid " if len(found) == 1 else "pids ") + ", ".join(str(process.pid) for process in found[:10])


def _code(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _unwritable(job: str, error: OSError, where: Path) -> RunbookError:
    fix = "make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable, or set control.pid_file"
    return RunbookError(f"{job} was not started: {error.filename or where}: {error.strerror or error}; {fix}")
