"""Which files an output consists of, as of a batch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from streams import parquet, sink_log

from wizard.datafiles import batches
from wizard.errors import RunbookError
from wizard.sinks.rows import output_files


def ids(url: Path, format: str = "parquet", **how: object) -> list[object]:
    found = output_files(str(url), format, **how)  # type: ignore[arg-type]
    return sorted(
        row["id"] for file in found.files for batch in batches(file, {"id": "int"}) for row in batch.to_pylist()
    )


def test_the_log_says_which_files_count_and_up_to_which_batch(tmp_path: Path) -> None:
    out = tmp_path / "a b%20"
    for batch in range(3):
        sink_log(out, str(batch), parquet(out / f"f {batch}.parquet", id=[batch]))
    parquet(out / "orphan.parquet", id=[99])
    assert ids(out) == [0, 1, 2]
    assert ids(out, up_to=1) == [0, 1]
    assert ids(out, up_to=7) == [0, 1, 2]


def test_an_output_through_a_link_is_the_same_output(tmp_path: Path) -> None:
    sink_log(tmp_path / "out", "0", parquet(tmp_path / "out/f.parquet", id=[1]))
    (tmp_path / "link").symlink_to("out")
    assert ids(tmp_path / "link") == [1]


def test_columns_in_the_path_are_columns(tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = ("quality=good/day=2026-01-01", "quality=__HIVE_DEFAULT_PARTITION__/day=a%2Fb")
    sink_log(out, "0", *(parquet(out / name / "f.parquet", id=[1]) for name in names))
    assert [dict(file.values) for file in output_files(str(out), "parquet").files] == [
        {"quality": "good", "day": "2026-01-01"},
        {"quality": None, "day": "a/b"},
    ]


def test_what_cannot_be_read_whole_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert output_files(str(out), "parquet").files == ()
    file = parquet(out / "f.parquet", id=[1])
    with pytest.raises(RunbookError, match="holds files and no _spark_metadata"):
        output_files(str(out), "parquet")
    sink_log(out, "1", file)
    with pytest.raises(RunbookError, match="lacks 0"):
        output_files(str(out), "parquet")
    sink_log(out, "0", tmp_path / "elsewhere.parquet")
    with pytest.raises(RunbookError, match="was the output moved"):
        output_files(str(out), "parquet")
    (out / "_spark_metadata/0").write_text("v1\n{cut")
    with pytest.raises(RunbookError, match="_spark_metadata/0"):
        output_files(str(out), "parquet")


def test_a_delta_table_is_read_at_the_version_of_a_batch_with_its_partitions(tmp_path: Path) -> None:
    table = tmp_path / "a b"
    for batch in range(3):
        rows = pa.table({"id": [batch], "k": pa.array(["x/y z" if batch else None], pa.string())})
        done = CommitProperties(app_transactions=[Transaction("q", batch)])
        write_deltalake(str(table), rows, mode="append", partition_by=["k"], commit_properties=done)
    assert ids(table, "delta") == [0, 1, 2]
    assert ids(table, "delta", up_to=1, query_id="q") == [0, 1]
    assert ids(table, "delta", up_to=5, query_id="q") == [0, 1, 2]
    assert "names no batch of this query" in output_files(str(table), "delta", up_to=1, query_id="other").as_of
    assert {file.values["k"] for file in output_files(str(table), "delta").files} == {None, "x/y z"}
    DeltaTable(str(table)).delete()
    assert ids(table, "delta") == []


def test_a_damaged_delta_table_is_told_in_one_line(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    (tmp_path / "t/_delta_log/00000000000000000000.json").write_text("{")
    with pytest.raises(RunbookError, match="cannot be read") as error:
        output_files(str(tmp_path / "t"), "delta")
    assert "\n" not in str(error.value)
