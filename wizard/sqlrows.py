"""The rows of a PostgreSQL table as the comparison reads them: counted and put into runs by the database where it can."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wizard.datafiles import OtherRows, Runs, Shape, arrow, arrow_type
from wizard.errors import RunbookError
from wizard.postgres import Table, columns, quoted, resolve, session

if TYPE_CHECKING:
    from psycopg import Connection

_ROWS_A_BATCH = 50_000
_KINDS = {
    "smallint": "int",
    "integer": "int",
    "bigint": "int",
    "text": "text",
    "character varying": "text",
    "character": "text",
    "uuid": "text",
    "boolean": "bool",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamp",
}


@dataclass(frozen=True)
class SqlRows(OtherRows):
    """All but those of batches of `query` after `up_to`; None: all. `path` is for people.

    What is not known to be of a later batch counts: rows of another query, and rows that name no batch.
    """

    table: Table = field(kw_only=True)
    up_to: int | None = field(default=None, kw_only=True)
    query: str | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, table: Table, up_to: int | None = None, query: str | None = None) -> SqlRows:
        return cls(table.shown, "jdbc", {}, table=table, up_to=up_to, query=query)

    def shape(self, wanted: Sequence[str]) -> Shape:
        with session(self.table) as asked:
            types = self._types(asked, wanted)
            about = asked.execute(
                "SELECT greatest(reltuples, 0)::bigint, pg_relation_size(oid) FROM pg_class WHERE oid = to_regclass(%s)",
                (quoted(self.table.identifier).as_string(asked),),
            ).fetchone()
        kinds = {}
        for column, (_, told) in types.items():
            if told not in _KINDS:
                raise RunbookError(
                    f"{self.path}: {column} is of type {told}, which is not compared; use another column as key"
                )
            kinds[column] = _KINDS[told]
        return Shape(kinds, *(about or (0, 0)))

    def batches(self, kinds: Mapping[str, str]) -> Iterator[Any]:
        from psycopg.sql import SQL

        pa = arrow()
        with session(self.table, seconds=None) as asked:
            types = self._types(asked, list(kinds))
            chosen = SQL(", ").join(_plain(*types[column]) for column in kinds) if kinds else SQL("1")
            with asked.cursor(name="rows") as cursor:
                cursor.execute(SQL("SELECT {} FROM {}").format(chosen, self._from()))
                while rows := cursor.fetchmany(_ROWS_A_BATCH):
                    try:
                        arrays = [
                            pa.array([row[at] for row in rows], arrow_type(kind))
                            for at, kind in enumerate(kinds.values())
                        ]
                    except pa.ArrowException as error:
                        raise RunbookError(f"{self.path} cannot be compared: {' '.join(str(error).split())}") from None
                    yield pa.record_batch(arrays or [pa.nulls(len(rows))], names=list(kinds) or ["none"])

    def runs(self, groups: Sequence[str], last: str) -> tuple[Runs, dict[tuple[Any, ...], int]]:
        """Gaps and islands, in the database: a run for each stretch of integers that are there equally often."""
        from psycopg.sql import SQL

        pa = arrow()
        with session(self.table, seconds=None) as asked:
            types = self._types(asked, [*groups, last])
            names = [quoted(f"g{number}") for number in range(len(groups))]
            grouped = [SQL("{} AS {}").format(_plain(*types[g]), name) for g, name in zip(groups, names, strict=True)]
            counted = SQL("SELECT {}, count(*) AS n FROM {} GROUP BY {}").format(
                SQL(", ").join([*grouped, SQL("{} AS v").format(quoted(types[last][0]))]),
                self._from(),
                SQL(", ").join([*names, SQL("v")]),
            )
            several = SQL(", ").join([*names, SQL("n")])
            query = SQL(
                "WITH counted AS ({0}), islands AS ("
                "SELECT *, v - row_number() OVER (PARTITION BY {1} ORDER BY v) AS island FROM counted WHERE v IS NOT NULL) "
                "SELECT {1}, min(v), max(v) FROM islands GROUP BY {1}, island "
                "UNION ALL SELECT {1}, NULL, NULL FROM counted WHERE v IS NULL"
            ).format(counted, several)
            together: dict[tuple[tuple[Any, ...], int], list[tuple[int, int]]] = defaultdict(list)
            nulls: dict[tuple[Any, ...], int] = defaultdict(int)
            for *group, n, first, end in asked.execute(query):
                if first is None:
                    nulls[tuple(group)] += n
                else:
                    together[tuple(group), n].append((first, end))
        runs: Runs = defaultdict(list)
        for (group_of, n), found in together.items():
            ends = (pa.array([a for a, _ in found], pa.int64()), pa.array([b for _, b in found], pa.int64()))
            runs[group_of] += [ends] * n
        return runs, nulls

    def _from(self) -> Any:
        from psycopg.sql import SQL, Literal

        place = quoted(self.table.identifier)
        if self.up_to is None or self.table.batch_column is None:
            return place
        later = SQL("{} > {}").format(quoted(self.table.batch_column), Literal(self.up_to))
        if self.table.query_column is not None:
            later = SQL("{} AND {} = {}").format(later, quoted(self.table.query_column), Literal(self.query))
        return SQL("{} WHERE ({}) IS NOT TRUE").format(place, later)

    def _types(self, asked: Connection[Any], wanted: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Column as it is asked for → its name in the table, and its type. Spark has no regard to case."""
        found = resolve(asked, self.table.identifier)
        if found is None:
            raise RunbookError(f"{self.path} was there a moment ago and is gone")
        there = columns(asked, found)
        lower = {name.lower(): name for name in there}
        if lacking := [column for column in wanted if column not in there and column.lower() not in lower]:
            raise RunbookError(f"{self.path} has no column {lacking[0]}; it has {', '.join(sorted(there))}")
        named = {column: column if column in there else lower[column.lower()] for column in wanted}
        return {column: (name, there[name]) for column, name in named.items()}


def _plain(name: str, told: str) -> Any:
    """In the spelling of the data files: times in UTC, without a zone."""
    from psycopg.sql import SQL

    if told == "timestamp with time zone":
        return SQL("({} AT TIME ZONE 'UTC')").format(quoted(name))
    return SQL("{}::text").format(quoted(name)) if _KINDS.get(told) == "text" else quoted(name)
