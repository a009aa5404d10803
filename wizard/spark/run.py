"""The process of one job: `python -m wizard.spark.run JOB --jobs jobs.yaml [--once]`.

Runs until it is told to stop (SIGTERM or SIGINT), which it does between two batches; `--once` stops when everything
that was there at the start is processed. Ends with 0 when it was asked to stop or is done, 1 when Spark or the query
failed, 2 when the registry or the config file is wrong. One line per batch goes to stdout, Spark's log to stderr.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from wizard.errors import BadInput, ExitCode, RunbookError
from wizard.jobs.registry import find_registry, get_job, load_registry
from wizard.spark.config import SparkConfig, load_config
from wizard.spark.deserialize import start_deserialize
from wizard.spark.io import Setting
from wizard.spark.merge_gold import start_merge_gold
from wizard.spark.raw_ingest import start_raw_ingest
from wizard.spark.session import build_session
from wizard.store import local_path

JOBS: dict[str, Callable[[Setting], StreamingQuery]] = {
    "sensor-raw-ingest": start_raw_ingest,
    "sensor-deserialize": start_deserialize,
    "sensor-merge-gold": start_merge_gold,
}
_POLL_SECONDS = 0.1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wizard.spark.run", description="Run one job of the registry.")
    parser.add_argument("job", metavar="JOB")
    parser.add_argument("--jobs", metavar="FILE", help="the registry (default: as for runbook)")
    parser.add_argument("--once", action="store_true", help="process what is there, then end")
    given = parser.parse_args(argv)
    try:
        run(given.job, given.jobs, once=given.once)
    except RunbookError as error:
        print(f"{given.job}: {error}", file=sys.stderr)
        return int(error.exit_code)
    except (PySparkException, Py4JError) as error:
        print(f"{given.job}: failed: {summary(str(error))}", file=sys.stderr)
        return int(ExitCode.ERROR)
    return int(ExitCode.OK)


def run(name: str, jobs_file: str | None, *, once: bool) -> None:
    job = get_job(load_registry(find_registry(jobs_file)), name)
    if name not in JOBS:
        raise BadInput(f"{name} is not a job of this pipeline; it has {', '.join(JOBS)}")
    config = load_config(job.config.file) if job.config else SparkConfig()
    stop = _StopRequest()
    spark = build_session(name, config)
    try:
        query = JOBS[name](Setting(spark, job, config, once=once))
        print(f"{name}: query {query.id} run {query.runId} on {job.checkpoint}", flush=True)
        _watch(query, stop, Path(local_path(job.checkpoint) or ""), config.stop_timeout)
    finally:
        spark.stop()


def run_once(spark: SparkSession, jobs_file: Path, name: str) -> None:
    """Runs a job over what is there in a session that is up already, with the settings a session can still take."""
    job = get_job(load_registry(jobs_file), name)
    config = load_config(job.config.file) if job.config else SparkConfig()
    if config.shuffle_partitions:
        spark.conf.set("spark.sql.shuffle.partitions", config.shuffle_partitions)
    query = JOBS[name](Setting(spark, job, config, once=True))
    try:
        query.awaitTermination()
    finally:
        query.stop()


class _StopRequest:
    """Set by a signal. The main thread looks at it: py4j must not be called from inside a handler."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


def _watch(query: StreamingQuery, stop: _StopRequest, checkpoint: Path, timeout: float) -> None:
    told = -1
    while query.isActive:
        told = _tell(query, told)
        if stop.asked:
            _stop_between_batches(query, checkpoint, timeout)
            break
        time.sleep(_POLL_SECONDS)
    _tell(query, told)
    if (failure := query.exception()) is not None:
        raise failure


def _stop_between_batches(query: StreamingQuery, checkpoint: Path, timeout: float) -> None:
    """`stop()` interrupts whatever runs, so it is called when the newest planned batch is the newest committed one.

    Between the commit of one batch and the plan of the next Spark only asks the sources what is new, and being
    interrupted there leaves nothing behind. Should the next plan win the race all the same, that batch is run again
    at the next start with the same offsets and the same id.
    """
    print("told to stop; waiting for the end of the batch", flush=True)
    deadline = time.monotonic() + timeout
    while query.isActive and time.monotonic() < deadline and not _at_boundary(query, checkpoint):
        time.sleep(0.005)
    query.stop()
    planned, committed = _newest(checkpoint / "offsets"), _newest(checkpoint / "commits")
    if planned == committed:
        print(f"stopped after batch {committed}" if committed is not None else "stopped before any batch", flush=True)
    else:
        print(f"stopped inside batch {planned}; the next start runs it again from the same offsets", flush=True)


def _at_boundary(query: StreamingQuery, checkpoint: Path) -> bool:
    if not checkpoint.name:  # a remote checkpoint: Spark's own word is all there is
        return not query.status["isTriggerActive"]
    return _newest(checkpoint / "offsets") == _newest(checkpoint / "commits")


def _newest(directory: Path) -> int | None:
    try:
        return max((int(path.name) for path in directory.iterdir() if path.name.isdigit()), default=None)
    except FileNotFoundError:
        return None


def _tell(query: StreamingQuery, told: int) -> int:
    for progress in query.recentProgress:
        batch = int(progress["batchId"])
        rows = int(progress["numInputRows"] or 0)
        # A trigger that found nothing reports the id of the batch to come, with no rows.
        if batch <= told or (rows == 0 and not progress.get("stateOperators")):
            continue
        told = batch
        line: dict[str, Any] = {"batch": batch, "rows": rows}
        observed: dict[str, Any] = dict(progress.get("observedMetrics") or {})
        for name, row in observed.items():
            line[name] = row.asDict() if hasattr(row, "asDict") else row
        print(json.dumps(line), flush=True)
    return told


def summary(text: str) -> str:
    """The line an operator needs, out of Spark's message: the last one of a Python traceback, else the first."""
    body = text.split("\n=== Streaming Query ===")[0].split("\n\nJVM stacktrace")[0]
    lines = [line.strip() for line in body.splitlines() if line.strip() and not line.startswith((" ", "\t"))]
    if len(lines) > 1 and "Traceback (most recent call last)" in lines[0]:
        told = next((line for line in reversed(lines) if not line.startswith("SQLSTATE")), lines[0])
        return f"{told} ({lines[0].partition('terminated with')[0].strip()})"
    return lines[0] if lines else text


if __name__ == "__main__":
    sys.exit(main())
