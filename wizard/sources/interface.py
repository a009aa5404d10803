"""What a source can tell about what it still has. A new kind implements one of the three and is named in `open.py`.

Sources with offsets (the embedded log, Kafka) are asked for the ends of their partitions; sources of files are asked
which of the files that a checkpoint names are still there for a reader; tables (Delta), whether a stream at a version
can go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from wizard.datafiles import DataFile

Offsets = dict[str, dict[str, int]]
"""Kafka's shape, which Spark writes to the checkpoint: {topic: {"0": n}}."""


@dataclass(frozen=True)
class Ends:
    """What the source holds now: offsets `earliest` to `latest − 1` of each partition, and what identifies each topic."""

    earliest: Offsets
    latest: Offsets
    ids: dict[str, str]


@runtime_checkable
class OffsetSource(Protocol):
    dense: bool  # every offset between two others is a record; not so in Kafka (transactions, compaction)

    def ends(self) -> Ends:
        """RunbookError where the source cannot be reached."""
        ...

    def at_time(self, timestamp_ms: int) -> Offsets:
        """The first offset at or after the time, by partition; the end of it where every record is older."""
        ...


@runtime_checkable
class Dated(Protocol):
    """A source whose records have times, which tell a topic created anew where the checkpoint keeps no topic ids."""

    def too_new(self, read: Offsets, planned_ms: int) -> list[str]:
        """Partitions whose last record before `read` was written after the batch that is said to have read it."""
        ...


@runtime_checkable
class FileSource(Protocol):
    def gone(self, paths: Iterable[str]) -> tuple[list[str], list[str]]:
        """Those of the files that no longer exist, and those that exist and that a new reader would not see."""
        ...

    def seen(self) -> set[str]:
        """Every file a new reader would see, by its plain name."""
        ...


@runtime_checkable
class TableSource(Protocol):
    def still_readable(self, offset: Any) -> tuple[bool, str]:
        """Whether a stream at this offset can go on, and why; RunbookError where it cannot be told."""
        ...

    def read_files(self, offset: Any) -> list[DataFile]:
        """The files whose rows a stream that has come this far holds; RunbookError where that is not known."""
        ...

    def files(self) -> list[DataFile]:
        """The files that a new stream would read."""
        ...

    def rows(self) -> int | None:
        """How many rows it holds now; None where its log does not say."""
        ...

    def rewritten(self) -> str | None:
        """The first commit still in its log that took rows out, in words; None where every one only adds."""
        ...

    def read_up_to(self, offset: Any) -> tuple[int, int]:
        """How many versions of the table a stream at this offset has read whole, and how many there are."""
        ...


def as_offsets(value: Any) -> Offsets | None:
    """The value when it has the shape of offsets."""
    if not isinstance(value, dict) or not all(isinstance(parts, dict) for parts in value.values()):
        return None
    numbers = (n for parts in value.values() for n in parts.values())
    if not value or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        return None
    return {str(topic): {str(p): n for p, n in parts.items()} for topic, parts in value.items()}


def lost(ends: Ends, start: Offsets, end: Offsets | None) -> list[str]:
    """What of `start` to `end` (to whatever comes, where None) the source does not have, a line for each partition."""
    lines = []
    for topic, parts in sorted(start.items()):
        for name in sorted(parts, key=int):
            first, last = ends.earliest.get(topic, {}).get(name), ends.latest.get(topic, {}).get(name)
            begin, until = parts[name], None if end is None else end.get(topic, {}).get(name)
            where = f"{topic} partition {name}"
            if first is None or last is None:
                lines.append(f"{where} is not in the source any more")
            elif max(begin, until or 0) > last:
                lines.append(f"{where}: offset {max(begin, until or 0)} is asked for and the source ends at {last}")
            elif begin < first and (until is None or begin < until):
                gone = first if until is None else min(first, until)
                lines.append(f"{where}: offsets {begin}–{gone - 1} are gone, the source begins at {first}")
    return lines


def renamed(ends: Ends, known: dict[str, str]) -> list[str]:
    """Topics that are not the ones the checkpoint began with: their offsets count other records now."""
    return [
        f"the topic {topic} was created anew: its id was {known[topic]}, now {now}"
        for topic, now in sorted(ends.ids.items())
        if known.get(topic, now) != now
    ]
