"""Logs of files that Spark compacts: the file source's `sources/<n>/` and the file sink's `_spark_metadata/`.

File k holds what batch k added; `k.compact` holds everything of 0..k. To read up to `last`, Spark needs every file
from the newest compaction at or below it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wizard.checkpoint.logfile import COMPACT_LIMIT, Unreadable, batch_id, frame, parse_object
from wizard.store import Store

DEFAULT_INTERVAL = 10
NEWEST_VERSION = 1


@dataclass(frozen=True, slots=True)
class LogNames:
    """What the names in such a directory say."""

    plain: frozenset[int]
    compact: frozenset[int]
    orphan_crcs: tuple[int, ...] = ()
    temporary: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    @property
    def ids(self) -> frozenset[int]:
        return self.plain | self.compact

    @property
    def latest(self) -> int | None:
        return max(self.ids, default=None)

    @property
    def holes(self) -> list[int]:
        """Ids that are missing between others; at most a hundred of each gap."""
        out: list[int] = []
        ordered = sorted(self.ids)
        for before, after in itertools.pairwise(ordered):
            out.extend(range(before + 1, min(after, before + 101)))
        return out

    def base(self, last: int) -> int | None:
        """The newest compaction at or below `last`."""
        return max((k for k in self.compact if k <= last), default=None)

    def missing_up_to(self, last: int) -> list[int]:
        """The files that reading up to `last` needs and that are not there; the first hundred."""
        base = self.base(last)
        missing: list[int] = []
        have = self.ids
        k = 0 if base is None else base + 1
        while k <= last and len(missing) < 100:
            if k not in have:
                missing.append(k)
            k += 1
        return missing

    def file_name(self, k: int) -> str:
        return f"{k}.compact" if k in self.compact else str(k)

    def files_up_to(self, last: int) -> list[int]:
        base = self.base(last)
        return sorted(k for k in self.ids if k <= last and (base is None or k >= base))


def read_names(files: Iterable[str], *, compacted: bool = True) -> LogNames:
    """`compacted` is false for offsets and commits, which Spark never compacts: a `6.compact` there is a stranger."""
    plain: set[int] = set()
    compact: set[int] = set()
    crcs: dict[str, int] = {}
    temporary: list[str] = []
    foreign: list[str] = []
    names = set(files)
    for name in names:
        number = batch_id(name)
        if number is not None:
            plain.add(number)
        elif compacted and name.endswith(".compact") and (number := batch_id(name[:-8])) is not None:
            compact.add(number)
        elif name.startswith(".") and name.endswith(".crc"):
            crcs[name[1:-4]] = batch_id(name[1:-4].removesuffix(".compact")) or 0
        elif name.startswith(".") and name.endswith(".tmp"):
            temporary.append(name)
        else:
            foreign.append(name)
    orphans = tuple(sorted(k for main, k in crcs.items() if main not in names and _is_log_name(main, compacted)))
    return LogNames(frozenset(plain), frozenset(compact), orphans, tuple(sorted(temporary)), tuple(sorted(foreign)))


def _is_log_name(name: str, compacted: bool) -> bool:
    return batch_id(name.removesuffix(".compact") if compacted else name) is not None


def read_entries(
    store: Store, directory: str, names: LogNames, ids: Iterable[int]
) -> dict[int, list[dict[str, Any]] | Unreadable]:
    """The entries of the given files, side by side on a remote store."""
    todo = list(ids)
    return dict(zip(todo, store.map(lambda k: _entries(store, directory, names.file_name(k)), todo), strict=True))


def _entries(store: Store, directory: str, name: str) -> list[dict[str, Any]] | Unreadable:
    path = f"{directory}/{name}" if directory else name
    framed = frame(path, store.read(path, COMPACT_LIMIT), NEWEST_VERSION)
    if isinstance(framed, Unreadable):
        return framed
    entries: list[dict[str, Any]] = []
    for number, line in enumerate(framed.lines, start=2):
        if not line.strip():
            continue
        entry = parse_object(path, line, f"line {number}")
        if isinstance(entry, Unreadable):
            return entry
        if not isinstance(entry.get("path"), str):
            return Unreadable(path, "shape", f"line {number} names no path")
        entries.append(entry)
    return entries
