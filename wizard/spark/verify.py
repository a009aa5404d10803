"""The comparison of `wizard.compare` on Spark: `python -m wizard.spark.verify < comparison.json`, the answer on stdout.

For outputs that do not fit this machine's memory as Arrow. Runs on local[*], or as the config file named by
$RUNBOOK_SPARK_CONFIG says (the form of a job's config file: master, packages, conf); with `master: sc://…` on a Spark
Connect server, and without a JVM here.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from wizard.compare import EXAMPLES, Comparison, Key, Range, answer_of, counted_answer
from wizard.datafiles import DataFile
from wizard.errors import ExitCode, RunbookError
from wizard.spark.config import SparkConfig, load_config
from wizard.spark.session import CONNECT, build_session, connect

_TYPES = {"int": "bigint", "text": "string", "bool": "boolean", "date": "date", "timestamp": "timestamp_ntz"}


def main() -> int:
    try:
        comparison = Comparison.of_json(json.load(sys.stdin))
        named = os.environ.get("RUNBOOK_SPARK_CONFIG")
        config = load_config(named) if named else _alone(comparison.rows)
        there = config.master or ""
        spark = connect(there) if there.startswith(CONNECT) else build_session("runbook verify", config)
        try:
            answer = verify(spark, comparison)
        finally:
            spark.stop()
    except RunbookError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    except PySparkException as error:
        print(f"Spark could not compare: {' '.join(str(error).split())[:300]}", file=sys.stderr)
        return int(ExitCode.ERROR)
    print(json.dumps(answer))
    return int(ExitCode.OK)


def _alone(rows: int) -> SparkConfig:
    """All of this machine, nothing of it open to others; a partition for each million rows."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    return SparkConfig("local[*]", "2g", shuffle_partitions=rows // 1_000_000 + 2, log_level="ERROR", conf=conf)


def verify(spark: SparkSession, comparison: Comparison) -> dict[str, Any]:
    # Whatever a config file says: by a clock that is put back two times are one key, and without ANSI what cannot be read
    # as its kind is null.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    if comparison.counts is not None:
        return _counted(spark, comparison)
    key = list(comparison.key)
    sides = [
        _marked(_read(spark, comparison.files, comparison, key), 1, 0),
        _marked(_read(spark, comparison.found, comparison, key), 0, 1),
        *(_marked(_range(spark, each, comparison), 1, 0) for each in comparison.ranges),
    ]
    grouped = (
        reduce(DataFrame.unionByName, sides)
        .groupBy(*map(_quoted, key))
        .agg(f.sum("want").alias("want"), f.sum("have").alias("have"))
    )
    if comparison.inside:
        grouped = grouped.where("want > 0")
    grouped = grouped.cache()  # looked at four times
    try:
        return _answer(grouped, key)
    finally:
        grouped.unpersist()


def _answer(grouped: DataFrame, key: list[str]) -> dict[str, Any]:
    masks = {"missing": "want > have", "doubled": "have > want and want > 0", "foreign": "have > want and want = 0"}
    total = grouped.agg(
        f.sum("want").alias("expected"),
        f.sum("have").alias("found"),
        f.sum(f.greatest(f.col("want") - 1, f.lit(0))).alias("repeated"),
        *(
            f.sum(f.when(f.expr(mask), f.abs(f.col("want") - f.col("have")))).alias(what)
            for what, mask in masks.items()
        ),
        *(f.count(f.when(f.expr(mask), 1)).alias(f"{what}_keys") for what, mask in masks.items()),
    ).collect()[0]

    def tally(what: str) -> tuple[int, int, list[Key]]:
        if not total[f"{what}_keys"]:
            return 0, 0, []
        ordered = grouped.where(masks[what]).orderBy(*(f.col(column).asc_nulls_first() for column in map(_quoted, key)))
        examples = [
            dict(zip(key, row, strict=True)) for row in ordered.select(*map(_quoted, key)).limit(EXAMPLES).collect()
        ]
        return int(total[what]), int(total[f"{what}_keys"]), examples

    return answer_of(key, total["expected"] or 0, total["found"] or 0, total["repeated"] or 0, tally)


def _counted(spark: SparkSession, comparison: Comparison) -> dict[str, Any]:
    counts = comparison.counts
    assert counts is not None
    by, key = list(counts.by), list(comparison.key)
    wanted = _read(spark, comparison.files, comparison, list(dict.fromkeys((*by, counts.of, *counts.where))))
    for column, value in counts.where.items():
        wanted = wanted.where(f.col(_quoted(column)) == f.lit(value).cast(_TYPES[comparison.kinds[column]]))
    wanted = wanted.where(f.col(_quoted(counts.of)).isNotNull()).select(*map(_quoted, dict.fromkeys((*by, counts.of))))
    want = wanted.distinct().groupBy(*map(_quoted, by)).agg(f.count("*").alias("n")).collect()
    found = _read(spark, comparison.found, comparison, list(dict.fromkeys((*key, *by, counts.column))))
    have = found.groupBy(*map(_quoted, by)).agg(f.sum(_quoted(counts.column)).alias("n")).collect()
    twice = found.groupBy(*map(_quoted, key)).agg(f.count("*").alias("n")).where("n > 1").collect()
    return counted_answer(
        comparison,
        [(tuple(row[: len(by)]), row[-1], 0) for row in want]
        + [(tuple(row[: len(by)]), 0, row[-1] or 0) for row in have],
        [(dict(zip(key, row, strict=False)), row[-1]) for row in twice],
    )


def _read(spark: SparkSession, files: Iterable[DataFile], comparison: Comparison, columns: list[str]) -> DataFrame:
    """The columns of all files, each in its kind. Files whose paths say the same are read together."""
    together: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for file in files:
        values = {name.lower(): value for name, value in file.values.items()}
        said = tuple((column, values[column.lower()]) for column in columns if column.lower() in values)
        together[file.format, said].append(file.path)
    types = {column: _TYPES[comparison.kinds[column]] for column in columns}
    frames = []
    for (format, said), paths in together.items():
        inside = dict(said)
        # Paths are names, not patterns: a bracket in one is a bracket.
        frame = spark.read.option("__globPaths__", "false").format(format).load(paths)
        frames.append(
            frame.select(
                *(
                    (f.lit(inside[column]) if column in inside else f.col(_quoted(column)))
                    .cast(types[column])
                    .alias(column)
                    for column in columns
                )
            )
        )
    empty = spark.createDataFrame([], ", ".join(f"{_quoted(column)} {kind}" for column, kind in types.items()))
    return reduce(DataFrame.unionByName, frames, empty)


def _range(spark: SparkSession, each: Range, comparison: Comparison) -> DataFrame:
    numbers = spark.range(each.start, max(each.end, each.start))
    return numbers.select(
        *(
            (f.lit(each.group[column]) if column in each.group else f.col("id"))
            .cast(_TYPES[comparison.kinds[column]])
            .alias(column)
            for column in comparison.key
        )
    )


def _marked(frame: DataFrame, want: int, have: int) -> DataFrame:
    return frame.withColumn("want", f.lit(want).cast("bigint")).withColumn("have", f.lit(have).cast("bigint"))


def _quoted(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


if __name__ == "__main__":
    sys.exit(main())
