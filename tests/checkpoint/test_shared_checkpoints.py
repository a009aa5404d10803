"""Checkpoints written by Spark 2.1 to 4.0, kept by Apache Spark as test data. Every value here was read off the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from recorded import CONTRACT, SHARED, WORDS

from wizard.diagnosis.diagnose import Subject, diagnose

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/checkpoints is not beside this checkout")

JOIN = ["left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue"]


class Says(NamedTuple):
    query_id: str
    batches: tuple[int, int, int | None, list[int]]
    offsets: list[int]
    operator: tuple[str | None, list[str], int] | None
    state: tuple[str | None, int | None, int | None, int | None]


V2 = "checkpoint-version-4.0.0-checkpoint-v2/rocksdb"
EXPECTED = {
    "checkpoint-test-offsetId-commitId-inconsistent": Says(
        "d4358946-170c-49a7-823b-d8e4e9126616", (0, 4, 2, [4]), [4], None, (None, None, None, None)
    ),
    "checkpoint-version-2.1.0": Says(
        "dddc5e7f-1e71-454c-8362-de184444fb5a", (0, 1, None, [1]), [2], (None, ["default"], 10), ("hdfs", 1, 1, 2)
    ),
    "checkpoint-version-2.3.1-streaming-aggregate-state-format-1": Says(
        "2f32aca2-1b97-458f-a48f-109328724f09", (0, 1, 1, []), [1], (None, ["default"], 5), ("hdfs", 1, 1, 2)
    ),
    "checkpoint-version-2.4.5-for-compatibility-test-deduplicate": Says(
        "26fe8d3d-d101-44b0-b9c1-a2f9f09cea69", (0, 0, 0, []), [0], (None, ["default"], 5), ("hdfs", 1, 1, 1)
    ),
    "checkpoint-version-3.2.0-session-window-with-repartition": Says(
        "c3d27d93-536b-49ce-a62f-f2777855a1fb", (0, 1, 1, []), [0], (None, ["default"], 5), ("hdfs", 1, 1, 2)
    ),
    "checkpoint-version-3.5.1-streaming-join": Says(
        "e41911da-47c9-4560-a95d-e2ab97f2bc85", (0, 0, 0, []), [0, 0], ("symmetricHashJoin", JOIN, 5), ("hdfs", 1, 1, 1)
    ),
    f"{V2}/dedup": Says(
        "ccaf96d0-9b51-437a-a2c6-f53efd7e6be4", (0, 3, 3, []), [3], ("dedupe", ["default"], 5), ("rocksdb", 2, 1, 4)
    ),
    f"{V2}/join1": Says(
        "73d73fc9-8acd-4193-9871-b13d4cece4bc",
        (0, 4, 4, []), [2, 2], ("symmetricHashJoin", JOIN, 5), ("rocksdb", 2, 1, 5),
    ),
    f"{V2}/join2": Says(
        "c91297b4-ac33-4c7e-a876-58758f5f611c",
        (0, 4, 4, []), [2, 2], ("symmetricHashJoin", JOIN, 5), ("rocksdb", 2, 1, 5),
    ),
    # A global limit declares five partitions and has one.
    f"{V2}/limit": Says(
        "5abf3d49-f6b3-434b-b30f-88e60b91f1b0", (0, 3, 3, []), [3], ("globalLimit", ["default"], 5), ("rocksdb", 2, 1, 4)
    ),
    "checkpoint-version-4.0.0-tws-avro": Says(
        "f3f30619-9175-4329-97a7-f5629deaad89",
        (0, 1, 1, []), [1], ("transformWithStateExec", ["default"], 5), ("rocksdb", 1, 1, 2),
    ),
}  # fmt: skip
BARE = {
    "offset-map": ("offsets", ["0", "1", "2", "3"], 4),
    "testCommitLogV2": ("commits", ["testCommitLog"], 1),
    "file-sink-log-version-2.1.0": ("file sink", ["7.compact", "8", "9"], 10),
    "file-source-log-version-2.1.0": ("file source", ["2.compact", "3", "4"], 5),
}


def look(name: str) -> dict[str, Any]:
    found = diagnose(Subject(str(SHARED / name))).as_dict()
    assert found.keys() >= CONTRACT
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert {path["verdict"] for path in found["paths"].values()} <= WORDS
    assert set(found["paths"]) == {"resume", "replay", "backfill", "reset"}
    return found


def codes(found: dict[str, Any]) -> set[str]:
    return {one["code"] for one in found["findings"]}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_checkpoint_is_read_as_it_is(name: str) -> None:
    found, says = look(name), EXPECTED[name]
    batches, state = found["batches"], found["state"]
    assert found["query_id"] == says.query_id
    assert (batches["first"], batches["planned"], batches["committed"], batches["in_flight"]) == says.batches
    assert [source["offset"] for source in found["sources"]] == says.offsets
    # Tests of Spark use a memory source, whose offset is a bare number: it could be anything.
    assert {source["kind"] for source in found["sources"]} == {"unknown"}
    operators = [(op["name"], sorted(op["stores"]), op["partitions"]) for op in found["operators"]]
    assert operators == ([says.operator] if says.operator else [])
    assert (state["provider"], state["format"], *state["versions"].values()) == says.state
    raw = json.loads((SHARED / name / f"offsets/{says.batches[1]}").read_text().split("\n")[1])
    assert found["confs"] == raw.get("conf", {})
    assert found["watermark_ms"] == raw["batchWatermarkMs"]
    assert found["sink"] is None


@pytest.mark.parametrize("name", BARE)
def test_a_single_log_is_told_from_a_checkpoint(name: str) -> None:
    found = look(name)
    kind, files, entries = BARE[name]
    assert found["bare_log"] == {"kind": kind, "files": files, "entries": entries}
    assert "BARE_LOG" in codes(found)
    assert found["paths"]["resume"]["verdict"] == "unknown"


def test_no_directory_is_left_out() -> None:
    named = {name.split("/")[0] for name in (*EXPECTED, *BARE)}
    assert {path.name for path in SHARED.iterdir() if path.is_dir()} == named


def test_a_directory_of_checkpoints_is_not_one() -> None:
    found = look("checkpoint-version-4.0.0-checkpoint-v2")
    assert codes(found) == {"NOT_A_CHECKPOINT"}
    assert found["paths"]["resume"]["verdict"] == "blocked"


def test_a_gap_before_the_newest_offsets_is_found() -> None:
    found = look("checkpoint-test-offsetId-commitId-inconsistent")
    assert {"OFFSETS_GAP", "COMMITS_BEHIND"} <= codes(found)
    assert found["paths"]["resume"]["verdict"] == "blocked"


def test_a_copy_of_a_transform_with_state_looks_for_its_schema_where_it_was() -> None:
    """CHECKPOINTS.md, 6e: it fails with `File … does not exist`."""
    found = look("checkpoint-version-4.0.0-tws-avro")
    assert codes(found) == {"STATE_SCHEMA_GONE"}
    assert found["restart"]["action"] == "refused"
    assert found["restart"]["error"].endswith("/0_6b12d3c5-57e6-4001-8321-3ae63d6be7a0 does not exist")
    assert found["paths"]["resume"]["verdict"] == found["paths"]["replay"]["verdict"] == "blocked"


@pytest.mark.parametrize("name", [n for n in EXPECTED if "inconsistent" not in n and "tws" not in n])
def test_spark_restarts_these_and_so_nothing_is_an_error(name: str) -> None:
    assert [one for one in look(name)["findings"] if one["severity"] == "error"] == []


def test_a_file_read_as_a_checkpoint_is_absent(tmp_path: Path) -> None:
    assert "CHECKPOINT_ABSENT" in codes(diagnose(Subject(str(SHARED / "README.md"))).as_dict())
