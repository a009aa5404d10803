"""What every kind of sink must do. A new kind adds a `Case` to `CASES` and passes `test_sink_conformance.py`.

A case is the output of a recorded stream: batch N wrote the rows of `input/f<N>.json`. Its `ids` are read the way readers
of such an output find them, by code that shares nothing with what is tested.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from recorded import at_home, facts
from tables import Output
from worlds import around

from wizard.catalogue.world import World

if TYPE_CHECKING:
    from server import Server

LOG = "_spark_metadata"


class Case(Protocol):
    last: int  # the newest batch
    home: Path  # holds checkpoint/ and input/

    def world(self) -> World: ...

    def ids(self) -> Counter[int]: ...

    def double(self) -> None:
        """Puts a row, or some, of the newest batch there a second time."""

    def lose(self) -> None:
        """Takes out a row, or some, of the newest batch."""

    def remove(self) -> None:
        """Deletes the whole output, as if it had never been written."""

    def spoil(self) -> None:
        """Damages the output, or puts it out of reach."""


def rows_of(case: Case, up_to: int) -> Counter[int]:
    """What the batches up to one have written, from the input."""
    texts = [(case.home / f"input/f{batch}.json").read_text() for batch in range(up_to + 1)]
    return Counter(json.loads(line)["id"] for text in texts for line in text.splitlines())


class FileCase:
    name = "spark-4.2-stateless-file"

    def __init__(self, root: Path, database: Callable[[], Server]) -> None:
        self.home = at_home(self.name, root)
        self.sink = self.home / "sink"
        self.last = int(facts(self.name)["last_batch_completed"])

    def world(self) -> World:
        return around(self.home)

    def ids(self) -> Counter[int]:
        return Counter(row["id"] for path in self._listed() for row in pq.ParquetFile(path).read().to_pylist())

    def double(self) -> None:
        newest = self._newest()
        newest.write_text(newest.read_text() + "\n" + newest.read_text().splitlines()[1])

    def lose(self) -> None:
        self._newest().write_text("v1")

    def remove(self) -> None:
        import shutil

        shutil.rmtree(self.sink)

    def spoil(self) -> None:
        self._newest().write_text("v1\n{cut")

    def _newest(self) -> Path:
        (self.sink / LOG / f".{self.last}.crc").unlink(missing_ok=True)
        return self.sink / LOG / str(self.last)

    def _listed(self) -> list[str]:
        if not (self.sink / LOG).exists():
            return []
        numbers = {path.name for path in (self.sink / LOG).iterdir() if not path.name.startswith(".")}
        compact = max((int(n.split(".")[0]) for n in numbers if n.endswith(".compact")), default=-1)
        logs = [n for n in numbers if int(n.split(".")[0]) > compact or n == f"{compact}.compact"]
        lines = [line for name in logs for line in (self.sink / LOG / name).read_text().splitlines()[1:]]
        return [json.loads(line)["path"].removeprefix("file://") for line in lines]


class DeltaCase:
    name = "spark-4.2-delta"

    def __init__(self, root: Path, database: Callable[[], Server]) -> None:
        self.home = at_home(self.name, root)
        self.sink = self.home / "sink"
        self.last = int(facts(self.name)["last_batch_completed"])

    def world(self) -> World:
        return around(self.home, sink="delta")

    def ids(self) -> Counter[int]:
        if not (self.sink / "_delta_log").exists():
            return Counter()
        return Counter(row["id"] for row in DeltaTable(self.sink).to_pyarrow_table().to_pylist())

    def double(self) -> None:
        table = DeltaTable(self.sink)
        write_deltalake(table, table.to_pyarrow_table().slice(0, 1), mode="append")

    def lose(self) -> None:
        DeltaTable(self.sink).delete(f"id = {max(self.ids())}")

    def remove(self) -> None:
        import shutil

        shutil.rmtree(self.sink)

    def spoil(self) -> None:
        (self.sink / f"_delta_log/{DeltaTable(self.sink).version():020d}.json").write_text("{")


class TableCase:
    def __init__(self, root: Path, database: Callable[[], Server]) -> None:
        self.output = Output(database(), root)
        self.home = self.output.home
        self.last = 13
        self.output.create()
        self.output.fill()

    def world(self) -> World:
        return self.output.world()

    def ids(self) -> Counter[int]:
        there = self.output.sql(f"SELECT to_regclass('{self.output.table}') IS NOT NULL")
        return Counter(self.output.ids()) if there[0][0] else Counter()

    def double(self) -> None:
        self.output.sql(f"INSERT INTO {self.output.table} SELECT * FROM {self.output.table} WHERE id = 41")

    def lose(self) -> None:
        self.output.sql(f"DELETE FROM {self.output.table} WHERE id = 41")

    def remove(self) -> None:
        self.output.sql(f"DROP TABLE {self.output.table}")

    def spoil(self) -> None:
        text = self.output.jobs.read_text()
        self.output.jobs.write_text(text.replace(f":{self.output.database.port}/", ":1/"))


CASES = {"file": FileCase, "delta": DeltaCase, "jdbc": TableCase}
