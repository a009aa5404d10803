"""Streams made by hand: a log, a checkpoint and an output, written with nothing of the code that reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from wizard.catalogue.world import World
from wizard.jobs.registry import load_registry
from wizard.sources.embedded_log import EmbeddedLog, Record

TOPIC = "t"
QUERY = "3f2b9c1e-0000-4000-8000-000000000001"


@dataclass
class Stream:
    root: Path

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def output(self) -> Path:
        return self.root / "out"

    def registry(self, source: str, sink: str, more: str = "") -> None:
        (self.root / "jobs.yaml").write_text(
            f"version: 1\njobs:\n  j:\n    checkpoint: ./checkpoint\n    source: {source}\n    sink: {sink}\n{more}"
        )

    def world(self, **answers: Any) -> World:
        registry = load_registry(self.root / "jobs.yaml")
        return World(registry, registry.jobs["j"], "run", str(self.root / "runs/run"), answers)

    def log(self, *records: int, segment_bytes: int = 1_000_000) -> EmbeddedLog:
        """A topic with so many records in each partition."""
        log = EmbeddedLog.create(self.root / "log", TOPIC, len(records), segment_bytes)
        for partition, count in enumerate(records):
            log.append(partition, [Record(0, None, b"v" * 20)] * count)
        return log

    def plan(self, batch: int, offset: Any, *, commit: bool = True) -> None:
        """`offsets/<batch>`, and `commits/<batch>` where it was done."""
        for name in ("offsets", "commits"):
            (self.checkpoint / name).mkdir(parents=True, exist_ok=True)
        (self.checkpoint / "metadata").write_text(json.dumps({"id": QUERY}))
        head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {"spark.sql.shuffle.partitions": "2"}})
        (self.checkpoint / f"offsets/{batch}").write_text(f"v1\n{head}\n{json.dumps(offset)}")
        if commit:
            (self.checkpoint / f"commits/{batch}").write_text('v1\n{"nextBatchWatermarkMs":0}')

    def began(self, offsets: dict[str, int], topic_id: str) -> None:
        place = self.checkpoint / "sources/0"
        place.mkdir(parents=True, exist_ok=True)
        (place / "0").write_bytes(b"\0v1\n" + json.dumps({TOPIC: offsets}).encode())
        (place / "topics").write_text(json.dumps({TOPIC: topic_id}))

    def read(self, k: int, *files: Path) -> None:
        """`sources/0/<k>`: the file source's log."""
        place = self.checkpoint / "sources/0"
        place.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"path": uri(file), "timestamp": 1, "batchId": k}) for file in files]
        (place / str(k)).write_text("\n".join(["v1", *lines]))


def uri(path: Path) -> str:
    return "file://" + quote(str(path))


def parquet(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def sink_log(output: Path, name: str, *files: Path) -> None:
    """One file of `_spark_metadata`."""
    place = output / "_spark_metadata"
    place.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"path": uri(file), "size": 1, "isDir": False, "modificationTime": 1, "blockReplication": 1,
                    "blockSize": 1, "action": "add"})
        for file in files
    ]  # fmt: skip
    (place / name).write_text("\n".join(["v1", *lines]))


def offsets(output: Path, name: str, partition: int, *numbers: int) -> Path:
    """A data file of one partition's records."""
    return parquet(
        output / name,
        topic=[TOPIC] * len(numbers),
        partition=pa.array([partition] * len(numbers), pa.int32()),
        offset=pa.array(numbers, pa.int64()),
    )
