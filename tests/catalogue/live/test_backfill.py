"""A hole in an output is filled from the source, once, however often and however interrupted."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wizard.catalogue.effects import DeltaAppend, Program, PublishFiles, load
from wizard.catalogue.live import backfill as live
from wizard.catalogue.world import Plan, World
from wizard.errors import BadInput, RunbookError
from wizard.jobs.registry import load_registry
from wizard.spark.produce import Mix, produce
from wizard.spark.workspace import Workspace, create_workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW, TYPED = "sensor-raw-ingest", "sensor-deserialize"
spark_test = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    from wizard.spark.config import SparkConfig
    from wizard.spark.session import build_session

    conf = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    session = build_session("tests", SparkConfig("local[2]", "1g", shuffle_partitions=2, log_level="OFF", conf=conf))
    yield session
    session.stop()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = create_workspace(tmp_path / "demo")
    text = made.jobs_file.read_text().replace("settle_seconds: 3", "settle_seconds: 0.1")
    made.jobs_file.write_text(text)
    conf = made.conf(RAW)
    conf.write_text(conf.read_text().replace("maxOffsetsPerTrigger: 400", "maxOffsetsPerTrigger: 20"))
    return made


def world_of(workspace: Workspace, job: str, run: str = "one") -> World:
    registry = load_registry(workspace.jobs_file)
    said: list[str] = []
    return World(registry, registry.jobs[job], run, str(workspace.root / "runs" / run), say=said.append)


def act(world: World, plan: Plan) -> None:
    """As the engine does: what is remembered first, then each effect as the journal would give it back."""
    world.memory |= json.loads(json.dumps(plan.remember))
    for effect in plan.effects:
        again = load(json.loads(json.dumps(effect.as_dict())))
        assert again == effect
        again.do(world)


def undo(world: World, plan: Plan) -> None:
    assert [effect.cannot_undo(world) for effect in plan.effects] == [None] * len(plan.effects)
    for effect in reversed(plan.effects):
        effect.undo(world)


def listed(output: Path) -> list[Path]:
    """The files that the output's log lists, from its newest compaction on."""
    log = output / "_spark_metadata"
    numbers = {int(p.name.partition(".")[0]): p for p in log.iterdir() if p.name[0].isdigit()}
    base = max((n for n, p in numbers.items() if p.name.endswith(".compact")), default=0)
    lines = [line for n, p in numbers.items() if n >= base for line in p.read_text().split("\n")[1:] if line]
    return [Path(unquote(urlparse(json.loads(line)["path"]).path)) for line in lines]


def keys(output: Path) -> Counter[tuple[int, int]]:
    rows = [row for path in listed(output) for row in pq.ParquetFile(path).read(["partition", "offset"]).to_pylist()]
    return Counter((row["partition"], row["offset"]) for row in rows)


def everything(workspace: Workspace) -> dict[tuple[int, int], int]:
    return {(p, offset): 1 for p, end in workspace.log.latest().items() for offset in range(end)}


def digests(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def make_hole(output: Path, name: str, files: set[Path]) -> int:
    """As if the batch had never written: its entries and its files are gone. How many rows that was."""
    log = output / "_spark_metadata" / name
    kept = [
        line
        for line in log.read_text().split("\n")
        if line == "v1" or Path(unquote(urlparse(json.loads(line)["path"]).path)) not in files
    ]
    log.write_text("\n".join(kept))
    (log.parent / f".{name}.crc").unlink()
    rows = sum(pq.ParquetFile(path).metadata.num_rows for path in files)
    for path in files:
        path.unlink()
        (path.parent / f".{path.name}.crc").unlink()
    return rows


def of_log(output: Path, name: str) -> set[Path]:
    lines = (output / "_spark_metadata" / name).read_text().split("\n")[1:]
    return {Path(unquote(urlparse(json.loads(line)["path"]).path)) for line in lines}


def manifest(world: World) -> dict[str, Any]:
    (path,) = Path(world.place).glob("backfill/*/staged/manifest.json")
    told: dict[str, Any] = json.loads(path.read_text())
    return told


def fill(world: World, text: str) -> Plan:
    world.answers["range"] = live.range_by_batches(world, text)
    act(world, live.range_pin(world))
    for probe in (live.range_pinned, live.range_unprocessed, live.backfill_apart, live.backfill_repeatable):
        assert probe(world).truth == "holds", probe(world)
    assert live.sink_admits_backfill(world).truth == "holds"
    act(world, live.live_record(world))
    assert live.live_recorded(world).truth == "holds"
    plan = live.backfill_run(world)
    assert plan == live.backfill_run(world)
    act(world, plan)
    return plan


def stage_here(spark: SparkSession, world: World, wanted: dict[str, Any], workspace: Workspace) -> str:
    """What the program does, in a session that is up already."""
    from wizard.spark.backfill import stage
    from wizard.spark.config import load_config
    from wizard.spark.io import Setting

    staged = Path(live.staged_for(world, wanted))
    stage(Setting(spark, world.job, load_config(str(workspace.conf(world.job.name)))), wanted, staged, "x")
    return str(staged)


class TestOnSpark:
    pytestmark = spark_test

    def test_a_hole_in_the_raw_zone_is_filled_once_and_the_live_job_runs_on(
        self, spark: SparkSession, workspace: Workspace
    ) -> None:
        from wizard.spark.run import run_once

        spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", 3)
        produce(workspace.log, 100, mix=Mix(bad=30))
        run_once(spark, workspace.jobs_file, RAW)
        log = workspace.raw / "_spark_metadata"
        assert {p.name for p in log.glob("[0-9]*")} == {"0", "1", "2.compact", "3", "4"}
        lost = make_hole(workspace.raw, "3", of_log(workspace.raw, "3"))
        assert lost == 20 and sum(keys(workspace.raw).values()) == 80
        with_hole, checkpoint = digests(workspace.raw), digests(workspace.checkpoint(RAW))

        first = world_of(workspace, RAW)
        first.answers["range"] = live.range_by_batches(first, "3")
        assert live.backfill_written(first).data == {"rows": 20, "gaps": 20, "duplicates": 0}
        assert live.backfill_visible(first).truth == "fails"
        plan = fill(first, "2-4")
        assert manifest(first)["rows"] == 20
        assert [live.backfill_written(first).truth, live.backfill_visible(first).truth] == ["holds", "holds"]
        assert live.live_unchanged(first).truth == "holds"
        assert digests(workspace.checkpoint(RAW)) == checkpoint
        assert keys(workspace.raw) == everything(workspace)
        assert spark.read.parquet(str(workspace.raw)).count() == 100

        filled = digests(workspace.raw)
        act(first, plan)  # as after a kill
        assert digests(workspace.raw) == filled
        for _ in range(2):
            undo(first, plan)
            assert digests(workspace.raw) == with_hole
        act(first, plan)
        assert digests(workspace.raw) == filled

        second = world_of(workspace, RAW, "two")
        staged = stage_here(spark, second, live.range_by_batches(second, "2-4"), workspace)
        assert (manifest(second)["rows"], manifest(second)["files"]) == (0, [])
        act(second, Plan((PublishFiles(RAW, str(workspace.raw), staged),)))
        assert digests(workspace.raw) == filled

        produce(workspace.log, 40, first=100, mix=Mix(bad=30))
        run_once(spark, workspace.jobs_file, RAW)
        assert {p.name for p in log.glob("[0-9]*")} >= {"5.compact", "6"}
        assert keys(workspace.raw) == everything(workspace)
        assert spark.read.parquet(str(workspace.raw)).count() == 140
        assert digests(workspace.checkpoint(RAW)).items() >= checkpoint.items()

    @pytest.mark.slow
    def test_a_hole_in_the_typed_zone_is_filled_once_and_the_live_jobs_run_on(
        self, spark: SparkSession, workspace: Workspace
    ) -> None:
        """A source of files, a partitioned output, and a compacted file as the newest of its log."""
        from wizard.spark.run import run_once

        spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", 3)
        produce(workspace.log, 140, mix=Mix(bad=30))
        run_once(spark, workspace.jobs_file, RAW)
        conf = workspace.conf(TYPED)
        files = len(listed(workspace.raw))
        conf.write_text(conf.read_text().replace("PerTrigger: 20", f"PerTrigger: {-(-files // 3)}"))
        run_once(spark, workspace.jobs_file, TYPED)
        assert {p.name for p in (workspace.typed / "_spark_metadata").glob("[0-9]*")} == {"0", "1", "2.compact"}
        assert keys(workspace.typed) == everything(workspace)
        gone = of_log(workspace.typed, "1")
        assert {path.parent.name for path in gone} == {"quality=good", "quality=bad"}
        lost = make_hole(workspace.typed, "2.compact", gone)

        world = world_of(workspace, TYPED, "three")
        world.answers["range"] = live.range_by_batches(world, "1")
        act(world, live.range_pin(world))
        assert live.range_unprocessed(world).truth == "holds"
        assert live.backfill_written(world).data == {"rows": lost, "gaps": lost, "duplicates": 0}
        staged = stage_here(spark, world, world.answers["range"], workspace)
        act(world, Plan((PublishFiles(TYPED, str(workspace.typed), staged),)))
        assert live.backfill_written(world).truth == live.backfill_visible(world).truth == "holds"
        produce(workspace.log, 20, first=140)
        for job in (RAW, TYPED):
            run_once(spark, workspace.jobs_file, job)
        assert keys(workspace.typed) == everything(workspace)
        read = spark.read.parquet(str(workspace.typed))
        assert read.count() == 160 and read.where("quality = 'bad'").count() > 0

    def test_a_delta_output_gets_the_missing_rows_in_one_commit(
        self, spark: SparkSession, workspace: Workspace
    ) -> None:
        from deltalake import DeltaTable, write_deltalake

        produce(workspace.log, 60)
        ends = workspace.log.latest()
        records = [
            {
                "topic": "sensor-raw",
                "partition": p,
                "offset": record.offset,
                "timestamp": record.timestamp_ms * 1000,
                "key": record.key,
                "value": record.value,
            }
            for p, end in ends.items()
            for record in workspace.log.read(p, 0, end)
            if not (p == 0 and 3 <= record.offset < 9)
        ]
        types = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
        types |= {"timestamp": pa.timestamp("us", "UTC"), "key": pa.binary(), "value": pa.binary()}
        schema = pa.schema(list(types.items()))
        write_deltalake(workspace.raw, pa.Table.from_pylist(records, schema))
        text = workspace.jobs_file.read_text().replace(
            "{format: parquet, path: ./lake/raw", "{format: delta, path: ./lake/raw", 1
        )
        workspace.jobs_file.write_text(
            text.replace("{format: delta, path: ./lake/raw/sensor_readings}", "{format: parquet, path: ./x}")
        )
        world = world_of(workspace, RAW)
        assert world.job.sink.format == "delta"
        world.answers["range"] = live.range_by_offsets(world, "0:0-10")
        act(world, live.range_pin(world))
        effect = live.backfill_run(world).effects[-1]
        assert isinstance(effect, DeltaAppend) and live.sink_admits_backfill(world).truth == "holds"
        assert stage_here(spark, world, world.answers["range"], workspace) == effect.staged
        for _ in range(2):
            act(world, Plan((effect,)))
            rows = DeltaTable(workspace.raw).to_pyarrow_table().to_pylist()
            assert Counter((r["partition"], r["offset"]) for r in rows) == everything(workspace)
            assert DeltaTable(workspace.raw).version() == 1
        assert live.backfill_written(world).truth == live.backfill_visible(world).truth == "holds"
        stamp = {(r["partition"], r["offset"]): r["timestamp"].timestamp() * 1000 for r in rows}
        assert stamp[0, 5] == next(iter(workspace.log.read(0, 5, 6))).timestamp_ms
        # The live job has written since; what is taken out is ours alone.
        later = {"topic": "sensor-raw", "partition": 1, "offset": 9_999, "value": b""}
        write_deltalake(workspace.raw, pa.Table.from_pylist([later], schema), mode="append")
        for _ in range(2):
            effect.undo(world)
            left = DeltaTable(workspace.raw).to_pyarrow_table().to_pylist()
            assert len(left) == len(records) + 1 and DeltaTable(workspace.raw).version() == 3
        assert live.backfill_written(world).data["gaps"] == 6


class Killed(BaseException):
    pass


def staged_world(workspace: Workspace, tmp_path: Path) -> tuple[World, PublishFiles]:
    """An output with two logged files, and two files staged for it."""
    output = workspace.raw
    (output / "_spark_metadata").mkdir(parents=True)
    for number in range(2):
        (output / f"part-{number}.parquet").write_bytes(b"old")
        entry = {"path": (output / f"part-{number}.parquet").as_uri(), "size": 3, "isDir": False}
        entry |= {"modificationTime": 1, "blockReplication": 1, "blockSize": 77, "action": "add"}
        log = output / "_spark_metadata" / str(number)
        log.write_text("v1\n" + json.dumps(entry, separators=(",", ":")))
        log.with_name(f".{number}.crc").write_bytes(b"crc")
    world = world_of(workspace, RAW)
    staged = Path(world.place) / "backfill/staged"
    (staged / "day=a b").mkdir(parents=True)
    names = ["backfill-x-part-00000.parquet", "day=a b/backfill-x-part-00001.parquet"]
    for name in names:
        (staged / name).write_bytes(b"new!")
    files = [{"path": name, "size": 4, "modified": 5} for name in names]
    (staged / "manifest.json").write_text(json.dumps({"files": files}))
    return world, PublishFiles(RAW, str(output), str(staged))


def test_files_are_published_at_the_end_of_the_newest_log_as_spark_writes_them(
    workspace: Workspace, tmp_path: Path
) -> None:
    world, effect = staged_world(workspace, tmp_path)
    effect.do(world)
    log = workspace.raw / "_spark_metadata"
    assert sorted(p.name for p in log.iterdir()) == [".0.crc", "0", "1"]
    root = "file://" + str(workspace.raw)
    assert log.joinpath("1").read_text().split("\n")[2:] == [
        f'{{"path":"{root}/backfill-x-part-00000.parquet","size":4,"isDir":false,"modificationTime":5,'
        '"blockReplication":1,"blockSize":77,"action":"add"}',
        f'{{"path":"{root}/day=a%20b/backfill-x-part-00001.parquet","size":4,"isDir":false,"modificationTime":5,'
        '"blockReplication":1,"blockSize":77,"action":"add"}',
    ]


@pytest.mark.parametrize("direction", ["do", "undo"])
def test_publishing_killed_at_any_file_operation_is_finished_or_taken_back_by_the_next_attempt(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direction: str
) -> None:
    from wizard import durable

    world, effect = staged_world(workspace, tmp_path)
    fresh = tmp_path / "fresh"
    shutil.copytree(workspace.root, fresh)
    before = digests(workspace.raw)
    effect.do(world)
    after = digests(workspace.raw)
    point = 0
    while True:
        shutil.rmtree(workspace.root)
        shutil.copytree(fresh, workspace.root)
        if direction == "undo":
            effect.do(world)
        if not killed_at(point, getattr(effect, direction), world, monkeypatch, durable):
            break
        if direction == "do" and point % 2:
            effect.undo(world)
            assert digests(workspace.raw) == before
            effect.do(world)
        getattr(effect, direction)(world)
        assert digests(workspace.raw) == (after if direction == "do" else before)
        point += 1
    assert point >= 8, "too few places to be killed at: the test looks at nothing"


def killed_at(point: int, step: Any, world: World, monkeypatch: pytest.MonkeyPatch, durable: Any) -> bool:
    """Runs the step, and kills it before (even points) or after (odd ones) a change; False where it has fewer."""
    count = 0

    def deadly(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            nonlocal count
            count += 1
            if point % 2 == 0 and count - 1 == point // 2:
                raise Killed
            result = function(*arguments)
            if point % 2 and count - 1 == point // 2:
                raise Killed
            return result

        return call

    with monkeypatch.context() as patch:
        for name in ("move", "write", "remove", "copy"):
            patch.setattr(durable, name, deadly(getattr(durable, name)))
        try:
            step(world)
        except Killed:
            return True
    return False


def test_a_range_of_offsets_is_said_with_both_ends_and_kept_as_kafka_does(workspace: Workspace) -> None:
    world = world_of(workspace, RAW)
    kept = {"start": {"sensor-raw": {"0": 10, "1": 5}}, "end": {"sensor-raw": {"0": 21, "1": 10}}}
    assert live.range_by_offsets(world, "0:10-20, 1:5-9") == kept
    assert live.range_by_offsets(world, "sensor-raw/0:10-20,sensor-raw/1:5-9") == kept
    assert live.range_by_offsets(world, '{"sensor-raw": {"0": [10, 20], "1": [5, 9]}}') == kept


@pytest.mark.parametrize(
    "text",
    ["", "0", "0:9-3", "0:1-2,0:3-4", "other/0:1-2", '{"sensor-raw": {"0": 5}}', '{"sensor-raw": {}}', "{", "0:-1-4"],
)
def test_what_is_not_a_range_of_offsets_is_refused_with_what_to_write(workspace: Workspace, text: str) -> None:
    with pytest.raises(BadInput, match=r"write|reads"):
        live.range_by_offsets(world_of(workspace, RAW), text)


def test_a_range_of_time_is_looked_up_in_the_log_from_the_first_to_before_the_second(workspace: Workspace) -> None:
    produce(workspace.log, 100)
    begin, until = 1_767_225_600_000 + 60_000, 1_767_225_600_000 + 120_000  # 2026-01-01T00:01Z and a minute on
    found = live.range_by_time(world_of(workspace, RAW), "2026-01-01T00:01:00Z 2026-01-01T01:02:00+01:00")
    for p, end in workspace.log.latest().items():
        inside = [r.offset for r in workspace.log.read(p, 0, end) if begin <= r.timestamp_ms < until]
        assert (found["start"]["sensor-raw"][str(p)], found["end"]["sensor-raw"][str(p)] - 1) == (inside[0], inside[-1])
    for text in ("2026-01-01", "yesterday today", "2026-01-02 2026-01-01", "2031-01-01 2032-01-01"):
        with pytest.raises(BadInput):
            live.range_by_time(world_of(workspace, RAW), text)


def test_batches_the_checkpoint_does_not_know_are_refused(workspace: Workspace) -> None:
    for text in ("3-5", "5-3", "x", "0"):
        with pytest.raises(BadInput):
            live.range_by_batches(world_of(workspace, RAW), text)


def test_an_aggregate_cannot_be_filled_by_range(workspace: Workspace) -> None:
    seen = live.backfill_repeatable(world_of(workspace, "sensor-merge-gold"))
    assert seen.truth == "fails" and "replay or reset" in seen.evidence[0]


def test_a_range_the_live_stream_has_not_passed_is_told(workspace: Workspace) -> None:
    world = world_of(workspace, RAW)
    world.answers["range"] = live.range_by_offsets(world, "0:0-4")
    assert live.range_unprocessed(world).truth == "fails"
    for log, text in (("offsets", 'v1\n{"conf":{}}\n{"sensor-raw":{"0":4,"1":4}}'), ("commits", "v1\n{}")):
        (workspace.checkpoint(RAW) / log).mkdir(parents=True)
        (workspace.checkpoint(RAW) / log / "0").write_text(text)
    seen = live.range_unprocessed(world)
    assert seen.truth == "fails" and "ends at 4" in seen.evidence[0] and "at 3" in seen.evidence[0]
    world.answers["range"] = live.range_by_offsets(world, "0:0-3")
    assert live.range_unprocessed(world).truth == "holds"


def test_any_byte_changed_in_the_live_checkpoint_is_found(workspace: Workspace) -> None:
    world, root = world_of(workspace, RAW), workspace.checkpoint(RAW)
    for name in ("metadata", "offsets/0", "offsets/1", "commits/0", "commits/1"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    assert live.live_unchanged(world).truth == "fails"
    act(world, live.live_record(world))
    assert live.live_unchanged(world).truth == "holds"
    (root / "offsets/2").write_text("new")
    assert live.live_unchanged(world).truth == "fails", "a stopped job writes nothing"
    noted = Path(world.place) / "backfill/live.json"
    noted.write_text(noted.read_text().replace('"stopped"', '"running"'))
    assert live.live_unchanged(world).truth == "holds"
    (root / "offsets/0").unlink()
    assert live.live_unchanged(world).truth == "holds", "a running job purges its oldest batches"
    (root / "commits/1").unlink()
    assert live.live_unchanged(world).truth == "fails"
    (root / "commits/1").write_text("commits/2")
    assert live.live_unchanged(world).truth == "fails"


def test_a_program_is_run_until_what_it_makes_is_there_and_then_never_again(workspace: Workspace) -> None:
    world = world_of(workspace, RAW)
    said: list[str] = []
    world.say = said.append
    place = Path(world.place)
    code = "import pathlib,sys; print('at work'); pathlib.Path(sys.argv[1]).write_text('done')"
    effect = Program((sys.executable, "-c", code, f"{place}/done"), f"{place}/done", f"{place}/log", "work")
    for _ in range(2):
        effect.do(world)
    assert said == ["at work"] and (place / "done").read_text() == "done"


@pytest.mark.parametrize(
    "code", ["import sys; sys.exit('the disk is full')", "import sys; print('half', file=sys.stderr)"]
)
def test_a_program_that_fails_or_makes_nothing_is_told_in_one_line(workspace: Workspace, code: str) -> None:
    world = world_of(workspace, RAW)
    effect = Program((sys.executable, "-c", code), f"{world.place}/done", f"{world.place}/log", "work")
    with pytest.raises(
        RunbookError, match=r"ended with [01]: (the disk is full|half); nothing was changed; see .*log\Z"
    ):
        effect.do(world)


@pytest.mark.spark
def test_the_program_ends_with_the_process_that_started_it(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "range").write_text('{"files": []}')
    command = [
        sys.executable,
        "-m",
        "wizard.spark.backfill",
        RAW,
        "--jobs",
        str(workspace.jobs_file),
        "--end-with-stdin",
    ]
    command += ["--range", str(tmp_path / "range"), "--to", str(tmp_path / "staged")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert done.returncode == 130 and not (tmp_path / "staged").exists()
