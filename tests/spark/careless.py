"""The job of the pipeline with a writer that only inserts: `python careless.py JOB --jobs FILE [--once]`.

What people write first: `foreachBatch` appends, and a batch that is run again is there twice.
"""

from __future__ import annotations

import sys
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier
from pyspark.sql import DataFrame

import wizard.spark.io
from wizard.jobs.model import Job
from wizard.postgres import Table
from wizard.spark.run import main


def appended(job: Job) -> Any:
    table = Table.of(job.sink.options)

    def write(batch: DataFrame, batch_id: int) -> None:
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        rows = [(*row, query, batch_id) for row in batch.select("partition", "offset", "value").collect()]
        with psycopg.connect(**table.connection) as on:
            columns = '("partition" int, "offset" bigint, value bytea, query_id text, batch_id bigint)'
            place = Identifier(*table.identifier)
            on.execute(SQL("CREATE TABLE IF NOT EXISTS {} {}").format(place, SQL(columns)))
            on.cursor().executemany(SQL("INSERT INTO {} VALUES (%s, %s, %s, %s, %s)").format(place), rows)

    return write


if __name__ == "__main__":
    wizard.spark.io.into_table = appended
    sys.exit(main())
