"""A scenario as data, and the few things that all of them do to files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from pathlib import Path

from wizard.errors import BadInput
from wizard.spark.workspace import Workspace

Run = Callable[[str], None]
"""Runs a job of the workspace over what is there, or raises what Spark raised."""


class Rows(Flag):
    """Sets of source records, told apart by when they were written to the log."""

    NONE = 0
    OLD = auto()  # before the break
    DURING = auto()  # while it broke: by the scenario itself
    NEW = auto()  # after the break, before the job's next start
    LAST = auto()  # those of OLD that were in the job's newest batch
    SOME_OLD = auto()  # some of OLD but not all: which ones depends on how the batches were cut
    UNSAID = auto()


@dataclass(frozen=True)
class Truth:
    """What has become of the source's rows in the job's output once the job was started again."""

    say: str
    missing: Rows = Rows.NONE
    twice: Rows = Rows.NONE
    wrong: Rows = Rows.NONE  # there, but not as the record in the log makes them
    stray: Rows = Rows.NONE  # in files that the sink's log does not name: seen by readers that list the directory


@dataclass(frozen=True)
class Scenario:
    """`inject` finds the jobs stopped after a clean run, and leaves them stopped."""

    name: str
    job: str
    story: str
    inject: Callable[[Workspace, Run], None]
    signature: str | None
    truth: Truth
    path: str | None = None  # of the four, where the scenario alone decides it
    or_else: tuple[str, ...] = ()  # what is raised instead of the signature, where it depends on the moment
    live: bool = False  # the signature is raised while it breaks, in logs/, not at the next start


def batches(directory: Path) -> list[int]:
    """The ids in a log directory, oldest first; a scenario needs some, so none is an error."""
    found = sorted(int(p.name.partition(".")[0]) for p in directory.glob("*") if re.fullmatch(r"\d+(\.\w+)?", p.name))
    if not found:
        raise BadInput(f"{directory}: there is nothing to break here; run the job first")
    return found


def newest(directory: Path) -> Path:
    number = batches(directory)[-1]
    return next(p for p in directory.glob(f"{number}*") if re.fullmatch(r"\d+(\.\w+)?", p.name))


def lose(path: Path) -> None:
    """Removes a file and its Hadoop checksum: an orphan `.N.crc` would be another failure than the one meant."""
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def cut(path: Path, keep: int) -> None:
    """Shortens a file to what a full disk or a dead machine left of it."""
    path.write_bytes(path.read_bytes()[:keep])
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def edit(path: Path, old: str, new: str) -> str:
    """Replaces a setting in a file; returns the text as it was."""
    text = path.read_text()
    if old not in text:
        raise BadInput(f"{path}: does not hold {old!r}; this scenario needs the demo's own files")
    path.write_text(text.replace(old, new))
    return text
