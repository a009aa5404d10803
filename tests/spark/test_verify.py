"""The comparison on Spark and in this process give one answer; and the pipeline's own outputs are proved by both."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import truth
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from streams import TOPIC, offsets, parquet

from wizard.catalogue.live import rows
from wizard.compare import Counts, Range, compare, plan_counts, plan_keys
from wizard.datafiles import DataFile
from wizard.jobs.registry import load_registry
from wizard.spark.produce import produce
from wizard.spark.run import JOBS, run_once
from wizard.spark.verify import verify
from wizard.spark.workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_offsets_are_compared_alike(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "a [b] {c}"
    files = [
        DataFile(str(offsets(out, "x.parquet", 0, *(n for n in range(50) if n not in (3, 4)), 7, 7, 60))),
        DataFile(str(parquet(out / "partition=1/y.parquet", topic=[TOPIC] * 3, offset=pa.array([0, 1, None], pa.int64()))),
                 values={"partition": "1"}),
    ]  # fmt: skip
    ranges = [Range({"topic": TOPIC, "partition": p}, 0, 50 if p == 0 else 4) for p in (0, 1, 2)]
    planned = plan_keys(["topic", "partition", "offset"], files, ranges=ranges)
    answer = compare(planned)
    key = {"topic": TOPIC, "partition": 0}
    assert answer == {
        "expected": 58,
        "found": 54,
        "repeated": 0,
        "missing": {"rows": 8, "examples": [key | {"offset": 3}, key | {"offset": 4}]
                    + [key | {"partition": 1, "offset": n} for n in (2, 3)] + [key | {"partition": 2, "offset": 0}]},
        "doubled": {"rows": 2, "keys": 1, "examples": [key | {"offset": 7}]},
        "foreign": {"rows": 2, "examples": [key | {"offset": 60}, key | {"partition": 1, "offset": None}]},
    }  # fmt: skip
    assert verify(spark, planned) == answer
    inside = plan_keys(["topic", "partition", "offset"], files, ranges=ranges, inside=True)
    assert verify(spark, inside) == compare(inside) != answer
    assert rows.on_spark(planned) == answer  # in a process of its own


def test_keys_of_every_kind_are_compared_alike(spark: SparkSession, tmp_path: Path) -> None:
    def columns(*numbers: int) -> dict[str, object]:
        return {
            "name": [f"é{n}" if n else None for n in numbers],
            "at": pa.array([datetime(2026, 1, 1, n, tzinfo=UTC) for n in numbers], pa.timestamp("us", tz="UTC")),
            "day": pa.array([datetime(2026, 1, n + 1).date() for n in numbers]),
            "ok": [n % 2 == 0 for n in numbers],
        }

    source = [DataFile(str(parquet(tmp_path / "in.parquet", **columns(0, 1, 2, 3, 3, 5))))]
    sink = [DataFile(str(parquet(tmp_path / "out.parquet", **columns(0, 0, 1, 3, 3, 4, 9))))]
    planned = plan_keys(["name", "at", "day", "ok"], sink, files=source)
    answer = compare(planned)
    assert [answer[kind]["rows"] for kind in ("missing", "doubled", "foreign")] == [2, 1, 2]
    assert answer["repeated"] == 1
    assert answer["doubled"]["examples"] == [
        {"name": None, "at": "2026-01-01T00:00:00", "day": "2026-01-01", "ok": True}
    ]
    assert verify(spark, planned) == answer


def test_the_clock_of_a_config_file_does_not_make_two_times_one(spark: SparkSession, tmp_path: Path) -> None:
    hours = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1)]  # 02:30 twice in Berlin
    kind = pa.timestamp("us", tz="UTC")
    source = [DataFile(str(parquet(tmp_path / "in.parquet", at=pa.array(hours, kind))))]
    sink = [DataFile(str(parquet(tmp_path / "out.parquet", at=pa.array([hours[0]] * 2, kind))))]
    planned = plan_keys(["at"], sink, files=source)
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    answer = verify(spark, planned)
    assert (answer["missing"]["rows"], answer["doubled"]["rows"]) == (1, 1)
    assert answer == compare(planned)


def test_a_file_that_is_named_twice_is_there_twice_for_both(spark: SparkSession, tmp_path: Path) -> None:
    once = DataFile(str(parquet(tmp_path / "k=a%20b/once.parquet", n=[1, 2])), values={"k": "a b"})
    twice = DataFile(str(parquet(tmp_path / "k=a%20b/twice.parquet", n=[3])), values={"k": "a b"})
    planned = plan_keys(["k", "n"], [once, twice, twice], files=[once, twice])
    answer = compare(planned)
    assert (answer["found"], answer["doubled"]["rows"], answer["missing"]["rows"]) == (4, 1, 0)
    assert verify(spark, planned) == answer


def test_counts_are_compared_alike(spark: SparkSession, tmp_path: Path) -> None:
    good = parquet(tmp_path / "good.parquet", id=["1", "1", "2", "3", None], sensor=["a", "a", "a", "b", "b"])
    other = parquet(tmp_path / "other.parquet", id=["4"], sensor=["a"])
    source = [DataFile(str(good), values={"q": "good"}), DataFile(str(other), values={"q": "bad"})]
    sink = [DataFile(str(parquet(tmp_path / "out.parquet", sensor=["a", "a", "c"], hour=[1, 1, 1], n=[1, 2, 5])))]
    for by in (("sensor",), ()):
        planned = plan_counts(["sensor", "hour"], Counts("n", "id", by, {"q": "good"}), sink, source)
        answer = compare(planned)
        assert (answer["expected"], answer["found"], answer["doubled"]["rows"]) == (3, 8, 1)
        # a: 2 expected, 3 found; b: 1 and 0; c: 0 and 5
        assert (answer["missing"]["rows"], answer["foreign"]["rows"]) == ((1, 6) if by else (0, 5))
        assert verify(spark, planned) == answer


def test_the_pipelines_outputs_are_proved_and_their_defects_found(
    spark: SparkSession, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for round_ in range(2):
        produce(workspace.log, 400, first=400 * round_)
        for name in JOBS:
            run_once(spark, workspace.jobs_file, name)
    jobs = load_registry(workspace.jobs_file).jobs
    values = truth.log_values(workspace.root / "log/sensor-raw")
    good = {r["id"] for r in map(truth.reading, values.values()) if r}
    for name, expected in (("sensor-raw-ingest", 800), ("sensor-deserialize", 800), ("sensor-merge-gold", len(good))):
        seen = rows.exact(jobs[name])
        assert seen.truth == "holds", seen.evidence
        assert seen.data["expected"] == expected
    here = {name: rows.exact(job).data for name, job in jobs.items()}
    monkeypatch.setenv(rows.ABOVE_ROWS, "0")
    monkeypatch.setattr(rows, "on_spark", lambda planned: verify(spark, planned))
    assert {name: rows.exact(job).data for name, job in jobs.items()} == here
    monkeypatch.delenv(rows.ABOVE_ROWS)

    lost = next(path for path in truth.sink_files(workspace.typed) if "quality=bad" in str(path))
    gone = truth.pq.ParquetFile(lost).read(["partition", "offset"]).to_pylist()
    truth.pq.write_table(truth.pq.ParquetFile(lost).read().slice(1), lost)
    Path(lost.with_name(f".{lost.name}.crc")).unlink()
    seen = rows.exact(jobs["sensor-deserialize"])
    assert (seen.truth, seen.data["missing"]["examples"]) == ("fails", [{"topic": "sensor-raw"} | gone[0]])
    # The gold job read the good readings only, so it does not miss that row.
    assert rows.exact(jobs["sensor-merge-gold"]).truth == "holds"
    DeltaTable(workspace.gold).update({"readings": "readings + 1"}, predicate="sensor = 's-1'")
    seen = rows.exact(jobs["sensor-merge-gold"])
    assert seen.truth == "fails" and [each["sensor"] for each in seen.data["foreign"]["examples"]] == ["s-1"]
