"""Probes and actions on recorded checkpoints; that Spark takes what they leave is shown in tests/spark."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from recorded import at_home, facts, remove
from worlds import act, around, look, take_back, tree

from wizard.catalogue.live.checkpoint import lift_fence, reset_effects
from wizard.errors import RunbookError

HDFS = "spark-4.2-window-hdfs"
KILLED = "spark-4.2-stateless-killed"
PLAIN = "spark-4.2-stateless-file"
STATEFUL = [HDFS, "spark-4.2-window-changelog", "spark-4.2-window-rocksdb", "spark-4.2-window-format2"]


def test_a_healthy_checkpoint_is_readable_consistent_exclusive_and_unfenced(tmp_path: Path) -> None:
    world = around(at_home(PLAIN, tmp_path))
    names = ("readable", "consistent", "exclusive", "unfenced")
    assert [look(world, f"checkpoint.{name}").truth for name in names] == ["holds"] * 4
    assert [look(world, f"checkpoint.{name}").truth for name in ("fenced", "absent")] == ["fails"] * 2


def test_damage_and_disagreement_are_named(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    remove(root / "checkpoint", "commits/13", "commits/12")
    assert "12, 13" in look(world, "checkpoint.consistent").evidence[0]
    (root / "checkpoint/offsets/13").write_text("v1\n{")
    assert "offsets/13" in look(world, "checkpoint.readable").evidence[0]


def test_the_fence_hides_the_id_and_is_lifted_to_the_same_bytes(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    before = tree(root / "checkpoint")
    act(world, "checkpoint.fence")
    assert "id" not in json.loads((root / "checkpoint/metadata").read_text())
    assert not (root / "checkpoint/.metadata.crc").exists()
    assert look(world, "checkpoint.fenced").holds
    assert look(world, "checkpoint.unfenced").truth == "fails"
    for effect in lift_fence(world):
        effect.do(world)
    assert tree(root / "checkpoint") == before


@pytest.mark.parametrize("left", ["nothing", "no metadata"])
def test_the_fence_stands_where_the_checkpoint_or_its_metadata_is_missing(left: str, tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    if left == "nothing":
        shutil.rmtree(root / "checkpoint")
    else:
        remove(root / "checkpoint", "metadata")
    before = tree(root / "checkpoint")
    effects = act(world, "checkpoint.fence")
    assert look(world, "checkpoint.fenced").holds
    take_back(world, effects)
    assert tree(root / "checkpoint") == before


def test_deleting_leaves_the_fence_alone_and_is_refused_without_it(tmp_path: Path) -> None:
    root = at_home(HDFS, tmp_path)
    world = around(root)
    before = tree(root / "checkpoint")
    with pytest.raises(RunbookError, match="not in place"):
        act(world, "checkpoint.delete")
    effects = act(world, "checkpoint.fence")
    effects += act(world, "checkpoint.delete")
    assert [path.name for path in (root / "checkpoint").iterdir()] == ["metadata"]
    assert look(world, "checkpoint.absent").holds
    for effect in lift_fence(world):
        effect.do(world)
        effects.append(effect)
    assert list((root / "checkpoint").iterdir()) == []
    take_back(world, effects)
    assert tree(root / "checkpoint") == before


@pytest.mark.parametrize("name", STATEFUL)
def test_a_rollback_leaves_nothing_newer_than_the_target_and_all_that_it_needs(name: str, tmp_path: Path) -> None:
    root = at_home(name, tmp_path)
    world = around(root)
    world.answers["target"] = {"batch": 16}
    before = tree(root / "checkpoint", root / "sink")
    effects = act(world, "checkpoint.fence")
    assert look(world, "checkpoint.at_target").truth == "fails"
    effects += act(world, "checkpoint.rollback")
    assert look(world, "checkpoint.at_target").holds
    left = [path.relative_to(root / "checkpoint") for path in (root / "checkpoint").rglob("*") if path.is_file()]
    for log in ("offsets", "commits"):
        assert sorted(p.name for p in left if p.parts[0] == log) == [".15.crc", ".16.crc", "15", "16"]
    numbered = [p.name.lstrip(".") for p in left if p.parts[0] == "state" and p.parts[-2] not in ("_metadata", "SSTs")]
    versions = {int(n.split(".")[0].split("_")[0]) for n in numbered if n.split(".")[0].split("_")[0].isdigit()}
    assert max(versions) == 17
    ends = facts(name)["batches"]
    offset = json.loads((root / "checkpoint/offsets/16").read_text().splitlines()[2])["logOffset"]
    logs = {int(p.name.split(".")[0]) for p in left if p.parts[0] == "sources" and p.name[0] != "."}
    assert (max(logs), bool(ends)) == (offset, True)
    sst = {p: b for p, b in tree(root / "checkpoint").items() if "/SSTs/" in p}
    assert sst == {p: b for p, b in before.items() if "/SSTs/" in p}
    take_back(world, effects)
    assert tree(root / "checkpoint", root / "sink") == before


def test_temporary_files_and_both_kinds_of_checksum_go_with_a_rollback(tmp_path: Path) -> None:
    root = at_home(HDFS, tmp_path)
    checkpoint = root / "checkpoint"
    stale = ["state/0/0/19.delta.crc", "state/0/0/.19.delta.crc.crc", "offsets/.19.c0ffee.tmp", "offsets/.18.crc"]
    for path in stale:
        (checkpoint / path).write_text("x")
    world = around(root)
    world.answers["target"] = {"batch": 17}
    act(world, "checkpoint.fence")
    act(world, "checkpoint.rollback")
    assert [path for path in stale if (checkpoint / path).exists()] == []


def test_a_new_identity_is_the_same_at_every_look_and_is_written_with_the_lift(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    world.answers["target"] = {"batch": 13}
    act(world, "checkpoint.fence")
    act(world, "checkpoint.new_identity")
    for effect in lift_fence(world):
        effect.do(world)
    identity = json.loads((root / "checkpoint/metadata").read_text())["id"]
    assert identity == world.memory["identity"]["job"] != facts(PLAIN)["query_id"]


def test_all_of_a_reset_in_one_plan_can_be_done_twice_and_taken_back(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    before = tree(root / "checkpoint", root / "sink")
    effects = reset_effects(world)
    for _ in range(2):
        for effect in effects:
            effect.do(world)
        assert list((root / "checkpoint").iterdir()) == list((root / "sink").iterdir()) == []
    take_back(world, effects)
    assert tree(root / "checkpoint", root / "sink") == before


def test_two_jobs_on_one_checkpoint_are_not_exclusive(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    world.registry.jobs["twin"] = dataclasses.replace(world.job, name="twin")
    seen = look(world, "checkpoint.exclusive")
    assert (seen.truth, "twin" in seen.evidence[0]) == ("fails", True)


def test_a_file_that_cannot_be_listed_is_unknown(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    world.job = dataclasses.replace(world.job, checkpoint="nosuchscheme://bucket/x")
    for name in ("readable", "consistent", "unfenced", "fenced", "absent"):
        assert look(world, f"checkpoint.{name}").truth == "unknown"
