"""An output in PostgreSQL emptied, taken back, cleaned and proved; rows are counted by a client of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tables import BATCHES, KILLED, Output
from worlds import act, journalled, look, planned, take_back

from wizard.catalogue.live.rows import exact
from wizard.errors import RunbookError, WorldMoved

if TYPE_CHECKING:
    from server import Server

FULL = list(range(42))


@pytest.fixture
def output(database: Server, tmp_path: Path) -> Iterator[Output]:
    made = Output(database, tmp_path)
    made.create()
    made.fill()
    yield made


def schemas(output: Output) -> list[str]:
    return [name for (name,) in output.sql("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'runbook\\_%'")]


def test_a_table_is_emptied_by_a_move_and_comes_back(output: Output) -> None:
    world, before = output.world(), output.rows()
    output.sql(f"CREATE UNIQUE INDEX an_odd_name_{output.table} ON {output.table} (name, id)")
    output.sql(f"CREATE INDEX ON {output.table} (batch_id) WHERE id > 3")
    output.sql(f"ALTER TABLE {output.table} ADD CHECK (id >= 0), ADD twice bigint GENERATED ALWAYS AS (id * 2) STORED")
    output.sql(f"GRANT SELECT ON {output.table} TO PUBLIC")
    described = describe(output)
    assert look(world, "sink.empty").truth == "fails"
    effects = act(world, "sink.truncate")
    assert "42 rows" in effects[0].says()
    assert look(world, "sink.empty").holds and output.rows() == {}
    assert describe(output) == described
    for effect in journalled(effects):
        effect.do(world)  # after a kill
    output.sql(f"INSERT INTO {output.table} VALUES (7, 'since', 'q', 0)")
    take_back(world, effects)
    assert {row[:4]: n for row, n in output.rows().items()} == before
    assert describe(output) == described
    take_back(world, effects)
    assert output.ids() == FULL
    ((kept,),) = output.sql(f"SELECT name FROM {effects[0].kept}_since.{output.table}")  # type: ignore[attr-defined]
    assert kept == "since", "what came since is displaced, not deleted"


def describe(output: Output) -> list[tuple[Any, ...]]:
    """What a writer may know of the table: columns, constraints, indexes by name, owner and grants."""
    where = f"'public.{output.table}'::regclass"
    return [
        *output.sql(f"SELECT attname, atttypid, attnotnull, attgenerated FROM pg_attribute WHERE attrelid = {where} AND attnum > 0 ORDER BY attnum"),
        *output.sql(f"SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = {where} ORDER BY 1"),
        *output.sql(f"SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = {where} ORDER BY 1"),
        *output.sql(f"SELECT relowner, relacl::text, relkind FROM pg_class WHERE oid = {where}"),
    ]  # fmt: skip


DEPENDENTS = {
    "view": "CREATE VIEW v_{t} AS SELECT id FROM {t}",
    "materialized view": "CREATE MATERIALIZED VIEW v_{t} AS SELECT id FROM {t}",
    "foreign key to it": "ALTER TABLE {t} ADD PRIMARY KEY (id); CREATE TABLE v_{t} (id bigint REFERENCES {t} (id))",
    "foreign key of it": "CREATE TABLE v_{t} (id text PRIMARY KEY); ALTER TABLE {t} ADD FOREIGN KEY (id2) REFERENCES v_{t}",
    "trigger": "CREATE FUNCTION v_{t}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
    "CREATE TRIGGER v_{t} BEFORE INSERT ON {t} FOR EACH ROW EXECUTE FUNCTION v_{t}()",
    "sequence": "ALTER TABLE {t} ADD COLUMN n serial",
    "row level security": "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY",
    "column privileges": "GRANT SELECT (id) ON {t} TO PUBLIC",
    "part of another": "CREATE TABLE v_{t} (LIKE {t}); ALTER TABLE {t} INHERIT v_{t}",
    "parent of another": "CREATE TABLE v_{t} () INHERITS ({t})",
    "function": "CREATE FUNCTION v_{t}() RETURNS bigint LANGUAGE SQL BEGIN ATOMIC SELECT max(id) FROM {t}; END",
}


@pytest.mark.parametrize("what", DEPENDENTS)
def test_a_table_that_others_hang_on_is_not_exchanged(what: str, database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    output.create(", id2 text")
    output.sql(f"INSERT INTO {output.table} VALUES (1, 'a', 'q', 0)")
    output.sql(DEPENDENTS[what].format(t=output.table))
    with pytest.raises(RunbookError, match="cannot be exchanged for an empty table") as error:
        planned(output.world(), "sink.truncate")
    assert "\n" not in str(error.value)
    assert output.ids() == [1]


@pytest.mark.parametrize("batch", [0, 5, 13])
def test_a_table_goes_back_to_a_batch_and_forth_again(batch: int, output: Output) -> None:
    world = output.world(batch)
    assert look(world, "target.sink_log").holds
    before = output.rows()
    effects = act(world, "sink.rollback")
    assert look(world, "sink.at_target").holds and look(world, "sink.accepts_replay").holds
    assert output.ids() == FULL[: 3 * (batch + 1)]
    for effect in journalled(effects):
        effect.do(world)
    assert output.ids() == FULL[: 3 * (batch + 1)]
    if batch < 13:
        output.write(batch + 1)  # the replay has begun
    take_back(world, effects)
    assert output.rows() == before
    take_back(world, effects)
    assert output.rows() == before


def test_the_notes_of_the_batches_go_and_come_with_the_rows(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path, **BATCHES, batch_table="noted")
    output.create()
    output.fill()
    output.sql("CREATE TABLE IF NOT EXISTS noted (query_id text, batch_id bigint, rows bigint)")
    for batch in range(14):
        output.sql(f"INSERT INTO noted VALUES ('{output.query}', {batch}, 3), ('another', {batch}, 1)")
    world = output.world(7)
    effects = act(world, "sink.rollback")
    noted = dict(output.sql("SELECT query_id, max(batch_id) FROM noted GROUP BY 1"))
    assert noted == {output.query: 7, "another": 13}
    assert look(world, "sink.accepts_replay").holds
    take_back(world, effects)
    assert dict(output.sql("SELECT query_id, count(*) FROM noted GROUP BY 1")) == {output.query: 14, "another": 14}


def test_rows_of_another_query_are_never_taken_for_ours(output: Output) -> None:
    output.write(13, query="another")
    world = output.world(3)
    seen = look(world, "target.sink_log")
    assert (seen.truth, "rows of query another" in seen.evidence[0]) == ("unknown", True)
    with pytest.raises(RunbookError, match=r"other queries \(another\)"):
        planned(world, "sink.rollback")


def test_a_table_whose_rows_name_no_batch_is_not_taken_back(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path, KILLED, user="etl")
    output.create()
    world = output.world(1)
    for name in ("in_flight.clean", "sink.at_target", "sink.accepts_replay", "target.sink_log"):
        seen = look(world, name)
        assert (seen.truth, "which batch they came from" in seen.evidence[0]) == ("unknown", True), name


def test_the_batch_in_flight_is_cleaned_where_the_job_does_not_say_that_it_may_be_written_twice(
    database: Server, tmp_path: Path
) -> None:
    output = Output(database, tmp_path, KILLED)  # committed 1, batch 2 in flight
    output.create()
    output.fill(1)
    world = output.world()
    assert look(world, "in_flight.clean").holds, "it has written nothing yet"
    output.write(2)
    seen = look(world, "in_flight.clean")
    assert (seen.truth, "3 rows of it" in seen.evidence[0]) == ("fails", True)
    effects = act(world, "sink.clear_in_flight")
    assert look(world, "in_flight.clean").holds and output.ids() == FULL[:6]
    output.write(2)
    assert output.ids() == FULL[:9]
    take_back(world, effects)
    assert output.ids() == FULL[:9]


def test_a_declared_or_a_unique_table_takes_the_batch_in_flight_as_it_is(database: Server, tmp_path: Path) -> None:
    declared = Output(database, tmp_path / "a", KILLED, more={"idempotent": True})
    declared.create()
    declared.fill(2)
    assert "declared" in look(declared.world(), "in_flight.clean").evidence[0]
    unique = Output(database, tmp_path / "b", KILLED, user="etl")
    unique.create(", PRIMARY KEY (id)")
    unique.fill(2)
    seen = look(unique.world(), "in_flight.clean")
    assert seen.holds and "refuses a second row" in seen.evidence[0]


def test_somebody_who_writes_meanwhile_stops_the_action_and_nothing_goes(output: Output) -> None:
    world = output.world(5)
    (back,) = planned(world, "sink.rollback").effects
    output.write(13)
    before = output.rows()
    with pytest.raises(WorldMoved, match="held 24 rows of batches after 5 and holds 27 now"):
        back.do(world)
    assert output.rows() == before
    (emptied,) = planned(world, "sink.truncate").effects
    output.sql(f"ALTER TABLE {output.table} RENAME TO old_{output.table}")
    output.create()
    output.fill(2)
    with pytest.raises(WorldMoved, match="not the table any more"):
        emptied.do(world)
    assert output.ids() == FULL[:9]


def test_a_table_that_somebody_holds_is_told_in_time(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    monkeypatch.setattr("wizard.postgres.SECONDS", 1.0)

    (emptied,) = planned(output.world(), "sink.truncate").effects
    known = output.options
    port = known["url"].rpartition(":")[2].partition("/")[0]
    with psycopg.connect(
        host="127.0.0.1", port=port, user="etl", password=known["password"], dbname="postgres"
    ) as other:
        other.execute(f"LOCK TABLE {output.table} IN SHARE MODE")
        with pytest.raises(RunbookError, match="is locked by somebody else"):
            emptied.do(output.world())
    assert output.ids() == FULL


def test_what_was_kept_is_dropped_by_a_purge_and_nothing_else_is(output: Output) -> None:
    world = output.world(5)
    effects = act(world, "sink.rollback") + act(world, "sink.truncate")
    assert effects[0].kept in schemas(output)  # type: ignore[attr-defined]
    things = sum(effect.purge(world)[0] for effect in journalled(effects))
    assert things == 2
    assert effects[0].kept not in schemas(output)  # type: ignore[attr-defined]
    assert output.rows() == {}
    assert "is gone" in (effects[1].cannot_undo(world) or "")


def test_a_schema_of_somebody_else_is_left_alone(output: Output) -> None:
    world = output.world(5)
    (back,) = planned(world, "sink.rollback").effects
    output.sql(f"CREATE SCHEMA {back.kept}")  # type: ignore[attr-defined]
    output.sql(f"CREATE TABLE {back.kept}.theirs (id int)")  # type: ignore[attr-defined]
    with pytest.raises(RunbookError, match="was not made by this tool"):
        back.purge(world)


KILL = """
import json, os, signal, sys
sys.path[:0] = [sys.argv[3]]
from worlds import in_registry
from wizard.catalogue.effects import load, sql
from pathlib import Path
world = in_registry(Path(sys.argv[1]), "job", Path(sys.argv[1]).parent / "runs/run-1")
world.run = sys.argv[4]
(effect,) = [load(told) for told in json.loads(sys.argv[2])]
calls = 0

def counted(real, at):
    def call(*a, **k):
        global calls
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)  # where no `finally` runs
        calls += 1
        return real(*a, **k)
    return call

for line in sys.stdin:
    what, at = line.split()
    child = os.fork()
    if not child:
        for name in ("_execute", "_move", "_make_schema", "_to_schema", "_like", "_copy", "resolve"):
            setattr(sql, name, counted(getattr(sql, name), int(at)))
        getattr(effect, what)(world)
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.mark.parametrize("action", ["sink.truncate", "sink.rollback"])
def test_killed_at_any_statement_it_is_done_wholly_or_not_at_all(action: str, output: Output) -> None:
    world, before = output.world(5), output.rows()
    after = {} if action == "sink.truncate" else {row: n for row, n in before.items() if row[3] <= 5}
    told = json.dumps([effect.as_dict() for effect in planned(world, action).effects])
    command = [sys.executable, "-c", KILL, str(output.jobs), told, str(Path(__file__).parents[2]), world.run]
    kills = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdin is not None and driver.stdout is not None
        for what, reached, wanted in (("do", before, after), ("undo", after, before)):
            for at in range(40):
                driver.stdin.write(f"{what} {at}\n")
                driver.stdin.flush()
                ended = int(driver.stdout.readline())
                if ended == 0:
                    break
                assert ended == 9
                kills += 1
                assert output.rows() == reached
            assert output.rows() == wanted, what
        driver.stdin.close()
    assert kills >= 12


def test_the_rows_are_proved_against_the_source(output: Output) -> None:
    seen = exact(output.world().job)
    assert seen.holds, seen.evidence
    assert "42 of 42 source rows" in seen.evidence[0]
    output.write(3)
    output.sql(f"DELETE FROM {output.table} WHERE id IN (20, 21)")
    output.sql(f"INSERT INTO {output.table} VALUES (777, 'x', 'q', 2)")
    seen = exact(output.world().job)
    assert seen.truth == "fails"
    assert (seen.data["missing"], seen.data["doubled"], seen.data["foreign"]) == (
        {"rows": 2, "examples": [{"id": 20}, {"id": 21}]},
        {"rows": 3, "keys": 3, "examples": [{"id": 9}, {"id": 10}, {"id": 11}]},
        {"rows": 1, "examples": [{"id": 777}]},
    )


def test_rows_of_a_batch_that_is_not_committed_yet_do_not_count(output: Output) -> None:
    offsets = output.home / "checkpoint/offsets"
    (offsets / "14").write_bytes((offsets / "13").read_bytes())
    output.sql(f"INSERT INTO {output.table} VALUES (42, 'x', '{output.query}', 14)")
    assert exact(output.world().job).holds


def test_names_may_hold_what_a_query_is_made_of(database: Server, tmp_path: Path) -> None:
    table, batch, query = '"rate % d".";T""x"', "%s", "Query--Id"
    output = Output(database, tmp_path, batch_column=batch, query_column=query)
    plain = output.table
    output.create()
    output.fill()
    output.sql('CREATE SCHEMA "rate % d"')
    output.sql(
        f'CREATE TABLE {table} AS SELECT id, name, query_id::uuid AS "{query}", batch_id AS "{batch}" FROM {plain}'
    )
    output.jobs.write_text(output.jobs.read_text().replace(json.dumps(plain), json.dumps(table)))
    output.table = table
    before = output.rows()
    assert exact(output.world().job).holds
    for number, (action, left) in enumerate((("sink.rollback", 18), ("sink.truncate", 0))):
        world = output.world(5)
        world.run += str(number)
        effects = act(world, action)
        assert output.rows().total() == left
        take_back(world, effects)
        assert output.rows() == before


@pytest.mark.parametrize("by", ["query", "NULL"])
def test_rows_of_another_query_or_of_no_batch_count_whatever_number_they_have(by: str, output: Output) -> None:
    """A checkpoint deleted over a full table leaves them: their batch numbers go on where the new stream's are not yet."""
    query, batch = ("'another'", "batch_id + 50") if by == "query" else ("query_id", "NULL")
    output.sql(f"INSERT INTO {output.table} SELECT id, name, {query}, {batch} FROM {output.table} WHERE id IN (20, 21)")
    seen = exact(output.world().job)
    assert (seen.truth, seen.data["doubled"]["rows"], seen.data["missing"]["rows"]) == ("fails", 2, 0), seen.evidence


@pytest.mark.parametrize("options", [BATCHES, {"batch_column": "batch_id"}], ids=["by query", "by batch alone"])
def test_rows_of_a_batch_that_was_never_planned_are_no_later_batch(
    options: dict[str, str], database: Server, tmp_path: Path
) -> None:
    """The writer replaces a batch by its number, so what a run before has left beyond the newest stays, and doubles rows."""
    output = Output(database, tmp_path, **options)
    output.create()
    output.fill()
    output.sql(f"INSERT INTO {output.table} SELECT id, name, query_id, 50 FROM {output.table} WHERE id = 20")
    seen = exact(output.world().job)
    assert seen.truth == "fails"
    assert "holds rows of batch 50, and the newest planned is 13" in seen.evidence[0]


def test_the_proof_is_unknown_when_the_database_is_gone(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    output.jobs.write_text(output.jobs.read_text().replace(f":{database.port}/", ":1/"))
    world = output.world(3)
    for name in ("rows.exact", "sink.empty", "sink.at_target", "target.sink_log", "checkpoint.consistent"):
        seen = look(world, name)
        assert seen.truth == "unknown", name
        assert any("does not answer" in line for line in seen.evidence), (name, seen.evidence)
