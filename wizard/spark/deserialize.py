"""sensor-deserialize: raw records in, typed readings out; a record that is not a reading is kept, marked and counted.

Good and bad go through one file sink, partitioned by `quality`, so one entry of its log covers both: a batch that is
run again replaces neither half. Two sinks, or two queries, could disagree after a crash.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from wizard.spark.io import Setting, read_stream, write_rows
from wizard.spark.raw_ingest import RAW_SCHEMA

READINGS_SCHEMA = (
    "topic string, partition int, offset bigint, reading_id string, sensor string, event_time timestamp,"
    " temperature double, reason string, raw binary, quality string"
)
_VALUE = "id string, sensor string, time string, temperature double, _corrupt string"
# Spark would take many other spellings, some of them in the session's time zone.
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$"


def start_deserialize(setting: Setting) -> StreamingQuery:
    lowest, highest = setting.number("lowest", -100), setting.number("highest", 200)
    return write_rows(setting, observed(readings(read_stream(setting, RAW_SCHEMA), lowest, highest)))


def readings(raw: DataFrame, lowest: float, highest: float) -> DataFrame:
    """One row out for each row in, in the schema above."""
    value = f.from_json(
        f.col("value").cast("string"), _VALUE, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
    )
    parsed = raw.withColumn("v", value).withColumn(
        "event_time", f.when(f.col("v.time").rlike(_TIME), f.try_to_timestamp(f.col("v.time")))
    )
    reason = _reason(lowest, highest)
    good = reason.isNull()
    return parsed.select(
        "topic",
        "partition",
        "offset",
        f.when(good, f.col("v.id")).alias("reading_id"),
        f.when(good, f.col("v.sensor")).alias("sensor"),
        f.when(good, f.col("event_time")).alias("event_time"),
        f.when(good, f.col("v.temperature")).alias("temperature"),
        reason.alias("reason"),
        f.when(~good, f.col("value")).alias("raw"),
        f.when(good, f.lit("good")).otherwise(f.lit("bad")).alias("quality"),
    )


def observed(frame: DataFrame) -> DataFrame:
    """Puts the two counts into the query's progress, and so into the job's log, batch by batch."""
    counts = [f.count(f.when(f.col("quality") == quality, 1)).alias(quality) for quality in ("good", "bad")]
    return frame.observe("quality", *counts)


def _reason(lowest: float, highest: float) -> Column:
    """Why a record is bad, null when it is good. The first that applies, so that each is counted once."""
    return (
        f.when(f.col("value").isNull(), "no value")
        .when(f.col("v").isNull() | f.col("v._corrupt").isNotNull(), "not a JSON object of the expected types")
        .when(f.coalesce(f.trim("v.id"), f.lit("")) == "", "no id")
        .when(f.coalesce(f.trim("v.sensor"), f.lit("")) == "", "no sensor")
        .when(f.col("event_time").isNull(), "no valid time")
        .when(f.col("v.temperature").isNull() | f.isnan("v.temperature"), "no temperature")
        .when(~f.col("v.temperature").between(lowest, highest), "temperature out of range")
    )
