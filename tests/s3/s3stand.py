"""A workspace whose checkpoint, output and runs are all on S3, and its rows and bytes read by code of its own."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import s3fs
from stand import CONFIG, JOB, ROWS, TOPIC, Stand, fork

from wizard.sources.embedded_log import EmbeddedLog, Record

JOB_COMMAND = str(Path(__file__).with_name("s3job.py"))
REGISTRY = """version: 1
runs: {url}/runs
jobs:
  {job}:
    checkpoint: {url}/checkpoint
    source: {{format: log, path: ./log, options: {{subscribe: {topic}}}}}
    sink: {{format: parquet, path: {url}/out, key: [topic, partition, offset]}}
    output_mode: append
    spark_version: "4.2.0"
    config: {{file: ./conf.yaml, starting_offsets: startingOffsets}}
    control:
      kind: process
      start: [python, {command}, {job}, --jobs, jobs.yaml]
      pid_file: ./control/{job}.pid
      settle_seconds: 0.05
      stop_timeout: 20
"""


class S3Stand(Stand):
    url: str

    @classmethod
    def at(cls, root: Path, url: str, *, batches: int = 3, cut: str = "files") -> S3Stand:
        root.mkdir(parents=True)
        (root / "jobs.yaml").write_text(REGISTRY.format(url=url, job=JOB, topic=TOPIC, command=JOB_COMMAND))
        (root / "conf.yaml").write_text(CONFIG.replace("latest", "earliest"))
        log = EmbeddedLog.create(root / "log", TOPIC, 2, segment_bytes=200)
        for partition in (0, 1):
            log.append(partition, [Record(1000 + n, b"k", f"{partition}:{n}".encode()) for n in range(ROWS)])
        made = cls(root)
        object.__setattr__(made, "url", url)
        code, said = fork([], lambda: _run(made.jobs, batches, cut))
        assert code == 0, said
        (root / "conf.yaml").write_text(CONFIG)  # a reset that does not set it to the earliest loses every row
        return made

    def objects(self, below: str) -> dict[str, str]:
        """Every object below, by its bytes."""
        fs, at = _fs(), f"{self.url}/{below}".removeprefix("s3://")
        found = fs.find(at)
        return {
            name[len(at) :]: hashlib.sha256(data).hexdigest() for name, data in (fs.cat(found) if found else {}).items()
        }

    def tree(self) -> dict[str, str]:
        held = {f"{below}{name}": mark for below in ("checkpoint", "out") for name, mark in self.objects(below).items()}
        local = {name: (self.root / name).read_text() for name in ("conf.yaml", "jobs.yaml")}
        return held | local

    def run_ids(self) -> list[str]:
        fs, at = _fs(), f"{self.url}/runs".removeprefix("s3://")
        names = [each.rpartition("/")[2] for each in (fs.ls(at, detail=False) if fs.exists(at) else [])]
        return sorted(name for name in names if fs.exists(f"{at}/{name}/journal.jsonl.d"))

    def found(self) -> Counter[tuple[int, int, bytes]]:
        fs, at = _fs(), f"{self.url}/out".removeprefix("s3://")
        names = [each for each in fs.ls(f"{at}/_spark_metadata", detail=False) if each.rpartition("/")[2][0].isdigit()]
        files = {
            json.loads(line)["path"].partition("://")[2]
            for name in names
            for line in fs.cat_file(name).decode().splitlines()[1:]
        }
        rows: Counter[tuple[int, int, bytes]] = Counter()
        for file in files:
            for row in pq.ParquetFile(io.BytesIO(fs.cat_file(file))).read().to_pylist():
                rows[row["partition"], row["offset"], row["value"]] += 1
        return rows

    def finish(self) -> None:
        self.stop()
        code, said = fork([], lambda: _run(self.jobs, 1000, ""))
        assert code == 0, said


def _run(jobs: str, batches: int, cut: str) -> None:
    """In a child: the job in this process, as far as it is told."""
    import s3job

    job = s3job.Job(JOB, jobs)
    job.start()
    while batches and job.step():
        batches -= 1
    if cut:
        assert job.step(cut)
    raise SystemExit(0)


def _fs() -> Any:
    return s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True, max_concurrency=1)
