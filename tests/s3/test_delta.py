"""A Delta table on S3: reported, emptied and restored through deltalake, by the same keys and endpoint as the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from wizard.catalogue.effects import DeltaEmpty
from wizard.catalogue.world import World
from wizard.jobs.registry import load_registry
from wizard.sinks.delta import DeltaSink, lost_files
from wizard.sinks.rows import output_files
from wizard.store import open_store


def options(environment: dict[str, str]) -> dict[str, str]:
    return environment | {"AWS_ALLOW_HTTP": "true"}


def test_a_table_on_s3_is_read_emptied_and_taken_back(bucket: str, server: Any, tmp_path: Path) -> None:
    url, told = f"{bucket}/table", options(server.environment())
    for batch in range(3):
        rows = pa.table({"partition": [0, 1], "offset": [batch, batch]})
        write_deltalake(url, rows, mode="append", storage_options=told)
    report = DeltaSink(open_store(url)).report(None)
    assert (report.exists, report.rows, report.files, report.problems) == (True, 6, 3, ())
    assert report.details["version"] == 2
    assert len(output_files(url, "delta").files) == 3
    assert lost_files(url, 2) == []

    (tmp_path / "jobs.yaml").write_text(
        f"version: 1\nruns: {bucket}/runs\njobs:\n  j:\n    checkpoint: {bucket}/ck\n    source: {{format: rate}}\n"
        f"    sink: {{format: delta, path: {url}}}\n"
    )
    registry = load_registry(tmp_path / "jobs.yaml")
    world = World(registry, registry.jobs["j"], "reset-j", f"{bucket}/runs/reset-j")
    effect = DeltaEmpty(url, 2)
    effect.do(world)
    effect.do(world)  # once more, as after a kill
    assert count(url, told) == (0, 3)
    effect.undo(world)
    assert count(url, told) == (6, 4)


def count(url: str, told: dict[str, str]) -> tuple[int, int]:
    table = DeltaTable(url, storage_options=told)
    return table.to_pyarrow_table().num_rows, table.version()


def test_a_table_that_is_not_there_is_said_not_to_be(bucket: str) -> None:
    assert not DeltaSink(open_store(f"{bucket}/none")).report(None).exists


@pytest.mark.parametrize("secret", ["let-me-in-to-s3-42"])
def test_a_wrong_key_is_a_problem_of_the_sink_and_is_not_shown(
    secret: str, bucket: str, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(f"{bucket}/table", pa.table({"a": [1]}), storage_options=options(server.environment()))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{secret}-wrong")
    told = DeltaSink(open_store(f"{bucket}/table")).report(None)
    assert [problem.code for problem in told.problems] == ["SINK_UNREADABLE"]
    assert secret not in str(told)
