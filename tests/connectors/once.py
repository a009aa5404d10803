"""Runs jobs of a workspace to their end, one after the other, in one Spark: `python once.py JOBS_FILE JOB…`."""

from __future__ import annotations

import sys
from pathlib import Path

from wizard.jobs.registry import get_job, load_registry
from wizard.spark.config import load_config
from wizard.spark.run import run_once
from wizard.spark.session import build_session


def main(jobs_file: Path, names: list[str]) -> None:
    # The first job's session has the connectors of all: it is the one that reads Kafka.
    job = get_job(load_registry(jobs_file), "sensor-raw-ingest")
    assert job.config is not None
    spark = build_session("once", load_config(job.config.file))
    try:
        for name in names:
            run_once(spark, jobs_file, name)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
