"""Spark's file sink: what `_spark_metadata` counts, what it does not, and what is gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from recorded import FIXTURES, as_recorded, at_home, codes, facts

from wizard.sinks.file_sink import FileSink
from wizard.sinks.interface import SinkReport
from wizard.sinks.open import open_sink
from wizard.store import LocalStore

FILE_SINKS = sorted(path.parent.parent.name for path in FIXTURES.glob("*/sink/_spark_metadata"))
LOGGED = "spark-4.2-stateless-file"


def report(sink: Path) -> SinkReport:
    return FileSink(LocalStore(str(sink))).report(None)


def problems(seen: SinkReport) -> set[str]:
    return {problem.code for problem in seen.problems}


def entry(path: Path | str, action: str = "add", size: int = 1) -> str:
    return json.dumps({"path": f"file://{path}", "size": size, "isDir": False, "modificationTime": 1, "action": action})


def write_log(sink: Path, **files: list[str]) -> None:
    (sink / "_spark_metadata").mkdir(parents=True, exist_ok=True)
    for name, entries in files.items():
        text = "\n".join(["v1", *entries])
        (sink / "_spark_metadata" / name.removeprefix("b").replace("_", ".")).write_text(text)


@pytest.mark.parametrize("name", FILE_SINKS)
def test_a_recorded_sink_holds_the_files_its_log_lists(name: str, tmp_path: Path) -> None:
    sink = at_home(name, tmp_path) / "sink"
    seen = report(sink)
    logs = {int(p.name.removesuffix(".compact")): p for p in (sink / "_spark_metadata").iterdir() if p.name[0] != "."}
    compacted = [k for k, path in logs.items() if path.name.endswith(".compact")]
    start = max(compacted, default=0)
    lines = [line for k, path in logs.items() if k >= start for line in path.read_text().split("\n")[1:] if line]
    listed: dict[str, Any] = {Path(json.loads(line)["path"]).name: json.loads(line)["size"] for line in lines}
    on_disk = {path.name for path in sink.iterdir() if path.is_file() and path.name[0] not in "._"}
    assert seen.last_batch == max(logs) == facts(name)["last_batch_completed"]
    assert (seen.files, seen.bytes) == (len(on_disk), sum(listed.values()))
    assert seen.details["listed_files"] == len(listed)
    assert seen.details["orphans"] == len(on_disk - listed.keys())
    assert seen.details["log"] == {"first": min(logs), "last": max(logs), "compacted": sorted(compacted)}
    assert problems(seen) == ({"SINK_ORPHANS"} if "killed" in name else set())
    assert (seen.exists, seen.idempotent) == (True, True)


def test_only_the_newest_compaction_and_what_follows_is_read(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    write_log(
        tmp_path, b0=["torn"], b1_compact=[entry(tmp_path / "a", size=5), entry(tmp_path / "b", size=7)], b2=[entry(tmp_path / "c")]
    )  # fmt: skip
    seen = report(tmp_path)
    assert (problems(seen), seen.details["listed_files"], seen.bytes) == (set(), 3, 13)


def test_a_deleted_entry_of_spark_before_3_1_no_longer_counts(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    write_log(
        tmp_path, b0=[entry(tmp_path / "kept"), entry(tmp_path / "dropped")], b1=[entry(tmp_path / "dropped", "delete")]
    )
    seen = report(tmp_path)
    assert (problems(seen), seen.details["listed_files"], seen.last_batch) == (set(), 1, 1)


def test_data_in_partitions_and_behind_encoded_paths_is_matched(tmp_path: Path) -> None:
    sink = tmp_path / "out put"
    for part in ("day=2024-01-01", "day=a b"):
        (sink / part).mkdir(parents=True)
        (sink / part / "part-0.parquet").touch()
    (sink / "day=a b" / "_ignored").touch()
    encoded = str(sink).replace(" ", "%20")
    write_log(
        sink, b0=[entry(f"{encoded}/day=2024-01-01/part-0.parquet"), entry(f"{encoded}/day=a%20b/part-0.parquet")]
    )
    seen = report(sink)
    assert (problems(seen), seen.files) == (set(), 2)


def remove_data(sink: Path) -> None:
    next(sink.glob("*.parquet")).unlink()


def add_data(sink: Path) -> None:
    (sink / "part-orphan.parquet").touch()


def remove_log(sink: Path) -> None:
    shutil.rmtree(sink / "_spark_metadata")


def hole(sink: Path) -> None:
    (sink / "_spark_metadata/11").unlink()


def tear(sink: Path) -> None:
    (sink / "_spark_metadata/12").write_bytes(b'v1\n{"path":"fi')


def newer(sink: Path) -> None:
    (sink / "_spark_metadata/12").write_bytes(b"v2\n")


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (remove_data, "SINK_FILES_GONE"),
        (add_data, "SINK_ORPHANS"),
        (remove_log, "SINK_LOG_ABSENT"),
        (hole, "SINK_LOG_HOLE"),
        (tear, "SINK_LOG_UNREADABLE"),
        (newer, "SINK_LOG_UNREADABLE"),
        (shutil.rmtree, "SINK_ABSENT"),
    ],
)
def test_each_damage_has_its_finding(damage: Any, code: str, tmp_path: Path) -> None:
    root = at_home(LOGGED, tmp_path)
    damage(root / "sink")
    seen = look_at(root)
    assert code in codes(seen)
    if code != "SINK_ORPHANS":
        assert seen.paths["resume"]["verdict"] == "blocked"


def look_at(root: Path) -> Any:
    from wizard.diagnosis.diagnose import Subject, diagnose

    return diagnose(Subject(str(root / "checkpoint"), str(root / "sink")))


def test_a_sink_that_was_moved_is_told_and_its_files_are_no_orphans(tmp_path: Path) -> None:
    seen = report(as_recorded(LOGGED, tmp_path) / "sink")
    assert problems(seen) == {"SINK_MOVED"}
    assert seen.details["orphans"] == 0


def test_a_sink_reached_through_a_link_is_the_same_sink(tmp_path: Path) -> None:
    root = at_home(LOGGED, tmp_path)
    (tmp_path / "link").symlink_to(root / "sink")
    assert problems(report(tmp_path / "link")) == set()


@pytest.mark.parametrize(("last", "code"), [(12, "SINK_BEHIND"), (16, "SINK_AHEAD")])
def test_a_sink_on_another_batch_than_the_checkpoint_is_told(last: int, code: str, tmp_path: Path) -> None:
    root = at_home(LOGGED, tmp_path)
    log = root / "sink/_spark_metadata"
    if last == 12:
        data = json.loads((log / "13").read_text().split("\n")[1])["path"].removeprefix("file://")
        Path(data).unlink()
        (log / "13").unlink()
    for batch in range(14, last + 1):
        (log / str(batch)).write_text("v1")
    seen = look_at(root)
    assert code in codes(seen)
    assert seen.sink.last_batch == last
    assert seen.paths["resume"]["verdict"] == "blocked"


def test_what_lies_at_a_place_tells_its_kind(tmp_path: Path) -> None:
    assert type(open_sink(str(FIXTURES / LOGGED / "sink"))).__name__ == "FileSink"
    assert type(open_sink(str(FIXTURES / "spark-4.2-delta/sink"))).__name__ == "DeltaSink"
    assert type(open_sink(str(tmp_path), "parquet")).__name__ == "FileSink"
    assert open_sink(str(tmp_path), "carrier-pigeon") is None
