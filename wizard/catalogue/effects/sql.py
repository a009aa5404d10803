"""A PostgreSQL table emptied, or rows taken out of it: one transaction each, and what goes is kept in a schema of the run.

The database itself says whether it is done: the table, or the rows, are in that schema or they are not.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wizard.catalogue.effects.base import Effect
from wizard.errors import RunbookError, WorldMoved
from wizard.postgres import Found, Name, Table, columns, dotted, quoted, resolve, session
from wizard.sinks.jdbc import dependents, rows_after
from wizard.text import plural, some

if TYPE_CHECKING:
    from psycopg import Connection

    from wizard.catalogue.world import World

_MARK = "kept by runbook, run "


def schema_of(run: str, job: str) -> str:
    """Where a run keeps what it takes out of the output of a job. The schema's comment names the run."""
    return f"runbook_{hashlib.sha256(f'{run}/{job}'.encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class TableEmpty(Effect):
    """The table goes with its rows, its indexes and their names; an empty one like it takes its place."""

    kind: ClassVar[str] = "table_empty"
    job: str
    table: str
    oid: int
    kept: str
    rows: int | None = None

    def says(self) -> str:
        rows = "" if self.rows is None else f", {plural(self.rows, 'row')},"
        return f"move the table {self.table}{rows} to the schema {self.kept}, and put an empty one like it in its place"

    def do(self, world: World) -> None:
        table = _declared(world, self.job)
        with session(table, seconds=None, write=True) as on:
            if _kept(on, self.kept, table) is not None:
                return
            found = _same(on, table, self.table, self.oid)
            if held_by := dependents(on, found):
                raise RunbookError(f"{self.table} was not emptied: {some(held_by)} would be left with the old table")
            _make_schema(on, self.kept, world.run)
            _to_schema(on, found.identifier, self.kept)
            _like(on, (self.kept, found.name), found)

    def undo(self, world: World) -> None:
        table = _declared(world, self.job)
        with session(table, seconds=None, write=True) as on:
            now = resolve(on, table.identifier)
            if now is not None and now.oid == self.oid:
                return  # never done, or back already
            kept = _kept(on, self.kept, table)
            if kept is None or kept.oid != self.oid:
                raise WorldMoved(
                    f"{self.kept}.{table.identifier[-1]} is not the table that was put there; find it first"
                )
            home = _home(self.table)
            if now is not None:
                since = f"{self.kept}_since"
                _make_schema(on, since, world.run)
                _to_schema(on, now.identifier, since)
            _to_schema(on, kept.identifier, home)

    def cannot_undo(self, world: World) -> str | None:
        table = _declared(world, self.job)
        with session(table) as on:
            now, kept = resolve(on, table.identifier), _kept(on, self.kept, table)
            if now is not None and now.oid == self.oid:
                return None
            if kept is None or kept.oid != self.oid:
                return f"{self.kept}.{table.identifier[-1]}, the table with the rows, is gone"
            held_by = dependents(on, now) if now is not None else []
            return f"{some(held_by)} would be left with the table as it is now" if held_by else None

    def purge(self, world: World) -> tuple[int, int]:
        return drop_kept(_declared(world, self.job), self.kept, f"{self.kept}_since")


@dataclass(frozen=True)
class RowsAside(Effect):
    """The rows of batches after one, and the notes of them in the batch table."""

    kind: ClassVar[str] = "rows_aside"
    job: str
    table: str
    oid: int
    kept: str
    after: int
    query: str | None
    rows: int

    def says(self) -> str:
        return (
            f"move {plural(self.rows, 'row')} of batches after {self.after} from {self.table} to the schema {self.kept}"
        )

    def do(self, world: World) -> None:
        table = _declared(world, self.job)
        with session(table, seconds=None, write=True) as on:
            if resolve(on, (self.kept, self._name("rows"))) is not None:
                return
            found = _same(on, table, self.table, self.oid)
            _make_schema(on, self.kept, world.run)
            for name, place, these in self._parts(on, table, found):
                moved = _move(on, place, (self.kept, name), these)
                if name == self._name("rows") and moved != self.rows:
                    raise WorldMoved(
                        f"{self.table} held {self.rows} rows of batches after {self.after} and holds {moved} now; "
                        "somebody writes to it, and nothing was moved"
                    )

    def undo(self, world: World) -> None:
        table = _declared(world, self.job)
        with session(table, seconds=None, write=True) as on:
            found = resolve(on, table.identifier)
            if resolve(on, (self.kept, self._name("rows"))) is None:
                return  # never done, or back already
            if found is None:
                raise WorldMoved(f"{self.table} is gone; its rows after batch {self.after} are in {self.kept}")
            for name, place, these in self._parts(on, table, found):
                if resolve(on, (self.kept, name)) is not None:
                    # What came since has the keys of what comes back.
                    _move(on, place, (self.kept, f"{name}_since"), these)
                    _copy(on, (self.kept, name), place)
                    _execute(on, "DROP TABLE {}", (self.kept, name))

    def cannot_undo(self, world: World) -> str | None:
        table = _declared(world, self.job)
        with session(table) as on:
            found = resolve(on, table.identifier)
            return None if found is not None else f"{self.table} is gone"

    def purge(self, world: World) -> tuple[int, int]:
        return drop_kept(_declared(world, self.job), self.kept)

    def _name(self, what: str) -> str:
        return f"{what}_after_{self.after}"

    def _parts(self, on: Connection[Any], table: Table, found: Found) -> list[tuple[str, Found, Any]]:
        """The rows, and the notes of their batches where the writer keeps them."""
        from psycopg.sql import SQL, Literal

        parts = [(self._name("rows"), found, rows_after(table, self.query, self.after))]
        notes = resolve(on, table.batch_table) if table.batch_table is not None else None
        if notes is not None and self.query is not None:
            these = SQL("batch_id > {} AND query_id::text = {}").format(Literal(self.after), Literal(self.query))
            parts.append((self._name("batches"), notes, these))
        return parts


def copy_table(table: Table, schema: str, run: str) -> dict[str, str]:
    """The table and the notes of its batches in a schema of their own; the options that name the copies."""
    named = {}
    with session(table, seconds=None, write=True) as on:
        _make_schema(on, schema, run)
        for option, name in (("dbtable", table.identifier), ("batch_table", table.batch_table)):
            if name is None:
                continue
            named[option] = dotted((schema, name[-1]))
            if (found := resolve(on, name)) is not None:
                _execute(on, "CREATE TABLE {} (LIKE {} INCLUDING ALL)", (schema, name[-1]), found.identifier)
                copied = resolve(on, (schema, name[-1]))
                assert copied is not None
                _copy(on, found.identifier, copied)
    return named


def drop_kept(table: Table, *schemas: str) -> tuple[int, int]:
    """Only what a run of this tool has made, table by table: nothing goes with it that depends on it."""
    tables, size = 0, 0
    with session(table, seconds=None, write=True) as on:
        for schema in schemas:
            row = on.execute(
                "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", (schema,)
            ).fetchone()
            if row is None:
                continue
            if not str(row[0]).startswith(_MARK):
                raise RunbookError(f"the schema {schema} was not made by this tool; nothing of it was dropped")
            for name, weight in on.execute(
                "SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n"
                " ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'",
                (schema,),
            ).fetchall():
                _execute(on, "DROP TABLE {}", (schema, name))
                tables, size = tables + 1, size + int(weight)
            _execute(on, "DROP SCHEMA {}", (schema,))
    return tables, size


def _declared(world: World, job: str) -> Table:
    """The password stays in the registry; a journal never has it."""
    return Table.of(world.registry.jobs[job].sink.options)


def _same(on: Connection[Any], table: Table, name: str, oid: int) -> Found:
    found = resolve(on, table.identifier)
    if found is None or found.oid != oid or dotted(found.identifier) != name:
        raise WorldMoved(f"{name} is not the table any more that was looked at; look again")
    return found


def _home(name: str) -> str:
    from wizard.postgres import table_name

    return table_name(name, "the table")[0]


def _kept(on: Connection[Any], schema: str, table: Table) -> Found | None:
    return resolve(on, (schema, table.identifier[-1]))


def _make_schema(on: Connection[Any], name: str, run: str) -> None:
    from psycopg.sql import SQL, Literal

    allowed = on.execute("SELECT has_database_privilege(current_database(), 'CREATE')").fetchone()
    there = on.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (name,)).fetchone()
    if there is None and allowed is not None and not allowed[0]:
        row = on.execute("SELECT current_user, current_database()").fetchone() or ("", "")
        raise RunbookError(
            f"{row[0]} may not make a schema to keep the rows in; GRANT CREATE ON DATABASE {dotted((row[1],))} TO "
            f"{dotted((row[0],))}, then go on"
        )
    _execute(on, "CREATE SCHEMA IF NOT EXISTS {}", (name,))
    on.execute(SQL("COMMENT ON SCHEMA {} IS {}").format(quoted(name), Literal(f"{_MARK}{run}")))


def _to_schema(on: Connection[Any], name: Name, schema: str) -> None:
    _execute(on, "ALTER TABLE {} SET SCHEMA {}", name, (schema,))


def _like(on: Connection[Any], kept: Name, home: Found) -> None:
    """An empty table with the columns, defaults, constraints, indexes, owner and grants of another."""
    from psycopg.sql import SQL

    unlogged = on.execute("SELECT relpersistence = 'u' FROM pg_class WHERE oid = %s", (home.oid,)).fetchone()
    kind = "UNLOGGED TABLE" if unlogged and unlogged[0] else "TABLE"
    _execute(on, f"CREATE {kind} {{}} (LIKE {{}} INCLUDING ALL)", home.identifier, kept)
    made = resolve(on, home.identifier)
    assert made is not None
    # LIKE names indexes by its own rules; ON CONFLICT ON CONSTRAINT must find the names it knows. They come in one order.
    for (old, shape), (new, same) in zip(_indexes(on, home.oid), _indexes(on, made.oid), strict=True):
        if shape == same and old != new:
            _execute(on, "ALTER INDEX {} RENAME TO {}", (home.schema, new), (old,))
    grants = on.execute(
        "SELECT CASE grantee WHEN 0 THEN NULL ELSE pg_get_userbyid(grantee) END, privilege_type, is_grantable"
        " FROM pg_class, aclexplode(relacl) WHERE oid = %s AND grantee <> relowner",
        (home.oid,),
    ).fetchall()
    for grantee, privilege, grantable in grants:
        to = SQL("PUBLIC") if grantee is None else quoted(grantee)
        more = SQL(" WITH GRANT OPTION" if grantable else "")
        on.execute(SQL("GRANT {} ON {} TO {}{}").format(SQL(privilege), quoted(home.identifier), to, more))
    if made.owner != home.owner:
        _execute(on, "ALTER TABLE {} OWNER TO {}", home.identifier, (home.owner,))


def _indexes(on: Connection[Any], oid: int) -> list[tuple[str, tuple[Any, ...]]]:
    rows = on.execute(
        "SELECT c.relname, i.indkey::text, i.indisunique, i.indisprimary FROM pg_index i"
        " JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = %s ORDER BY i.indisprimary DESC, c.oid",
        (oid,),
    )
    return [(str(name), shape) for name, *shape in rows]


def _move(on: Connection[Any], found: Found, to: Name, these: Any) -> int:
    from psycopg.sql import SQL

    if resolve(on, to) is None:
        _execute(on, "CREATE TABLE {} (LIKE {})", to, found.identifier)
    names = SQL(", ").join(quoted(name) for name in columns(on, found))
    query = SQL("WITH gone AS (DELETE FROM {} WHERE {} RETURNING {}) INSERT INTO {} ({}) SELECT * FROM gone")
    return on.execute(query.format(quoted(found.identifier), these, names, quoted(to), names)).rowcount


def _copy(on: Connection[Any], kept: Name, to: Found) -> None:
    from psycopg.sql import SQL

    names = SQL(", ").join(quoted(name) for name in columns(on, to))
    query = SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {}")
    on.execute(query.format(quoted(to.identifier), names, names, quoted(kept)))


def _execute(on: Connection[Any], statement: str, *names: Name) -> None:
    from psycopg.sql import SQL

    on.execute(SQL(statement).format(*(quoted(name) for name in names)))
