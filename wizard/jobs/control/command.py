"""`kind: command`: whatever runs the job has commands of its own to start, stop and ask after it.

Arguments go to the program as they are; there is no shell. What `status` answers is compared with the registry's
`running` and `stopped`; an answer that fits neither, or both, is unknown.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from wizard.errors import BadInput
from wizard.jobs.control.interface import (
    Controller,
    NotStarted,
    NotSupported,
    Say,
    Status,
    StillRunning,
    cannot_run,
    last_line,
    resolve_argv,
    shown,
    silent,
)
from wizard.jobs.model import Answer, CommandControl

_OUTPUT_LIMIT = 1_000_000


class CommandController(Controller):
    def __init__(self, job: str, control: CommandControl, cwd: Path, poll: float = 1.0) -> None:
        self.job = job
        self.control = control
        self.cwd = cwd
        self.poll = poll

    def status(self) -> Status:
        argv = self.control.status
        try:
            code, output = run(self.job, "control.status", argv, self.cwd, self.control.timeout)
        except BadInput as error:
            return Status("unknown", str(error), {"command": shown(argv)})
        except TimeoutError:
            return Status(
                "unknown", f"{shown(argv)} gave no answer in {self.control.timeout:g} s", {"command": shown(argv)}
            )
        evidence = {"command": shown(argv), "exit_code": code, "output": last_line(output)}
        told = f"{shown(argv)} ended with exit code {code}: {last_line(output)}"
        running, stopped = _fits(self.control.running, code, output), _fits(self.control.stopped, code, output)
        if running == stopped:
            which = "both running and stopped" if running else "neither running nor stopped"
            return Status("unknown", f"{told}, which is {which}", evidence)
        return Status("running" if running else "stopped", told, evidence)

    def start(self) -> None:
        self.refuse_unless_stopped(self.job)
        run_to_success(self.job, "control.start", self.control.start, self.cwd, self.control.timeout)

    def stop(self, timeout: float | None = None, say: Say = silent) -> None:
        status = self.status()
        if status.state == "stopped":
            return
        if status.state == "unknown":
            raise NotSupported(f"cannot tell whether {self.job} runs: {status.says}; nothing was done")
        timeout = self.control.stop_timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout
        argv = self.control.stop
        say(f"{shown(argv)}; it has {timeout:.0f} s")
        try:
            code, output = run(self.job, "control.stop", argv, self.cwd, timeout)
        except TimeoutError:
            raise StillRunning(f"{shown(argv)} did not end in {timeout:g} s; see whether {self.job} runs") from None
        if code != 0:
            raise StillRunning(
                f"{shown(argv)} ended with exit code {code}: {last_line(output)}; stop {self.job} by hand"
            )
        while (status := self.status()).state != "stopped":
            if time.monotonic() >= deadline:
                raise StillRunning(f"{self.job} has not stopped in {timeout:g} s: {status.says}; look at it by hand")
            time.sleep(min(self.poll, max(0.0, deadline - time.monotonic())))


def run_to_success(job: str, key: str, argv: Sequence[str], cwd: Path, timeout: float) -> None:
    try:
        code, output = run(job, key, argv, cwd, timeout)
    except TimeoutError:
        raise NotStarted(f"{shown(argv)} did not end in {timeout:g} s and was ended; see whether {job} runs") from None
    if code != 0:
        raise NotStarted(f"{job} was not started: {shown(argv)} ended with exit code {code}: {last_line(output)}")


def run(job: str, key: str, argv: Sequence[str], cwd: Path, timeout: float) -> tuple[int, str]:
    """Exit code and output. Raises BadInput when there is no such program, TimeoutError after ending one too slow."""
    # A file and not a pipe: a command that leaves a process behind leaves it the pipe too, and would never be done.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                resolve_argv(argv),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C for us is none for it, and it can be ended with its children
            )
        except OSError as error:
            raise BadInput(cannot_run(job, key, argv, error, cwd)) from None
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(max(0, output.seek(0, os.SEEK_END) - _OUTPUT_LIMIT))
        return code, output.read().decode("utf-8", "replace")


def _fits(answer: Answer, code: int, output: str) -> bool:
    if answer.exit_codes and code not in answer.exit_codes:
        return False
    return answer.output is None or re.search(answer.output, output) is not None
