"""Measures the proof and the backfill against the same done by hand: `python bench/rows.py [--rows 50000000]`.

The proof: every offset of a topic is in a table once, and every key of one table is in another once. Asked of `runbook`,
of DuckDB and of plain Spark, each a process of its own, in turn; all three must give the same answer. The table has one
row missing, one doubled and one foreign. The backfill: `runbook`'s against a batch job that reads, transforms, leaves out
what is there and writes. DuckDB is installed into build/bench-venv; where it cannot be had, that is said.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from statistics import median
from typing import Any

from bench import Cost, ratio, run

DUCKDB = "duckdb==2.0.0"
HERE = Path(__file__).parent
PARTITIONS, A_FILE = 4, 500_000
_TOPIC = "sensor-raw"

# The process that is measured reads a question and prints the answer.
OURS = """
import json, sys
from wizard.compare import Range, compare, plan_keys
from wizard.datafiles import DataFile
asked = json.load(open(sys.argv[1]))
files = {side: [DataFile(path) for path in asked[side]] for side in ("found", "files")}
ranges = [Range(*each) for each in asked["ranges"]]
answer = compare(plan_keys(["topic", "partition", "offset"], files["found"], files=files["files"], ranges=ranges))
print(json.dumps([answer[what]["rows"] for what in ("missing", "doubled", "foreign")]))
"""
SQL = """
with sides as (
  select topic, partition, "offset", 0 as want, 1 as have from found
  union all select topic, partition, "offset", 1, 0 from wanted),
grouped as (select topic, partition, "offset", sum(want) as want, sum(have) as have from sides group by all)
select coalesce(sum(case when want > have then want - have end), 0),
       coalesce(sum(case when have > want and want > 0 then have - want end), 0),
       coalesce(sum(case when have > want and want = 0 then have - want end), 0) from grouped
"""
DUCK = f"""
import json, sys, duckdb
asked = json.load(open(sys.argv[1]))
db = duckdb.connect(config={{"preserve_insertion_order": False, "memory_limit": "6GB"}})
db.execute("create view found as select * from read_parquet(?)".replace("?", repr(asked["found"])))
if asked["files"]:
    db.execute(f"create view wanted as select * from read_parquet({{asked['files']!r}})")
else:
    parts = " union all ".join(
        f"select '{{group['topic']}}' as topic, {{group['partition']}} as partition, range as \\"offset\\" from range({{start}}, {{end}})"
        for group, start, end in asked["ranges"])
    db.execute(f"create view wanted as {{parts}}")
print(json.dumps([int(n) for n in db.execute({SQL!r}).fetchone()]))
"""
SPARK = f"""
import json, sys
from functools import reduce
from pyspark.sql import DataFrame, SparkSession, functions as f
asked = json.load(open(sys.argv[1]))
spark = (SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").config("spark.driver.memory", "4g")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
spark.read.parquet(*asked["found"]).createTempView("found")
wanted = [spark.read.parquet(*asked["files"])] if asked["files"] else [
    spark.range(start, end).select(f.lit(group["topic"]).alias("topic"), f.lit(group["partition"]).alias("partition"),
                                   f.col("id").alias("offset")) for group, start, end in asked["ranges"]]
reduce(DataFrame.unionByName, wanted).createTempView("wanted")
print(json.dumps([int(n) for n in spark.sql({SQL.replace('"offset"', "`offset`")!r}).collect()[0]]))
spark.stop()
"""
BY_HAND = """
import sys
from pyspark.sql import functions as f
from wizard.spark.config import load_config
from wizard.spark.deserialize import readings
from wizard.spark.session import build_session
raw, typed, to, conf = sys.argv[1:]
spark = build_session("by hand", load_config(conf))
rows = readings(spark.read.parquet(raw), -100, 200)
there = spark.read.parquet(typed).select("topic", "partition", "offset")
rows.join(there, ["topic", "partition", "offset"], "left_anti").write.partitionBy("quality").parquet(to)
spark.stop()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of the output that is proved")
    parser.add_argument("--backfill-rows", type=int, default=2_000_000, help="rows of the range that is filled")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("proof", "backfill"))
    parser.add_argument("--without-spark", action="store_true", help="ask DuckDB only, which is the faster of the two")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="runbook-bench-") as scratch:
        if given.only != "backfill":
            proof(Path(scratch), given.rows, given.rounds, spark=not given.without_spark)
        if given.only != "proof":
            backfill(Path(scratch), given.backfill_rows, given.rounds)


def proof(scratch: Path, rows: int, rounds: int, *, spark: bool) -> None:
    # In a process of its own: a child's peak starts at its parent's size, so this one has to stay small.
    make = [sys.executable, __file__.replace("rows.py", "make_rows.py"), str(scratch), str(rows)]
    subprocess.run(make, check=True)
    duck = _duckdb()
    for name in ("topic", "table"):
        question = str(scratch / f"{name}.json")
        sides = {"runbook": [sys.executable, "-c", OURS, question]}
        sides |= {"DuckDB": [duck, "-c", DUCK, question]} if duck else {}
        sides |= {"Spark": [sys.executable, "-c", SPARK, question]} if spark or not duck else {}
        answers = {who: _answer(command) for who, command in sides.items()}  # and the file system's caches are warm
        assert set(map(tuple, answers.values())) == {(1, 1, 1)}, f"missing, doubled and foreign are one each: {answers}"
        costs = _in_turn(sides, rounds)
        print(f"\n{f'{rows:,} rows against a {name}':<42}{'best s':>9}{'median s':>10}{'peak MB':>9}")
        for who, told in costs.items():
            seconds = [cost.seconds for cost in told]
            memory = "-" if who == "Spark" else f"{max(cost.peak_mb for cost in told):.0f}"
            print(f"{who:<42}{min(seconds):>9.2f}{median(seconds):>10.2f}{memory:>9}")
        others = {who: told for who, told in costs.items() if who != "runbook"}
        better = min(others, key=lambda who: median(cost.seconds for cost in others[who]))
        ratio(f"runbook / {better}", costs["runbook"], costs[better], "<= 1.3", lambda r: r <= 1.3)


def backfill(scratch: Path, rows: int, rounds: int) -> None:
    make = [sys.executable, __file__.replace("rows.py", "make_rows.py"), str(scratch), str(rows), "--workspace"]
    subprocess.run(make, check=True)
    root = scratch / "ws"
    raw, typed = root / "lake/raw/sensor_readings", root / "lake/typed/sensor_readings"
    conf = root / "conf/sensor-deserialize.yaml"
    ours = [sys.executable, "-m", "wizard.spark.backfill", "sensor-deserialize", "--jobs", str(root / "jobs.yaml")]
    ours += ["--range", str(scratch / "range.json"), "--to", str(scratch / "staged")]
    hand = [sys.executable, "-c", BY_HAND, str(raw), str(typed), str(scratch / "hand"), str(conf)]
    costs: dict[str, list[Cost]] = {"runbook": [], "by hand": []}
    for number in range(rounds + 1):
        for who, command in (("runbook", ours), ("by hand", hand)):
            for made in ("staged", "hand"):
                shutil.rmtree(scratch / made, ignore_errors=True)
            cost = run(command)
            if number:  # the first round only warms the file system's caches
                costs[who].append(cost)
            _same_rows(scratch / ("staged" if who == "runbook" else "hand"), rows // 2)
    print(f"\n{f'backfill, {rows // 2:,} of {rows:,} rows missing':<42}{'best s':>9}{'median s':>10}{'rows/s':>9}")
    for who, told in costs.items():
        seconds = [cost.seconds for cost in told]
        print(f"{who:<42}{min(seconds):>9.2f}{median(seconds):>10.2f}{rows / median(seconds):>9.0f}")
    ratio("throughput, runbook / by hand", costs["by hand"], costs["runbook"], ">= 0.95", lambda r: r >= 0.95)


def _in_turn(sides: dict[str, list[str]], rounds: int) -> dict[str, list[Cost]]:
    costs: dict[str, list[Cost]] = {who: [] for who in sides}
    for _ in range(rounds):
        for who, command in sides.items():
            costs[who].append(run(command))
    return costs


def _answer(command: list[str]) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _same_rows(place: Path, wanted: int) -> None:
    count = "import sys, pyarrow.dataset as ds; print(ds.dataset(sys.argv[1], format='parquet', exclude_invalid_files=True).count_rows())"
    found = int(subprocess.run([sys.executable, "-c", count, str(place)], capture_output=True, check=True).stdout)
    if found != wanted:
        sys.exit(f"{place}: {found} rows came out, {wanted} were missing")


def _duckdb() -> str | None:
    place = HERE.parent / "build/bench-venv"
    python = place / "bin/python"
    if not python.exists():
        venv.create(place, with_pip=True)
    check = [python, "-c", "import duckdb"]
    if subprocess.run(check, capture_output=True, check=False).returncode:
        got = subprocess.run(
            [python, "-m", "pip", "install", "-q", DUCKDB], capture_output=True, text=True, check=False
        )
        if got.returncode:
            print(f"without DuckDB, which cannot be installed: {got.stderr.strip().splitlines()[-1][:200]}")
            return None
    return str(python)


if __name__ == "__main__":
    main()
