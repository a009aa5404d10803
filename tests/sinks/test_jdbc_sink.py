"""A PostgreSQL table as an output: found by Spark's options, asked in time, never shown with its password."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from server import PASSWORD
from tables import BATCHES, KILLED, Output

from wizard.diagnosis.diagnose import Diagnosis, diagnose
from wizard.diagnosis.subject import subject_of
from wizard.errors import BadInput
from wizard.jobs.registry import lint_registry
from wizard.postgres import Table, dotted, table_name
from wizard.sinks.interface import SinkReport
from wizard.sinks.jdbc import JdbcSink

if TYPE_CHECKING:
    from server import Server


def report(output: Output, **options: str) -> SinkReport:
    return JdbcSink(Table.of(output.options | options), ["id"]).report(output.query)


def seen(output: Output) -> Diagnosis:
    return diagnose(subject_of(output.world().job))


def test_a_table_says_its_rows_and_its_newest_batch(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    assert not report(output).exists
    output.create()
    output.fill(4)
    output.write(7, query="another")
    told = report(output)
    assert (told.exists, told.rows, told.last_batch, told.idempotent, told.problems) == (True, 18, 4, None, ())
    assert told.details["transactions"] == {output.query: 4, "another": 7}
    assert (told.by_batch, told.sparse) == (True, True)
    assert told.bytes == output.sql(f"SELECT pg_total_relation_size('{output.table}')")[0][0]


@pytest.mark.parametrize("notes", [{}, {"batch_table": "notes_of_two"}], ids=["rows", "notes"])
def test_rows_of_another_query_beside_its_own_make_a_table_doubtful(
    notes: dict[str, str], database: Server, tmp_path: Path
) -> None:
    """The checkpoint was deleted over a full table and the job started again: every row is there twice."""
    output = Output(database, tmp_path, **BATCHES, **notes)
    output.create()
    output.fill()
    if notes:
        output.sql("CREATE TABLE notes_of_two (query_id text, batch_id bigint)")
        output.sql(f"INSERT INTO notes_of_two VALUES ('{output.query}', 13), ('an older one', 50)")
    assert "SINK_OLDER" not in {found.code for found in seen(output).findings}
    output.fill(query="an older one")
    told = seen(output)
    assert [found.message for found in told.findings] == ["the table holds rows of query an older one too"]
    assert {path: told.paths[path]["verdict"] for path in ("resume", "replay", "reset")} == {
        "resume": "unknown",
        "replay": "unknown",
        "reset": "safe",
    }


def test_the_notes_of_the_writer_tell_a_batch_without_rows(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path, **BATCHES, batch_table="notes_of_batches")
    output.create()
    output.fill(13)
    assert report(output).last_batch is None, "the writer makes its notes with its first batch"
    output.sql("CREATE TABLE notes_of_batches (query_id uuid, batch_id bigint)")
    output.sql(f"INSERT INTO notes_of_batches VALUES ('{output.query}', 13)")
    assert (report(output).last_batch, report(output).sparse) == (13, False)
    assert seen(output).paths["replay"]["verdict"] == "safe"
    output.sql("UPDATE notes_of_batches SET batch_id = 11")
    assert "SINK_BEHIND" in {found.code for found in seen(output).findings}


def test_without_notes_a_newer_commit_is_no_finding_and_no_yes_either(database: Server, tmp_path: Path) -> None:
    from worlds import look

    output = Output(database, tmp_path)
    output.create()
    output.fill(11)
    assert [found.code for found in seen(output).findings] == []
    consistent = look(output.world(), "checkpoint.consistent")
    assert (consistent.truth, "12" in consistent.evidence[0]) == ("unknown", True)
    output.fill(13)
    assert look(output.world(), "checkpoint.consistent").holds


def test_a_unique_key_is_what_makes_a_table_idempotent_whatever_is_declared(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    output.create()
    for index, wanted in (
        ("UNIQUE (name)", None),
        ("UNIQUE (id, name)", None),
        ("UNIQUE (id)", None),  # null is not equal to null
        ("PRIMARY KEY (id)", True),
    ):
        output.sql(f"ALTER TABLE {output.table} ADD {index}")
        assert report(output).idempotent is wanted, index


@pytest.mark.parametrize(("declared", "verdict"), [(True, "safe"), (False, "risky"), (None, "unknown")])
def test_a_batch_in_flight_is_as_safe_as_the_output_is_declared(
    declared: bool | None, verdict: str, database: Server, tmp_path: Path
) -> None:
    output = Output(database, tmp_path, KILLED, more={} if declared is None else {"idempotent": declared})
    output.create()
    output.fill(1)
    assert seen(output).paths["resume"]["verdict"] == verdict


def test_names_are_taken_as_postgresql_takes_them_and_cannot_break_out(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    schema, table = '"O\'Brien ""x"""', '"Ta.ble; DROP"'
    output.sql(f'CREATE SCHEMA {schema}; CREATE TABLE {schema}.{table} ("Id" int, "ba""tch" int)')
    output.sql(f"INSERT INTO {schema}.{table} VALUES (1, 3)")
    told = report(output, dbtable=f"{schema} . {table}", batch_column="no", query_column="")
    assert told.problems and "has no column" in told.problems[0].evidence
    options = output.options | {"dbtable": f"{schema} . {table}", "batch_column": 'ba"tch'}
    options.pop("query_column")
    told = JdbcSink(Table.of(options)).report(None)
    assert (told.rows, told.last_batch, told.problems) == (1, 3, ())
    assert report(output, dbtable="PUBLIC.No_Such_Table").exists is False


@pytest.mark.parametrize("text", ["(SELECT 1) t", "a.b.c", "a b", "", ".", "a;drop table b", 'a."', "a.b WHERE true"])
def test_what_is_not_one_table_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="one table"):
        table_name(text, "dbtable")


def test_a_name_is_shown_as_it_would_be_typed() -> None:
    for text in ("gold.hourly", '"Gold"."a ""b"""', "x"):
        assert dotted(table_name(text, "dbtable")) == text
    assert table_name("Gold.Hourly", "dbtable") == ("gold", "hourly")


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("jdbc:postgresql://db/x", {"host": "db", "port": "5432", "dbname": "x"}),
        ("jdbc:postgresql://[::1]:6/x", {"host": "::1", "port": "6"}),
        ("jdbc:postgresql://a:1,b/x?sslmode=require", {"host": "a,b", "port": "1,5432", "sslmode": "require"}),
        (
            "jdbc:postgresql://db/x?user=u&password=p%26q&ssl=true",
            {"user": "u", "password": "p&q", "sslmode": "verify-full"},
        ),
        ("jdbc:postgresql:x", {"host": "localhost", "dbname": "x"}),
        ("jdbc:postgresql://db/x?currentSchema=gold", {"options": "-c search_path=gold"}),
    ],
)
def test_a_jdbc_url_is_read_as_the_driver_reads_it(url: str, wanted: dict[str, str]) -> None:
    found = Table.of({"url": url, "dbtable": "t", "user": "etl", "PassWord": "hunter2"})
    assert {name: found.connection.get(name) for name in wanted} == wanted
    assert "hunter2" not in repr(found) and "p&q" not in found.shown and "password" not in found.shown


def test_the_schema_that_the_url_names_is_the_one_looked_into(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    output.sql("CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.only_there (id bigint, query_id text, batch_id bigint)")
    assert not report(output, dbtable="only_there").exists
    there = report(output, dbtable="only_there", url=f"{database.url}?currentSchema=elsewhere")
    assert (there.exists, there.details["table"]) == (True, "elsewhere.only_there")


def test_what_cannot_be_asked_is_one_line_without_the_password(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    output.create()
    for options, words in (
        ({"password": "wrong-" + PASSWORD}, "password authentication failed"),
        ({"url": f"jdbc:postgresql://127.0.0.1:1/x?password={PASSWORD}"}, "does not answer"),
        ({"url": database.url + "zz"}, 'database "postgreszz" does not exist'),
        ({"batch_column": "nope"}, "has no column nope, which batch_column names"),
    ):
        (problem,) = report(output, **options).problems
        assert problem.code == "SINK_UNREADABLE"
        assert words in problem.evidence and "\n" not in problem.evidence
        assert PASSWORD not in problem.evidence


def test_a_server_that_hangs_is_left_in_time(database: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = Output(database, tmp_path)
    output.create()
    monkeypatch.setattr("wizard.postgres.SECONDS", 2.0)
    database.pause()
    began = time.monotonic()
    try:
        told = report(output)
    finally:
        database.pause(False)
    assert time.monotonic() - began < 6
    assert told.problems[0].code == "SINK_UNREADABLE"
    assert report(output).problems == ()


def test_a_server_that_hangs_in_mid_question_is_left_in_time(database: Server, tmp_path: Path) -> None:
    from wizard.postgres import TooSlow, session

    output = Output(database, tmp_path)
    table = Table.of(output.options)
    with pytest.raises(TooSlow), session(table, seconds=0.5) as asked:
        asked.execute("SELECT pg_sleep(5)")
    began = time.monotonic()
    try:
        with pytest.raises(TooSlow), session(table, seconds=0.5) as asked:
            asked.execute("SELECT 1")
            database.pause()
            asked.execute("SELECT 2")
    finally:
        database.pause(False)
    assert time.monotonic() - began < 4


def test_lint_tells_what_is_not_one_table_and_what_cannot_be_taken_back(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    good = json.loads(output.jobs.read_text())
    assert [problem.code for problem in lint_registry(output.jobs)] == []
    options = good["jobs"]["job"]["sink"]["options"]
    for change, code in (
        ({"dbtable": "(SELECT 1) t"}, "J208"),
        ({"dbtable": ""}, "J208"),
        ({"batch_column": ""}, "J209"),
    ):
        good["jobs"]["job"]["sink"]["options"] = options | change
        output.jobs.write_text(json.dumps(good))
        (problem,) = lint_registry(output.jobs)
        assert problem.code == code
        assert PASSWORD not in str(problem)


def test_a_password_is_in_no_diagnosis(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    told = seen(output)
    assert PASSWORD not in json.dumps(told.as_dict()) + repr(told.subject) + repr(output.world().job)
    assert told.as_dict()["sink"]["path"].startswith("jdbc:postgresql://127.0.0.1:")
    assert "SINK_ABSENT" in {found.code for found in told.findings}


def test_another_database_is_of_a_kind_that_is_not_looked_into(database: Server, tmp_path: Path) -> None:
    output = Output(database, tmp_path)
    job = output.world().job
    other = dataclasses.replace(job.sink, options=output.options | {"url": "jdbc:mysql://db/x"})
    told = diagnose(subject_of(dataclasses.replace(job, sink=other)))
    assert "SINK_UNKNOWN_KIND" in {found.code for found in told.findings}
