"""Checkpoint against sink: what a restart would skip, double, or never write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from recorded import at_home, codes, look, remove
from restart_cases import ROWS

from wizard.diagnosis.diagnose import Diagnosis

DELTA = "spark-4.2-delta"  # batches 0 to 4, rows 0 to 14, the table's txn at 4
KILLED = "spark-4.2-delta-killed"  # planned 3, committed 2; the table holds batch 3 already


def messages(seen: Diagnosis) -> list[str]:
    return [found.message for found in seen.errors]


def query_id(root: Path) -> str:
    told: str = json.loads((root / "checkpoint/metadata").read_text())["id"]
    return told


def table_at(root: Path, version: int, rows: int = 3) -> None:
    """A table of the same name whose last batch of this query is `version`, as one restored from a backup would be."""
    pyarrow = pytest.importorskip("pyarrow")
    deltalake = pytest.importorskip("deltalake")
    shutil.rmtree(root / "sink")
    done = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(query_id(root), version)])
    data = pyarrow.table({"id": pyarrow.array(range(rows), pyarrow.int64())})
    deltalake.write_deltalake(str(root / "sink"), data, commit_properties=done)


@pytest.mark.parametrize("name", [ROWS, DELTA])
def test_a_sink_that_stands_where_the_checkpoint_does_is_in_order(name: str, tmp_path: Path) -> None:
    seen = look(at_home(name, tmp_path))
    assert messages(seen) == []
    assert seen.sink is not None and seen.sink.last_batch == seen.checkpoint.committed
    assert seen.paths["resume"]["verdict"] == "safe"


def test_a_batch_in_flight_that_delta_holds_is_kept_once(tmp_path: Path) -> None:
    seen = look(at_home(KILLED, tmp_path))
    assert messages(seen) == []
    assert seen.sink is not None and (seen.sink.last_batch, seen.sink.idempotent) == (3, True)
    assert (seen.paths["resume"]["verdict"], seen.restart.action, seen.restart.batch) == ("safe", "rerun", 3)


def test_a_rollback_without_the_delta_table_would_lose_batches(tmp_path: Path) -> None:
    root = at_home(DELTA, tmp_path)
    remove(root / "checkpoint", "offsets/4", "offsets/3", "commits/4", "commits/3")
    seen = look(root)
    assert messages(seen) == ["batches 3 to 4 would be skipped without an error"]
    assert seen.paths["resume"]["verdict"] == "blocked"


def test_a_rollback_of_one_batch_without_the_sink_log_would_lose_it(tmp_path: Path) -> None:
    root = at_home(ROWS, tmp_path)
    remove(root / "checkpoint", "offsets/13", "commits/13")
    assert messages(look(root)) == ["batch 13 would be skipped without an error"]


@pytest.mark.parametrize("name", [ROWS, DELTA])
def test_a_checkpoint_deleted_over_a_full_sink_would_skip_or_double(name: str, tmp_path: Path) -> None:
    root = at_home(name, tmp_path)
    keep = (root / "checkpoint/metadata").read_bytes()
    remove(root, "checkpoint")
    (root / "checkpoint").mkdir()
    (root / "checkpoint/metadata").write_bytes(keep)
    last = 13 if name == ROWS else 4
    assert f"batches 0 to {last} would be skipped without an error" in messages(look(root))


def test_a_new_query_id_over_a_full_delta_table_is_told(tmp_path: Path) -> None:
    root = at_home(DELTA, tmp_path)
    old = query_id(root)
    (root / "checkpoint/metadata").write_text('{"id":"11111111-2222-3333-4444-555555555555"}')
    seen = look(root)
    (told,) = [found for found in seen.findings if found.code == "SINK_ANOTHER_QUERY"]
    assert told.evidence == f"{old} at 4"
    assert seen.paths["resume"]["verdict"] == "unknown"


def test_a_delta_table_restored_from_a_backup_is_behind(tmp_path: Path) -> None:
    root = at_home(DELTA, tmp_path)
    table_at(root, 2)
    seen = look(root)
    assert messages(seen) == ["batches 3 to 4 are committed and not in the sink"]
    assert seen.paths["resume"]["verdict"] == "blocked"
    assert "to batch 2 or before: the sink holds no later one" in seen.paths["replay"]["reasons"]


def test_a_file_sink_log_cut_back_is_behind(tmp_path: Path) -> None:
    root = at_home(ROWS, tmp_path)
    remove(root / "sink/_spark_metadata", "13", "12")
    assert "batches 12 to 13 are committed and not in the sink" in messages(look(root))


def test_an_emptied_file_sink_is_behind(tmp_path: Path) -> None:
    root = at_home(ROWS, tmp_path)
    shutil.rmtree(root / "sink")
    (root / "sink").mkdir()
    seen = look(root)
    assert messages(seen) == ["batches up to 13 are committed and the sink is empty"]
    assert seen.paths["resume"]["verdict"] == "blocked"


def test_an_empty_delta_table_that_knows_no_writer_is_behind(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    deltalake = pytest.importorskip("deltalake")
    root = at_home(DELTA, tmp_path)
    shutil.rmtree(root / "sink")
    schema = pyarrow.schema([("id", pyarrow.int64())])
    deltalake.write_deltalake(str(root / "sink"), schema.empty_table())
    assert messages(look(root)) == ["batches up to 4 are committed and the table is empty"]


def test_a_sink_that_cannot_be_read_promises_nothing(tmp_path: Path) -> None:
    root = at_home(DELTA, tmp_path)
    (root / "sink/_delta_log/00000000000000000003.json").write_text("{")
    seen = look(root)
    assert "SINK_UNREADABLE" in codes(seen)
    assert {path["verdict"] for path in seen.paths.values()} <= {"unknown", "blocked"}
    assert seen.paths["resume"]["verdict"] == "unknown"
