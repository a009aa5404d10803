"""Starts each damaged copy on real Spark, one session for all: `python restart_driver.py CASES.json`, results on stdout.

A case is {name, root, query, batch, format}; the answer is, by name, the batches that ran, the error, the ids in the sink, and
the offsets of the batch after the run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window


def main(cases: list[dict[str, str]]) -> dict[str, Any]:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    seen = {}
    for case in cases:
        # 4.2 does not take the version from the checkpoint: started with another, it fails to load the state.
        spark.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", case["format"])
        seen[case["name"]] = run(spark, Path(case["root"]), case["query"], case["batch"])
    spark.stop()
    return seen


def run(spark: SparkSession, root: Path, query: str, batch: str) -> dict[str, Any]:
    frame = rows(spark, root) if query == "rows" else windows(spark, root)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(root / "checkpoint"))
    error, started = None, None
    try:
        started = writer.trigger(availableNow=True).start(str(root / "sink"))
        started.awaitTermination()
    except Exception as raised:  # noqa: BLE001  whatever Spark raises is the answer
        error = str(raised)
    ran = [progress["batchId"] for progress in started.recentProgress] if started else []
    ids = (
        [row.id for row in spark.read.parquet(str(root / "sink")).collect()] if query == "rows" and not error else None
    )
    planned = root / "checkpoint/offsets" / batch
    return {"ran": ran, "error": error, "ids": ids, "offsets": planned.read_text() if planned.exists() else None}


def rows(spark: SparkSession, root: Path) -> DataFrame:
    schema = "id long, name string"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 100).json(str(root / "input"))


def windows(spark: SparkSession, root: Path) -> DataFrame:
    schema = "ts timestamp, key string, value long"
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 100).json(str(root / "input"))
    counted = events.withWatermark("ts", "10 seconds").groupBy(window("ts", "10 seconds"), "key").count()
    return counted.selectExpr("window.start AS start", "key", "count")


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
