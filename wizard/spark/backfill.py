"""A bounded run of a job's own code: `python -m wizard.spark.backfill JOB --jobs jobs.yaml --range FILE --to DIRECTORY`.

Reads the range, does to it what the stream does, leaves out every row whose key the output already has, and puts the
rest into DIRECTORY with a `manifest.json`. The directory comes into being in one rename, so it is whole or not there.
Neither the live checkpoint nor the output is written to. One line per step goes to stdout, Spark's log to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wizard.errors import BadInput, ExitCode, RunbookError
from wizard.jobs.model import Source
from wizard.jobs.registry import find_registry, get_job, load_registry
from wizard.sources.interface import Offsets, OffsetSource
from wizard.sources.open import open_source
from wizard.spark.config import SparkConfig, load_config
from wizard.spark.deserialize import readings
from wizard.spark.io import FILE_FORMATS, Setting, read_range
from wizard.spark.raw_ingest import RAW_SCHEMA, raw
from wizard.spark.run import summary
from wizard.spark.session import build_session
from wizard.store import as_stored, local_path

MANIFEST = "manifest.json"
_SAY_SECONDS = 5.0


@dataclass(frozen=True)
class Bounded:
    """A job as a function of the rows it reads; `schema` is that of its source files."""

    apply: Callable[[Setting, DataFrame], DataFrame]
    schema: str | None = None


# What is grouped or de-duplicated over time is not a function of its range, and has no entry here.
BOUNDED = {
    "sensor-raw-ingest": Bounded(lambda setting, rows: raw(rows)),
    "sensor-deserialize": Bounded(
        lambda setting, rows: readings(rows, setting.number("lowest", -100), setting.number("highest", 200)), RAW_SCHEMA
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wizard.spark.backfill", description="Run one job over a range.")
    parser.add_argument("job", metavar="JOB")
    parser.add_argument("--jobs", metavar="FILE", help="the registry (default: as for runbook)")
    parser.add_argument("--range", metavar="FILE", required=True, help='{"start": …, "end": …} or {"files": […]}')
    parser.add_argument("--to", metavar="DIRECTORY", required=True, help="where the rows are staged; must not exist")
    parser.add_argument("--name", default="rows", help="what the files are called: backfill-NAME-part-00000")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when stdin does: when the caller is gone")
    given = parser.parse_args(argv)
    if given.end_with_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        run(given.job, given.jobs, Path(given.range), Path(given.to), given.name)
    except RunbookError as error:
        print(f"{given.job}: {error}", file=sys.stderr)
        return int(error.exit_code)
    except PySparkException as error:
        print(f"{given.job}: failed: {summary(str(error))}", file=sys.stderr)
        return int(ExitCode.ERROR)
    return int(ExitCode.OK)


def run(name: str, jobs_file: str | None, range_file: Path, to: Path, called: str) -> None:
    job = get_job(load_registry(find_registry(jobs_file)), name)
    if name not in BOUNDED:
        raise BadInput(f"{name} cannot be run over a range; this pipeline can do so for {', '.join(BOUNDED)}")
    if not job.sink.key:
        raise BadInput(
            f"{name}: its sink has no key in the registry, so rows that are there cannot be left out; add key"
        )
    wanted = json.loads(range_file.read_text())
    config = load_config(job.config.file) if job.config else SparkConfig()
    spark = build_session(f"{name} backfill {called}", config)
    try:
        stage(Setting(spark, job, config), wanted, to, called)
    finally:
        spark.stop()


def stage(setting: Setting, wanted: dict[str, Any], to: Path, called: str) -> dict[str, Any]:
    """Stages the rows of the range that the output lacks; the manifest. The source is read once."""
    began = time.monotonic()
    bounded = BOUNDED[setting.job.name]
    rows = bounded.apply(setting, _read(setting, wanted, bounded.schema))
    missing = _lacking(rows, _keys_there(setting), setting.job.sink.key)
    with _progress(setting.spark):
        for left in to.parent.glob(f".{to.name}.*"):
            shutil.rmtree(left, ignore_errors=True)  # of an attempt that was killed
        attempt = to.with_name(f".{to.name}.{uuid.uuid4().hex[:8]}")
        attempt.mkdir(parents=True)
        try:
            count, files = _write(setting, missing, attempt, called)
            manifest = {"job": setting.job.name, "range": wanted, "rows": count, "files": files}
            manifest["seconds"] = round(time.monotonic() - began, 1)
            _durable(attempt, manifest)
            _take_place(attempt, to)
        finally:
            shutil.rmtree(attempt, ignore_errors=True)
    print(f"staged the {count} rows that the output lacks, in {len(files)} files ({manifest['seconds']} s)", flush=True)
    return manifest


def _read(setting: Setting, wanted: dict[str, Any], schema: str | None) -> DataFrame:
    source = setting.job.source
    if "files" not in wanted:
        start, end = wanted["start"], wanted["end"]
        start, end = _all_partitions(source, start, end)
        return read_range(setting, json.dumps(start), json.dumps(end))
    if source.format not in FILE_FORMATS:
        raise BadInput(f"job {setting.job.name}: a source of format {source.format!r} is not read by files")
    paths = [as_stored(path) for path in wanted["files"]]
    if gone := [path for path in paths if local_path(path) is not None and not Path(path).exists()]:
        # Spark would skip it with a warning.
        raise RunbookError(f"{gone[0]} is gone, so the range cannot be read whole; nothing was staged")
    reader = setting.spark.read.format(source.format).options(**source.options)
    if source.path:
        reader = reader.option("basePath", source.path)
    return (reader.schema(schema) if schema else reader).load(paths)


def _all_partitions(source: Source, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
    """A read must name every partition of every topic: those outside the range begin where they end."""
    opened = open_source(source)
    if not isinstance(opened, OffsetSource):
        return start, end
    earliest = opened.ends().earliest
    first = {topic: parts | start.get(topic, {}) for topic, parts in earliest.items()}
    return first, {topic: parts | end.get(topic, {}) for topic, parts in earliest.items()}


def _keys_there(setting: Setting) -> DataFrame | None:
    """The keys of the output as its readers see it; None where there is no output yet."""
    spark, sink = setting.spark, setting.job.sink
    path = str(sink.path)
    if sink.format == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(path)
        if used := {"deletionVectors", "columnMapping"} & set(table.protocol().reader_features or ()):
            raise BadInput(f"{path}: the table uses {', '.join(sorted(used))}, which cannot be read file by file here")
        uris = table.file_uris()
        return spark.read.option("basePath", path).parquet(*uris).select(*sink.key) if uris else None
    # A directory with `_spark_metadata` is read through it: files it does not list are not part of the output.
    reader = spark.read.format(sink.format).options(**sink.options)
    here = local_path(path)
    if here is not None and not any(Path(here).rglob("[!._]*.*")):
        return None
    return reader.load(path).select(*sink.key)


def _lacking(rows: DataFrame, there: DataFrame | None, key: Sequence[str]) -> DataFrame:
    if there is None:
        return rows
    # Renamed: Spark cannot tell the two sides apart by name where one was made from the other.
    known = there.toDF(*(f"_there_{index}" for index in range(len(key)))).distinct()
    same = reduce(lambda a, b: a & b, (rows[name].eqNullSafe(known[f"_there_{i}"]) for i, name in enumerate(key)))
    return rows.join(known, same, "left_anti")


def _write(setting: Setting, rows: DataFrame, attempt: Path, called: str) -> tuple[int, list[dict[str, Any]]]:
    """How many rows there were, and the files they are in; none of either where the output has them all."""
    sink = setting.job.sink
    format = "parquet" if sink.format == "delta" else sink.format
    drafts = attempt / "drafts"
    if sink.format == "delta":
        # The table says itself how it is partitioned; it has no INT96.
        setting.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        rows.write.parquet(str(drafts))
    else:
        writer = rows.write.format(sink.format).options(**sink.options)
        (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).save(str(drafts))
    files = []
    found = sorted(path for path in drafts.rglob("part-*") if path.is_file())
    count = setting.spark.read.format(format).options(**sink.options).load(str(drafts)).count() if found else 0
    found = found if count else []
    for number, path in enumerate(found):
        name = f"backfill-{called}-part-{number:05d}.{path.name.partition('.')[2]}"
        target = attempt / path.parent.relative_to(drafts) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        seen = target.stat()
        files.append(
            {"path": str(target.relative_to(attempt)), "size": seen.st_size, "modified": int(seen.st_mtime * 1000)}
        )
    shutil.rmtree(drafts)
    return count, files


def _durable(attempt: Path, manifest: dict[str, Any]) -> None:
    (attempt / MANIFEST).write_text(json.dumps(manifest, indent=1))
    for directory, _, names in os.walk(attempt):
        for name in names:
            _sync(Path(directory) / name)
        _sync(Path(directory))


def _take_place(attempt: Path, to: Path) -> None:
    try:
        attempt.rename(to)
    except OSError as error:
        raise RunbookError(f"{to} cannot be put in place ({error.strerror}); is there one from before?") from None
    _sync(to.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _progress(spark: SparkSession) -> Iterator[None]:
    """A line now and then while Spark works: tasks done, and how long the rest of this stage may take."""
    done = threading.Event()

    def watch() -> None:
        tracker = spark.sparkContext.statusTracker()
        began: dict[int, float] = {}
        while not done.wait(_SAY_SECONDS):
            for stage_id in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage_id)
                since = began.setdefault(stage_id, time.monotonic() - _SAY_SECONDS)
                if info is not None and info.numCompletedTasks:
                    each = (time.monotonic() - since) / info.numCompletedTasks
                    left = (info.numTasks - info.numCompletedTasks) * each
                    print(f"{info.numCompletedTasks} of {info.numTasks} tasks, about {left:.0f} s left", flush=True)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os._exit(int(ExitCode.INTERRUPTED))


if __name__ == "__main__":
    sys.exit(main())
