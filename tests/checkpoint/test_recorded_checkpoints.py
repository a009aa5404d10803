"""Every recorded fixture: the diagnosis says what Spark itself said (facts.json) and what the raw files say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded import CONTRACT, FIXTURES, NAMES, WORDS, at_home, facts, look

# Provider, format, and the oldest version that loads in every partition, from listing the directories by hand.
STATE = {
    "spark-3.5-dedup": ("hdfs", 1, 1),
    "spark-4.2-dedup": ("hdfs", 1, 1),
    "spark-3.5-foreachbatch-killed": ("hdfs", 1, 1),
    "spark-4.2-foreachbatch-killed": ("hdfs", 1, 1),
    "spark-3.5-join": ("hdfs", 1, 1),
    "spark-4.2-join": ("hdfs", 1, 1),
    "spark-4.2-join-rocksdb3": ("rocksdb", 1, 1),
    "spark-3.5-window-changelog": ("rocksdb", 1, 16),
    "spark-4.2-window-changelog": ("rocksdb", 1, 15),
    "spark-4.2-window-format2": ("rocksdb", 2, 15),
    "spark-3.5-window-hdfs": ("hdfs", 1, 9),
    # Partition 1 also has a 12.delta, and nothing from 13 to 15: only from 16.snapshot on does it load.
    "spark-4.2-window-hdfs": ("hdfs", 1, 16),
    "spark-3.5-window-rocksdb": ("rocksdb", 1, 17),
    "spark-4.2-window-rocksdb": ("rocksdb", 1, 16),
}
JOIN_STORES = ["left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue"]


@pytest.fixture(scope="module", params=NAMES)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    root = at_home(request.param, tmp_path_factory.mktemp("home"))
    return request.param, look(root).as_dict()


def ids(name: str, log: str) -> list[int]:
    return sorted(int(path.name) for path in (FIXTURES / name / log).iterdir() if path.name.isdigit())


def newest_offsets(name: str) -> list[str]:
    return (FIXTURES / name / f"checkpoint/offsets/{ids(name, 'checkpoint/offsets')[-1]}").read_text().split("\n")


def test_it_is_complete(seen: tuple[str, dict[str, Any]]) -> None:
    _, found = seen
    assert found.keys() >= CONTRACT
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert {path: said["verdict"] in WORDS for path, said in found["paths"].items()} == dict.fromkeys(
        ("resume", "replay", "backfill", "reset"), True
    )
    assert "earliest_batch" in found["paths"]["replay"]
    for one in found["findings"]:
        assert one.keys() >= {"code", "severity", "message", "evidence", "remedy"}


def test_query_and_batches_are_those_spark_reported(seen: tuple[str, dict[str, Any]]) -> None:
    name, found = seen
    said = facts(name)
    planned, committed = said["last_batch_planned"], said["last_batch_completed"]
    assert found["query_id"] == said["query_id"]
    assert found["batches"] == {
        "first": ids(name, "checkpoint/offsets")[0],
        "planned": planned,
        "committed": committed,
        "in_flight": list(range(committed + 1, planned + 1)),
    }


def test_sources_stand_where_spark_reported(seen: tuple[str, dict[str, Any]]) -> None:
    name, found = seen
    said = facts(name)
    # A python source can write what it likes; this one writes Kafka's shape, and the shape is all there is to see.
    kinds = ["kafka" if kind == "python" else kind for kind in said["source_kinds"]]
    assert [source["index"] for source in found["sources"]] == list(range(len(kinds)))
    assert sorted(source["kind"] for source in found["sources"]) == sorted(kinds)
    lines = newest_offsets(name)[2:]
    if name == "spark-4.2-named-sources":
        lines = [line.partition(":")[2] for line in lines]
        assert [source["id"] for source in found["sources"]] == [
            line.partition(":")[0] for line in newest_offsets(name)[2:]
        ]
    assert [source["offset"] for source in found["sources"]] == [json.loads(line) for line in lines]
    if said["batches"] and not said["killed"]:
        last = said["batches"][-1]["end_offsets"]
        assert sorted(map(str, (source["offset"] for source in found["sources"]))) == sorted(map(str, last))


def test_confs_are_those_pinned_in_the_newest_offsets(seen: tuple[str, dict[str, Any]]) -> None:
    name, found = seen
    head = newest_offsets(name)[1]
    assert found["confs"] == (json.loads(head)["conf"] if head else {})


def test_operators_are_those_spark_reported(seen: tuple[str, dict[str, Any]]) -> None:
    name, found = seen
    said = facts(name)
    assert len(found["operators"]) == len(said["operators"])
    for operator, expected in zip(found["operators"], said["operators"], strict=True):
        # 3.5 wrote no operator metadata: only a join can be told, by its stores.
        told = expected if "4.2" in name or expected == "symmetricHashJoin" else None
        four_stores = expected == "symmetricHashJoin" and name != "spark-4.2-join-rocksdb3"
        assert operator["name"] == told
        assert operator["partitions"] == 2
        assert sorted(operator["stores"]) == (JOIN_STORES if four_stores else ["default"])
        if "state_metadata" in said:
            assert sorted(operator["stores"]) == sorted(row["stateStoreName"] for row in said["state_metadata"])


def test_state_is_what_the_directories_hold(seen: tuple[str, dict[str, Any]]) -> None:
    name, found = seen
    provider, form, oldest = STATE.get(name, (None, None, None))
    # Batch b writes version b + 1; the killed count had written its state before it died.
    newest = facts(name)["last_batch_planned"] + 1 if provider else None
    state = found["state"]
    assert (state["provider"], state["format"]) == (provider, form)
    assert state["versions"] == {"min": oldest, "max": newest}


def test_the_sink_holds_what_spark_wrote(seen: tuple[str, dict[str, Any]]) -> None:
    name, found = seen
    said = facts(name)
    kind = said.get("sink_kind")
    if kind not in ("file", "delta"):
        assert found["sink"] is None
        return
    sink = found["sink"]
    assert sink["format"] == kind
    if kind == "delta":
        assert (sink["version"], sink["last_batch"], sink["rows"]) == (
            said["table_version"],
            said["transaction_version"],
            said["rows_written"],
        )
        return
    log = FIXTURES / name / "sink/_spark_metadata"
    assert sink["last_batch"] == max(int(path.name.removesuffix(".compact")) for path in visible(log))
    assert sink["last_batch"] == said["last_batch_completed"]
    assert sink["files"] == sum(path.is_file() for path in visible(FIXTURES / name / "sink"))


def visible(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if not path.name.startswith((".", "_"))]


def test_a_finished_run_at_its_own_place_has_nothing_wrong(seen: tuple[str, dict[str, Any]]) -> None:
    name, found = seen
    errors = [one["code"] for one in found["findings"] if one["severity"] == "error"]
    assert errors == []
    if not facts(name)["killed"]:
        # These two write before they log, into a sink that nobody can look at.
        logs_later = "async" in name or "continuous" in name
        assert found["paths"]["resume"]["verdict"] == ("unknown" if logs_later else "safe")


def test_the_orphan_of_a_killed_batch_is_seen(tmp_path: Path) -> None:
    found = look(at_home("spark-4.2-stateless-killed", tmp_path)).as_dict()
    assert "SINK_ORPHANS" in {one["code"] for one in found["findings"]}


def test_looking_changes_nothing(tmp_path: Path) -> None:
    root = at_home("spark-4.2-delta-killed", tmp_path)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")}
    look(root)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in root.rglob("*")} == before
