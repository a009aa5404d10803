"""Columns of data files as Arrow, in one spelling: what two engines are to find equal must be read alike.

A value is read as one of a few kinds. Integers of any width are one kind; a column that is in the path (`day=2026-01-01`)
or in a CSV file is text that takes the kind its counterpart has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import unquote

from wizard.errors import BadInput, RunbookError
from wizard.secrets import mask
from wizard.store import RemoteStore, open_store

FORMATS = ("parquet", "orc", "json", "csv")
LOOSE = "loose"
_NULL = "__HIVE_DEFAULT_PARTITION__"
_ROWS_A_BATCH = 1 << 20


@dataclass(frozen=True)
class DataFile:
    """`values` are the columns that are in the path, as text; None is null."""

    path: str
    format: str = "parquet"
    values: Mapping[str, str | None] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Shape:
    """What a file says about the columns asked for: their kinds, and how much there is to read."""

    kinds: dict[str, str]
    rows: int
    bytes: int


Runs = dict[tuple[Any, ...], list[tuple[Any, Any]]]
"""For each group, arrays of the first and the last integer of its runs."""


class OtherRows(DataFile):
    """Rows that are in no file, and are asked for as if they were in one."""

    def shape(self, wanted: Sequence[str]) -> Shape:
        raise NotImplementedError

    def batches(self, kinds: Mapping[str, str]) -> Iterator[Any]:
        raise NotImplementedError

    def runs(self, groups: Sequence[str], last: str) -> tuple[Runs, dict[tuple[Any, ...], int]]:
        """The runs of integers, and how many rows have null instead of one."""
        raise NotImplementedError


def arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        raise BadInput("comparing rows needs pyarrow; pip install 'runbook[delta]'") from None
    return pyarrow


def path_values(below: str) -> dict[str, str | None]:
    """`quality=good/part-0.parquet` → {"quality": "good"}. Spark escapes what a file name cannot hold."""
    parts = [part.partition("=") for part in below.split("/")[:-1]]
    return {unquote(name): None if value == _NULL else unquote(value) for name, equals, value in parts if equals}


def shape(file: DataFile, columns: Sequence[str]) -> Shape:
    if isinstance(file, OtherRows):
        return file.shape(columns)
    inside = [column for column in columns if _own(file.values, column) is None]
    kinds = {column: LOOSE for column in columns if column not in inside}
    if file.format == "csv":
        table = _table(file, inside)
        return Shape(kinds | dict.fromkeys(inside, LOOSE), table.num_rows, table.nbytes)
    if file.format == "json":
        table = _table(file, inside)
        found, rows, size = table.schema, table.num_rows, table.nbytes
    else:
        found, rows, size = _footer(file, inside)
    for column in inside:
        kinds[column] = _kind(file, column, found.field(_named(file, found.names, column)).type)
    return Shape(kinds, rows, size)


def batches(file: DataFile, kinds: Mapping[str, str]) -> Iterator[Any]:
    """The columns of `kinds`, batch by batch, each cast to its kind: see `ARROW`."""
    if isinstance(file, OtherRows):
        yield from file.batches(kinds)
        return
    pa = arrow()
    inside = [column for column in kinds if _own(file.values, column) is None]
    for batch in _raw(file, inside):
        columns = []
        for column, kind in kinds.items():
            if column in inside:
                values = batch.column(_named(file, batch.schema.names, column))
            else:
                values = pa.repeat(pa.scalar(file.values[_own(file.values, column) or column], pa.string()), len(batch))
            columns.append(_cast(file, column, values, kind))
        yield pa.record_batch(columns, names=list(kinds))


def arrow_type(kind: str) -> Any:
    pa = arrow()
    types = {"int": pa.int64(), "text": pa.string(), "bool": pa.bool_(), "date": pa.date32()}
    return types[kind] if kind in types else pa.timestamp("us")


def _cast(file: DataFile, column: str, values: Any, kind: str) -> Any:
    pa = arrow()
    try:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_timestamp(values.type) and values.type.tz is not None:
            # Nanoseconds that do not fit are an error: two keys must not be read as one.
            values = values.cast(pa.timestamp(values.type.unit, "UTC"))
            return values.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
        return values.cast(arrow_type(kind))
    except pa.ArrowException as error:
        raise RunbookError(f"{mask(file.path)}: {column} cannot be read as {kind} ({_words(error)})") from None


def _kind(file: DataFile, column: str, of: Any) -> str:
    types = arrow().types
    if types.is_dictionary(of):
        of = of.value_type
    if types.is_integer(of):
        return "int"
    if types.is_string(of) or types.is_large_string(of) or types.is_string_view(of):  # deltalake merges write views
        return "text"
    if types.is_boolean(of):
        return "bool"
    if types.is_date(of):
        return "date"
    if types.is_timestamp(of):
        return "timestamp"
    if types.is_null(of):
        return LOOSE
    raise RunbookError(f"{mask(file.path)}: {column} is of type {of}, which is not compared; use another column as key")


def _raw(file: DataFile, inside: Sequence[str]) -> Iterator[Any]:
    """Record batches with at least the columns asked for; row counts are kept when none is."""
    pa = arrow()
    try:
        if file.format == "parquet":
            import pyarrow.parquet as pq

            with _opened(file) as opened, pq.ParquetFile(opened) as parquet:
                names = [_named(file, parquet.schema_arrow.names, column) for column in inside]
                if names:
                    yield from parquet.iter_batches(_ROWS_A_BATCH, columns=names)
                elif rows := parquet.metadata.num_rows:
                    yield pa.record_batch([pa.nulls(rows)], names=["none"])
            return
        yield from _table(file, inside).to_batches(_ROWS_A_BATCH)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(file, error) from None


def _table(file: DataFile, inside: Sequence[str]) -> Any:
    pa = arrow()
    try:
        with _opened(file) as opened:
            if file.format == "orc":
                import pyarrow.orc as orc

                reader = orc.ORCFile(opened)
                return reader.read([_named(file, reader.schema.names, column) for column in inside] or None)
            if file.format == "json":
                import pyarrow.json as json

                return json.read_json(opened)
            if file.format == "csv":
                import pyarrow.csv as csv

                texts = csv.ConvertOptions(column_types=dict.fromkeys(inside, pa.string()), strings_can_be_null=True)
                return csv.read_csv(opened, convert_options=texts)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(file, error) from None
    raise RunbookError(f"{mask(file.path)}: files of format {file.format} are not read; {', '.join(FORMATS)} are")


def _footer(file: DataFile, inside: Sequence[str]) -> tuple[Any, int, int]:
    """Schema, rows, and the bytes of the columns asked for."""
    pa = arrow()
    if file.format != "parquet":
        table = _table(file, inside)
        return table.schema, table.num_rows, table.nbytes
    import pyarrow.parquet as pq

    try:
        with _opened(file) as opened, pq.ParquetFile(opened) as parquet:
            about, schema = parquet.metadata, parquet.schema_arrow
            wanted = {_named(file, schema.names, column) for column in inside}
            groups = (about.row_group(index) for index in range(about.num_row_groups))
            chunks = (group.column(at) for group in groups for at in range(group.num_columns))
            size = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in wanted)
            return schema, about.num_rows, size
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(file, error) from None


def _opened(file: DataFile) -> Any:
    pa = arrow()
    store = open_store(file.path)
    if isinstance(store, RemoteStore):
        return store.fs.open(store.root, "rb")
    return pa.OSFile(store.url, "rb")


def _named(file: DataFile, names: Sequence[str], column: str) -> str:
    """Spark resolves column names without regard to case."""
    found = column if column in names else next((name for name in names if name.lower() == column.lower()), None)
    if found is None:
        raise RunbookError(f"{mask(file.path)} has no column {column}; it has {', '.join(sorted(names)) or 'none'}")
    return found


def _own(values: Mapping[str, str | None], column: str) -> str | None:
    return column if column in values else next((name for name in values if name.lower() == column.lower()), None)


def _unreadable(file: DataFile, error: Exception) -> RunbookError:
    return RunbookError(f"{mask(file.path)} cannot be read: {_words(error)}")


def _words(error: Exception) -> str:
    return mask(" ".join(str(error).split()))[:200]
