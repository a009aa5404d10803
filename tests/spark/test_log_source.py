"""The log as a Spark source: Kafka's offsets, options and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wizard.sources.embedded_log import EmbeddedLog, Record

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    made = EmbeddedLog.create(tmp_path / "log", "t", partitions=2, segment_bytes=500)
    for partition in (0, 1):
        append(made, partition, 40)
    return made


def append(log: EmbeddedLog, partition: int, count: int) -> None:
    first = log.latest()[partition]
    log.append(partition, [Record(1000 * n, b"k", b"%d" % n) for n in range(first, first + count)])


def read(spark: SparkSession, log: EmbeddedLog, **options: str) -> set[tuple[int, int]]:
    frame = spark.read.format("runbook-log").options(path=str(log.path.parent), subscribe="t", **options).load()
    rows = [(row["partition"], row["offset"]) for row in frame.collect()]
    assert len(set(rows)) == len(rows)
    return set(rows)


def stream(spark: SparkSession, log: EmbeddedLog, **options: str) -> list[tuple[int, int]]:
    """Runs a query over what is there; what its sink holds afterwards."""
    base = log.path.parent.parent
    options = {"path": str(log.path.parent), "subscribe": "t", "sourceLog": f"{base}/ckpt/sources/0"} | options
    query = (
        spark.readStream.format("runbook-log")
        .options(**options)
        .load()
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{base}/ckpt")
        .trigger(availableNow=True)
        .start(f"{base}/out")
    )
    query.awaitTermination()
    return sorted((r["partition"], r["offset"]) for r in spark.read.parquet(f"{base}/out").collect())


def offsets_of_batches(log: EmbeddedLog) -> list[dict[str, Any]]:
    files = sorted((log.path.parent.parent / "ckpt/offsets").glob("[0-9]*"), key=lambda p: int(p.name))
    return [json.loads(path.read_text().splitlines()[2]) for path in files]


def both(start: int, end: int) -> set[tuple[int, int]]:
    return {(p, n) for p in (0, 1) for n in range(start, end)}


def test_a_batch_read_covers_the_log_and_a_bounded_one_exactly_its_range(spark: SparkSession, log: EmbeddedLog) -> None:
    assert read(spark, log) == both(0, 40)
    bounded = read(spark, log, startingOffsets='{"t":{"0":5,"1":-2}}', endingOffsets='{"t":{"0":9,"1":3}}')
    assert bounded == {(0, n) for n in range(5, 9)} | {(1, n) for n in range(3)}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"startingOffsets": "first"}, 'must be "earliest", "latest" or JSON'),
        ({"startingOffsets": '{"t":{"0":1}}'}, "must name every partition of t"),
        ({"startingOffsets": '{"u":{"0":1}}'}, "names the topic u, which is not subscribed to"),
        ({"endingOffsets": "earliest"}, "would always be empty"),
        ({"startingOffsets": '{"t":{"0":99,"1":0}}'}, "the checkpoint stands at offset 99 but the log ends at 40"),
    ],
)
def test_offsets_that_make_no_sense_are_refused_in_words(
    spark: SparkSession, log: EmbeddedLog, option: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        read(spark, log, **option)


def test_a_stream_keeps_to_its_limit_and_a_restart_goes_on_where_it_was(spark: SparkSession, log: EmbeddedLog) -> None:
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "30"}
    assert stream(spark, log, **options) == sorted(both(0, 40))
    ends = [sum(each["t"].values()) for each in offsets_of_batches(log)]
    assert ends == [30, 60, 80]
    append(log, 0, 5)
    assert stream(spark, log, **options) == sorted(both(0, 40) | {(0, n) for n in range(40, 45)})


def test_a_stream_starts_at_explicit_offsets_and_only_the_first_time(spark: SparkSession, log: EmbeddedLog) -> None:
    wanted = sorted({(0, n) for n in range(30, 40)} | {(1, n) for n in range(38, 40)})
    assert stream(spark, log, startingOffsets='{"t":{"0":30,"1":38}}') == wanted
    assert stream(spark, log, startingOffsets="earliest") == wanted


def test_a_stream_from_latest_reads_only_what_comes_later(spark: SparkSession, log: EmbeddedLog) -> None:
    assert stream(spark, log, startingOffsets='{"t":{"0":-1,"1":39}}') == [(1, 39)]
    append(log, 0, 2)
    assert stream(spark, log, startingOffsets="latest") == [(0, 40), (0, 41), (1, 39)]


def test_retention_past_the_checkpoint_fails_the_stream_and_names_what_is_lost(
    spark: SparkSession, log: EmbeddedLog
) -> None:
    stream(spark, log, startingOffsets="earliest")
    append(log, 1, 60)
    earliest = log.drop_before(1, 80)
    lost = rf"topic t partition 1: offsets 40 to {earliest - 1} \({earliest - 40} records\) were dropped by retention"
    with pytest.raises(PySparkException, match=lost):
        stream(spark, log)
    rows = stream(spark, log, failOnDataLoss="false")
    assert rows == sorted(both(0, 40) | {(1, n) for n in range(earliest, 100)})


def test_a_topic_created_again_under_the_same_name_is_not_taken_for_the_old_one(
    spark: SparkSession, log: EmbeddedLog
) -> None:
    stream(spark, log, startingOffsets="earliest")
    log.path.rename(log.path.with_name("old"))
    again = EmbeddedLog.create(log.path.parent, "t", partitions=2)
    for partition in (0, 1):
        append(again, partition, 60)
    with pytest.raises(PySparkException, match="topic t partition 0: the topic was re-created"):
        stream(spark, again)
