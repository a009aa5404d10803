"""A batch written to PostgreSQL through `foreachBatch`, so that writing it again leaves one copy.

`foreachBatch` is at-least-once. In one transaction the rows of this batch of this query go, the batch's rows come, and
the batch is noted in the batch table; whatever is killed, the table has a batch wholly or not at all, and once. Nothing
is skipped by number, so a batch that is run again after a rollback is written. The rows pass through the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from wizard.errors import BadInput
from wizard.jobs.model import Job
from wizard.postgres import Name, Table, quoted, resolve, session

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg import Connection
    from pyspark.sql import DataFrame

_NOTES = 1000  # of the newest batches; Spark keeps a hundred


def into_table(job: Job, schema: pa.Schema | None = None) -> Callable[[DataFrame, int], None]:
    """What `foreachBatch` is given. In update mode a row takes the place of the one with its key."""
    table = Table.of(job.sink.options)
    if table.batch_column is None or table.query_column is None:
        raise BadInput(f"job {job.name}: a table is written with batch_column and query_column in the sink's options")
    if job.output_mode == "complete":
        raise BadInput(f"job {job.name}: a table is written in append or update mode, not in complete mode")
    key = job.sink.key if job.output_mode == "update" else ()

    def write(batch: DataFrame, batch_id: int) -> None:
        query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        if not query_id:
            raise RuntimeError(f"Spark did not say which query this batch belongs to (checkpoint {job.checkpoint})")
        rows = batch.toArrow()
        write_batch(table, rows if schema is None else rows.cast(schema), query_id, batch_id, key)

    return write


def write_batch(table: Table, rows: pa.Table, query_id: str, batch_id: int, key: Sequence[str] = ()) -> None:
    from psycopg.sql import SQL, Literal

    assert table.batch_column is not None and table.query_column is not None
    mine = SQL("{} = {} AND {} = {}").format(
        quoted(table.query_column), Literal(query_id), quoted(table.batch_column), Literal(batch_id)
    )
    names = SQL(", ").join(quoted(name) for name in (*rows.column_names, table.query_column, table.batch_column))
    here, staged = quoted(table.identifier), quoted("staged")
    with session(table, seconds=None, write=True) as on:
        _create(on, table, rows.schema, key)
        on.execute(SQL("DELETE FROM {} WHERE {}").format(here, mine))
        on.execute(SQL("CREATE TEMP TABLE {} (LIKE {}) ON COMMIT DROP").format(staged, here))
        with on.cursor() as cursor, cursor.copy(SQL("COPY {} ({}) FROM STDIN").format(staged, names)) as copy:
            for row in _rows(rows):
                copy.write_row((*row, query_id, batch_id))
        if key:
            same = SQL(" AND ").join(SQL("old.{0} = staged.{0}").format(quoted(name)) for name in key)
            on.execute(SQL("DELETE FROM {} old USING staged WHERE {}").format(here, same))
        on.execute(SQL("INSERT INTO {} ({}) SELECT {} FROM staged").format(here, names, names))
        if table.batch_table is not None:
            _note(on, table.batch_table, query_id, batch_id, rows.num_rows)


def _note(on: Connection[Any], notes: Name, query_id: str, batch_id: int, rows: int) -> None:
    from psycopg.sql import SQL, Literal

    place = quoted(notes)
    if resolve(on, notes) is None:
        columns = "query_id text, batch_id bigint, rows bigint NOT NULL, PRIMARY KEY (query_id, batch_id)"
        on.execute(SQL("CREATE TABLE {} ({})").format(place, SQL(columns)))
    mine, this, old = Literal(query_id), Literal(batch_id), Literal(batch_id - _NOTES)
    gone = SQL("DELETE FROM {} WHERE query_id = {} AND (batch_id = {} OR batch_id <= {})")
    on.execute(gone.format(place, mine, this, old))
    on.execute(SQL("INSERT INTO {} VALUES ({}, {}, {})").format(place, mine, this, Literal(rows)))


def _create(on: Connection[Any], table: Table, schema: pa.Schema, key: Sequence[str]) -> None:
    from psycopg.sql import SQL

    if resolve(on, table.identifier) is not None:
        return
    assert table.batch_column is not None and table.query_column is not None
    columns = [SQL("{} {}").format(quoted(field.name), SQL(_type(field.type))) for field in schema]
    columns += [SQL("{} text NOT NULL").format(quoted(table.query_column))]
    columns += [SQL("{} bigint NOT NULL").format(quoted(table.batch_column))]
    if key:
        columns.append(SQL("PRIMARY KEY ({})").format(SQL(", ").join(map(quoted, key))))
    on.execute(SQL("CREATE TABLE {} ({})").format(quoted(table.identifier), SQL(", ").join(columns)))
    by_batch = quoted(table.query_column), quoted(table.batch_column)
    on.execute(SQL("CREATE INDEX ON {} ({}, {})").format(quoted(table.identifier), *by_batch))


def _type(of: pa.DataType) -> str:
    import pyarrow.types as types

    for is_it, name in (
        (types.is_int64, "bigint"),
        (types.is_integer, "integer"),
        (types.is_floating, "double precision"),
        (types.is_boolean, "boolean"),
        (types.is_date, "date"),
        (types.is_binary, "bytea"),
        (types.is_large_binary, "bytea"),
    ):
        if is_it(of):
            return name
    if types.is_timestamp(of):
        return "timestamp" if of.tz is None else "timestamptz"
    if types.is_string(of) or types.is_large_string(of):
        return "text"
    raise BadInput(f"a column of type {of} is not one this pipeline can write to PostgreSQL")


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in table.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
