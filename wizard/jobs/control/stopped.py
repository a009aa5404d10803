"""Whether a job has stopped: its controller says so, and its checkpoint has not moved for `settle_seconds`.

The controller alone may be wrong: someone runs the job elsewhere, or a command reports on another unit.

    watch = Watch(job.checkpoint)           # kept for a walk: what was seen unmoved need not be waited for twice
    stopped(job, controller, watch).outcome  # "holds", "fails" or "unknown"
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from wizard.errors import RunbookError
from wizard.jobs.control.interface import Controller, Say, silent
from wizard.jobs.model import Job
from wizard.store import Listing, LocalStore, Store, open_store

Outcome = Literal["holds", "fails", "unknown"]
_LOOKS = 5


@dataclass(frozen=True)
class Proof:
    outcome: Outcome
    says: str
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fingerprint:
    """Every file of the checkpoint by name, size and, on a local disk, time of change."""

    digest: str
    files: int
    newest: dict[str, int]  # in offsets/ and commits/


class Unlisted(RunbookError):
    pass


class Watch:
    """Remembers since when a checkpoint has looked as it does, by our own clock: a file server's may be wrong."""

    def __init__(self, checkpoint: str) -> None:
        self.checkpoint = checkpoint
        self.last: Fingerprint | None = None
        self.since = 0.0

    def look(self) -> float:
        """For how many seconds it has not moved, 0 when it just has. Raises RunbookError when it cannot be listed."""
        at = time.monotonic()
        seen = fingerprint(self.checkpoint)
        if seen != self.last:
            # What changed while it was being listed shows at the next look, hence the time of the end.
            self.last, self.since = seen, time.monotonic()
        return max(0.0, at - self.since)


def stopped(job: Job, controller: Controller, watch: Watch | None = None, say: Say = silent) -> Proof:
    watch = watch or Watch(job.checkpoint)
    status = controller.status()
    if status.state != "stopped":
        outcome: Outcome = "fails" if status.state == "running" else "unknown"
        return Proof(outcome, status.says, {"controller": status.state, **status.evidence})
    try:
        quiet = watch.look()
        before = watch.last
        if quiet < job.settle_seconds:
            say(f"watching the checkpoint of {job.name} for {job.settle_seconds - quiet:.0f} s")
        while quiet < job.settle_seconds:
            time.sleep(min(job.settle_seconds / _LOOKS, job.settle_seconds - quiet + 0.001))
            quiet = watch.look()
            if watch.last != before:
                says = (
                    f"the controller says stopped ({status.says}), but the checkpoint moves: something else runs on it"
                )
                return Proof("fails", says, _evidence(status.evidence, watch, quiet))
    except RunbookError as error:
        return Proof("unknown", str(error), {"controller": "stopped", **status.evidence})
    again = controller.status()
    if again.state != "stopped":
        outcome = "fails" if again.state == "running" else "unknown"
        return Proof(
            outcome, f"it was stopped and is not now: {again.says}", {"controller": again.state, **again.evidence}
        )
    says = f"{again.says}; the checkpoint has not moved for {quiet:.0f} s"
    return Proof("holds", says, _evidence(again.evidence, watch, quiet))


def _evidence(controller: dict[str, Any], watch: Watch, quiet: float) -> dict[str, Any]:
    seen = watch.last
    checkpoint = {"unmoved_seconds": round(quiet, 1), "files": seen.files, **seen.newest} if seen else {}
    return {"controller": "stopped", **controller, "checkpoint": checkpoint}


def fingerprint(checkpoint: str) -> Fingerprint:
    store = open_store(checkpoint)
    digest = hashlib.sha256()
    files = 0
    newest: dict[str, int] = {}
    for path, listing in _walk(store):
        for name, mark in sorted(_marks(store, path, listing)):
            digest.update(f"{path}/{name}\0{mark}\n".encode("utf-8", "surrogateescape"))
            files += 1
        if path in ("offsets", "commits"):
            newest |= {path: max(map(int, numbers))} if (numbers := [n for n in listing.files if n.isdecimal()]) else {}
    return Fingerprint(digest.hexdigest(), files, newest)


def _walk(store: Store) -> Iterator[tuple[str, Listing]]:
    level = [""]
    while level:
        below: list[str] = []
        for path, listing in zip(level, store.map(store.list, level), strict=True):
            if listing is None:
                continue  # no checkpoint, or a directory removed since: the next look sees that it moved
            if listing.error:
                raise Unlisted(f"the checkpoint {store.url}/{path} cannot be listed: {listing.error}")
            yield path, listing
            below += [f"{path}/{name}" if path else name for name in sorted(listing.dirs)]
        level = below


def _marks(store: Store, path: str, listing: Listing) -> Iterator[tuple[str, str]]:
    for name in listing.files:
        if not isinstance(store, LocalStore):
            yield name, str((listing.sizes or {}).get(name))
            continue
        try:
            found = Path(store.root, path, name).stat()
            yield name, f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"
        except FileNotFoundError:
            yield name, "gone"
        except OSError as error:
            raise Unlisted(f"the checkpoint {store.url}/{path}: {error.strerror or error}") from None
