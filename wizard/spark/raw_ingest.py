"""sensor-raw-ingest: offsets in, raw zone out, one row per source record, nothing interpreted.

The row keeps topic, partition and offset, which is what makes every later claim about it provable. It holds nothing
that differs between two runs of the same batch, such as the time of the write.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from wizard.spark.io import Setting, read_stream, write_rows

RAW_SCHEMA = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"


def start_raw_ingest(setting: Setting) -> StreamingQuery:
    return write_rows(setting, raw(read_stream(setting)))


def raw(records: DataFrame) -> DataFrame:
    return records.select("topic", "partition", "offset", "timestamp", "key", "value")
