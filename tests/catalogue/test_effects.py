"""Every change of a walk, killed with -9 at every file operation: done again or taken back, as if nothing had happened."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from recorded import at_home
from worlds import around, journalled, take_back, tree

from wizard import durable
from wizard.catalogue.effects import DeltaAppend, DeltaEmpty, DeltaRestore, Keep, MakeDirectory, Move, Write, delta
from wizard.catalogue.world import World
from wizard.errors import WorldMoved
from wizard.roots import OutsideRoots

DRIVER = Path(__file__).with_name("kill_driver.py")
MEMORY = Path("/dev/shm")


@pytest.fixture
def other_disk() -> Iterator[Path]:
    """A directory that no rename reaches from tmp_path."""
    if not MEMORY.is_dir() or MEMORY.stat().st_dev == Path(tempfile.gettempdir()).stat().st_dev:
        pytest.skip("there is no second file system here")
    path = Path(tempfile.mkdtemp(prefix="runbook-test-", dir=MEMORY))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def world(tmp_path: Path) -> World:
    for name in ("checkpoint", "sink", "input"):
        (tmp_path / name).mkdir()
    return around(tmp_path)


def killed_everywhere(
    root: Path, place: Path, name: str, *words: str, without: tuple[str, ...] = ()
) -> tuple[int, int]:
    """How many kills there were in do() and in undo(); the driver fails unless each ended well."""
    recorded = at_home(name, root / "recorded")
    shutil.rmtree(recorded / "input")
    for each in without:
        shutil.rmtree(recorded / each)
    work = root / "work"
    for log in [*recorded.glob("sink/_spark_metadata/*"), *recorded.glob("checkpoint/sources/*/*")]:
        if not log.name.startswith("."):
            log.write_bytes(log.read_bytes().replace(str(recorded).encode(), str(work).encode()))
    command = [sys.executable, str(DRIVER), str(recorded), str(work), str(place), *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr[-2000:]
    done, undone = ran.stdout.split()
    return int(done), int(undone)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("spark-4.2-stateless-killed", ("checkpoint.fence",)),
        ("spark-4.2-stateless-killed", ("checkpoint.fence", "sink.truncate")),
        ("spark-4.2-stateless-killed", ("checkpoint.fence", "sink.truncate", "checkpoint.delete")),
        ("spark-4.2-window-hdfs", ("checkpoint.fence", "sink.rollback", "target=17")),
        ("spark-4.2-window-hdfs", ("checkpoint.fence", "sink.rollback", "checkpoint.rollback", "target=17")),
    ],
)
def test_killed_at_every_file_operation_an_action_is_finished_or_taken_back(
    tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    done, undone = killed_everywhere(tmp_path, tmp_path / "runs/run-1", name, *words)
    assert done >= 4 and undone >= 4


def test_killed_at_every_file_operation_between_two_disks(tmp_path: Path, other_disk: Path) -> None:
    done, undone = killed_everywhere(
        tmp_path,
        other_disk / "run-1",
        "spark-4.2-stateless-killed",
        "checkpoint.fence",
        "checkpoint.delete",
        without=("sink", "checkpoint/sources", "checkpoint/commits"),
    )
    # Each file is copied, compared, renamed into place and deleted: many more steps than one rename a directory.
    assert done > 20 and undone > 20


def test_a_second_look_at_a_moved_entry_never_overwrites_the_first(world: World, tmp_path: Path) -> None:
    (tmp_path / "sink/part-0").write_text("old")
    move = Move.of(str(tmp_path / "sink"), world.quarantine, ("part-0",))
    move.do(world)
    (tmp_path / "sink/part-0").write_text("new")
    with pytest.raises(WorldMoved, match="is there again"):
        move.do(world)
    assert Path(world.quarantine, "part-0").read_text() == "old"
    move.undo(world)
    assert (tmp_path / "sink/part-0").read_text() == "old"
    assert [Path(world.displaced, below).read_text() for below, _ in durable.files(world.displaced)] == ["new"]


def test_what_somebody_else_took_is_said(world: World, tmp_path: Path) -> None:
    move = Move.of(str(tmp_path / "sink"), world.quarantine, ("part-0",))
    with pytest.raises(WorldMoved, match="gone, and not by this walk"):
        move.do(world)


def test_nothing_outside_the_registrys_places_is_touched(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (tmp_path / "sink/link").symlink_to(outside)
    for effect in (
        Move(str(outside), world.quarantine, ("precious",)),
        Move(str(tmp_path / "sink/link"), world.quarantine, ("precious",)),
        Write(
            str(outside / "precious"),
            "y",
            str(Path(world.quarantine, "saved")),
            durable.digest(str(outside / "precious")),
        ),
        Keep.of(str(outside)),
        MakeDirectory.of(str(outside / "new")),
    ):
        with pytest.raises(OutsideRoots):
            effect.do(world)
    assert sorted(outside.iterdir()) == [outside / "precious"]


def test_a_directory_that_was_there_before_survives_the_undo_of_its_making(world: World, tmp_path: Path) -> None:
    (tmp_path / "sink/part").write_text("x")
    effects = journalled([MakeDirectory.of(str(tmp_path / "sink")), MakeDirectory.of(str(tmp_path / "sink/new"))])
    for effect in effects:
        effect.do(world)
    take_back(world, effects)
    assert sorted(p.name for p in (tmp_path / "sink").iterdir()) == ["part"]


def test_empty_directories_are_part_of_what_is_kept(world: World, tmp_path: Path) -> None:
    (tmp_path / "checkpoint/state").mkdir()
    before = tree(tmp_path / "checkpoint")
    (keep,) = journalled([Keep.of(str(tmp_path / "checkpoint"))])
    (tmp_path / "checkpoint/offsets").mkdir()
    (tmp_path / "checkpoint/offsets/0").write_text("new")
    keep.undo(world)
    assert tree(tmp_path / "checkpoint") == before


def test_a_write_over_somebody_elses_change_is_refused(world: World, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint/metadata"
    path.write_text("one")
    write = Write.of(world, str(path), "two", "test")
    path.write_text("three")
    with pytest.raises(WorldMoved, match="changed by somebody else"):
        write.do(world)
    assert path.read_text() == "three"


def test_a_delta_table_is_emptied_once_and_comes_back(tmp_path: Path) -> None:
    root = at_home("spark-4.2-delta", tmp_path)
    world = around(root, sink="delta")
    path = str(root / "sink")
    (empty,) = journalled([DeltaEmpty(path, 4, 15)])
    empty.do(world)
    empty.do(world)
    assert (DeltaTable(path).version(), DeltaTable(path).file_uris()) == (5, [])
    take_back(world, [empty])
    take_back(world, [empty])
    assert DeltaTable(path).version() == 6
    assert sorted(DeltaTable(path).file_uris()) == sorted(DeltaTable(path, version=4).file_uris())


def test_an_undo_of_what_was_never_done_leaves_the_commits_of_others(tmp_path: Path) -> None:
    root = at_home("spark-4.2-delta", tmp_path)
    world = around(root, sink="delta")
    path = str(root / "sink")
    DeltaTable(path).delete("id >= 0")
    for effect in (DeltaEmpty(path, 4), DeltaRestore(path, 4, 2)):
        effect.undo(world)
        assert DeltaTable(path).version() == 5
        with pytest.raises(WorldMoved, match="at version 4 and is at 5"):
            effect.do(world)


@pytest.mark.parametrize("effect", [DeltaEmpty("", 4, 15), DeltaRestore("", 4, 2)], ids=lambda effect: effect.kind)
def test_what_somebody_commits_between_the_look_and_the_act_stops_it(
    effect: DeltaEmpty | DeltaRestore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left to itself a delete is tried again after the append, and an undo then finds no commit to take back."""
    root = at_home("spark-4.2-delta", tmp_path)
    world = around(root, sink="delta")
    path = str(root / "sink")
    before = DeltaTable(path).to_pyarrow_table()
    looked = delta._unmoved

    def then_appended(table: DeltaTable, version: int) -> None:
        looked(table, version)
        write_deltalake(path, before.slice(0, 1), mode="append")

    monkeypatch.setattr(delta, "_unmoved", then_appended)
    with pytest.raises(WorldMoved, match="at version 4 and somebody has committed since"):
        replace(effect, path=path).do(world)
    assert DeltaTable(path).version() == 5
    assert DeltaTable(path).to_pyarrow_table().num_rows == before.num_rows + 1


def test_rows_added_to_a_delta_table_are_taken_out_again_even_those_without_a_key(tmp_path: Path) -> None:
    root = at_home("spark-4.2-delta", tmp_path)
    world = around(root, sink="delta")
    path, staged = str(root / "sink"), root / "runs/run-1/backfill/staged"
    before = sorted(map(str, DeltaTable(path).to_pyarrow_table().to_pylist()))
    kind = DeltaTable(path).to_pyarrow_table().schema
    staged.mkdir(parents=True)
    rows = pa.Table.from_pylist([{"id": 900}, {"id": None}, {"id": None}], kind)
    pq.write_table(rows, staged / "part-0.parquet")
    (staged / "manifest.json").write_text('{"files": [{"path": "part-0.parquet"}]}')
    append = DeltaAppend(path, str(staged), "runbook-backfill-x", ("id",))
    append.do(world)
    append.do(world)
    assert DeltaTable(path).to_pyarrow_table().num_rows == len(before) + 3
    write_deltalake(path, pa.Table.from_pylist([{"id": 901}], kind), mode="append")
    take_back(world, [append])
    take_back(world, [append])
    left = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert sorted(str(row) for row in left if row["id"] != 901) == before and len(left) == len(before) + 1
