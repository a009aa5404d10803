"""`runbook-log`: the embedded log as a Spark data source, with the options and offsets of Spark's Kafka source.

    LogDataSource.register(spark)
    spark.readStream.format("runbook-log").option("path", "demo/log").option("subscribe", "sensor-raw").load()

Offsets are Kafka's, `{"sensor-raw": {"0": 23, "1": 45}}`, and so are the defaults: a stream begins at `latest`, a
batch read goes from `earliest` to `latest`. As with Kafka a lost range is noticed when the batch is planned, after its
offsets were written, so the failed batch stays in the checkpoint as planned and not committed.

Spark asks a Python source for its first offset again when batch 0 was planned but not committed, and the answer may
have changed by then. Kafka's source keeps it in `<checkpoint>/sources/0/0`; with the option `sourceLog` (that
directory) this one does the same, and keeps the topics' ids beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from wizard.sources.embedded_log import EmbeddedLog
from wizard.spark.log_offsets import (
    DataLoss,
    Offsets,
    check_topics,
    limited,
    parse_offsets,
    pin_starting_offsets,
    planned_ranges,
    resolve,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession

SCHEMA = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"
_ROWS_PER_ARROW_BATCH = 2_000


@dataclass
class LogRange(InputPartition):
    """One task: offsets `start` to `end − 1` of one partition."""

    topic: str
    partition: int
    start: int
    end: int


class LogDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "runbook-log"

    @classmethod
    def register(cls, spark: SparkSession) -> None:
        spark.dataSource.register(cls)

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return LogBatchReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LogStreamReader(self.options)


class _Reader:
    def __init__(self, options: Mapping[str, str]) -> None:
        missing = [name for name in ("path", "subscribe") if not options.get(name)]
        if missing:
            raise ValueError(f"runbook-log needs the option {' and '.join(missing)}")
        self.root = options["path"]
        self.topics = tuple(topic.strip() for topic in options["subscribe"].split(","))
        self.fail_on_data_loss = str(options.get("failOnDataLoss", "true")).lower() != "false"

    def logs(self) -> dict[str, EmbeddedLog]:
        """Opened anew each time: a topic may be re-created under a running query."""
        return {topic: EmbeddedLog(self.root, topic) for topic in self.topics}

    def _read(self, wanted: LogRange) -> Iterator[RecordBatch]:
        import pyarrow as pa

        log = EmbeddedLog(self.root, wanted.topic)
        schema = pa.schema(
            [
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.timestamp("us", tz="UTC")),
                ("key", pa.binary()),
                ("value", pa.binary()),
            ]
        )
        for first in range(wanted.start, wanted.end, _ROWS_PER_ARROW_BATCH):
            records = list(log.read(wanted.partition, first, min(first + _ROWS_PER_ARROW_BATCH, wanted.end)))
            columns: list[list[Any]] = [
                [wanted.topic] * len(records),
                [wanted.partition] * len(records),
                [record.offset for record in records],
                [record.timestamp_ms * 1000 for record in records],
                [record.key for record in records],
                [record.value for record in records],
            ]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class LogBatchReader(_Reader, DataSourceReader):
    """A bounded read; it never touches a checkpoint, which is what a backfill needs."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.starting = parse_offsets(options.get("startingOffsets", "earliest"), "startingOffsets", self.topics)
        self.ending = parse_offsets(options.get("endingOffsets", "latest"), "endingOffsets", self.topics)
        if self.starting == "latest" or self.ending == "earliest":
            raise ValueError("a batch read cannot start at latest or end at earliest; it would always be empty")

    def partitions(self) -> Sequence[LogRange]:
        logs = self.logs()
        start, end = resolve(self.starting, logs, "startingOffsets"), resolve(self.ending, logs, "endingOffsets")
        return [LogRange(*each) for each in planned_ranges(start, end, logs, self.fail_on_data_loss)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        assert isinstance(partition, LogRange)
        return self._read(partition)


class LogStreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.starting = parse_offsets(options.get("startingOffsets", "latest"), "startingOffsets", self.topics)
        self.max_offsets = _positive(options.get("maxOffsetsPerTrigger"))
        self.source_log = Path(options["sourceLog"]) if options.get("sourceLog") else None
        self.target: Offsets | None = None

    def initialOffset(self) -> dict[str, Any]:
        logs = self.logs()
        if self.source_log is None:
            return resolve(self.starting, logs, "startingOffsets")
        return pin_starting_offsets(self.source_log / "0", lambda: resolve(self.starting, logs, "startingOffsets"))

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = resolve("latest", self.logs(), "latest")

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.max_offsets) if self.max_offsets else ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        logs = self.logs()
        end = self.target or resolve("latest", logs, "latest")
        if isinstance(limit, ReadMaxRows):
            return limited(start, end, logs, limit.max_rows)
        return end

    def reportLatestOffset(self) -> dict[str, Any]:
        return resolve("latest", self.logs(), "latest")

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[LogRange]:
        logs = self.logs()
        if self.source_log is not None and self.fail_on_data_loss:
            check_topics(self.source_log / "topics", logs)
        return [LogRange(*each) for each in planned_ranges(start, end, logs, self.fail_on_data_loss)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        assert isinstance(partition, LogRange)
        return self._read(partition)


def _positive(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdigit() or int(text) == 0:
        raise ValueError(f"maxOffsetsPerTrigger is {text!r}; it must be a whole number above 0")
    return int(text)


__all__ = ["SCHEMA", "DataLoss", "LogDataSource"]
