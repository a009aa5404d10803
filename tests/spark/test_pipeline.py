"""The three jobs on real Spark: every source record is in each sink exactly once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import truth
from pyspark.sql import SparkSession

from wizard.jobs.registry import lint_registry, load_registry
from wizard.spark.config import load_config
from wizard.spark.merge_gold import GOLD_SCHEMA, merge_batch
from wizard.spark.produce import produce, records
from wizard.spark.run import JOBS, run_once
from wizard.spark.workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def check_all(workspace: Workspace) -> None:
    values = truth.log_values(workspace.root / "log/sensor-raw")
    raw, typed = truth.sink_rows(workspace.raw), truth.sink_rows(workspace.typed)
    once = dict.fromkeys(values, 1)
    assert (truth.keys(raw), truth.keys(typed)) == (once, once)
    assert {(r["partition"], r["offset"]): r["value"] for r in raw} == values
    good = {key for key, value in values.items() if truth.reading(value)}
    assert {(r["partition"], r["offset"]) for r in typed if r["quality"] == "good"} == good
    bad = [r for r in typed if r["quality"] == "bad"]
    assert bad and all(r["reason"] and r["raw"] == values[r["partition"], r["offset"]] for r in bad)
    assert truth.gold(workspace.gold) == truth.expected_gold(values)


def test_every_source_record_is_in_each_sink_once_over_two_rounds(spark: SparkSession, workspace: Workspace) -> None:
    for round_ in range(2):
        produce(workspace.log, 600, first=600 * round_)
        for name in JOBS:
            run_once(spark, workspace.jobs_file, name)
    check_all(workspace)


def test_the_produced_readings_hold_duplicates_and_late_ones_and_every_kind_of_bad_record() -> None:
    made = [record for _, record in records(3000)]
    readings = [r for r in (truth.reading(record.value) for record in made) if r]
    ids = [r["id"] for r in readings]
    assert len(set(ids)) < len(ids) < len(made)
    assert len({record.value for record in made if not truth.reading(record.value)}) == 8
    assert [record for _, record in records(10, first=50)] == made[50:60]


def test_a_batch_the_gold_table_has_is_not_merged_again(tmp_path: Path) -> None:
    path = str(tmp_path / "gold")
    rows = GOLD_SCHEMA.empty_table()
    assert merge_batch(path, rows, "query", 0)
    assert merge_batch(path, rows, "query", 1)
    assert not merge_batch(path, rows, "query", 0)
    assert not merge_batch(path, rows, "query", 1)
    assert merge_batch(path, rows, "another query", 0)


def test_the_demo_registry_and_its_config_files_have_nothing_to_complain_about(workspace: Workspace) -> None:
    assert lint_registry(workspace.jobs_file) == []
    registry = load_registry(workspace.jobs_file)
    assert registry.jobs.keys() == JOBS.keys()
    for job in registry.jobs.values():
        assert job.config and load_config(job.config.file).master == "local[2]"


def test_the_first_offsets_of_a_checkpoint_are_kept_as_kafkas_source_keeps_them(
    spark: SparkSession, workspace: Workspace
) -> None:
    produce(workspace.log, 50)
    run_once(spark, workspace.jobs_file, "sensor-raw-ingest")
    kept = (workspace.checkpoint("sensor-raw-ingest") / "sources/0/0").read_bytes()
    assert kept.startswith(b"\0v1\n")
    assert json.loads(kept[4:]) == {"sensor-raw": {"0": 0, "1": 0}}
