"""Spark's file sink: data files, and `_spark_metadata/`, the log that says which of them count.

The log skips by number: a batch at or below its newest entry is dropped without an error. Readers that list the
directory instead of the log see every file, orphans included.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from wizard.checkpoint.filelog import LogNames, read_entries, read_names
from wizard.checkpoint.logfile import Unreadable, long_of
from wizard.errors import RunbookError
from wizard.sinks.interface import SinkProblem, SinkReport
from wizard.store import Listing, LocalStore, Store, local_path

LOG = "_spark_metadata"
_MANY = 200_000
_EXAMPLES = 5


class FileSink:
    def __init__(self, store: Store, format: str = "file") -> None:
        self.store = store
        self.format = format

    def report(self, query_id: str | None) -> SinkReport:
        root = self.store.list()
        if root is None:
            return SinkReport(self.format, self.store.url, exists=False, idempotent=True)
        problems: list[SinkProblem] = []
        if root.error is not None:
            problems.append(SinkProblem("SINK_UNREADABLE", f"{self.store.url} cannot be listed: {root.error}"))
        on_disk, cut_off = self._data_files(root)
        listing = self.store.list(LOG) if LOG in root.dirs else None
        names = read_names(listing.files if listing else ())
        if listing is not None and listing.error is not None:
            problems.append(SinkProblem("SINK_UNREADABLE", f"{LOG} cannot be listed: {listing.error}"))
        entries, unreadable = self._log(names)
        problems += [SinkProblem("SINK_LOG_UNREADABLE", str(bad)) for bad in unreadable[:_EXAMPLES]]
        if names.latest is not None and (holes := names.missing_up_to(names.latest)):
            problems.append(SinkProblem("SINK_LOG_HOLE", f"{LOG} lacks {_some(holes)} (newest entry {names.latest})"))
        listed, elsewhere = self._listed(entries)
        if elsewhere:
            problems.append(
                SinkProblem(
                    "SINK_MOVED", f"{len(elsewhere)} entries name files outside {self.store.url}, e.g. {elsewhere[0]}"
                )
            )
        orphans: list[str] = []
        if not cut_off:
            gone = sorted(listed.keys() - on_disk.keys())
            if gone:
                problems.append(SinkProblem("SINK_FILES_GONE", f"{len(gone)} files of the log are gone: {_some(gone)}"))
            orphans = sorted(on_disk.keys() - listed.keys()) if names.ids and not elsewhere and not unreadable else []
            if orphans:
                problems.append(
                    SinkProblem("SINK_ORPHANS", f"{len(orphans)} data files are not in the log: {_some(orphans)}")
                )
            if not names.ids and on_disk:
                problems.append(SinkProblem("SINK_LOG_ABSENT", f"{len(on_disk)} data files and no {LOG}"))
        return SinkReport(
            self.format,
            self.store.url,
            exists=True,
            last_batch=names.latest,
            idempotent=True,
            files=len(on_disk),
            bytes=sum(listed.values()) if listed else None,
            log=names,
            oldest_ms=min(
                (at for e in entries if (at := long_of(e.get("modificationTime"))) is not None), default=None
            ),
            details={
                "log": {
                    "first": min(names.ids, default=None),
                    "last": names.latest,
                    "compacted": sorted(names.compact),
                },
                "listed_files": len(listed),
                "orphans": len(orphans),
                "orphan_crcs": list(names.orphan_crcs),
            },
            problems=tuple(problems),
        )

    def written(self, names: LogNames, batches: Iterable[int]) -> dict[int, int]:
        """When the first file of each batch was written, as the log has it; a compacted entry does not tell its own."""
        read = read_entries(self.store, LOG, names, (k for k in batches if k in names.plain and k not in names.compact))
        times = {
            k: [at for e in entries if (at := long_of(e.get("modificationTime"))) is not None]
            for k, entries in read.items()
            if not isinstance(entries, Unreadable)
        }
        return {k: min(found) for k, found in times.items() if found}

    def listed_up_to(self, names: LogNames, last: int) -> dict[str, int] | str:
        """The data files of the batches up to `last`, by path below the sink; a text where that cannot be told."""
        read = read_entries(self.store, LOG, names, names.files_up_to(last))
        entries: list[dict[str, Any]] = []
        for each in read.values():
            if isinstance(each, Unreadable):
                return str(each)
            entries += each
        here, elsewhere = self._listed(entries)
        if elsewhere:
            return f"{len(elsewhere)} entries of {LOG} name files outside {self.store.url}, e.g. {elsewhere[0]}"
        return here

    def all_files(self) -> dict[str, tuple[str, ...]]:
        """Every data file below the sink, with the checksum that Hadoop keeps of it on a local disk."""
        found: dict[str, tuple[str, ...]] = {}
        level = [""]
        while level:
            listings = list(zip(level, self.store.map(self.store.list, level), strict=True))
            level = []
            for path, listing in listings:
                if listing is None:
                    continue
                if listing.error is not None:
                    raise RunbookError(f"{self.store.url}/{path} cannot be listed: {listing.error}")
                names = set(listing.files)
                for name in listing.files:
                    if name[0] not in "._":
                        crc = f".{name}.crc"
                        found[posixpath.join(path, name)] = (posixpath.join(path, crc),) if crc in names else ()
                level += [posixpath.join(path, name) for name in listing.dirs if name[0] not in "._"]
        return found

    def _log(self, names: LogNames) -> tuple[list[dict[str, Any]], list[Unreadable]]:
        if names.latest is None:
            return [], []
        read = read_entries(self.store, LOG, names, names.files_up_to(names.latest))
        good = [entry for entries in read.values() if not isinstance(entries, Unreadable) for entry in entries]
        return good, [bad for bad in read.values() if isinstance(bad, Unreadable)]

    def _listed(self, entries: list[dict[str, Any]]) -> tuple[dict[str, int], list[str]]:
        """Paths below this sink → sizes, and those that are elsewhere. `delete` entries come from Spark before 3.1."""
        here: dict[str, int] = {}
        elsewhere: list[str] = []
        local = isinstance(self.store, LocalStore)
        # The job may have been given the path through a link, or as s3a where we have s3.
        roots = {self.store.url.rstrip("/")} | ({os.path.realpath(self.store.url)} if local else set())
        for entry in entries:
            path = str(entry["path"])
            path = (local_path(path) or path) if local else _scheme_less(path)
            root = next((r for r in roots if path.startswith((r if local else _scheme_less(r)) + "/")), None)
            if root is None:
                elsewhere.append(path)
                continue
            below = path[len(root if local else _scheme_less(root)) + 1 :]
            if entry.get("action") == "delete":
                here.pop(below, None)
            else:
                here[below] = long_of(entry.get("size")) or 0
        return here, elsewhere

    def _data_files(self, root: Listing) -> tuple[dict[str, None], bool]:
        """Every data file below the sink; True where there are too many to hold."""
        found: dict[str, None] = {}
        listings: list[tuple[str, Listing | None]] = [("", root)]
        while listings:
            level: list[str] = []
            for path, listing in listings:
                if listing is None:
                    continue
                found.update((posixpath.join(path, name), None) for name in listing.files if name[0] not in "._")
                level += [posixpath.join(path, name) for name in listing.dirs if name[0] not in "._"]
            if len(found) > _MANY:
                return found, True
            listings = list(zip(level, self.store.map(self.store.list, level), strict=True))
        return found, False


def _scheme_less(url: str) -> str:
    return unquote(url.partition("://")[2] or url)


def _some(items: list[int] | list[str]) -> str:
    shown = ", ".join(str(item) for item in items[:_EXAMPLES])
    return f"{shown}, …" if len(items) > _EXAMPLES else shown
