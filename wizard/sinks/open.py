"""Which kind of sink is at a place: told by the registry, else by what lies there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wizard.postgres import Table, is_postgres
from wizard.sinks.delta import LOG as DELTA_LOG
from wizard.sinks.delta import DeltaSink
from wizard.sinks.file_sink import FileSink
from wizard.sinks.interface import Sink
from wizard.sinks.jdbc import JdbcSink
from wizard.store import open_store

FILE_FORMATS = ("file", "parquet", "json", "csv", "orc", "text", "avro")


def open_sink(
    url: str | None, format: str | None = None, options: Mapping[str, str] | None = None, key: Sequence[str] = ()
) -> Sink | None:
    """None for a kind that has no reader yet."""
    if (format or "").lower() == "jdbc":
        return JdbcSink(Table.of(options), key) if options and is_postgres(options) else None
    if url is None:
        return None
    store = open_store(url)
    if format == "delta":
        return DeltaSink(store)
    if format in FILE_FORMATS:
        return FileSink(store, format)
    if format is not None:
        return None
    root = store.list()
    if root is not None and DELTA_LOG in root.dirs:
        return DeltaSink(store)
    return FileSink(store)
