"""A streaming job in plain Python that stands in for Spark where thousands of starts must be affordable.

    python standin.py JOB --jobs jobs.yaml

It stands in for speed alone, and only for the operator's own job command: everything of `runbook` under test is the
real thing, and what real Spark does is tested on real Spark. From a log or from another one's output, to a file sink or
a Delta table, it keeps Spark's files, formats and order (metadata; sources/0; offsets/N; the part files;
_spark_metadata/N or a commit with the query's id and N; commits/N; a checksum beside each) and its rules for a start:
committed = planned goes on, committed < planned runs the last one again, an output skips a batch it has, metadata
without an id, a missing predecessor or leftovers on batch 0 stop it. SIGTERM ends it between two batches.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import struct
import sys
import time
import uuid
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import yaml

from wizard.sources.embedded_log import EmbeddedLog
from wizard.spark.log_offsets import (
    check_topics,
    limited,
    parse_offsets,
    pin_starting_offsets,
    planned_ranges,
    resolve,
)

COMPACT_EVERY = 10
CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
}
_POLL_SECONDS = 0.03


class Refused(Exception):
    """What Spark would raise."""


class Job:
    def __init__(self, name: str, jobs_file: str) -> None:
        base = Path(jobs_file).absolute().parent
        about = yaml.safe_load(Path(jobs_file).read_text())["jobs"][name]
        config = yaml.safe_load((base / about["config"]["file"]).read_text()) if "config" in about else {}
        self.checkpoint, sink = base / about["checkpoint"], base / about["sink"]["path"]
        source = about["source"]
        read = base / source["path"]
        if source["format"] == "log":
            self.input: Log | Files = Log(self.checkpoint, read, source["options"], config)
        else:
            self.input = Files(self.checkpoint, read)
        self.output = Table(sink) if about["sink"]["format"] == "delta" else Directory(sink)

    def start(self) -> None:
        """As far as Spark comes before it asks its source for the first time."""
        metadata = self.checkpoint / "metadata"
        planned, committed = newest(self.checkpoint / "offsets"), newest(self.checkpoint / "commits")
        if metadata.exists():
            if "id" not in json.loads(metadata.read_text()):
                raise Refused(f"Missing required creator property 'id' in {metadata}")
        elif planned is not None or committed is not None:
            raise Refused(f"{metadata} is missing, and the checkpoint is not empty")
        else:
            write(metadata, json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":")))
        if planned is None:
            for name in ("offsets", "commits", "state"):
                if any((self.checkpoint / name).glob("*")):
                    raise Refused(f"[STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY] {name} should be empty on batch 0")
        elif planned and not (self.checkpoint / f"offsets/{planned - 1}").exists():
            raise Refused(f"batch {planned - 1} doesn't exist")
        for name in ("offsets", "commits"):
            (self.checkpoint / name).mkdir(parents=True, exist_ok=True)
        self.output.query = json.loads(metadata.read_text())["id"]
        self.input.start()

    def step(self, until: str = "commit") -> bool:
        """One batch; False where the source has nothing new. `until` cuts it short, as a kill there would."""
        planned, committed = newest(self.checkpoint / "offsets"), newest(self.checkpoint / "commits")
        if planned is not None and (committed is None or committed < planned):
            batch = planned
        else:
            batch = 0 if planned is None else planned + 1
            begin = self._read(batch - 1)
            end = self.input.plan(begin)
            if end == begin:
                return False
            head = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": CONF}
            lines = ["v1", *(json.dumps(each, separators=(",", ":")) for each in (head, end))]
            write(self.checkpoint / f"offsets/{batch}", "\n".join(lines))
        if until == "offsets":
            return True
        begin, end = self._read(batch - 1), self._read(batch)
        latest = self.output.latest()
        if latest is not None and batch <= latest:
            print(f"Skipping already committed batch {batch}", flush=True)
        else:
            self.output.put(batch, self.input.parts(begin, end), log=until != "files")
            if until == "files":
                return True
        if until == "log":
            return True
        write(self.checkpoint / f"commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}')
        return True

    def _read(self, batch: int) -> Any:
        if batch < 0:
            return self.input.first()
        path = self.checkpoint / f"offsets/{batch}"
        if not path.exists():
            raise Refused(f"batch {batch} doesn't exist")
        return json.loads(path.read_text().splitlines()[2])


class Log:
    def __init__(self, checkpoint: Path, path: Path, options: dict[str, Any], config: dict[str, Any]) -> None:
        self.place = checkpoint / "sources/0"
        self.options = {**config.get("options", {}), **options}
        self.starting = config.get("startingOffsets", self.options.get("startingOffsets", "latest"))
        self.logs = {options["subscribe"]: EmbeddedLog(path, options["subscribe"])}

    def start(self) -> None:
        check_topics(self.place / "topics", self.logs)
        pin_starting_offsets(self.place / "0", self._asked)

    def _asked(self) -> Any:
        given = self.starting if isinstance(self.starting, str) else json.dumps(self.starting)
        return resolve(parse_offsets(given, "startingOffsets", list(self.logs)), self.logs, "startingOffsets")

    def first(self) -> Any:
        return json.loads((self.place / "0").read_bytes().partition(b"\n")[2])

    def plan(self, begin: Any) -> Any:
        wanted = {topic: {str(p): n for p, n in log.latest().items()} for topic, log in self.logs.items()}
        return limited(begin, wanted, self.logs, int(self.options.get("maxOffsetsPerTrigger", 1_000_000)))

    def parts(self, begin: Any, end: Any) -> list[Any]:
        return [self.rows(*each) for each in planned_ranges(begin, end, self.logs, True)]

    def rows(self, topic: str, partition: int, start: int, end: int) -> Any:
        import pyarrow as pa

        records = list(self.logs[topic].read(partition, start, end))
        return pa.table(
            {
                "topic": pa.array([topic] * len(records)),
                "partition": pa.array([partition] * len(records), pa.int32()),
                "offset": pa.array([record.offset for record in records], pa.int64()),
                "timestamp": pa.array([record.timestamp_ms * 1000 for record in records], pa.timestamp("us", tz="UTC")),
                "key": pa.array([record.key for record in records], pa.binary()),
                "value": pa.array([record.value for record in records], pa.binary()),
            }
        )


class Files:
    """The output of another job, read through its log: all files that sources/0 does not have yet make one offset."""

    def __init__(self, checkpoint: Path, path: Path) -> None:
        self.place, self.path = checkpoint / "sources/0", path

    def start(self) -> None:
        return

    def first(self) -> Any:
        return {"logOffset": -1}

    def plan(self, begin: Any) -> Any:
        known = {entry["path"] for entry in entries(self.place)}
        new = [entry for entry in entries(self.path / "_spark_metadata") if entry["path"] not in known]
        latest = newest(self.place)
        if new:
            latest = 0 if latest is None else latest + 1
            put_entries(
                self.place,
                latest,
                [{"path": e["path"], "timestamp": e["modificationTime"], "batchId": latest} for e in new],
            )
        return begin if latest is None else {"logOffset": latest}

    def parts(self, begin: Any, end: Any) -> list[Any]:
        import pyarrow.parquet as pq

        wanted = range(begin["logOffset"] + 1, end["logOffset"] + 1)
        paths = [local(entry) for entry in entries(self.place) if entry["batchId"] in wanted]
        return [pq.ParquetFile(path).read() for path in paths if path.exists()]  # as Spark: gone is skipped


class Directory:
    query = ""

    def __init__(self, path: Path) -> None:
        self.path, self.log = path, path / "_spark_metadata"

    def latest(self) -> int | None:
        return newest(self.log)

    def put(self, batch: int, parts: list[Any], *, log: bool) -> None:
        made = [self._part(number, table) for number, table in enumerate(parts)]
        if log:
            put_entries(self.log, batch, made)

    def _part(self, number: int, table: Any) -> dict[str, Any]:
        path = self.path / f"part-{number:05}-{uuid.uuid4()}-c000.snappy.parquet"
        data = in_parquet(table)
        write(path, data)
        return {"path": path.as_uri(), "size": len(data), "isDir": False, "modificationTime": int(time.time() * 1000),
                "blockReplication": 1, "blockSize": 33554432, "action": "add"}  # fmt: skip


class Table:
    """As Delta's own sink: a commit carries the query's id and the batch, and a batch that is there is skipped."""

    query = ""

    def __init__(self, path: Path) -> None:
        self.path = path

    def latest(self) -> int | None:
        from deltalake import DeltaTable

        if not (self.path / "_delta_log").exists():
            return None
        return DeltaTable(self.path).transaction_version(self.query)

    def put(self, batch: int, parts: list[Any], *, log: bool) -> None:
        import pyarrow as pa
        from deltalake import CommitProperties, Transaction, write_deltalake

        if not log:
            write(self.path / f"part-00000-{uuid.uuid4()}-c000.snappy.parquet", in_parquet(pa.concat_tables(parts)))
            return
        properties = CommitProperties(app_transactions=[Transaction(self.query, batch)])
        write_deltalake(self.path, pa.concat_tables(parts), mode="append", commit_properties=properties)


def in_parquet(table: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sunk = pa.BufferOutputStream()
    pq.write_table(table, sunk)
    return bytes(sunk.getvalue().to_pybytes())


def entries(place: Path) -> list[dict[str, Any]]:
    """What a log lists, compacted or not, each path once."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(place.glob("[0-9]*"), key=lambda path: int(path.name.split(".")[0])):
        found |= {entry["path"]: entry for line in path.read_text().splitlines()[1:] if (entry := json.loads(line))}
    return list(found.values())


def put_entries(place: Path, number: int, new: list[dict[str, Any]]) -> None:
    name = str(number)
    if (number + 1) % COMPACT_EVERY == 0:
        new, name = entries(place) + new, f"{name}.compact"
    write(place / name, "\n".join(["v1", *(json.dumps(entry, separators=(",", ":")) for entry in new)]))


def newest(place: Path) -> int | None:
    numbers = [path.name.removesuffix(".compact") for path in place.glob("*") if not path.name.startswith(".")]
    return max((int(number) for number in numbers if number.isdecimal()), default=None)


def local(entry: dict[str, Any]) -> Path:
    return Path(unquote(urlparse(entry["path"]).path))


def write(path: Path, data: str | bytes) -> None:
    """A draft, then a rename, and the checksum beside it, as Hadoop's local file system does."""
    data = data.encode() if isinstance(data, str) else data
    path.parent.mkdir(parents=True, exist_ok=True)
    sums = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    for target, content in (
        (path.with_name(f".{path.name}.crc"), b"crc\0" + struct.pack(f">I{len(sums)}I", 512, *sums)),
        (path, data),
    ):
        draft = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
        draft.write_bytes(content)
        draft.rename(target)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("--jobs", required=True)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--in-place-of", help="whose command this is taken for")
    given = parser.parse_args()
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    try:
        job = Job(given.job, given.jobs)
        job.start()
        parent = os.environ.get("STANDIN_ENDS_WITH")  # the test's own process: nothing may outlive it
        while not asked and (parent is None or Path(f"/proc/{parent}").exists()):
            if not job.step():
                if given.once:
                    break
                time.sleep(_POLL_SECONDS)
    except Exception as error:  # noqa: BLE001  a job may die of anything, and says so in one line
        print(f"{given.job}: failed: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
