"""A workspace of the cluster profile in a test: the command line on it, and its rows by code that knows nothing of the tool."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from had import ROOT

if TYPE_CHECKING:
    from broker import Broker

RUNBOOK = Path(sys.executable).with_name("runbook")
JOBS = ("sensor-raw-ingest", "sensor-deserialize", "sensor-merge-gold")
PATIENT: dict[str, Any] = dict.fromkeys(("wait_commit", "wait_moving"), ["again"] * 4)
"""Answers for a walk on a machine that has much else to do."""
TABLES = ("lake/raw/sensor_readings", "lake/typed/sensor_readings", "lake/gold/sensor_windows")


@dataclass
class Workspace:
    root: Path
    broker: Broker
    topic: str = "sensor-raw"

    def runbook(self, *command: str, wanted: int = 0) -> str:
        done = subprocess.run(
            [RUNBOOK, *command, "--jobs", self.root / "jobs.yaml"],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == wanted, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def once(self, *jobs: str) -> None:
        command = [sys.executable, Path(__file__).with_name("once.py"), self.root / "jobs.yaml", *jobs]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stderr[-3000:]

    def answers(self, **given: Any) -> list[str]:
        """The arguments of a walk with nobody at the keyboard."""
        file = self.root / "answers.yaml"
        file.write_text(json.dumps({"place": "in_place", "who": "stop", "readers_too": "reset"} | given))
        return ["--no-input", "--answers", str(file), "--confirm", JOBS[0]]

    def last_run(self) -> str:
        (only,) = [path.name for path in (self.root / "runs").iterdir() if (path / "journal.jsonl").exists()]
        return only

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Read with pyarrow, file by file, as Delta's log names them: not through the project."""
        import pyarrow as pa
        from deltalake import DeltaTable

        return pa.table(DeltaTable(str(self.root / table)).to_pyarrow_table()).to_pylist()

    def keys(self, table: str) -> Counter[tuple[int, int]]:
        return Counter((row["partition"], row["offset"]) for row in self.rows(table))

    def wait_for(self, table: str, wanted: Counter[tuple[int, int]], seconds: float = 180) -> None:
        """Until the table has these rows, or as long as that; the caller looks for himself then."""
        deadline = time.monotonic() + seconds
        while self.keys(table) != wanted and time.monotonic() < deadline:
            time.sleep(0.5)

    def only(self, job: str) -> None:
        """A registry of this one job: nobody reads what it writes."""
        raw = yaml.safe_load((self.root / "jobs.yaml").read_text())
        raw["jobs"] = {job: raw["jobs"][job]}
        (self.root / "jobs.yaml").write_text(yaml.safe_dump(raw))

    def state(self, job: str) -> dict[str, bytes]:
        """Every file of a checkpoint, byte for byte."""
        place = self.root / "checkpoints" / job
        return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}

    def query_id(self, job: str) -> str:
        return str(json.loads((self.root / "checkpoints" / job / "metadata").read_text())["id"])


def offsets(path: Path) -> Any:
    return json.loads(path.read_text().splitlines()[2])


def good_readings(records: list[tuple[int, int, bytes | None, bytes | None]]) -> Counter[str]:
    """Different reading ids by sensor, of the records that are readings: worked out from the records themselves."""
    seen: dict[str, set[str]] = {}
    for _, _, _, value in records:
        try:
            reading = json.loads(value or b"")
            if {"id", "sensor", "time", "temperature"} <= reading.keys() and -100 <= reading["temperature"] <= 200:
                seen.setdefault(reading["sensor"], set()).add(reading["id"])
        except (ValueError, AttributeError, TypeError):
            continue
    return Counter({sensor: len(ids) for sensor, ids in seen.items()})


def end_jobs(root: Path) -> None:
    """Ends the jobs that the walk has started: those whose command names this workspace's registry and stand in it."""
    for found in Path("/proc").iterdir():
        try:
            ours = found.name.isdigit() and b"wizard.spark.run" in (found / "cmdline").read_bytes()
            if ours and (found / "cwd").resolve() == root.resolve():
                os.kill(int(found.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue


def produce(broker: Broker, topic: str, count: int, first: int = 0) -> None:
    """Good readings, one in ten the same as the one before it, one in twenty no reading at all."""
    records = []
    for n in range(first, first + count):
        number = n - 1 if n % 10 == 9 else n
        at = 1_790_000_000_000 + number * 1000
        reading = {"id": f"r{number}", "sensor": f"s-{number % 4}", "temperature": 15 + number % 80 / 4}
        reading["time"] = f"2026-09-21T14:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
        value = b"not a reading" if n % 20 == 5 else json.dumps(reading).encode()
        records.append((number % 2, f"s-{number % 4}".encode(), value, at))
    broker.send(topic, records)


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)
