"""Partition values that a path cannot hold as they are: logs name such files URI-encoded, and the store does not."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from wizard import durable
from wizard.catalogue.effects import PublishFiles
from wizard.compare import compare, plan_keys
from wizard.datafiles import DataFile
from wizard.sinks.file_sink import FileSink
from wizard.sinks.rows import output_files
from wizard.sources.delta import DeltaSource
from wizard.sources.open import Files
from wizard.sources.rows import input_file
from wizard.store import open_store


def held(files: Any) -> list[tuple[str | None, int]]:
    """Partition value and number of each file, and that the comparison reads them all."""
    answer = compare(plan_keys(["k", "n"], files, files=files))
    assert (answer["expected"], answer["missing"]["rows"], answer["foreign"]["rows"]) == (len(files), 0, 0)
    return sorted(((file.values["k"], number_in(file)) for file in files), key=str)


def number_in(file: DataFile) -> int:
    return int(pq.read_table(io.BytesIO(durable.read(file.path) or b"")).column("n")[0].as_py())


def test_a_delta_table_is_read_whatever_its_partitions_are_called(bucket: str, server: Any) -> None:
    rows = {"k": ["a b", "a:b", "é", "a%20b", None], "n": [1, 2, 3, 4, 5]}
    told = server.environment() | {"AWS_ALLOW_HTTP": "true"}
    write_deltalake(f"{bucket}/table", pa.table(rows), partition_by=["k"], storage_options=told)
    wanted = sorted(zip(rows["k"], rows["n"], strict=True), key=str)  # type: ignore[arg-type]
    assert held(output_files(f"{bucket}/table", "delta").files) == wanted
    assert held(DeltaSource(f"{bucket}/table").files()) == wanted


def test_so_is_a_file_sink_and_none_of_its_files_is_said_to_be_gone(bucket: str) -> None:
    """As Spark writes it: of its own accord it escapes the colon, and the log encodes that once more."""
    there, logged = ("k=a b/part-0", "k=a%3Ab/part-1"), ("k=a%20b/part-0", "k=a%253Ab/part-1")
    for number, below in enumerate(there):
        data = io.BytesIO()
        pq.write_table(pa.table({"n": [number]}), data)
        durable.write(f"{bucket}/out/{below}", data.getvalue())
    entries = [{"path": f"{bucket}/out/{below}", "size": 1, "action": "add"} for below in logged]
    durable.write(f"{bucket}/out/_spark_metadata/0", "\n".join(["v1", *map(json.dumps, entries)]).encode())
    assert held(output_files(f"{bucket}/out", "parquet").files) == [("a b", 0), ("a:b", 1)]
    assert FileSink(open_store(f"{bucket}/out"), "parquet").report(None).problems == ()
    paths = [entry["path"] for entry in entries]
    assert Files(f"{bucket}/out").gone(paths) == ([], [])
    assert held([input_file(f"{bucket}/out", str(path), "parquet") for path in paths]) == [("a b", 0), ("a:b", 1)]


def test_a_backfill_adds_its_files_to_the_log_as_spark_would(bucket: str) -> None:
    publish = PublishFiles("j", f"{bucket}/out", "staged")
    entry = publish._entry({"path": "k=a b/part-0", "size": 1, "modified": 1}, {})
    assert entry["path"] == f"{bucket}/out/k=a%20b/part-0"
    assert publish._below(json.dumps(entry)) == "k=a b/part-0"
