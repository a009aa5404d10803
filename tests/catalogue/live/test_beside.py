"""A second output is built beside the first by the job's own command, and the registry switched to it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
import pytest

from wizard.catalogue.effects import load
from wizard.catalogue.live import beside as live
from wizard.catalogue.live.config import registry_switch, registry_switched
from wizard.catalogue.world import Plan, World
from wizard.errors import BadInput
from wizard.jobs.registry import load_registry
from wizard.spark.produce import produce
from wizard.spark.workspace import Workspace, create_workspace

RAW, TYPED = "sensor-raw-ingest", "sensor-deserialize"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = create_workspace(tmp_path / "demo")
    made.conf(RAW).write_text(
        made.conf(RAW).read_text().replace("startingOffsets: earliest", "startingOffsets: latest")
    )
    made.raw.mkdir(parents=True)
    (made.raw / "old.parquet").write_bytes(b"old rows")
    made.checkpoint(RAW).mkdir(parents=True)
    (made.checkpoint(RAW) / "metadata").write_text('{"id":"old"}')
    return made


def world_of(workspace: Workspace, job: str = RAW) -> World:
    registry = load_registry(workspace.jobs_file)
    return World(registry, registry.jobs[job], "one", str(workspace.root / "runs/one"))


def act(world: World, plan: Plan) -> None:
    world.memory |= json.loads(json.dumps(plan.remember))
    for effect in plan.effects:
        load(json.loads(json.dumps(effect.as_dict()))).do(world)


def digests(root: Path, *without: str) -> dict[str, str]:
    found = {str(p.relative_to(root)): p for p in sorted(root.rglob("*")) if p.is_file()}
    kept = {name: p for name, p in found.items() if not name.startswith(without)}
    return {name: hashlib.sha256(p.read_bytes()).hexdigest() for name, p in kept.items()}


def rows(output: str) -> Counter[tuple[int, int]]:
    lines = [line for p in Path(output, "_spark_metadata").glob("[0-9]*") for line in p.read_text().split("\n")[1:]]
    files = [unquote(urlparse(json.loads(line)["path"]).path) for line in lines if line]
    found = [row for path in files for row in pq.ParquetFile(path).read(["partition", "offset"]).to_pylist()]
    return Counter((row["partition"], row["offset"]) for row in found)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_new_output_is_built_from_the_earliest_offsets_switched_to_and_all_of_it_can_be_undone(
    workspace: Workspace,
) -> None:
    produce(workspace.log, 300)
    everything = {(p, offset): 1 for p, end in workspace.log.latest().items() for offset in range(end)}
    world = world_of(workspace)
    untouched = digests(workspace.root, "runs/")
    done: list[Plan] = []

    def step(plan: Plan) -> None:
        done.append(plan)
        act(world, plan)

    assert live.beside_ready(world).truth == "fails"
    step(live.beside_prepare(world))
    assert live.beside_ready(world).truth == "holds"
    assert live.beside_built(world).truth == "fails"
    assert live.beside_build(world) == live.beside_build(world)
    step(live.beside_build(world))
    assert live.beside_built(world).truth == "holds", live.beside_built(world)
    new = world.memory["beside"]["new"]
    assert rows(new["sink"]) == everything
    act(world, done[-1])  # as after a kill: nothing is built twice
    assert rows(new["sink"]) == everything
    built = digests(workspace.root, "runs/")
    assert untouched.items() <= built.items(), "nothing of the live job has changed"

    step(registry_switch(world))
    assert registry_switched(world).truth == "holds"
    world.registry = load_registry(workspace.jobs_file)
    world.job = world.registry.jobs[RAW]
    assert (world.job.sink.path, world.job.checkpoint) == (new["sink"], new["checkpoint"])
    assert world.registry.jobs[TYPED].source.path == new["sink"]
    assert live.old_retired(world).truth == "fails"
    step(live.old_retire(world))
    assert live.old_retired(world).truth == "holds"
    assert list(workspace.raw.iterdir()) == list(workspace.checkpoint(RAW).iterdir()) == []

    for plan in reversed(done):
        for effect in reversed(plan.effects):
            assert effect.cannot_undo(world) is None
            effect.undo(world)
    assert digests(workspace.root, "runs/") == untouched
    assert not Path(new["sink"]).exists() and not Path(new["checkpoint"]).exists()


def test_the_build_runs_the_same_command_on_other_paths_from_the_earliest_offsets(workspace: Workspace) -> None:
    world = world_of(workspace)
    act(world, live.beside_prepare(world))
    plan = live.beside_build(world)
    act(world, Plan(plan.effects[:-1]))
    other = live.build_of(world)
    assert other is not None
    registry, job = other
    new = world.memory["beside"]["new"]
    assert (job.checkpoint, job.sink.path) == (new["checkpoint"], new["sink"])
    assert job.control is not None and world.job.control is not None
    assert job.control.start == (*world.job.control.start[:-1], registry.path)
    assert job.source.path == world.job.source.path and job.sink.key == world.job.sink.key
    assert registry.jobs[TYPED].checkpoint == world.registry.jobs[TYPED].checkpoint
    assert job.config is not None and "startingOffsets: earliest" in Path(job.config.file).read_text()
    assert "startingOffsets: latest" in workspace.conf(RAW).read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (", --jobs, jobs.yaml]", "]", "does not name"),
        (
            "kind: process",
            'kind: spark-rest\n      url: "http://localhost:4040"\n      query_name: q',
            "only a job of kind process",
        ),
    ],
)
def test_a_job_that_cannot_be_given_other_paths_is_refused_before_anything_is_built(
    workspace: Workspace, old: str, new: str, said: str
) -> None:
    workspace.jobs_file.write_text(workspace.jobs_file.read_text().replace(old, new))
    world = world_of(workspace)
    act(world, live.beside_prepare(world))
    with pytest.raises(BadInput, match=said):
        live.beside_build(world)


def test_a_place_that_is_not_empty_is_not_ready(workspace: Workspace) -> None:
    world = world_of(workspace)
    act(world, live.beside_prepare(world))
    Path(world.memory["beside"]["new"]["sink"], "x").write_text("")
    assert live.beside_ready(world).truth == "fails"
