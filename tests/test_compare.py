"""Keys at the edges of their kinds: two that differ are never read as one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wizard.compare import compare, plan_keys
from wizard.datafiles import DataFile
from wizard.errors import RunbookError

MOST, LEAST = (1 << 63) - 1, -(1 << 63)


def written(path: Path, values: pa.Array) -> DataFile:
    pq.write_table(pa.table({"id": values}), path)
    return DataFile(str(path))


@pytest.mark.parametrize(
    ("source", "output", "wanted"),
    [
        ([1, MOST], [MOST, 1], (0, 0, 0)),
        ([LEAST, MOST], [LEAST, MOST, MOST], (0, 1, 0)),
        ([5], [5, 5, MOST], (0, 1, 1)),
        ([MOST], [LEAST], (1, 0, 1)),
        ([MOST - 1], [MOST - 1, MOST - 1], (0, 1, 0)),
        ([LEAST, LEAST + 1], [LEAST], (1, 0, 0)),
        ([None, 1], [1, 1], (1, 1, 0)),
    ],
)
def test_integers_are_told_apart_up_to_the_largest(
    source: list[int | None], output: list[int], wanted: tuple[int, int, int], tmp_path: Path
) -> None:
    files = [written(tmp_path / "source", pa.array(source, pa.int64()))]
    found = [written(tmp_path / "output", pa.array(output, pa.int64()))]
    answer = compare(plan_keys(["id"], found, files=files))
    assert (answer["expected"], answer["found"]) == (len(source), len(output))
    assert tuple(answer[what]["rows"] for what in ("missing", "doubled", "foreign")) == wanted


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_times_that_differ_in_nanoseconds_are_not_taken_for_one(zone: str | None, tmp_path: Path) -> None:
    kind = pa.timestamp("ns", zone)
    files = [written(tmp_path / "source", pa.array([1, 2], kind))]
    found = [written(tmp_path / "output", pa.array([1, 1], kind))]
    with pytest.raises(RunbookError, match="id cannot be read as timestamp"):
        compare(plan_keys(["id"], found, files=files))
