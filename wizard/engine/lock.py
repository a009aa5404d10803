"""One walk a job: a file made by an atomic create, which says who holds it.

A lock whose process is gone is stale. It is not broken by whoever comes next: only by naming its run, which is what
`runbook continue RUN` and `runbook undo RUN` do. Whether a process of another host still runs cannot be seen from here:
that host has to be named too (`--gone HOST`).
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import socket
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wizard import durable
from wizard.errors import BadInput, InDoubt, JournalUnwritable, Locked
from wizard.store import local_path


class Locks:
    """The locks of one walk: its job, and the jobs that read its output."""

    def __init__(self, runs: str, run: str, jobs: Sequence[str]) -> None:
        self.runs, self.run = runs, run
        self.jobs = sorted(jobs)  # always in one order: two walks that want the same two cannot wait for each other
        self.held: list[str] = []

    def take(self) -> None:
        """All of them or none; raises Locked, InDoubt or JournalUnwritable."""
        try:
            with _alone(self.runs):
                for job in self.jobs:
                    self._take_one(job)
        except OSError as error:
            self.release()
            raise JournalUnwritable(
                f"{self.runs}: cannot be written ({error.strerror or error}); nothing was done"
            ) from None
        except (Locked, InDoubt):
            self.release()
            raise

    def _take_one(self, job: str) -> None:
        url = _url(self.runs, job)
        # The nonce: an object store whose answer was lost is asked whether these very bytes are there.
        mine = json.dumps({"run": self.run, "job": job, **whoami(), "nonce": uuid.uuid4().hex}).encode()
        if durable.create(url, mine):
            self.held.append(job)
            return
        seen = _read(self.runs, job) or b""
        holder = _parsed(seen)
        if holder is None:
            raise InDoubt(f"{url}: is not a lock this tool wrote; look at it, and remove it if nobody walks {job}")
        here = holder.get("host") == socket.gethostname()
        if holder.get("run") == self.run and here and not alive(holder) and durable.replace(url, seen, mine):
            self.held.append(job)
            return
        raise_held(job, read_lock(self.runs, job) or holder)

    def release(self) -> None:
        for job in self.held:
            holder = read_lock(self.runs, job)
            if holder is not None and holder.get("run") == self.run and holder.get("pid") == os.getpid():
                with suppress(OSError):  # a disk that has gone read-only: the lock is then stale, and says whose it was
                    durable.remove(_url(self.runs, job))
        self.held = []


def raise_held(job: str, holder: dict[str, Any]) -> None:
    who = f"{holder.get('who')} on {holder.get('host')} (pid {holder.get('pid')}, since {holder.get('at')})"
    run = holder.get("run")
    if alive(holder):
        raise Locked(f"{job} is being walked by {who} in run {run}; wait for it, or talk to them")
    if holder.get("host") != socket.gethostname():
        raise Locked(
            f"{job} is locked by {who}, whose process cannot be seen from here; wait for it, or where that host is gone for good: "
            f"`runbook continue {run} --gone {holder.get('host')}`"
        )
    raise InDoubt(f"{job}: run {run} by {who} was left behind; `runbook continue {run}`, or `runbook undo {run}`")


def break_those_of(host: str, runs: str, run: str, jobs: Iterable[str]) -> None:
    """On somebody's word that nothing of this run still goes on there; only its locks of that very host."""
    theirs = [
        job
        for job in jobs
        if (holder := read_lock(runs, job)) and (holder.get("run"), holder.get("host")) == (run, host)
    ]
    if not theirs:
        raise BadInput(f"--gone {host}: {run} holds no lock from there; leave it out")
    if host == socket.gethostname():
        raise BadInput(f"--gone {host}: that is this host, where it can be seen whether {run} still runs; leave it out")
    for job in theirs:
        durable.remove(_url(runs, job))


def read_lock(runs: str, job: str) -> dict[str, Any] | None:
    return _parsed(_read(runs, job) or b"")


def _read(runs: str, job: str) -> bytes | None:
    try:
        return durable.read(_url(runs, job))
    except OSError as error:
        raise JournalUnwritable(f"{runs}: cannot be read ({error.strerror or error}); nothing was done") from None


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def whoami() -> dict[str, Any]:
    from datetime import UTC, datetime

    pid = os.getpid()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"who": operator_name(), "host": socket.gethostname(), "pid": pid, "started": _started(pid), "at": now}


def operator_name() -> str:
    try:
        return os.environ.get("RUNBOOK_OPERATOR") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def alive(holder: dict[str, Any]) -> bool:
    """Whether the process that wrote the lock still runs; a recycled pid has another start time."""
    if holder.get("host") != socket.gethostname():
        return False
    pid = holder.get("pid")
    if not isinstance(pid, int):
        return False
    started = _started(pid)
    return started is not None and started == holder.get("started")


def _started(pid: int) -> str | None:
    try:
        # The name in the second field may hold spaces and brackets; the start time is the 20th field after it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None if Path("/proc/self").exists() else _runs(pid)


def _runs(pid: int) -> str | None:
    """Without /proc there is no start time to be had cheaply; that the pid is there must do."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "alive"
    return "alive"


@contextmanager
def _alone(runs: str) -> Iterator[None]:
    """Between the look at a stale lock and the taking of it nobody else may do the same. S3 sees to that itself: it
    replaces a lock only where that is still the one that was looked at."""
    path = local_path(runs)
    if path is None:
        yield
        return
    durable.make_directory(os.path.join(path, "locks"))
    with open(os.path.join(path, "locks", ".mutex"), "a") as mutex:
        fcntl.flock(mutex, fcntl.LOCK_EX)
        yield


def _url(runs: str, job: str) -> str:
    return durable.join(runs, "locks", f"{job}.json")
