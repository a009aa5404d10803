"""The workspace that every case starts from: built once, broken once a scenario, copied back before each case.

Checkpoints and sink logs hold absolute paths, so all cases use the same place, one after the other. One Spark session
runs the jobs that only have to process what is there; the jobs of a walk are started by the walk, as processes.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from wizard.checkpoint.reader import read_checkpoint
from wizard.counting import Stage as Rows
from wizard.counting import count
from wizard.jobs.control.open import open_controller
from wizard.jobs.registry import load_registry
from wizard.sources.open import caught_up
from wizard.spark.produce import produce_more
from wizard.spark.scenarios import SCENARIOS, Scenario
from wizard.spark.scenarios.model import lose
from wizard.spark.workspace import Workspace, create_workspace
from wizard.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INGEST, TYPED, GOLD = JOBS = "sensor-raw-ingest", "sensor-deserialize", "sensor-merge-gold"
OUTPUT = {INGEST: "raw", TYPED: "typed", GOLD: "gold"}
FIRST, SECOND, WAITING = 500, 150, 100  # records: all jobs run; the first job runs twice; what comes while it is down
_CATCH_UP_SECONDS = 90.0
_ATTEMPTS = 4
_HOLED_BATCH = {INGEST: "2", TYPED: "1"}  # not the newest, and not yet read by anybody


@dataclass(frozen=True)
class Hole:
    """Rows that a committed batch read and the output has not, and the answer that names them to a backfill."""

    rows: int
    option: str
    value: str


class Stage:
    scenarios = SCENARIOS

    def __init__(self, base: Path, spark: SparkSession, say: Callable[[str], None]) -> None:
        self.base, self.spark, self.say = base, spark, say
        self.workspace = Workspace(base / "ws")

    def set(self, scenario: Scenario, *, holed: bool = False) -> Hole | None:
        """The workspace, broken as the scenario has it; with a hole in the job's output from before, where asked."""
        broken = self.base / f"broken-{scenario.name}{'-holed' if holed else ''}"
        variant = scenario.job if holed else "whole"
        if not broken.exists():
            self._restore(self._built(variant))
            self.say(f"breaking {scenario.job}: {scenario.name}")
            scenario.inject(self.workspace, self.run)
            produce_more(self.workspace.log, WAITING)
            for job in JOBS[: JOBS.index(scenario.job)]:
                self.run(job)
            shutil.copytree(self.workspace.root, broken)
        else:
            self._restore(broken)
        return Hole(**json.loads(self._hole_file(variant).read_text())) if holed else None

    def forget(self, scenario: Scenario) -> None:
        for path in self.base.glob(f"broken-{scenario.name}*"):
            shutil.rmtree(path)

    def run(self, job: str) -> None:
        from wizard.spark.run import run_once

        for attempt in range(_ATTEMPTS):
            try:
                return run_once(self.spark, self.workspace.jobs_file, job)
            except Exception as error:
                # Spark gives a worker of its own ten seconds; on a machine that is too busy for that it is asked again.
                if "Python worker failed to connect back" not in str(error) or attempt + 1 == _ATTEMPTS:
                    raise

    def running(self) -> list[str]:
        registry = load_registry(self.workspace.jobs_file)
        return [
            name for name, job in registry.jobs.items() if open_controller(registry, job).status().state != "stopped"
        ]

    def wait_until_caught_up(self, name: str) -> bool:
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        while time.monotonic() < deadline:
            job = load_registry(self.workspace.jobs_file).jobs[name]
            seen = read_checkpoint(open_store(job.checkpoint))
            if not seen.in_flight and caught_up(job, seen):
                return True
            time.sleep(0.5)
        return False

    def stop_all(self) -> None:
        if not self.workspace.jobs_file.exists():
            return
        registry = load_registry(self.workspace.jobs_file)
        for name in reversed(self.running()):
            open_controller(registry, registry.jobs[name]).stop()

    def rows(self) -> dict[str, Rows]:
        """Counted where the registry has the outputs now: a reset beside the old one moves them."""
        registry = load_registry(self.workspace.jobs_file)
        view = self.base / "view"
        shutil.rmtree(view, ignore_errors=True)
        links = {"log": self.workspace.root / "log"}
        for job, usual in ((INGEST, self.workspace.raw), (TYPED, self.workspace.typed), (GOLD, self.workspace.gold)):
            links[str(usual.relative_to(self.workspace.root))] = Path(registry.jobs[job].sink.path or usual)
        for name, target in links.items():
            (view / name).parent.mkdir(parents=True, exist_ok=True)
            (view / name).symlink_to(target)
        return count(view)

    def _restore(self, copy: Path) -> None:
        self.stop_all()
        shutil.rmtree(self.workspace.root, ignore_errors=True)
        shutil.copytree(copy, self.workspace.root)

    def _built(self, variant: str) -> Path:
        """`whole`, or with a hole in one job's output, made before anybody read it."""
        copy = self.base / f"built-{variant}"
        if copy.exists():
            return copy
        begun = self.base / "begun"
        if begun.exists():
            self._restore(begun)
        else:
            self.say("building the workspace")
            shutil.rmtree(self.workspace.root, ignore_errors=True)
            create_workspace(self.workspace.root, segment_bytes=4_000)
            produce_more(self.workspace.log, FIRST)
            for job in JOBS:
                self.run(job)
            for _ in range(2):
                produce_more(self.workspace.log, SECOND)
                self.run(INGEST)
            shutil.copytree(self.workspace.root, begun)
        if variant == INGEST:
            self._note(variant, self._make_hole(self.workspace.raw, INGEST))
        self.run(TYPED)
        if variant == TYPED:
            self._note(variant, self._make_hole(self.workspace.typed, TYPED))
        self.run(GOLD)
        return Path(shutil.copytree(self.workspace.root, copy))

    def _hole_file(self, variant: str) -> Path:
        return self.base / f"hole-{variant}.json"

    def _note(self, variant: str, hole: Hole) -> None:
        self._hole_file(variant).write_text(json.dumps(asdict(hole)))

    def _make_hole(self, output: Path, job: str) -> Hole:
        """Takes the largest data file of a batch out of the output and its log, as a writer does that left rows out."""
        import pyarrow.parquet as pq

        log = output / "_spark_metadata" / _HOLED_BATCH[job]
        version, *entries = log.read_text().splitlines()
        lost = max(entries, key=lambda entry: json.loads(entry)["size"])
        log.write_text("\n".join([version, *(entry for entry in entries if entry != lost)]))
        log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
        path = Path(unquote(urlparse(json.loads(lost)["path"]).path))
        rows = pq.ParquetFile(path).read(columns=["partition", "offset"]).to_pylist()
        lose(path)
        if job != INGEST:
            return Hole(len(rows), "by_batches", _HOLED_BATCH[job])
        ends: dict[int, list[int]] = {}
        for row in rows:
            ends.setdefault(row["partition"], []).append(row["offset"])
        value = ",".join(f"{partition}:{min(at)}-{max(at)}" for partition, at in sorted(ends.items()))
        return Hole(len(rows), "by_offsets", value)
