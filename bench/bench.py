"""Measures `runbook` against what it replaces, whole processes, in one run. `make bench` runs it.

The bare programs alternate with ours on the same files, so a busy machine moves both sides. Spark runs after them, a
few times only: its ratio is the rougher one. Everything is written to a temporary directory and removed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from make_checkpoint import BATCHES, PARTITIONS, QUERY_ID, VERSIONS

ROUNDS = 7
SPARK_ROUNDS = 3
LOG_MB = 50

# An installed program has its bytecode; a shell that forbids writing it would have ours compiled anew each time.
ENV = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
RUNBOOK = str(Path(sys.executable).with_name("runbook"))
BARE_LISTING = "import sys, fsspec; fsspec.filesystem('file').find(sys.argv[1])"
BARE_READING = "import sys\nfor line in open(sys.argv[1], encoding='utf-8'): pass"
STATE_METADATA = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
assert spark.read.format("state-metadata").load(sys.argv[1]).collect()
spark.stop()
"""


@dataclass(frozen=True)
class Cost:
    seconds: float
    peak_mb: float


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="runbook-bench-") as scratch:
        checkpoint, log = Path(scratch, "checkpoint"), Path(scratch, "driver.log")
        # In a process of its own: a child's peak starts at its parent's size, so this one has to stay small.
        subprocess.run([sys.executable, Path(__file__).with_name("make_checkpoint.py"), checkpoint], check=True)
        print(f"{make_log(log) / 1e6:.0f} MB of log", flush=True)

        ours = [RUNBOOK, "diagnose", "--json", "--checkpoint", str(checkpoint)]
        check(json.loads(subprocess.run(ours, capture_output=True, check=True).stdout))
        diagnose, listing = alternate(
            ours,
            [sys.executable, "-c", BARE_LISTING, str(checkpoint)],
        )
        spark = [run([sys.executable, "-c", STATE_METADATA, str(checkpoint)]) for _ in range(SPARK_ROUNDS)]
        ours = [RUNBOOK, "explain", "--json", str(log)]
        explained = json.loads(subprocess.run(ours, capture_output=True, check=True).stdout)
        same("cause of the log", explained["cause"] and explained["cause"]["code"], "BATCH_ENTRY_MISSING")
        explain, reading = alternate(
            ours,
            [sys.executable, "-c", BARE_READING, str(log)],
        )

    print(f"\n{'whole process':<42}{'best s':>9}{'median s':>10}{'peak MB':>9}")
    for name, costs in (
        ("runbook diagnose --json", diagnose),
        ("bare fsspec find", listing),
        ("Spark, state-metadata source", spark),
        ("runbook explain --json", explain),
        ("bare reading of the log's lines", reading),
    ):
        seconds = [cost.seconds for cost in costs]
        # Spark's memory is its JVM's, which is not a child that is waited for here.
        memory = "-" if costs is spark else f"{peak(costs):.0f}"
        print(f"{name:<42}{min(seconds):>9.3f}{median(seconds):>10.3f}{memory:>9}")

    print(f"\n{'ratio (best, median)':<42}{'best':>9}{'median':>10}   aim")
    ratio("diagnose / bare listing", diagnose, listing, "<= 1.0", lambda r: r <= 1.0)
    ratio("Spark / diagnose", spark, diagnose, ">= 20", lambda r: r >= 20)
    ratio("explain / bare reading", explain, reading, "none set", None)
    print(f"{'diagnose, peak MB':<42}{peak(diagnose):>9.0f}{'':>10}   < 120   {said(peak(diagnose) < 120)}")


def check(diagnosis: dict[str, Any]) -> None:
    """A fast wrong answer is worth nothing: what was written must come out again."""
    last = BATCHES.stop - 1
    # Maintenance took version 1 from some partitions only, so 10, the first snapshot, is the oldest whole everywhere.
    versions = {"min": 10, "max": VERSIONS.stop - 1}
    batches = {"first": BATCHES.start, "planned": last, "committed": last, "in_flight": []}
    same("query id", diagnosis["query_id"], QUERY_ID)
    same("batches", diagnosis["batches"], batches)
    same("source", [source["kind"] for source in diagnosis["sources"]], ["kafka"])
    same("offset", diagnosis["sources"][0]["offset"], {"sensor-raw": {"0": 1000 * last, "1": 1000 * last}})
    same("partitions", [op["partitions"] for op in diagnosis["operators"]], [PARTITIONS])
    same("state", (diagnosis["state"]["provider"], diagnosis["state"]["versions"]), ("hdfs", versions))
    same("findings", [found["code"] for found in diagnosis["findings"]], [])
    same("restart", (diagnosis["restart"]["action"], diagnosis["restart"]["batch"]), ("next", last + 1))


def same(what: str, seen: object, expected: object) -> None:
    if seen != expected:
        sys.exit(f"{what}: {seen} came out, {expected} was written")


def alternate(ours: list[str], theirs: list[str]) -> tuple[list[Cost], list[Cost]]:
    """Run the two in turn. The first round only warms the file system's caches."""
    rounds = [(run(ours), run(theirs)) for _ in range(ROUNDS + 1)][1:]
    return [a for a, _ in rounds], [b for _, b in rounds]


def run(command: list[str]) -> Cost:
    started = time.perf_counter()
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=ENV)
        # wait4 gives this child's own peak; RUSAGE_CHILDREN would give the largest of all children so far.
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            stderr.seek(0)
            sys.exit(f"{' '.join(command[:3])} ended with {process.returncode}:\n{stderr.read().decode()[-2000:]}")
    return Cost(seconds, usage.ru_maxrss / 1024)


def peak(costs: list[Cost]) -> float:
    return max(cost.peak_mb for cost in costs)


def ratio(name: str, over: list[Cost], under: list[Cost], aim: str, met) -> None:
    best = min(c.seconds for c in over) / min(c.seconds for c in under)
    middle = median(c.seconds for c in over) / median(c.seconds for c in under)
    print(f"{name:<42}{best:>9.2f}{middle:>10.2f}   {aim:<8}{said(met(middle)) if met else ''}")


def said(met: bool) -> str:
    return "met" if met else "missed"


def make_log(path: Path) -> int:
    """A driver log: progress lines for hours, then the failure."""
    progress = (
        "26/11/18 08:33:46 INFO MicroBatchExecution: Committed offsets for batch {}. Metadata OffsetSeqMetadata\n"
    )
    failure = (
        "26/11/18 08:33:47 ERROR MicroBatchExecution: Query terminated with error\n"
        "java.lang.IllegalStateException: batch 14 doesn't exist\n"
        "\tat org.apache.spark.sql.execution.streaming.MicroBatchExecution.populateStartOffsets\n"
    )
    with path.open("w", encoding="utf-8") as out:
        batch = 0
        while out.tell() < LOG_MB * 1_000_000:
            out.writelines(progress.format(batch + i) for i in range(1000))
            batch += 1000
        out.write(failure)
    return path.stat().st_size


if __name__ == "__main__":
    main()
