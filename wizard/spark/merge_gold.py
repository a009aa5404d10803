"""sensor-merge-gold: good readings, each once, aggregated by sensor and window, merged into the gold table.

Stateful twice over: the de-duplication remembers reading ids for as long as the watermark waits, the aggregate its open
windows. `foreachBatch` is at-least-once (Spark calls it again for a batch that was not committed), so the merge records
the query id and batch id in the table, in the same commit as the rows, and skips a batch the table already has. That is
the rule of Delta's own sink, `>=` included: after a rollback the recorded number has to be lowered too. In PostgreSQL
the rows of a batch that is written again go first (`wizard.spark.tables`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from wizard.errors import BadInput
from wizard.spark.deserialize import READINGS_SCHEMA
from wizard.spark.io import Setting, read_stream, start
from wizard.spark.tables import into_table

if TYPE_CHECKING:
    from collections.abc import Callable

GOLD_SCHEMA = pa.schema(
    [
        ("sensor", pa.string()),
        ("window_start", pa.timestamp("us", tz="UTC")),
        ("window_end", pa.timestamp("us", tz="UTC")),
        ("readings", pa.int64()),
        ("temperature_min", pa.float64()),
        ("temperature_max", pa.float64()),
        ("temperature_sum", pa.float64()),
    ]
)


def start_merge_gold(setting: Setting) -> StreamingQuery:
    sink = setting.job.sink
    if sink.format != "jdbc" and (sink.format != "delta" or sink.path is None):
        raise BadInput(
            f"job {setting.job.name}: the gold table must be a sink of format delta with a path, or of format jdbc"
        )
    frame = aggregated(
        read_stream(setting, READINGS_SCHEMA),
        watermark=setting.parameter("watermark", "30 minutes"),
        window=setting.parameter("window", "5 minutes"),
        unique=setting.parameter("unique", "reading_id").split(","),
    )
    write = into_table(setting.job, GOLD_SCHEMA) if sink.path is None else merge_into(sink.path, setting.job.checkpoint)
    return start(setting, frame.writeStream.foreachBatch(write))


def aggregated(readings: DataFrame, watermark: str, window: str, unique: list[str]) -> DataFrame:
    return (
        readings.where("quality = 'good'")
        .select("reading_id", "sensor", "event_time", "temperature")
        .withWatermark("event_time", watermark)
        .dropDuplicatesWithinWatermark([column.strip() for column in unique])
        .groupBy("sensor", f.window("event_time", window).alias("window"))
        .agg(
            f.count("*").alias("readings"),
            f.min("temperature").alias("temperature_min"),
            f.max("temperature").alias("temperature_max"),
            f.sum("temperature").alias("temperature_sum"),
        )
        .selectExpr(
            "sensor",
            "window.start as window_start",
            "window.end as window_end",
            "readings",
            "temperature_min",
            "temperature_max",
            "temperature_sum",
        )
    )


def merge_into(path: str, checkpoint: str) -> Callable[[DataFrame, int], None]:
    def merge(batch: DataFrame, batch_id: int) -> None:
        query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        if not query_id:
            raise RuntimeError(f"Spark did not say which query this batch belongs to (checkpoint {checkpoint})")
        merge_batch(path, batch.toArrow().cast(GOLD_SCHEMA), query_id, batch_id)

    return merge


def merge_batch(path: str, rows: pa.Table, query_id: str, batch_id: int) -> bool:
    """Merges one batch, or returns False when the table says that it was merged before."""
    table = _open_or_create(path)
    recorded = table.transaction_version(query_id)
    if recorded is not None and recorded >= batch_id:
        print(f"batch {batch_id}: already in {path} (which has batch {recorded} of this query); skipped", flush=True)
        return False
    properties = CommitProperties(app_transactions=[Transaction(app_id=query_id, version=batch_id)])
    if rows.num_rows == 0:
        # A batch without rows (it only moved the watermark) is recorded too, as Delta's own sink does.
        write_deltalake(table, rows, mode="append", commit_properties=properties)
        return True
    (
        table.merge(
            rows,
            "target.sensor = source.sensor AND target.window_start = source.window_start",
            source_alias="source",
            target_alias="target",
            commit_properties=properties,
        )
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    return True


def _open_or_create(path: str) -> DeltaTable:
    try:
        return DeltaTable(path)
    except TableNotFoundError:
        return DeltaTable.create(path, GOLD_SCHEMA, mode="ignore", name="sensor gold")
