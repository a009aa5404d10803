"""An output in PostgreSQL: looked at, emptied, taken back, and cleaned of what the batch in flight had written."""

from __future__ import annotations

import json
from collections.abc import Sequence

from wizard.catalogue.effects.sql import RowsAside, TableEmpty, schema_of
from wizard.catalogue.live.known import query_id
from wizard.catalogue.world import Plan, Seen, World, fails, holds, unknown
from wizard.checkpoint.reader import read_checkpoint
from wizard.errors import RunbookError
from wizard.jobs.model import Job
from wizard.jobs.tried import tried
from wizard.postgres import Table, count, dotted, is_postgres, resolve, session
from wizard.sinks.jdbc import (
    check_columns,
    count_after,
    dependents,
    is_unique,
    names_queries,
    newest_batches,
    newest_of_rows,
    others,
)
from wizard.sinks.rollback import CannotGoBack
from wizard.store import open_store
from wizard.text import batches, plural, some


def is_table(job: Job) -> bool:
    return job.sink.format.lower() == "jdbc" and is_postgres(job.sink.options)


def table_of(job: Job) -> Table:
    return Table.of(job.sink.options)


def in_flight(world: World, ids: Sequence[int], committed: int | None) -> Seen:
    """Whether running these batches again doubles a row."""
    table, what = table_of(world.job), f"{batches(ids)} in flight"
    seen = tried(world.registry, world.job)
    with session(table) as asked:
        found = resolve(asked, table.identifier)
        if found is None:
            return holds(f"{what}, and there is no table yet")
        check_columns(asked, table, found)
        if is_unique(asked, found, world.job.sink.key):
            return holds(f"{what}; {table.shown} refuses a second row of one key, so nothing can be doubled")
        if table.batch_column is None and seen is not None and seen.once:
            return holds(f"{what}; {seen.told}")
        if table.batch_column is None:
            return unknown(
                f"{what}, the rows of {table.shown} do not say which batch they came from (batch_column), and no unique "
                f"index covers the key: whether they are there twice after another run depends on the job's code"
            )
        rows = count_after(asked, table, query_id(world), -1 if committed is None else committed)
    if not rows:
        return holds(f"{what}, and {table.shown} holds no row of it")
    there = f"{what}, and {table.shown} holds {plural(rows, 'row')} of it"
    if seen is not None:
        return holds(f"{there}; {seen.told}") if seen.once else fails(f"{there}, and they go first; {seen.told}")
    if world.job.sink.idempotent:
        return holds(f"{there}; the job is declared to delete them before it inserts (idempotent)")
    return fails(f"{there}; the job is not declared to take a batch twice, so they go first")


def empty(world: World) -> Seen:
    from psycopg.sql import SQL

    from wizard.postgres import quoted

    table = table_of(world.job)
    with session(table) as asked:
        found = resolve(asked, table.identifier)
        if found is None:
            return holds(f"there is no table {table.shown}")
        some_row = asked.execute(SQL("SELECT 1 FROM {} LIMIT 1").format(quoted(found.identifier))).fetchone()
    if some_row is None:
        return holds(f"{table.shown} holds no rows")
    rows = count(table)
    return fails(f"{table.shown} holds rows{'' if rows is None else f', {rows} of them'}")


def at_target(world: World, batch: int) -> Seen:
    cut = cut_of(world, batch)
    if isinstance(cut, CannotGoBack):
        return fails(cut.says) if cut.known else unknown(cut.says)
    shown = table_of(world.job).shown
    if cut:
        return fails(f"{shown} holds {plural(cut, 'row')} of batches after {batch}")
    return holds(f"{shown} holds no row of a batch after {batch}", *_overwritten(world.job))


def cut_to(world: World, batch: int) -> Seen:
    cut = cut_of(world, batch)
    if isinstance(cut, CannotGoBack):
        return fails(cut.says) if cut.known else unknown(cut.says)
    return holds(f"{plural(cut, 'row')} of batches after {batch} would go", *_overwritten(world.job))


def beyond_plan(job: Job, query: str | None) -> str | None:
    """That the table holds rows of a batch which this stream has not begun: left by a run before, and never replaced."""
    table = table_of(job)
    if table.batch_column is None:
        return None
    with session(table) as asked:
        found = resolve(asked, table.identifier)
        newest = newest_of_rows(asked, table, query) if found is not None else None
    # In this order: a batch is planned before its rows are written.
    planned = read_checkpoint(open_store(job.checkpoint), recent=1).planned
    if newest is None or (planned is not None and newest <= planned):
        return None
    return (
        f"{table.shown} holds rows of batch {newest}, and the newest planned is {planned}: a run before has left them"
    )


def accepts(world: World, batch: int, identity: str | None) -> Seen:
    """A writer that deletes and inserts skips nothing; what it has noted must not be ahead all the same."""
    table = table_of(world.job)
    if table.batch_column is None:
        return unknown(f"the rows of {table.shown} do not say which batch they came from; the job may remember others")
    with session(table) as asked:
        found = resolve(asked, table.identifier)
        newest = newest_batches(asked, table, found) if found is not None else {}
    last = newest.get((identity or "") if names_queries(table) else "")
    if last is not None and last > batch:
        return fails(f"{table.shown} holds batch {last} of query {identity}")
    return holds(f"the newest batch in {table.shown} is {'none' if last is None else last}; a batch is written over")


def cut_of(world: World, batch: int) -> int | CannotGoBack:
    """How many rows go so that the table ends with a batch."""
    table, mine = table_of(world.job), query_id(world)
    if table.batch_column is None:
        return CannotGoBack(
            f"the rows of {table.shown} do not say which batch they came from; declare batch_column", known=False
        )
    with session(table) as asked:
        found = resolve(asked, table.identifier)
        if found is None:
            return CannotGoBack(f"there is no table {table.shown}")
        check_columns(asked, table, found)
        newest = newest_batches(asked, table, found)
        strangers = {name: last for name, last in newest.items() if name and name != mine and last > batch}
        if strangers and names_queries(table) and set(strangers) & set(others(asked, table, mine)):
            return CannotGoBack(
                f"{table.shown} holds batches after {batch} of other queries ({some(sorted(strangers))}); whose rows they "
                "are is not known",
                known=False,
            )
        last = newest.get((mine or "") if names_queries(table) else "")
        if table.batch_table is not None and (last is None or last < batch):
            return CannotGoBack(f"{table.shown} ends with batch {last} of query {mine}, and never held batch {batch}")
        return count_after(asked, table, mine, batch)


def truncate(world: World) -> Plan:
    table = table_of(world.job)
    with session(table) as asked:
        found = resolve(asked, table.identifier)
        if found is None:
            return Plan((), notes=(f"there is no table {table.shown}",))
        held_by = dependents(asked, found)
    if empty(world).holds:
        return Plan((), notes=(f"{table.shown} holds no rows",))
    if held_by:
        raise RunbookError(
            f"{table.shown} cannot be exchanged for an empty table: {some(held_by)} would be left with the old one; take "
            "them away and put them back after, or empty it by hand"
        )
    name, kept = dotted(found.identifier), schema_of(world.run, world.job.name)
    return Plan((TableEmpty(world.job.name, name, found.oid, kept, count(table)),))


def rollback(world: World, batch: int) -> Plan:
    cut = cut_of(world, batch)
    if isinstance(cut, CannotGoBack):
        raise RunbookError(f"{cut.says}; the output cannot be taken back to batch {batch}")
    if not cut:
        return Plan((), notes=(f"the table ends with batch {batch} already",))
    return Plan((_aside(world, batch, cut),), notes=_overwritten(world.job))


def clear(world: World, committed: int | None) -> Plan:
    after = -1 if committed is None else committed
    table = table_of(world.job)
    with session(table) as asked:
        rows = count_after(asked, table, query_id(world), after)
    return Plan((_aside(world, after, rows),)) if rows else Plan((), notes=("nothing has to go",))


def _aside(world: World, after: int, rows: int) -> RowsAside:
    table = table_of(world.job)
    with session(table) as asked:
        found = resolve(asked, table.identifier)
    if found is None:
        raise RunbookError(f"{table.shown} was there a moment ago and is gone")
    kept = schema_of(world.run, world.job.name)
    query = query_id(world)
    return RowsAside(world.job.name, dotted(found.identifier), found.oid, kept, after, query, rows)


def _overwritten(job: Job) -> tuple[str, ...]:
    if job.output_mode == "append":
        return ()
    return ("rows that those batches had written over are not there until they are run again",)


def table_fingerprint(job: Job) -> str:
    """Changes when the table, its rows or its newest batch do."""
    table = table_of(job)
    with session(table) as asked:
        found = resolve(asked, table.identifier)
        if found is None:
            return "absent"
        check_columns(asked, table, found)
        newest = newest_batches(asked, table, found)
    return json.dumps([found.oid, count(table), newest], sort_keys=True)
