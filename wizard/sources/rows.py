"""The input files that a checkpoint says were read, and what a new reader of their directory would see."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from wizard.checkpoint.filelog import read_entries, read_names
from wizard.checkpoint.logfile import Unreadable, long_of
from wizard.checkpoint.sourcelog import SourceLog
from wizard.datafiles import DataFile, path_values
from wizard.errors import RunbookError
from wizard.secrets import mask
from wizard.store import Store, as_stored, local_path
from wizard.text import some

_SINK_LOG = "_spark_metadata"


def input_paths(checkpoint: Store, log: SourceLog, *, after: int = -1, up_to: int | None = None) -> list[str]:
    """The files of log offsets `after` + 1 to `up_to`, as Spark wrote them. A log offset is not a batch id."""
    last = log.names.latest if up_to is None else up_to
    if last is None or last < 0:
        return []
    if lacking := log.names.missing_up_to(last):
        raise RunbookError(
            f"sources/{log.id} of the checkpoint lacks {some(lacking)}, so not all input files are known"
        )
    found: dict[str, None] = {}
    read = read_entries(checkpoint, f"sources/{log.id}", log.names, log.names.files_up_to(last))
    for k, entries in read.items():
        if isinstance(entries, Unreadable):
            raise RunbookError(f"{mask(checkpoint.url)}: {entries}")
        for entry in entries:
            number = long_of(entry.get("batchId"))
            if after < (k if number is None else number) <= last:
                found[str(entry["path"])] = None
    return list(found)


def input_file(root: str, path: str, format: str) -> DataFile:
    """An input file with the columns that are in its path below the source's directory."""
    local = local_path(path)
    here = unquote(path.partition("://")[2]) if local is None else local
    for base in _bases(root):
        if here.startswith(base + "/"):
            return DataFile(as_stored(path), format, path_values(here[len(base) + 1 :]))
    raise RunbookError(f"{mask(path)} was read and is not below {mask(root)}; was the source moved?")


def visible(store: Store) -> set[str] | None:
    """The files a new stream on this directory would read; None where it has no log and lists the directory."""
    listing = store.list(_SINK_LOG)
    if listing is None:
        return None
    names = read_names(listing.files)
    last = -1 if names.latest is None else names.latest
    if listing.error is not None or names.missing_up_to(last):
        raise RunbookError(f"{mask(store.url)}/{_SINK_LOG} cannot be read whole, so what a reader sees is not known")
    seen: set[str] = set()
    for entries in read_entries(store, _SINK_LOG, names, names.files_up_to(last)).values():
        if isinstance(entries, Unreadable):
            raise RunbookError(f"{mask(store.url)}: {entries}")
        seen.update(plain(str(entry["path"])) for entry in entries)
    return seen


def plain(path: str) -> str:
    """One spelling for a file, whoever wrote it down: no scheme, not encoded, links followed."""
    local = local_path(path)
    return unquote(path.partition("://")[2]) if local is None else os.path.realpath(local)


def _bases(root: str) -> list[str]:
    local = local_path(root)
    if local is None:
        return [unquote(root.partition("://")[2]).rstrip("/")]
    return [str(Path(local).absolute()), os.path.realpath(local)]
