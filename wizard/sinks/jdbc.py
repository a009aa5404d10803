"""A PostgreSQL table that a job writes through `foreachBatch`.

Nothing in such a table keeps a batch from being written twice. The pattern that does: each row carries the batch it came
from (`batch_column`, and `query_column` beside it), and the writer deletes this batch's rows and inserts them in one
transaction. A batch without rows leaves no trace in the table; a writer that also notes each batch in `batch_table`, in
the same transaction, makes its newest batch known for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wizard.errors import RunbookError
from wizard.postgres import Found, Table, TooSlow, columns, count, dotted, quoted, resolve, session
from wizard.sinks.interface import SinkProblem, SinkReport
from wizard.sqlrows import SqlRows
from wizard.text import some

if TYPE_CHECKING:
    from psycopg import Connection


class JdbcSink:
    format = "jdbc"

    def __init__(self, table: Table, key: Sequence[str] = ()) -> None:
        self.table = table
        self.key = tuple(key)

    def report(self, query_id: str | None) -> SinkReport:
        try:
            return self._report(query_id)
        except RunbookError as error:
            problem = SinkProblem("SINK_UNREADABLE", str(error))
            return SinkReport("jdbc", self.table.shown, exists=True, problems=(problem,))

    def _report(self, query_id: str | None) -> SinkReport:
        with session(self.table) as asked:
            found = resolve(asked, self.table.identifier)
            if found is None:
                return SinkReport("jdbc", self.table.shown, exists=False)
            check_columns(asked, self.table, found)
            newest = newest_batches(asked, self.table, found)
            unique = is_unique(asked, found, self.key)
            size = _one(asked, "SELECT pg_total_relation_size(%s)", found.oid)
        last = newest.get(query_id or "") if names_queries(self.table) else newest.get("")
        known = {name: batch for name, batch in newest.items() if name}
        return SinkReport(
            "jdbc",
            self.table.shown,
            exists=True,
            last_batch=last,
            # Doubles that cannot be. Whether the writer deletes before it inserts is in its code: declared, or tried.
            idempotent=True if unique else None,
            rows=count(self.table),
            bytes=int(size),
            by_batch=self.table.batch_column is not None,
            sparse=self.table.batch_table is None,
            details={
                "table": dotted(found.identifier),
                "transactions": known,
                "unique_key": unique,
                "rows_of_another": another(self.table, query_id),
            },
        )


def rows_after(table: Table, query_id: str | None, after: int) -> Any:
    """The rows of the batches of one query after `after`, as a condition.

    Values are written into it: given beside it, psycopg would take a % in a column's name for the place of one.
    """
    from psycopg.sql import SQL, Literal

    if table.batch_column is None:
        raise RunbookError(f"the rows of {table.shown} do not say which batch they came from; declare batch_column")
    if table.query_column is None:
        return SQL("{} > {}").format(quoted(table.batch_column), Literal(after))
    if query_id is None:
        raise RunbookError(f"the query's id is lost, so its rows in {table.shown} cannot be told from others")
    later = SQL("{} > {}").format(quoted(table.batch_column), Literal(after))
    return SQL("{} AND {} = {}").format(later, quoted(table.query_column), Literal(query_id))


def count_after(asked: Connection[Any], table: Table, query_id: str | None, after: int) -> int:
    from psycopg.sql import SQL

    these = rows_after(table, query_id, after)
    return int(_one(asked, SQL("SELECT count(*) FROM {} WHERE {}").format(quoted(table.identifier), these)))


def newest_of_rows(asked: Connection[Any], table: Table, query_id: str | None) -> int | None:
    """The newest batch that the rows name; only those of this query, where they say whose they are."""
    from psycopg.sql import SQL

    query = SQL("SELECT max({}) FROM {} WHERE {}")
    these = rows_after(table, query_id, -1)
    newest = _one(asked, query.format(quoted(table.batch_column or ""), quoted(table.identifier), these))
    return None if newest is None else int(newest)


def another(table: Table, query_id: str | None) -> str | None:
    """A query besides this one that has rows in the table; None also where that takes too long to be found out.

    Asked so that an index on the query answers it: the table may be large, and nearly always holds one query's rows.
    """
    from psycopg.sql import SQL, Literal

    if table.query_column is None or query_id is None:
        return None
    column, mine = quoted(table.query_column), Literal(query_id)
    query = SQL("SELECT {0}::text FROM {1} WHERE {0} < {2} OR {0} > {2} LIMIT 1")
    try:
        with session(table) as asked:
            row = asked.execute(query.format(column, quoted(table.identifier), mine)).fetchone()
    except TooSlow:
        return None
    return str(row[0]) if row else None


def others(asked: Connection[Any], table: Table, query_id: str | None) -> list[str]:
    """Queries besides this one that have rows in the table."""
    from psycopg.sql import SQL, Literal

    if table.query_column is None:
        return []
    column = quoted(table.query_column)
    query = SQL("SELECT DISTINCT {}::text FROM {} WHERE {} IS DISTINCT FROM {} LIMIT 5")
    found = asked.execute(query.format(column, quoted(table.identifier), column, Literal(query_id))).fetchall()
    return [str(row[0]) for row in found]


def names_queries(table: Table) -> bool:
    return table.batch_table is not None or table.query_column is not None


def newest_batches(asked: Connection[Any], table: Table, found: Found) -> dict[str, int]:
    """Query id → its newest batch; under "" where nothing tells one query from another."""
    from psycopg.sql import SQL

    if table.batch_table is not None:
        if resolve(asked, table.batch_table) is None:
            return {}  # made by the writer, with its first batch
        query = SQL("SELECT query_id::text, max(batch_id) FROM {} GROUP BY 1").format(quoted(table.batch_table))
    elif table.batch_column is None:
        return {}
    elif table.query_column is None:
        query = SQL("SELECT '', max({}) FROM {}").format(quoted(table.batch_column), quoted(found.identifier))
    else:
        names = quoted(table.query_column), quoted(table.batch_column), quoted(found.identifier)
        query = SQL("SELECT {}::text, max({}) FROM {} GROUP BY 1").format(*names)
    return {str(name): int(batch) for name, batch in asked.execute(query) if name is not None and batch is not None}


def check_columns(asked: Connection[Any], table: Table, found: Found) -> None:
    there = columns(asked, found)
    for option, name in (("batch_column", table.batch_column), ("query_column", table.query_column)):
        if name is not None and name not in there:
            raise RunbookError(f"{table.shown} has no column {name}, which {option} names; it has {some(list(there))}")


def is_unique(asked: Connection[Any], found: Found, key: Sequence[str]) -> bool:
    """Whether the database itself refuses a second row of one key."""
    if not key:
        return False
    rows = asked.execute(
        "SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a"
        " ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])"
        " WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL"
        " AND (SELECT bool_and(b.attnotnull) FROM pg_attribute b WHERE b.attrelid = i.indrelid"
        "      AND b.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]))"
        " GROUP BY i.indexrelid",
        (found.oid,),
    )
    wanted = {column.lower() for column in key}
    return any({name.lower() for name in names} <= wanted for (names,) in rows)


def dependents(asked: Connection[Any], found: Found) -> list[str]:
    """What would go on with the old table, or be without the new one, were another put in its place."""
    rows = asked.execute(
        """
        SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
        LEFT JOIN pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid
        LEFT JOIN pg_trigger t ON d.classid = 'pg_trigger'::regclass AND t.oid = d.objid
        LEFT JOIN pg_attrdef a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid AND a.adrelid = d.refobjid
        LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = %(oid)s AND (
            k.contype = 'f'
            OR (coalesce(k.oid, t.oid, a.oid) IS NULL AND d.deptype = 'n' AND c.relkind IS DISTINCT FROM 'i')
            OR (t.oid IS NOT NULL AND NOT t.tgisinternal)
            OR d.classid IN ('pg_policy'::regclass, 'pg_rewrite'::regclass, 'pg_publication_rel'::regclass)
            OR (c.relkind = 'S' AND d.deptype = 'a')
            OR c.relkind IN ('r', 'p'))
        UNION ALL SELECT 'column privileges' FROM pg_attribute WHERE attrelid = %(oid)s AND attacl IS NOT NULL
        UNION ALL SELECT 'row level security' FROM pg_class WHERE oid = %(oid)s AND relrowsecurity
        UNION ALL SELECT 'its being partitioned, or part of another table' FROM pg_class
            WHERE oid = %(oid)s AND (relkind <> 'r' OR EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = %(oid)s))
        ORDER BY 1""",
        {"oid": found.oid},
    )
    return [str(row[0]) for row in rows]


def rows_of(table: Table, *, up_to: int | None, query_id: str | None, whole: bool) -> tuple[SqlRows | None, str]:
    """What the table held when batch `up_to` was done, and in words which state was read.

    `whole`: rows are overwritten by later batches, so an older state is not there to be read.
    """
    with session(table) as asked:
        found = resolve(asked, table.identifier)
        if found is None:
            return None, "the table is not there yet"
        check_columns(asked, table, found)
        if up_to is None or table.batch_column is None:
            return SqlRows.of(table), "the table as it is now"
        if whole:
            newest = newest_batches(asked, table, found)
            last = newest.get(query_id or "" if names_queries(table) else "", up_to)
            if last > up_to:
                raise RunbookError(
                    f"{table.shown} is at batch {last} already and keeps no older values of its rows; look again"
                )
            return SqlRows.of(table), f"the table at batch {last}"
        if table.query_column is not None and query_id is None:
            raise RunbookError(
                f"the query's id is lost, so its later batches in {table.shown} cannot be told from others"
            )
    return SqlRows.of(table, up_to, query_id), f"rows of the table up to batch {up_to}"


def _one(asked: Connection[Any], query: Any, *values: Any) -> Any:
    row = asked.execute(query, values or None).fetchone()
    assert row is not None
    return row[0]
