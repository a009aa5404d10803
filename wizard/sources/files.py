"""Spark's file source: which input files it has read, whether they still exist, and are as old as they were.

A file that is gone when a batch runs again is skipped with a warning, and the batch commits: look first. A file that was
read and has a new time since (copied back, touched) is read a second time: Spark forgets an entry once it is a week
(`maxFileAge`) older than the newest, and then takes every file younger than that for a new one. Tried on 4.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wizard.checkpoint.filelog import read_entries
from wizard.checkpoint.logfile import Unreadable, long_of
from wizard.checkpoint.sourcelog import SourceLog
from wizard.store import Store, as_stored, changed_at, exists

_AT_MOST = 20_000
_CLOCKS_DIFFER = 2.0
"""Seconds by which a time may move when a file is listed through another file system."""


@dataclass(frozen=True)
class InputReport:
    """`missing` maps a log offset to those of its files that are gone; `touched` are there and newer than when they were
    read. `unknown` says why some were not looked at."""

    files: int = 0
    missing: dict[int, tuple[str, ...]] = field(default_factory=dict)
    touched: tuple[str, ...] = ()
    unknown: str | None = None

    def missing_after(self, log_offset: int) -> tuple[str, ...]:
        return tuple(path for k, paths in sorted(self.missing.items()) if k > log_offset for path in paths)

    def missing_between(self, after: int, up_to: int) -> tuple[str, ...]:
        return tuple(path for k, paths in sorted(self.missing.items()) if after < k <= up_to for path in paths)


def look_at_inputs(store: Store, log: SourceLog) -> InputReport:
    latest = log.names.latest
    if latest is None:
        return InputReport(unknown=f"sources/{log.id} lists no input file")
    read = read_entries(store, f"sources/{log.id}", log.names, log.names.files_up_to(latest))
    bad = [entries for entries in read.values() if isinstance(entries, Unreadable)]
    seen = [
        (
            batch if (batch := long_of(entry.get("batchId"))) is not None else k,
            str(entry["path"]),
            long_of(entry.get("timestamp")),
        )
        for k, entries in read.items()
        if not isinstance(entries, Unreadable)
        for entry in entries
    ]
    unknown = str(bad[0]) if bad else None
    if len(seen) > _AT_MOST:
        seen, unknown = seen[-_AT_MOST:], f"only the newest {_AT_MOST} of {len(seen)} input files were looked at"
    paths = [(k, path) for k, path, _ in seen]
    times = list(store.map(changed_at, (as_stored(path) for _, path in paths)))
    found = [None if time is None else time is not False for time in times]
    touched = [
        path
        for (_, path, then), time in zip(seen, times, strict=True)
        if then is not None and not isinstance(time, bool | None) and time > then / 1000 + _CLOCKS_DIFFER
    ]
    return InputReport(
        len(paths),
        _gone(paths, found),
        () if _kept_by_a_sink(touched) else tuple(touched),
        unknown or _unasked(paths, found),
    )


def _kept_by_a_sink(paths: list[str]) -> bool:
    """The output of a file sink is listed by the sink's own log, which keeps the time each file was written."""
    parts = as_stored(paths[0]).split("/") if paths else []
    return any(exists("/".join([*parts[:depth], "_spark_metadata"])) for depth in range(len(parts) - 1, 2, -1))


def _gone(paths: list[tuple[int, str]], found: Iterable[bool | None]) -> dict[int, tuple[str, ...]]:
    gone: dict[int, tuple[str, ...]] = {}
    for (k, path), there in zip(paths, found, strict=True):
        if there is False:
            gone[k] = (*gone.get(k, ()), path)
    return gone


def _unasked(paths: list[tuple[int, str]], found: Iterable[bool | None]) -> str | None:
    return next(
        (f"{path} could not be looked at" for (_, path), there in zip(paths, found, strict=True) if there is None), None
    )
