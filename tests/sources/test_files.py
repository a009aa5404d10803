"""The file source's input: which files a replay would read again, and whether they are still there."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import as_recorded, at_home, codes, look

from wizard.checkpoint.reader import read_checkpoint
from wizard.sources.files import InputReport, look_at_inputs
from wizard.store import LocalStore


def inputs(root: Path, source: str = "0") -> InputReport:
    store = LocalStore(str(root / "checkpoint"))
    return look_at_inputs(store, read_checkpoint(store).source_logs[source])


def files(root: Path) -> list[Path]:
    return sorted(path for path in (root / "input").rglob("*") if path.is_file() and path.name[0] != ".")


@pytest.mark.parametrize("name", ["spark-3.5-stateless-file", "spark-4.2-stateless-file", "spark-4.2-window-hdfs"])
def test_every_input_file_of_the_log_is_counted_and_found(name: str, tmp_path: Path) -> None:
    root = at_home(name, tmp_path)
    assert inputs(root) == InputReport(files=len(files(root)))


def test_a_file_that_is_gone_is_missed_at_its_log_offset(tmp_path: Path) -> None:
    root = at_home("spark-4.2-stateless-file", tmp_path)
    gone = files(root)[4]
    gone.unlink()
    seen = inputs(root)
    assert seen.unknown is None
    [(offset, paths)] = seen.missing.items()
    assert [Path(path).name for path in paths] == [gone.name]
    assert seen.missing_after(offset - 1) == seen.missing_between(offset - 1, offset) == paths
    assert seen.missing_after(offset) == seen.missing_between(offset, 99) == ()


def test_an_entry_inside_a_compaction_keeps_its_own_log_offset(tmp_path: Path) -> None:
    """9.compact holds entries 0 to 9: a file that is gone belongs to the one it was read in, not to 9."""
    root = at_home("spark-4.2-stateless-file", tmp_path)
    text = (root / "checkpoint/sources/0/2").read_text()
    for path in files(root):
        if path.name in text:
            path.unlink()
    assert list(inputs(root).missing) == [2]


def test_input_of_the_batch_that_runs_again_must_be_there(tmp_path: Path) -> None:
    root = at_home("spark-4.2-stateless-killed", tmp_path)
    assert "INPUT_GONE" not in codes(look(root))
    text = (root / "checkpoint/sources/0/2").read_text()
    next(path for path in files(root) if path.name in text).unlink()
    seen = look(root)
    assert "INPUT_GONE" in codes(seen)
    assert seen.paths["resume"]["verdict"] == "blocked"


@pytest.mark.parametrize("damage", [b"", b"v1\n{", b"v7\n", b"\xff"])
def test_a_log_that_cannot_be_read_makes_the_input_unknown(damage: bytes, tmp_path: Path) -> None:
    root = at_home("spark-4.2-stateless-file", tmp_path)
    (root / "checkpoint/sources/0/12").write_bytes(damage)
    assert "sources/0/12" in str(inputs(root).unknown)
    seen = look(root)
    assert seen.paths["reset"]["verdict"] != "safe"


def test_a_source_log_that_is_gone_makes_the_input_unknown(tmp_path: Path) -> None:
    root = at_home("spark-4.2-stateless-file", tmp_path)
    for path in (root / "checkpoint/sources/0").iterdir():
        path.unlink()
    assert inputs(root).unknown == "sources/0 lists no input file"
    seen = look(root)
    assert "SOURCE_LOG_BROKEN" in codes(seen)
    assert {path: said["verdict"] for path, said in seen.paths.items() if said["verdict"] == "safe"} == {}


def test_a_store_that_cannot_be_asked_is_unknown_and_not_missing(tmp_path: Path) -> None:
    root = as_recorded("spark-4.2-stateless-file", tmp_path)
    log = root / "checkpoint/sources/0/13"
    log.write_text('v1\n{"path":"nosuch://bucket/a.json","timestamp":1,"batchId":13}')
    seen = inputs(root)
    assert 13 not in seen.missing
    assert "nosuch://bucket/a.json could not be looked at" in str(seen.unknown)


def test_a_file_with_a_newer_time_is_touched_unless_a_sink_keeps_its_time(tmp_path: Path) -> None:
    root = at_home("spark-4.2-stateless-file", tmp_path)
    files(root)[4].touch()
    assert [Path(path).name for path in inputs(root).touched] == [files(root)[4].name]
    (root / "input/_spark_metadata").mkdir()
    assert inputs(root).touched == ()
