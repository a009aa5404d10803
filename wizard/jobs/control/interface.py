"""What every controller can be asked, and what it says when it cannot.

RunbookError
├── NotStarted        1  the job was started and did not come up
├── StillRunning      1  it was told to stop and did not
└── Stopped
    ├── AlreadyRunning    3  a start was refused: two runs on one checkpoint would spoil it
    └── NotSupported      3  this kind of control, or what is known now, does not allow it; nothing was done
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from wizard.errors import RunbookError, Stopped
from wizard.secrets import mask
from wizard.text import printable

State = Literal["running", "stopped", "unknown"]
Say = Callable[[str], None]


class NotStarted(RunbookError):
    pass


class StillRunning(RunbookError):
    pass


class AlreadyRunning(Stopped):
    pass


class NotSupported(Stopped):
    pass


@dataclass(frozen=True)
class Status:
    """Whether the job runs, as far as its controller can tell; `unknown` is never taken for stopped."""

    state: State
    says: str
    evidence: dict[str, Any] = field(default_factory=dict)
    since: float | None = None  # seconds since the epoch, where it is known


def silent(line: str) -> None:
    """For callers with nobody to tell."""


class Controller(ABC):
    @abstractmethod
    def status(self) -> Status: ...

    @abstractmethod
    def start(self) -> None:
        """Returns when it was started; raises AlreadyRunning, NotStarted or BadInput, and then nothing is left running."""

    @abstractmethod
    def stop(self, timeout: float | None = None, say: Say = silent) -> None:
        """Returns when it has stopped; raises StillRunning when it has not. Default: the registry's stop_timeout."""

    def refuse_unless_stopped(self, job: str) -> None:
        """Before a start."""
        status = self.status()
        if status.state == "running":
            raise AlreadyRunning(f"{job} is running already ({status.says}); nothing was started")
        if status.state == "unknown":
            raise NotSupported(f"cannot tell whether {job} runs: {status.says}; nothing was started")


class Unmanaged(Controller):
    """A job without `control`: the operator starts and stops it."""

    def __init__(self, job: str, registry: str) -> None:
        self.job, self.registry = job, registry

    def status(self) -> Status:
        return Status("unknown", f"{self.registry} does not say how {self.job} is controlled")

    def start(self) -> None:
        raise NotSupported(f"{self.registry} does not say how {self.job} is started; start it by hand, or add control")

    def stop(self, timeout: float | None = None, say: Say = silent) -> None:
        raise NotSupported(f"{self.registry} does not say how {self.job} is stopped; stop it by hand, or add control")


def resolve_argv(argv: Sequence[str]) -> list[str]:
    """The program `python` is the interpreter that runs us, which is the one that has what our jobs import."""
    return [sys.executable if argv[0] in ("python", "python3") else argv[0], *argv[1:]]


def shown(argv: Sequence[str]) -> str:
    """A command fit to be shown."""
    return one_line(" ".join(argv))


def one_line(text: str, limit: int = 300) -> str:
    return printable(mask(" ".join(text.split())))[:limit]


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else "it wrote nothing"


def cannot_run(job: str, key: str, argv: Sequence[str], error: OSError, cwd: str | Path) -> str:
    """Why a program of the registry did not start: what, where, what to do."""
    program = printable(argv[0])
    if not Path(cwd).is_dir():
        return f"{key} of job {job}: no directory {cwd} to start it in; make it, or correct cwd"
    if isinstance(error, FileNotFoundError):
        return f"{key} of job {job}: no such program {program}; install it, or correct {key}"
    if isinstance(error, PermissionError):
        return f"{key} of job {job}: permission denied to run {program}; make it executable, or correct {key}"
    return f"{key} of job {job}: {program} cannot be run: {error.strerror or error}; correct {key}"
