"""The seam between a job and its profile: what the registry calls a format decides how it is read and written.

embedded: `log` (or `runbook-log`), and files. cluster: `kafka`, `delta`; those connectors come with `packages`. Either
may write to PostgreSQL (`jdbc`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from wizard.errors import BadInput
from wizard.jobs.model import Job, Sink, Source
from wizard.spark.config import AVAILABLE_NOW, SparkConfig
from wizard.spark.tables import into_table
from wizard.store import local_path

LOG_FORMATS = frozenset(("log", "runbook-log"))
OFFSET_FORMATS = LOG_FORMATS | {"kafka"}
FILE_FORMATS = frozenset(("parquet", "json", "csv", "orc", "text", "avro"))


@dataclass(frozen=True)
class Setting:
    """All a job needs to know about where it runs."""

    spark: SparkSession
    job: Job
    config: SparkConfig
    once: bool = False

    def parameter(self, name: str, default: str) -> str:
        return self.config.parameters.get(name, default)

    def number(self, name: str, default: float) -> float:
        text = self.parameter(name, str(default))
        try:
            return float(text)
        except ValueError:
            raise BadInput(f"job {self.job.name}: the parameter {name} must be a number, not {text!r}") from None


def read_stream(setting: Setting, schema: str | None = None) -> DataFrame:
    """All sources of the job as one stream. `schema` is for files, which Spark does not sample for a stream."""
    frames = [_read_one(setting, source, index, schema) for index, source in enumerate(setting.job.sources)]
    return reduce(DataFrame.unionByName, frames)


def _read_one(setting: Setting, source: Source, index: int, schema: str | None) -> DataFrame:
    options = source_options(setting, source, index)
    if source.format in OFFSET_FORMATS:
        return setting.spark.readStream.format(_spark_format(source.format)).options(**options).load()
    if source.format == "delta":
        return setting.spark.readStream.format("delta").options(**options).load(_path(setting, source))
    if source.format in FILE_FORMATS:
        path = _path(setting, source)
        # The output of another job: it may not have been written yet, and Spark refuses a path that is not there.
        if (here := local_path(path)) is not None:
            Path(here).mkdir(parents=True, exist_ok=True)
        reader = setting.spark.readStream.format(source.format).options(**options)
        return (reader.schema(schema) if schema else reader).load(path)
    raise BadInput(f"job {setting.job.name}: source format {source.format!r} is not one this pipeline can read")


def read_range(setting: Setting, starting: str, ending: str) -> DataFrame:
    """A bounded read of the offsets between two points, which leaves the live checkpoint alone."""
    source = setting.job.source
    options = source_options(setting, source, 0) | {"startingOffsets": starting, "endingOffsets": ending}
    options.pop("sourceLog", None)
    options.pop("maxOffsetsPerTrigger", None)
    if source.format not in OFFSET_FORMATS:
        raise BadInput(f"job {setting.job.name}: a source of format {source.format!r} has no offsets to read between")
    return setting.spark.read.format(_spark_format(source.format)).options(**options).load()


def write_rows(setting: Setting, frame: DataFrame) -> StreamingQuery:
    """File sinks are exactly-once by `_spark_metadata`; Delta's by the transaction id it keeps of each query."""
    sink = setting.job.sink
    if sink.format == "jdbc":
        return start(setting, frame.writeStream.foreachBatch(into_table(setting.job)))
    if sink.format not in FILE_FORMATS | {"delta"}:
        raise BadInput(f"job {setting.job.name}: sink format {sink.format!r} is not one this job can write")
    writer = frame.writeStream.format(sink.format).options(**sink.options).option("path", _path(setting, sink))
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    return start(setting, writer)


def start(setting: Setting, writer: DataStreamWriter) -> StreamingQuery:
    job = setting.job
    writer = writer.queryName(job.name).outputMode(job.output_mode).option("checkpointLocation", job.checkpoint)
    if setting.once or setting.config.trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=setting.config.trigger).start()


def source_options(setting: Setting, source: Source, index: int) -> dict[str, str]:
    """The registry says what is read, the config file how; the config file wins, being what operators edit."""
    config = setting.config
    options = dict(source.options) | config.options
    if source.format not in OFFSET_FORMATS:
        return options
    if config.starting_offsets is not None:
        options["startingOffsets"] = config.starting_offsets
    if source.format in LOG_FORMATS:
        options["path"] = _path(setting, source)
        if (checkpoint := local_path(setting.job.checkpoint)) is not None:
            options["sourceLog"] = str(Path(checkpoint) / "sources" / str(index))
    return options


def _spark_format(name: str) -> str:
    return "runbook-log" if name in LOG_FORMATS else name


def _path(setting: Setting, place: Source | Sink) -> str:
    if place.path is None:
        raise BadInput(f"job {setting.job.name}: format {place.format!r} needs a path in the registry")
    return place.path
