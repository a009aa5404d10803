"""The stage of the cluster profile: Kafka → Delta → Delta → Delta, on a broker that is started for it.

The topic is made anew before each case: the same records at the same offsets, then what the scenario does to it. Rows
are read with confluent-kafka and deltalake, by nothing that the jobs or the walk use.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_breaks import SCENARIOS, ClusterScenario, ClusterWorkspace, fill, send_more
from stage import FIRST, GOLD, INGEST, JOBS, OUTPUT, SECOND, TYPED, WAITING, Hole, Stage

from wizard.counting import Key, compared, windows
from wizard.counting import Stage as Rows
from wizard.jobs.registry import load_registry
from wizard.spark.config import SparkConfig, load_config
from wizard.spark.produce import TOPIC
from wizard.spark.session import build_session

if TYPE_CHECKING:
    from broker import Broker
    from pyspark.sql import SparkSession

FIXTURES = Path(__file__).parents[1] / "fixtures"
sys.path[:0] = [str(FIXTURES / room) for room in ("cluster", "connectors")]
BESIDE = ("duplicates-in-sink",)
_HOLED_VERSION = 2  # of batch 2: not the newest, and not yet read by anybody


class ClusterStage(Stage):
    scenarios = SCENARIOS

    def __init__(self, base: Path, spark: SparkSession, say: Callable[[str], None], broker: Broker) -> None:
        super().__init__(base, spark, say)
        self.topics = broker
        self.workspace = ClusterWorkspace(base / "ws", broker)

    def set(self, scenario: ClusterScenario, *, holed: bool = False) -> Hole | None:  # type: ignore[override]
        broken = self.base / f"broken-{scenario.name}{'-holed' if holed else ''}"
        new = not broken.exists()
        self._restore(self._built("holed" if holed else "whole") if new else broken)
        fill(self.topics, FIRST + 2 * SECOND)
        scenario.topic(self.topics)
        if new:
            self.say(f"breaking {scenario.job}: {scenario.name}")
            scenario.inject(self.workspace, self.run)
        send_more(self.topics, WAITING)
        if new:
            for job in JOBS[: JOBS.index(scenario.job)]:
                self.run(job)
            shutil.copytree(self.workspace.root, broken)
        return Hole(**json.loads((self.base / "hole.json").read_text())) if holed else None

    def rows(self) -> dict[str, Rows]:
        from deltalake import DeltaTable

        def read(job: str, column: str) -> list[tuple[Key, object]]:
            if not (paths[job] / "_delta_log").is_dir():
                return []
            found = DeltaTable(paths[job]).to_pyarrow_table(columns=["partition", "offset", column]).to_pylist()
            return [((row["partition"], row["offset"]), row[column]) for row in found]

        registry = load_registry(self.workspace.jobs_file)
        paths = {job: Path(registry.jobs[job].sink.path or "") for job in OUTPUT}
        source = {(partition, offset): value or b"" for partition, offset, _, value in self.topics.read(TOPIC)}
        return compared(source, read(INGEST, "value"), read(TYPED, "quality"), windows(paths[GOLD]))

    def _restore(self, copy: Path) -> None:
        super()._restore(copy)
        self._forget_tables()

    def _forget_tables(self) -> None:
        """Delta keeps what it has read of a table; under the session that stages, tables are exchanged for others."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    def _built(self, variant: str) -> Path:
        copy = self.base / f"built-{variant}"
        if copy.exists():
            return copy
        from cluster import create

        self.say(f"building the workspace ({variant})")
        shutil.rmtree(self.workspace.root, ignore_errors=True)
        self._forget_tables()
        create(self.workspace.root, self.topics.address)
        fill(self.topics, FIRST)
        for job in JOBS:
            self.run(job)
        for _ in range(2):
            send_more(self.topics, SECOND)
            self.run(INGEST)
        if variant == "holed":
            self._make_hole()
            self._forget_tables()
        for job in (TYPED, GOLD):
            self.run(job)
        return Path(shutil.copytree(self.workspace.root, copy))

    def _make_hole(self) -> None:
        """A file of a committed batch is taken out of the commit, as of a writer that left its rows out. A DELETE would
        be another failure: the streams that read the table stop at one."""
        import pyarrow.parquet as pq

        log = self.workspace.raw / "_delta_log"
        commit = log / f"{_HOLED_VERSION:020d}.json"
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        lost = max((action["add"]["path"] for action in actions if "add" in action), key=str)
        commit.write_text("".join(json.dumps(a) + "\n" for a in actions if a.get("add", {}).get("path") != lost))
        for sums in (f".{commit.name}.crc", f"{_HOLED_VERSION:020d}.crc", f".{_HOLED_VERSION:020d}.crc.crc"):
            (log / sums).unlink(missing_ok=True)
        rows = pq.ParquetFile(self.workspace.raw / lost).read(["partition", "offset"]).to_pylist()
        ends: dict[int, list[int]] = {}
        for row in rows:
            ends.setdefault(row["partition"], []).append(row["offset"])
        value = ",".join(f"{partition}:{min(at)}-{max(at)}" for partition, at in sorted(ends.items()))
        (self.base / "hole.json").write_text(json.dumps(asdict(Hole(len(rows), "by_offsets", value))))


@contextmanager
def cluster_stage(base: Path, say: Callable[[str], None]) -> Iterator[ClusterStage]:
    """The broker and the session that stages, both ended at the end."""
    from broker import Broker
    from cluster import create
    from connectors import jars, without_tokens

    if without_tokens(jars("kafka")):
        say("Kafka on Spark without delegation tokens: fixtures/connectors/no-delegation-tokens stands in for them")
    for old in (base / "broker", *base.glob("built-*"), *base.glob("broken-*")):
        shutil.rmtree(old, ignore_errors=True)  # of another run: they name another broker
    broker = Broker(base / "broker", jars("broker"))
    try:
        broker.start()
        jobs = load_registry(create(base / "ws", broker.address)).jobs
        first = jobs[INGEST].config
        assert first is not None
        conf = load_config(first.file).conf
        spark = build_session(
            "gauntlet", SparkConfig("local[2]", "1g", shuffle_partitions=2, log_level="OFF", conf=conf)
        )
        try:
            stage = ClusterStage(base, spark, say, broker)
            try:
                yield stage
            finally:
                stage.stop_all()
        finally:
            spark.stop()
    finally:
        broker.stop()
