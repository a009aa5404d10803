"""Jobs that write to PostgreSQL, on real Spark: rows counted by a client of its own, against the bytes of the log."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import truth
import yaml
from pyspark.sql import SparkSession
from test_kill import end, launch, many_small_batches, wait_for

from wizard.catalogue.live.rows import exact
from wizard.jobs.registry import lint_registry, load_registry
from wizard.spark.produce import produce
from wizard.spark.run import run_once
from wizard.spark.workspace import Workspace, create_workspace

if TYPE_CHECKING:
    from server import Server

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]

RAW, TYPED, GOLD = "sensor-raw-ingest", "sensor-deserialize", "sensor-merge-gold"
KILLS = int(os.environ.get("RUNBOOK_KILLS", "1"))


class Tables:
    """The demo's workspace with its raw zone and its gold table in PostgreSQL too, by jobs of a second registry."""

    def __init__(self, database: Server, root: Path, name: str) -> None:
        self.database, self.schema = database, name
        self.workspace = create_workspace(root, segment_bytes=4_000)
        self.jobs = root / "tables.yaml"
        database.rows(f"CREATE SCHEMA {name}")
        told = yaml.safe_load(self.workspace.jobs_file.read_text())
        told["runs"] = "./runs-tables"
        for job, table in ((RAW, "raw"), (GOLD, "gold")):
            raw = told["jobs"][job]
            raw["checkpoint"] = f"./checkpoints/{job}-table"
            raw["sink"].pop("path")
            raw["control"]["start"][-1] = "tables.yaml"
            batches = {"batch_column": "batch_id", "query_column": "query_id", "batch_table": f"{name}.batches"}
            raw["sink"] |= {
                "format": "jdbc",
                "options": database.options(f"{name}.{table}", **batches),
                "idempotent": True,
            }
        del told["jobs"][TYPED]
        self.jobs.write_text(yaml.safe_dump(told))

    @property
    def values(self) -> dict[truth.Key, bytes]:
        return truth.log_values(self.workspace.root / "log/sensor-raw")

    def checkpoint(self, job: str) -> Path:
        return self.workspace.root / f"checkpoints/{job}-table"

    def check_raw(self) -> None:
        rows = self.database.rows(f'SELECT "partition", "offset", value FROM {self.schema}.raw')
        assert Counter(row[:2] for row in rows) == dict.fromkeys(self.values, 1)
        assert {row[:2]: row[2] for row in rows} == self.values

    def check_gold(self) -> None:
        rows = self.database.rows(
            "SELECT sensor, window_start, readings, temperature_min, temperature_max, temperature_sum"
            f" FROM {self.schema}.gold"
        )
        found = {row[:2]: (row[2], row[3], row[4], round(row[5], 6)) for row in rows}
        assert len(found) == len(rows)
        assert found == truth.expected_gold(self.values)


def test_raw_and_gold_rows_are_in_their_tables_once_also_when_a_batch_is_run_again(
    spark: SparkSession, database: Server, tmp_path: Path
) -> None:
    tables = Tables(database, tmp_path / "demo", "two_rounds")
    assert [problem for problem in lint_registry(tables.jobs) if problem.severity == "error"] == []
    produce(tables.workspace.log, 600)
    run_once(spark, tables.jobs, RAW)
    for job in (RAW, TYPED):
        run_once(spark, tables.workspace.jobs_file, job)
    run_once(spark, tables.jobs, GOLD)
    tables.check_raw()
    tables.check_gold()
    for job in (RAW, GOLD):
        run_again(tables, job)
        run_once(spark, tables.jobs, job)
    tables.check_raw()
    tables.check_gold()
    for job in (RAW, GOLD):
        seen = exact(load_registry(tables.jobs).jobs[job])
        assert seen.holds, (job, seen.evidence)


def runbook(tables: Tables, *command: str, wanted: int = 0) -> str:
    program = [Path(sys.executable).with_name("runbook"), *command, "--jobs", tables.jobs]
    done = subprocess.run(program, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == wanted, f"{done.stdout}\n{done.stderr}"
    assert tables.database.options("x")["password"] not in done.stdout + done.stderr
    return done.stdout


def stop(tables: Tables, job: str) -> None:
    from wizard.jobs.control.open import open_controller

    registry = load_registry(tables.jobs)
    open_controller(registry, registry.jobs[job]).stop()


def state(tables: Tables, job: str) -> dict[str, bytes]:
    place = tables.checkpoint(job)
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def rows(tables: Tables, table: str) -> Counter[tuple[Any, ...]]:
    return Counter(tables.database.rows(f"SELECT * FROM {tables.schema}.{table}"))


@pytest.mark.slow
def test_a_reset_fills_the_table_anew_and_its_undo_brings_every_row_back(
    spark: SparkSession, database: Server, tmp_path: Path
) -> None:
    tables = Tables(database, tmp_path / "demo", "a_reset")
    produce(tables.workspace.log, 500)
    run_once(spark, tables.jobs, RAW)
    before, checkpoint = rows(tables, "raw"), state(tables, RAW)
    produce(tables.workspace.log, 100, first=500)
    answers = tmp_path / "answers.yaml"
    answers.write_text("{place: in_place, who: stop, wait_commit: again, wait_moving: again}\n")
    try:
        runbook(tables, "reset", RAW, "--no-input", "--answers", str(answers), "--confirm", RAW)
    finally:
        stop(tables, RAW)
    run_once(spark, tables.jobs, RAW)
    tables.check_raw()
    assert not {row[-2] for row in before} & {row[-2] for row in rows(tables, "raw")}, "a new query id"
    (run,) = [path.name for path in (tables.workspace.root / "runs-tables").iterdir() if path.name.startswith("reset-")]
    assert database.options("x")["password"] not in (
        "".join(p.read_text() for p in (tables.workspace.root / "runs-tables" / run).rglob("*.json*"))
    )
    runbook(tables, "undo", run, "--no-input", "--confirm", RAW)
    assert rows(tables, "raw") == before
    assert state(tables, RAW) == checkpoint
    kept = "SELECT count(*) FROM pg_namespace WHERE obj_description(oid, 'pg_namespace') LIKE %s"
    assert database.rows(kept, (f"%{run}",)) > [(0,)], "what the reset had written is displaced"
    runbook(tables, "purge", run, "--confirm", run)
    assert database.rows(kept, (f"%{run}",)) == [(0,)]
    assert rows(tables, "raw") == before


def carelessly(tables: Tables) -> list[str]:
    """The registry with a writer that only inserts, declared idempotent as people do; the command that runs it."""
    told = yaml.safe_load(tables.jobs.read_text())
    told["jobs"] = {RAW: told["jobs"][RAW]}
    raw = told["jobs"][RAW]
    raw["sink"]["options"].pop("batch_table")
    raw["sink"]["key"] = ["partition", "offset"]
    raw["control"]["start"] = [
        sys.executable,
        str(Path(__file__).with_name("careless.py")),
        RAW,
        "--jobs",
        "tables.yaml",
    ]
    tables.jobs.write_text(yaml.safe_dump(told))
    return list(raw["control"]["start"])


def run_again(tables: Tables, job: str) -> int:
    """As a kill between the write and the commit leaves it: the newest batch is in the output and not committed."""
    commits = tables.checkpoint(job) / "commits"
    newest = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for name in (f"{newest}", f".{newest}.crc"):
        (commits / name).unlink(missing_ok=True)
    return newest


@pytest.mark.slow
def test_an_output_declared_idempotent_that_is_not_is_found_out_on_a_copy(database: Server, tmp_path: Path) -> None:
    from wizard.catalogue.live.sink import in_flight_clean
    from wizard.catalogue.world import World

    tables = Tables(database, tmp_path / "demo", "careless")
    command = carelessly(tables)
    produce(tables.workspace.log, 300)
    done = subprocess.run([*command, "--once"], cwd=tables.workspace.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    tables.check_raw()
    before, checkpoint = rows(tables, "raw"), state(tables, RAW)

    told = runbook(tables, "rehearse", "reset", RAW, "--no-input", "--json", "--wait", "600", wanted=3)
    report = json.loads(told.splitlines()[-1])
    assert (report["outcome"], report["twice"]["truth"]) == ("blocked", "fails")
    assert "is declared idempotent, and is not: batch" in report["error"]
    doubled = report["twice"]["doubled"]
    newest = max(row[-1] for row in before)
    assert doubled["rows"] == sum(n for row, n in before.items() if row[-1] == newest)
    assert rows(tables, "raw") == before and state(tables, RAW) == checkpoint, "nothing live was touched"
    assert database.rows(
        "SELECT count(*) FROM pg_namespace WHERE obj_description(oid, 'pg_namespace') LIKE '%twice-%'"
    ) == [(0,)]

    # From now on the walks and the diagnosis know better than the registry.
    assert run_again(tables, RAW) == newest
    registry = load_registry(tables.jobs)
    world = World(registry, registry.jobs[RAW], "run-1", str(tables.workspace.root / "runs-tables/run-1"))
    seen = in_flight_clean(world)
    assert (seen.truth, "they go first" in seen.evidence[0]) == ("fails", True)
    found = json.loads(runbook(tables, "diagnose", RAW, "--json"))
    assert found["paths"]["resume"]["verdict"] == "risky"
    assert "written twice on a copy left" in found["paths"]["resume"]["reasons"][0]


@pytest.mark.slow
def test_a_batch_in_flight_of_a_careless_job_is_taken_out_before_it_is_resumed(
    database: Server, tmp_path: Path
) -> None:
    tables = Tables(database, tmp_path / "demo", "in_flight")
    command = carelessly(tables)
    tables.jobs.write_text(tables.jobs.read_text().replace("idempotent: true", "idempotent: false"))
    produce(tables.workspace.log, 300)
    once = {"cwd": tables.workspace.root, "capture_output": True, "check": True}
    subprocess.run([*command, "--once"], **once)  # type: ignore[call-overload]
    run_again(tables, RAW)
    produce(tables.workspace.log, 60, first=300)
    answers = tmp_path / "answers.yaml"
    answers.write_text(
        "{say_sources: same, say_operators: same, say_confs: same, wait_commit: again, wait_moving: again}\n"
    )
    try:
        runbook(tables, "resume", RAW, "--no-input", "--answers", str(answers), "--confirm", RAW)
    finally:
        stop(tables, RAW)
    subprocess.run([*command, "--once"], **once)  # type: ignore[call-overload]
    tables.check_raw()


@pytest.mark.slow
def test_an_output_that_takes_a_batch_twice_is_seen_to_and_the_reset_is_rehearsed_on_a_copy(
    spark: SparkSession, database: Server, tmp_path: Path
) -> None:
    tables = Tables(database, tmp_path / "demo", "rehearsed")
    produce(tables.workspace.log, 300)
    run_once(spark, tables.jobs, RAW)
    before, checkpoint = rows(tables, "raw"), state(tables, RAW)
    told = json.loads(runbook(tables, "rehearse", "twice", RAW, "--json", "--wait", "600"))
    assert (told["truth"], told["doubled"]["rows"]) == ("holds", 0)
    answers = tmp_path / "answers.yaml"
    answers.write_text("{place: in_place, who: stop, wait_commit: again, wait_moving: again}\n")
    report = runbook(
        tables, "rehearse", "reset", RAW, "--no-input", "--answers", str(answers), "--json", "--wait", "600"
    )
    assert json.loads(report.splitlines()[-1])["rows_after"]["truth"] == "holds"
    assert rows(tables, "raw") == before and state(tables, RAW) == checkpoint
    left = "SELECT count(*) FROM pg_namespace WHERE obj_description(oid, 'pg_namespace') LIKE %s"
    assert database.rows(left, ("kept by runbook, run %-sensor-raw-ingest-%",)) == [(0,)]


@pytest.mark.slow
@pytest.mark.parametrize("job", [RAW, GOLD])
def test_a_replay_takes_the_table_back_and_is_exact(
    job: str, spark: SparkSession, database: Server, tmp_path: Path
) -> None:
    tables = Tables(database, tmp_path / "demo", f"a_replay_{job[7:10]}")
    many_small_batches(tables.workspace)
    for first in (0, 300):
        produce(tables.workspace.log, 300, first=first)
        for each in (RAW, TYPED):
            run_once(spark, tables.workspace.jobs_file, each)
        run_once(spark, tables.jobs, job)
    table = "raw" if job == RAW else "gold"
    check = tables.check_raw if job == RAW else tables.check_gold
    check()
    before, checkpoint = rows(tables, table), state(tables, job)
    answers = tmp_path / "answers.yaml"
    answers.write_text(
        "{target: {option: by_batch, typed: '3'}, who: stop, say_sources: same, say_operators: same, say_confs: same,"
        " wait_commit: again, wait_moving: again}\n"
    )
    produce(tables.workspace.log, 50, first=600)
    for each in (RAW, TYPED):
        run_once(spark, tables.workspace.jobs_file, each)
    try:
        runbook(tables, "replay", job, "--no-input", "--answers", str(answers), "--confirm", job)
    finally:
        stop(tables, job)
    run_once(spark, tables.jobs, job)
    check()
    (run,) = [
        path.name for path in (tables.workspace.root / "runs-tables").iterdir() if path.name.startswith("replay-")
    ]
    runbook(tables, "undo", run, "--no-input", "--confirm", job)
    assert rows(tables, table) == before
    assert state(tables, job) == checkpoint


@pytest.mark.slow
def test_jobs_that_write_tables_killed_at_random_moments_stay_row_exact(
    spark: SparkSession, database: Server, tmp_path: Path
) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    tables = Tables(database, tmp_path / "demo", "killed")
    many_small_batches(tables.workspace)
    produce(tables.workspace.log, 80 + 160 * KILLS)
    for job in (RAW, TYPED):
        run_once(spark, tables.workspace.jobs_file, job)
    as_tables = Workspace(tables.workspace.root)
    for job in (RAW, GOLD):
        for _ in range(KILLS):
            said = (
                len((tables.workspace.root / f"{job}.out").read_text())
                if (tables.workspace.root / f"{job}.out").exists()
                else 0
            )
            process = launch(as_tables, job, "--jobs", str(tables.jobs))
            try:
                wait_for(as_tables, job, '{"batch": ', process, after=said)
                time.sleep(chance.random())
                os.killpg(process.pid, signal.SIGKILL)
            finally:
                end(process)
        run_once(spark, tables.jobs, job)
    tables.check_raw()
    tables.check_gold()
