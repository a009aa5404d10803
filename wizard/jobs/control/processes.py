"""The processes of this machine, from /proc, or from `ps` where there is none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wizard.errors import RunbookError
from wizard.jobs.control.supervise import PS_ENV

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    pid: int
    group: int
    session: int | None  # None where the system does not tell
    started: str


def processes() -> list[Process]:
    """All that run now; one that has ended and waits for its parent to notice does not."""
    return list(_from_proc() if (_PROC / "self/stat").exists() else _from_ps())


def _from_proc() -> Iterator[Process]:
    boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    for place in _PROC.iterdir():
        if not place.name.isdigit():
            continue
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended since it was listed
        if fields[0] not in "ZX":
            yield Process(int(place.name), int(fields[2]), int(fields[3]), f"{boot}:{fields[19]}")


def _from_ps() -> Iterator[Process]:
    try:
        done = subprocess.run(
            ["ps", "-A", "-o", "pid=,pgid=,stat=,lstart="],
            capture_output=True,
            text=True,
            env={**os.environ, **PS_ENV},
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RunbookError(f"the processes of this machine cannot be listed: {error}; install ps") from None
    for line in done.stdout.splitlines():
        pid, group, state, *started = line.split()
        if state[0] not in "ZX":
            yield Process(int(pid), int(group), None, " ".join(started))


def has_in_environment(pid: int, entry: str) -> bool:
    """Whether `entry` (NAME=value) is in what the process was started with; False where that cannot be seen."""
    try:
        return entry.encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def command_of(pid: int) -> tuple[tuple[str, ...], str] | None:
    """Its arguments and its directory; None where they cannot be seen."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return tuple(os.fsdecode(word) for word in words), str((_PROC / str(pid) / "cwd").readlink())
    except OSError:
        return None
