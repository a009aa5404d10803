"""`runbook reset` of Kafka → Delta → Delta → Delta, and its undo, counted by code that knows nothing of the tool."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from had import have
from pipeline import JOBS, PATIENT, TABLES, Workspace, end_jobs, good_readings, in_order, produce

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def offsets(path: Path) -> Any:
    return json.loads(path.read_text().splitlines()[2])


def test_a_reset_rebuilds_the_table_from_the_true_earliest_offset_and_undo_brings_every_row_back(
    workspace: Workspace,
) -> None:
    """One job, as small as it can be; with its consumers it is the next test, and in the gauntlet."""
    broker, topic = workspace.broker, workspace.topic
    workspace.only(JOBS[0])
    produce(broker, topic, 300)
    broker.drop_before(topic, 0, 20)
    workspace.once(JOBS[0])
    before, checkpoint = workspace.rows(TABLES[0]), workspace.state(JOBS[0])
    assert len(before) == 280
    produce(broker, topic, 50, first=300)
    workspace.runbook("reset", JOBS[0], *workspace.answers(**PATIENT))
    wanted = Counter((partition, offset) for partition, offset, _, _ in broker.read(topic))
    workspace.wait_for(TABLES[0], wanted)
    end_jobs(workspace.root)
    assert workspace.keys(TABLES[0]) == wanted
    began = (workspace.root / "checkpoints" / JOBS[0] / "sources/0/0").read_bytes()
    assert json.loads(began.lstrip(b"\0").decode().partition("\n")[2]) == {topic: {"0": 20, "1": 0}}
    workspace.runbook("undo", workspace.last_run(), "--no-input", "--confirm", JOBS[0])
    assert in_order(workspace.rows(TABLES[0])) == in_order(before)
    assert workspace.state(JOBS[0]) == checkpoint


@pytest.mark.slow
def test_a_reset_rebuilds_all_three_tables_and_undo_brings_every_row_back(workspace: Workspace) -> None:
    broker, topic = workspace.broker, workspace.topic
    produce(broker, topic, 900)
    # Retention has moved on before the first start: the true earliest is not 0.
    broker.drop_before(topic, 0, 20)
    broker.drop_before(topic, 1, 7)
    workspace.once(*JOBS)
    before = {table: workspace.rows(table) for table in TABLES}
    checkpoints = {job: workspace.state(job) for job in JOBS}
    ids = {job: workspace.query_id(job) for job in JOBS}
    produce(broker, topic, 100, first=900)

    workspace.runbook("reset", JOBS[0], *workspace.answers(**PATIENT))
    end_jobs(workspace.root)
    workspace.once(*JOBS)

    records = broker.read(topic)
    assert len(records) == 1000 - 27
    wanted = Counter((partition, offset) for partition, offset, _, _ in records)
    assert workspace.keys(TABLES[0]) == wanted
    assert workspace.keys(TABLES[1]) == wanted
    counted = Counter[str]()
    for row in workspace.rows(TABLES[2]):
        counted[row["sensor"]] += row["readings"]
    assert counted == good_readings(records)
    for job in JOBS:
        assert workspace.query_id(job) != ids[job], f"{job} must have a new query id"
    checkpoint = workspace.root / "checkpoints" / JOBS[0]
    began = (checkpoint / "sources/0/0").read_bytes()
    assert json.loads(began.lstrip(b"\0").decode().partition("\n")[2]) == {topic: {"0": 20, "1": 7}}
    # At most 400 records a batch, shared by two partitions: batch 0 ends no later than that past the earliest.
    first = offsets(checkpoint / "offsets/0")[topic]
    assert 0 < first["0"] - 20 + first["1"] - 7 <= 400

    workspace.runbook("undo", workspace.last_run(), "--no-input", "--confirm", JOBS[0])
    for table in TABLES:
        assert in_order(workspace.rows(table)) == in_order(before[table]), table
    for job in JOBS:
        assert workspace.state(job) == checkpoints[job], job


@pytest.mark.slow
def test_a_reset_of_running_jobs_stops_resets_and_starts_the_consumers(workspace: Workspace) -> None:
    from wizard.jobs.control.open import open_controller
    from wizard.jobs.registry import load_registry

    broker, topic = workspace.broker, workspace.topic
    produce(broker, topic, 500)
    workspace.once(*JOBS)
    ids = {job: workspace.query_id(job) for job in JOBS}
    registry = load_registry(workspace.root / "jobs.yaml")
    for job in JOBS:
        open_controller(registry, registry.jobs[job]).start()
    produce(broker, topic, 100, first=500)

    workspace.runbook("reset", JOBS[0], *workspace.answers(**PATIENT))
    wanted = Counter((partition, offset) for partition, offset, _, _ in broker.read(topic))
    workspace.wait_for(TABLES[1], wanted)  # the consumers run, and come after
    for job in reversed(JOBS):
        open_controller(registry, registry.jobs[job]).stop()
    workspace.once(*JOBS)
    assert workspace.keys(TABLES[0]) == wanted
    assert workspace.keys(TABLES[1]) == wanted
    counted = Counter[str]()
    for row in workspace.rows(TABLES[2]):
        counted[row["sensor"]] += row["readings"]
    assert counted == good_readings(broker.read(topic))
    assert all(workspace.query_id(job) != ids[job] for job in JOBS)


@pytest.mark.slow
def test_with_the_broker_down_a_reset_stops_before_anything_is_changed(tmp_path: Path) -> None:
    have("kafka", "delta")
    from cluster import create

    root = tmp_path / "cluster"
    create(root, "127.0.0.1:1")
    for name, text in {
        "metadata": '{"id":"3b9c4b3e-5d0e-4f5e-9a55-0f3a1f3f0c11"}',
        "offsets/0": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1794981060173,"conf":{}}\n{"sensor-raw":{"0":5,"1":5}}',
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }.items():
        path = root / "checkpoints/sensor-raw-ingest" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    alone = Workspace(root, None)  # type: ignore[arg-type]
    answers = alone.answers()
    before = _tree(root)
    said = alone.runbook("reset", JOBS[0], *answers, wanted=3)
    assert "source.can_rebuild unknown" in " ".join(said.split())
    assert "the Kafka cluster 127.0.0.1:1 does not answer" in said
    assert _tree(root) == before


def _tree(root: Path) -> dict[str, bytes]:
    """All files but those of the walk itself."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "runs" not in path.relative_to(root).parts
    }
