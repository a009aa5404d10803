"""Fence, reset and replay over real checkpoints and outputs: Spark takes what is left, and every row is there once."""

from __future__ import annotations

from pathlib import Path

import pytest
import truth
from pyspark.sql import SparkSession
from worlds import act, in_registry, look, take_back, tree

from wizard.catalogue.effects import Effect
from wizard.catalogue.live.checkpoint import lift_fence
from wizard.catalogue.world import World
from wizard.spark.produce import produce
from wizard.spark.run import JOBS, run_once
from wizard.spark.workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]
RAW, GOLD = "sensor-raw-ingest", "sensor-merge-gold"


def batches(checkpoint: Path, log: str = "commits") -> list[int]:
    return sorted(int(path.name) for path in (checkpoint / log).iterdir() if path.name.isdigit())


def a_world(workspace: Workspace, job: str, run: str, target: int | None = None) -> World:
    world = in_registry(workspace.jobs_file, job, workspace.root / "runs" / run)
    world.run = run
    if target is not None:
        world.answers["target"] = {"batch": target}
    return world


def walk(world: World, *steps: tuple[str, str]) -> list[Effect]:
    """Each action, then the fact that it makes."""
    effects: list[Effect] = []
    for name, fact in steps:
        effects += act(world, name)
        assert look(world, fact).holds, look(world, fact)
    return effects


def lift(world: World) -> list[Effect]:
    effects = lift_fence(world)
    for effect in effects:
        effect.do(world)
    return effects


FENCE = ("checkpoint.fence", "checkpoint.fenced")
RESET = (FENCE, ("sink.truncate", "sink.empty"), ("checkpoint.delete", "checkpoint.absent"))
REPLAY = (FENCE, ("sink.rollback", "sink.at_target"), ("checkpoint.rollback", "checkpoint.at_target"))


def test_a_fenced_job_fails_before_any_batch_and_a_replayed_or_reset_one_is_row_exact(
    spark: SparkSession, workspace: Workspace
) -> None:
    few_but_several_batches(workspace)
    produce(workspace.log, 160)
    for job in JOBS:
        run_once(spark, workspace.jobs_file, job)
    values = truth.log_values(workspace.root / "log/sensor-raw")
    raw_exactly(workspace, values)
    replay_of_the_file_sink(spark, workspace, values)
    reset_in_place(spark, workspace, values)
    replay_of_the_stateful_delta_job(spark, workspace, values)


def few_but_several_batches(workspace: Workspace) -> None:
    for job, old, new in (
        (RAW, "maxOffsetsPerTrigger: 400", "maxOffsetsPerTrigger: 40"),
        (GOLD, "maxFilesPerTrigger: 20", "maxFilesPerTrigger: 2"),
    ):
        path = workspace.conf(job)
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))


def raw_exactly(workspace: Workspace, values: dict[truth.Key, bytes]) -> None:
    assert truth.keys(truth.sink_rows(workspace.raw)) == dict.fromkeys(values, 1)
    assert truth.stray_rows(workspace.raw) == []


def replay_of_the_file_sink(spark: SparkSession, workspace: Workspace, values: dict[truth.Key, bytes]) -> None:
    checkpoint = workspace.checkpoint(RAW)
    last = batches(checkpoint)[-1]
    assert last >= 3
    before = tree(checkpoint, workspace.raw)
    world = a_world(workspace, RAW, "replay-1", target=1)
    for fact in ("target.offsets", "target.state", "target.source_log", "target.source_rows", "target.sink_log"):
        assert look(world, fact).holds, look(world, fact)
    effects = walk(world, FENCE)
    fenced = tree(checkpoint, workspace.raw)
    with pytest.raises(Exception, match="No usable value for id"):
        run_once(spark, workspace.jobs_file, RAW)
    assert tree(checkpoint, workspace.raw) == fenced
    effects += walk(world, *REPLAY[1:])
    assert look(world, "sink.accepts_replay").holds
    assert batches(checkpoint, "offsets") == batches(checkpoint) == [0, 1]
    kept = truth.keys(truth.sink_rows(workspace.raw))
    assert 0 < len(kept) < len(values)
    effects += lift(world)
    assert (checkpoint / "metadata").read_bytes() == before[str(checkpoint / "metadata")]
    run_once(spark, workspace.jobs_file, RAW)
    assert batches(checkpoint)[-1] >= last - 1
    raw_exactly(workspace, values)
    take_back(world, effects)
    assert tree(checkpoint, workspace.raw) == before


def reset_in_place(spark: SparkSession, workspace: Workspace, values: dict[truth.Key, bytes]) -> None:
    checkpoint = workspace.checkpoint(RAW)
    before = tree(checkpoint, workspace.raw)
    world = a_world(workspace, RAW, "reset-1")
    effects = walk(world, *RESET)
    assert [path.name for path in checkpoint.iterdir()] == ["metadata"]
    with pytest.raises(Exception, match="No usable value for id"):
        run_once(spark, workspace.jobs_file, RAW)
    effects += lift(world)
    run_once(spark, workspace.jobs_file, RAW)
    raw_exactly(workspace, values)
    assert batches(checkpoint)[0] == 0
    take_back(world, effects)
    assert tree(checkpoint, workspace.raw) == before


def replay_of_the_stateful_delta_job(spark: SparkSession, workspace: Workspace, values: dict[truth.Key, bytes]) -> None:
    expected = truth.expected_gold(values)
    checkpoint = workspace.checkpoint(GOLD)
    assert truth.gold(workspace.gold) == expected
    last = batches(checkpoint)[-1]
    assert last >= 1
    world = a_world(workspace, GOLD, "replay-2", target=0)
    for fact in ("target.offsets", "target.state", "target.source_log", "target.source_rows", "target.sink_log"):
        assert look(world, fact).holds, look(world, fact)
    walk(world, *REPLAY)
    assert truth.gold(workspace.gold) != expected
    assert look(world, "sink.accepts_replay").truth == "fails"
    walk(world, ("checkpoint.new_identity", "sink.accepts_replay"))
    lift(world)
    run_once(spark, workspace.jobs_file, GOLD)
    assert truth.gold(workspace.gold) == expected
    world = a_world(workspace, GOLD, "reset-2")
    walk(world, *RESET)
    assert truth.gold(workspace.gold) == {}
    lift(world)
    run_once(spark, workspace.jobs_file, GOLD)
    assert truth.gold(workspace.gold) == expected


def test_a_checksum_left_without_its_metadata_is_what_the_fence_must_take_along(
    spark: SparkSession, workspace: Workspace
) -> None:
    produce(workspace.log, 10)
    run_once(spark, workspace.jobs_file, RAW)
    world = a_world(workspace, RAW, "reset-1")
    walk(world, *RESET)
    lift(world)
    checkpoint = workspace.checkpoint(RAW)
    assert list(checkpoint.iterdir()) == []
    (checkpoint / ".metadata.crc").write_bytes(b"crc\0\0\0\2\0\0\0\0\0")
    with pytest.raises(Exception, match="metadata"):
        run_once(spark, workspace.jobs_file, RAW)
