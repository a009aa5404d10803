"""The output of a recorded stream as a table in PostgreSQL, filled by a client that knows nothing of this project."""

from __future__ import annotations

import itertools
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recorded import at_home, facts
from worlds import in_registry

from wizard.catalogue.world import World

if TYPE_CHECKING:
    from server import Server

PLAIN, KILLED = "spark-4.2-stateless-file", "spark-4.2-stateless-killed"
BATCHES = {"batch_column": "batch_id", "query_column": "query_id"}
_NUMBER = itertools.count()


class Output:
    """A job whose rows `{id, name}` are in a table of its own."""

    def __init__(
        self, database: Server, root: Path, name: str = PLAIN, more: dict[str, Any] | None = None, **options: str
    ) -> None:
        self.database, self.home = database, at_home(name, root)
        self.query = facts(name)["query_id"]
        self.table = f"rows_{next(_NUMBER)}"
        self.options = database.options(self.table, **(options or BATCHES))
        self.sink = {"format": "jdbc", "key": ["id"], "options": self.options, **(more or {})}
        job = {
            "checkpoint": str(self.home / "checkpoint"),
            "source": {"format": "json", "path": str(self.home / "input")},
            "sink": self.sink,
            "spark_version": "4.2.0",
            "control": {"kind": "process", "start": [sys.executable, "-c", "pass"], "settle_seconds": 0.1},
        }
        self.jobs = self.home / "jobs.yaml"
        self.jobs.write_text(json.dumps({"version": 1, "runs": "./runs", "jobs": {"job": job}}))

    def world(self, batch: int | None = None) -> World:
        made = in_registry(self.jobs, "job", self.home / "runs/run-1")
        made.run = f"run of {self.table}"  # one database for all tests: a run's schema is named after it
        if batch is not None:
            made.answers["target"] = {"batch": batch}
        return made

    def create(self, more: str = "") -> None:
        self.sql(f"CREATE TABLE {self.table} (id bigint, name text, query_id text, batch_id bigint{more})")

    def fill(self, last: int = 13, query: str | None = None, table: str | None = None) -> None:
        """As the recorded stream did: batch N has the rows of f<N>.json."""
        for batch in range(last + 1):
            self.write(batch, query, table)

    def write(self, batch: int, query: str | None = None, table: str | None = None) -> None:
        read = [json.loads(line) for line in (self.home / f"input/f{batch}.json").read_text().splitlines()]
        values = [value for row in read for value in (row["id"], row["name"], query or self.query, batch)]
        places = ", ".join(["(%s, %s, %s, %s)"] * len(read))
        self.database.rows(f"INSERT INTO {table or self.table} VALUES {places}", values)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        return self.database.rows(query)

    def rows(self) -> Counter[tuple[Any, ...]]:
        return Counter(self.sql(f"SELECT * FROM {self.table}"))

    def ids(self) -> list[int]:
        return sorted(row[0] for row in self.sql(f"SELECT id FROM {self.table}"))
