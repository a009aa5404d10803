"""A batch written twice on a copy, by a job that deletes first and by one that only inserts, and what follows from it.

The job is a program that does what Spark does with a batch that was not committed; tests/spark/test_table_sink.py has the same
on Spark (RUNBOOK_ALL_SCENARIOS=1).
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tables import Output
from worlds import look

from wizard.catalogue.live.twice import known_by_kind
from wizard.diagnosis.diagnose import diagnose
from wizard.diagnosis.subject import subject_of
from wizard.engine.operator import Nobody, Prepared
from wizard.engine.rehearse import rehearse
from wizard.engine.twice import try_twice
from wizard.errors import ExitCode
from wizard.jobs.registry import load_registry
from wizard.jobs.tried import tried

if TYPE_CHECKING:
    from server import Server

WORKER = """
import json, re, sys, time
from pathlib import Path
import psycopg
job = json.load(open(sys.argv[1]))["jobs"]["job"]
checkpoint, options = Path(job["checkpoint"]), job["sink"]["options"]
def newest(log): return max(int(path.name) for path in (checkpoint / log).iterdir() if path.name.isdigit())
batch = newest("offsets")
if newest("commits") < batch:
    port = re.search(r":(\\d+)/", options["url"])[1]
    query = json.loads((checkpoint / "metadata").read_text())["id"]
    known = dict(host="127.0.0.1", port=port, user=options["user"], password=options["password"], dbname="postgres")
    with psycopg.connect(**known) as on:
        if sys.argv[2] == "careful":
            on.execute(f"DELETE FROM {options['dbtable']} WHERE query_id = %s AND batch_id = %s", (query, batch))
        for line in (Path(job["source"]["path"]) / f"f{batch}.json").read_text().splitlines():
            row = json.loads(line)
            on.execute(f"INSERT INTO {options['dbtable']} VALUES (%s, %s, %s, %s)", (row["id"], row["name"], query, batch))
    (checkpoint / f"commits/{batch}").write_bytes((checkpoint / f"commits/{batch - 1}").read_bytes())
time.sleep(600)
"""


def made(database: Server, root: Path, how: str, **more: Any) -> Output:
    output = Output(database, root, more=more)
    (output.home / "worker.py").write_text(WORKER)
    told = json.loads(output.jobs.read_text())
    told["jobs"]["job"]["control"]["start"] = [sys.executable, str(output.home / "worker.py"), "jobs.yaml", how]
    output.jobs.write_text(json.dumps(told))
    output.create()
    output.fill()
    return output


def in_flight(output: Output) -> None:
    """The newest batch is in the output, and was not committed."""
    for name in ("13", ".13.crc"):
        (output.home / "checkpoint/commits" / name).unlink(missing_ok=True)


def everything(output: Output) -> tuple[Any, ...]:
    files = {p: p.read_bytes() for p in (output.home / "checkpoint").rglob("*") if p.is_file()}
    schemas = output.sql("SELECT nspname FROM pg_namespace WHERE obj_description(oid, 'pg_namespace') LIKE '%-job-%'")
    return files, output.rows(), schemas


def test_a_job_that_deletes_first_is_seen_to_take_a_batch_twice(database: Server, tmp_path: Path) -> None:
    output = made(database, tmp_path, "careful")
    registry, before = load_registry(output.jobs), everything(output)
    assert not known_by_kind(registry.jobs["job"])
    seen = try_twice(registry, "job", patience=20)
    assert seen.holds and "batch 13 written twice on a copy was there once" in seen.evidence[0]
    assert everything(output) == before, "nothing live was touched, and no copy is left"
    assert not list((output.home / "runs/rehearsals").iterdir())
    in_flight(output)
    # Not declared; seen. Both the walk and the diagnosis go by that.
    clean = look(output.world(), "in_flight.clean")
    assert clean.holds and "tried at" in clean.evidence[0]
    found = tried(registry, registry.jobs["job"])
    assert diagnose(subject_of(registry.jobs["job"], (), found)).paths["resume"]["verdict"] == "safe"


def test_a_job_that_only_inserts_is_found_out_whatever_is_declared(database: Server, tmp_path: Path) -> None:
    output = made(database, tmp_path, "careless", idempotent=True)
    registry, before = load_registry(output.jobs), everything(output)
    report = rehearse(registry, "job", "reset", Prepared({}, "job", Nobody(lambda event: None)), patience=20)
    assert (report.outcome, report.exit_code) == ("blocked", ExitCode.STOPPED)
    assert "is declared idempotent, and is not: batch 13 written twice on a copy left 3 rows too many" in report.error
    assert report.twice is not None and report.twice.data["doubled"]["rows"] == 3
    assert any("a batch twice: fails" in line for line in report.lines())
    assert everything(output) == before

    in_flight(output)
    clean = look(output.world(), "in_flight.clean")
    assert (clean.truth, "they go first" in clean.evidence[0]) == ("fails", True)
    found = tried(registry, registry.jobs["job"])
    resume = diagnose(subject_of(registry.jobs["job"], (), found)).paths["resume"]
    assert (resume["verdict"], "left 3 rows too many" in resume["reasons"][0]) == ("risky", True)

    # With another command it is another job, of which nothing was seen.
    output.jobs.write_text(output.jobs.read_text().replace("careless", "careful"))
    registry = load_registry(output.jobs)
    assert tried(registry, registry.jobs["job"]) is None


def test_a_reset_is_rehearsed_on_a_copy_of_the_table_and_nothing_of_it_stays(database: Server, tmp_path: Path) -> None:
    output = made(database, tmp_path, "careful", idempotent=True)
    registry, before, events = load_registry(output.jobs), everything(output), []
    answers = {"place": "in_place", "wait_commit": "stop"}
    report = rehearse(registry, "job", "reset", Prepared(answers, "job", Nobody(events.append)), patience=20)
    assert report.twice is not None and report.twice.holds
    # The worker cannot begin a stream: the walk gets as far as the start, with table and checkpoint of the copy empty.
    done = [event["action"] for event in events if event["event"] == "outcome" and event["ok"]]
    assert {"sink.truncate", "checkpoint.delete"} <= set(done)
    assert report.exit_code != ExitCode.OK
    assert everything(output) == before
    assert not list((output.home / "runs/rehearsals").iterdir())


def test_what_cannot_be_tried_is_unknown_and_nothing_is_noted(database: Server, tmp_path: Path) -> None:
    output = made(database, tmp_path, "careful")
    in_flight(output)
    registry = load_registry(output.jobs)
    seen = try_twice(registry, "job", patience=5)
    assert (seen.truth, "batch 13 is in flight" in seen.evidence[0]) == ("unknown", True)
    shutil.copy(output.home / "checkpoint/commits/12", output.home / "checkpoint/commits/13")
    (output.home / "worker.py").write_text("raise SystemExit('the job has its own troubles')")
    seen = try_twice(registry, "job", patience=5)
    assert seen.truth == "unknown"
    assert tried(registry, registry.jobs["job"]) is None
    assert everything(output)[2] == []


@pytest.mark.parametrize("name", ["spark-4.2-stateless-file", "spark-4.2-delta"])
def test_an_output_that_skips_a_batch_by_its_own_log_is_known_by_its_kind(name: str, tmp_path: Path) -> None:
    from recorded import at_home
    from worlds import around

    world = around(at_home(name, tmp_path), sink="delta" if "delta" in name else "parquet")
    assert known_by_kind(world.job)
