"""The output emptied, taken back and cleaned, over recorded ones; rows are counted by reading the files anew."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from recorded import at_home, facts
from worlds import act, around, look, planned, take_back, tree

from wizard.catalogue.effects import DeltaEmpty
from wizard.catalogue.world import World
from wizard.engine.undo import _take_back
from wizard.errors import RunbookError, VerificationFailed

PLAIN, KILLED, DELTA = "spark-4.2-stateless-file", "spark-4.2-stateless-killed", "spark-4.2-delta"


def rows(sink: Path) -> int:
    return sum(pq.ParquetFile(path).read().num_rows for path in sink.rglob("*.parquet") if path.stat().st_size)


def rows_up_to(name: str, batch: int) -> int:
    """As Spark itself counted them when it was recorded."""
    return sum(each["input_rows"] for each in facts(name)["batches"] if each["id"] <= batch)


def at(root: Path, batch: int, sink: str = "parquet") -> World:
    world = around(root, sink=sink)
    world.answers["target"] = {"batch": batch}
    act(world, "checkpoint.fence")
    return world


@pytest.mark.parametrize("batch", [0, 8, 9, 10, 13])  # 9 is a compaction
def test_a_file_sink_goes_back_to_a_batch_rows_and_log_together(batch: int, tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = at(root, batch)
    before = tree(root / "sink")
    effects = act(world, "sink.rollback")
    assert look(world, "sink.at_target").holds
    assert look(world, "sink.accepts_replay").holds
    assert rows(root / "sink") == rows_up_to(PLAIN, batch)
    names = {
        path.name.strip(".").removesuffix(".crc").partition(".")[0]
        for path in (root / "sink/_spark_metadata").iterdir()
    }
    assert max(map(int, names)) == batch
    take_back(world, effects)
    assert tree(root / "sink") == before


def test_files_of_a_killed_batch_go_too_and_the_preview_says_so(tmp_path: Path) -> None:
    root = at_home(KILLED, tmp_path)
    world = at(root, 1)
    assert "in no log" in planned(world, "sink.rollback").notes[0]
    assert look(world, "in_flight.clean").holds
    effects = act(world, "sink.clear_in_flight")
    assert rows(root / "sink") == rows_up_to(KILLED, 1)
    assert look(world, "sink.at_target").holds
    take_back(world, effects)
    assert look(world, "sink.at_target").truth == "fails"


def test_rows_of_a_backfill_are_not_taken_out_by_a_replay(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = at(root, 10)
    log = root / "sink/_spark_metadata/12"
    old = next((root / "sink").glob("part-*"))
    (root / "sink/backfill-x-part-00000.parquet").write_bytes(old.read_bytes())
    line = log.read_text().splitlines()[1]
    name = line.partition('"path":"')[2].partition('"')[0]
    log.write_text(log.read_text() + "\n" + line.replace(name, f"file://{root}/sink/backfill-x-part-00000.parquet"))
    assert look(world, "target.sink_log").truth == "fails"
    with pytest.raises(RunbookError, match="backfill"):
        planned(world, "sink.rollback")


def test_an_output_is_emptied_and_comes_back(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = at(root, 1)
    before = tree(root / "sink")
    assert look(world, "sink.empty").truth == "fails"
    effects = act(world, "sink.truncate")
    assert look(world, "sink.empty").holds and (root / "sink").is_dir()
    take_back(world, effects)
    assert tree(root / "sink") == before


def test_a_missing_output_is_empty_already(tmp_path: Path) -> None:
    for sink in ("parquet", "delta"):
        (tmp_path / sink).mkdir()
        world = around(tmp_path / sink, sink=sink)
        assert look(world, "sink.empty").holds
        assert planned(world, "sink.truncate").effects == ()


def test_a_delta_table_goes_back_and_takes_the_batches_again_only_under_a_new_id(tmp_path: Path) -> None:
    root = at_home(DELTA, tmp_path)
    world = at(root, 2, "delta")
    assert look(world, "sink.at_target").truth == "fails"
    effects = act(world, "sink.rollback")
    assert look(world, "sink.at_target").holds
    assert DeltaTable(root / "sink").to_pyarrow_table().num_rows == rows_up_to(DELTA, 2)
    act(world, "checkpoint.rollback")
    assert look(world, "sink.accepts_replay").truth == "fails"
    act(world, "checkpoint.new_identity")
    assert look(world, "sink.accepts_replay").holds
    assert planned(world, "sink.rollback").effects == ()
    take_back(world, effects)
    assert DeltaTable(root / "sink").to_pyarrow_table().num_rows == rows_up_to(DELTA, 4)


def test_a_restore_over_the_commits_of_others_is_refused(tmp_path: Path) -> None:
    root = at_home(DELTA, tmp_path)
    world = at(root, 2, "delta")
    table = DeltaTable(root / "sink")
    table.optimize.compact()
    assert look(world, "target.sink_log").holds, "compaction changes no row"
    write_deltalake(table, DeltaTable(root / "sink").to_pyarrow_table().slice(0, 1), mode="append")
    seen = look(world, "target.sink_log")
    assert (seen.truth, "committed by others" in seen.evidence[0]) == ("fails", True)
    with pytest.raises(RunbookError, match="committed by others"):
        planned(world, "sink.rollback")


def test_a_restore_to_files_that_were_vacuumed_is_refused(tmp_path: Path) -> None:
    root = at_home(DELTA, tmp_path)
    world = at(root, 2, "delta")
    Path(DeltaTable(root / "sink", version=1).file_uris()[0].removeprefix("file://")).unlink()
    assert "vacuumed" in look(world, "target.sink_log").evidence[0]


def test_an_output_of_an_unknown_kind_never_holds(tmp_path: Path) -> None:
    root = at_home(KILLED, tmp_path)
    world = at(root, 1)
    world.job = dataclasses.replace(world.job, sink=dataclasses.replace(world.job.sink, format="jdbc", idempotent=True))
    for name in ("in_flight.clean", "sink.empty", "sink.at_target", "sink.accepts_replay", "target.sink_log"):
        assert look(world, name).truth == "unknown"
    for name in ("sink.truncate", "sink.rollback", "sink.clear_in_flight"):
        with pytest.raises(RunbookError, match="format jdbc"):
            planned(world, name)


def test_a_delta_table_of_a_newer_format_is_unknown_wherever_it_is_looked_at(tmp_path: Path) -> None:
    """deltalake has errors of its own kind; a probe that let one through would end the walk."""
    root = at_home(DELTA, tmp_path)
    world = at(root, 2, "delta")
    newest = max(root.glob("sink/_delta_log/*.json"))
    newest.write_text(newest.read_text() + '\n{"protocol":{"minReaderVersion":99,"minWriterVersion":99}}\n')
    for name in ("sink.empty", "sink.at_target", "sink.accepts_replay", "checkpoint.consistent"):
        seen = look(world, name)
        assert seen.truth == "unknown", name
        assert "reader version 99" in " ".join(seen.evidence), name


def test_an_undo_that_the_table_refuses_stops_with_what_to_type(tmp_path: Path) -> None:
    root = at_home(DELTA, tmp_path)
    world = at(root, 2, "delta")
    shutil.rmtree(root / "sink/_delta_log")
    with pytest.raises(VerificationFailed, match=r"taking back truncate stopped: TableNotFoundError: .*`runbook undo"):
        _take_back(world, DeltaEmpty(str(root / "sink"), 4), "truncate")
