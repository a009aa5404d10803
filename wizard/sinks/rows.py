"""The data files that make up an output as of one batch, the way its readers find them.

A file sink is read through `_spark_metadata`, never by listing: what the log does not name is not in the output, and
what it names twice is there twice. A Delta table is read at the version that holds the batch.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from wizard.checkpoint.filelog import read_entries, read_names
from wizard.checkpoint.logfile import Unreadable
from wizard.datafiles import DataFile, path_values
from wizard.errors import BadInput, RunbookError
from wizard.secrets import mask
from wizard.sinks.delta import LOG as DELTA_LOG
from wizard.sinks.delta import actions_of
from wizard.sinks.file_sink import LOG, FileSink
from wizard.store import COMMIT_LIMIT, LocalStore, Store, as_stored, local_path, open_store
from wizard.tables import delta_table
from wizard.text import some

_VERSIONS_BACK = 100
_FILES = ("parquet", "orc", "json", "csv")


@dataclass(frozen=True)
class Output:
    """`as_of` says in words which state of the output was read."""

    files: tuple[DataFile, ...]
    as_of: str


class NoLog(RunbookError):
    """A file sink without its log: its readers list the directory, and see whatever is in it."""


def listed_files(url: str, format: str) -> Output:
    """Every data file there is, whether it counts or not."""
    store = open_store(url)
    found = (
        data_file(store, posixpath.join(store.url, below), format) for below in sorted(FileSink(store).all_files())
    )
    return Output(tuple(file for file in found if file is not None), "all files, as the output has no log")


def output_files(url: str, format: str, *, up_to: int | None = None, query_id: str | None = None) -> Output:
    """What the output held when batch `up_to` was done; all of it where None. RunbookError where that cannot be told."""
    store = open_store(url)
    if format == "delta":
        return _delta(store, up_to, query_id)
    if format in _FILES:
        return _file_sink(store, format, up_to)
    raise RunbookError(f"an output of format {format} cannot be read row by row; {', '.join((*_FILES, 'delta'))} can")


def _file_sink(store: Store, format: str, up_to: int | None) -> Output:
    listing = store.list(LOG)
    if listing is None:
        root = store.list()
        if root is None or not [name for name in (*root.files, *root.dirs) if name[0] not in "._"]:
            return Output((), "the output is empty")
        raise NoLog(f"{mask(store.url)} holds files and no {LOG}, so which of them count is not known")
    if listing.error is not None:
        raise RunbookError(f"{mask(store.url)}/{LOG} cannot be listed: {listing.error}")
    names = read_names(listing.files)
    if names.latest is None:
        return Output((), "the output's log is empty")
    last = names.latest if up_to is None else min(up_to, names.latest)
    if lacking := names.missing_up_to(last):
        raise RunbookError(f"{mask(store.url)}/{LOG} lacks {some(lacking)}, so the output cannot be read up to {last}")
    files: list[DataFile] = []
    for entries in read_entries(store, LOG, names, names.files_up_to(last)).values():
        if isinstance(entries, Unreadable):
            raise RunbookError(f"{mask(store.url)}: {entries}")
        for entry in entries:
            file = data_file(store, str(entry["path"]), format)
            if file is None:
                raise RunbookError(
                    f"{mask(store.url)}/{LOG} names {mask(str(entry['path']))}, which is elsewhere; was the output moved?"
                )
            if entry.get("action") == "delete":  # Spark before 3.1
                files = [other for other in files if other.path != file.path]
            else:
                files.append(file)
    return Output(tuple(files), f"{LOG} up to batch {last}")


def data_file(root: Store, path: str, format: str) -> DataFile | None:
    """A file as a log of Spark's names it, with the columns in its path; None where it is not below `root`."""
    local = isinstance(root, LocalStore)
    # The job may have been given the directory through a link, or as s3a where we have s3.
    here = (local_path(path) or path) if local else unquote(path.partition("://")[2])
    for base in (root.url, os.path.realpath(root.url)) if local else (unquote(root.url.partition("://")[2]),):
        if here.startswith(base.rstrip("/") + "/"):
            below = here[len(base.rstrip("/")) + 1 :]
            return DataFile(here if local else as_stored(path), format, path_values(below))
    return None


def _delta(store: Store, up_to: int | None, query_id: str | None) -> Output:
    if store.list(DELTA_LOG) is None:
        return Output((), "the table is not there yet")
    try:
        import pyarrow as pa
    except ImportError:
        raise BadInput("reading a Delta table needs deltalake; pip install 'runbook[delta]'") from None
    try:
        table = delta_table(store.url)
        newest = table.version()
        recorded = table.transaction_version(query_id) if query_id else None
        as_of = f"version {newest}"
        while query_id and up_to is not None and recorded is not None and recorded > up_to:
            # Batches written after the one we look at; each is a version of its own.
            if table.version() == 0 or newest - table.version() > _VERSIONS_BACK:
                raise RunbookError(f"{mask(store.url)}: no version of the last {_VERSIONS_BACK} is as of batch {up_to}")
            table = delta_table(store.url, version=table.version() - 1)
            recorded = table.transaction_version(query_id)
            as_of = f"version {table.version()}, the last of batch {up_to}"
        features = set(table.protocol().reader_features or ())
        if refused := sorted(features & {"deletionVectors", "columnMapping"}):
            raise RunbookError(f"{mask(store.url)} uses {', '.join(refused)}, which is not read here")
        if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
            raise RunbookError(f"{mask(store.url)} uses columnMapping, which is not read here")
        adds = pa.table(table.get_add_actions(flatten=True))
    except RunbookError:
        raise
    except Exception as error:  # noqa: BLE001  deltalake raises its own kinds, and panics of Rust code
        raise RunbookError(f"{mask(store.url)} cannot be read: {mask(' '.join(str(error).split()))[:200]}") from None
    if up_to is not None and query_id and recorded is None and newest > 0:
        as_of += ", which names no batch of this query"
    since = _added_by_others(store, table.version(), newest, query_id) if table.version() < newest else ()
    if since:
        as_of += ", and what others have added since"
    columns = [name for name in adds.column_names if name.startswith("partition.")]
    rows = adds.select(["path", *columns]).to_pylist()
    files = [
        DataFile(
            _below(store, row["path"]),
            "parquet",
            {name.partition(".")[2]: None if row[name] is None else str(row[name]) for name in columns},
        )
        for row in rows
    ]
    return Output((*files, *since), as_of)


def _added_by_others(store: Store, after: int, newest: int, query_id: str | None) -> tuple[DataFile, ...]:
    """What came after a batch and is not the query's own: a backfill, or somebody's duplicates.

    RunbookError where others have changed rows and files were taken out since: what is left of their rows is then in no
    one commit. A commit that only moves rows from file to file (OPTIMIZE) changes none.
    """
    found: list[DataFile] = []
    changed = taken = None
    for version in range(after + 1, newest + 1):
        content = store.read(f"{DELTA_LOG}/{version:020d}.json", COMMIT_LIMIT)
        if not content.readable:
            raise RunbookError(
                f"version {version} of {mask(store.url)} cannot be read: {content.error or 'it is gone'}"
            )
        told = list(actions_of(content.data))
        if any(kind == "remove" for kind, _ in told):
            taken = version
        if any(kind == "txn" and action.get("appId") == query_id for kind, action in told):
            continue
        rows = [(kind, action) for kind, action in told if kind != "txn" and action.get("dataChange", True)]
        changed = version if rows else changed
        found += [
            DataFile(_below(store, str(action["path"])), "parquet", _values(action))
            for kind, action in rows
            if kind == "add"
        ]
    if changed is not None and taken is not None:
        raise RunbookError(
            f"{mask(store.url)}: since that batch version {changed} was committed by somebody else, and version {taken} took "
            "files out, so what the output holds of both is not known; look again when the next batch is committed"
        )
    return tuple(found)


def _values(add: dict[str, Any]) -> dict[str, str | None]:
    """The log writes null as an empty text."""
    return {name: value or None for name, value in (add.get("partitionValues") or {}).items()}


def _below(store: Store, path: str) -> str:
    """The log has URI-encoded paths, relative ones but for a shallow clone's."""
    if "://" in path or path.startswith("/"):
        return as_stored(path)
    return posixpath.join(store.url, unquote(path))
