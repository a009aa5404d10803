"""The verdict on the four paths, one situation a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded import NAMES, WORDS, at_home, look
from restart_cases import ROWS, WINDOWS, Damage, all_of, empty, lose, write
from test_findings import planned_an_hour_later

PATHS = ("resume", "replay", "backfill", "reset")
KEYED = {"key": ("id",)}
KILLED = "spark-4.2-stateless-killed"


def nothing(_: Path) -> None:
    pass


def kept_by_another(checkpoint: Path) -> None:
    """Its class pinned, and its files called otherwise."""
    for path in [*checkpoint.glob("offsets/[0-9]*"), *checkpoint.glob("state/0/[01]/*.*")]:
        if path.parent.name == "offsets":
            path.write_text(path.read_text().replace("HDFSBackedStateStoreProvider", "CloudStateStoreProvider"))
        else:
            path.rename(path.with_suffix(".blob"))


@pytest.mark.parametrize(
    ("situation", "fixture", "damage", "how", "expected"),
    [
        ("whole, all is known", ROWS, nothing, KEYED, "safe safe safe safe"),
        ("whole, no key registered", ROWS, nothing, {}, "safe safe unknown safe"),
        ("whole, the sink not looked at", ROWS, nothing, {"sink": False}, "safe unknown unknown unknown"),
        ("killed in a batch, idempotent sink", KILLED, nothing, KEYED, "safe safe safe safe"),
        ("killed in a batch, the sink not looked at", KILLED, nothing, {"sink": False}, "unknown unknown unknown unknown"),
        ("killed when the sink had the batch", ROWS, lose("commits/13"), KEYED, "safe safe blocked safe"),
        ("several batches not committed", ROWS, lose("commits/13", "commits/12"), KEYED, "blocked safe blocked safe"),
        ("offsets taken back, commits not", ROWS, lose("offsets/13"), KEYED, "blocked safe blocked safe"),
        ("offsets and commits taken back, the sink not", ROWS, lose("offsets/13", "commits/13"), KEYED, "blocked safe blocked safe"),
        ("the last offsets damaged", ROWS, write("offsets/13", b""), KEYED, "blocked safe blocked safe"),
        ("metadata lost", ROWS, lose("metadata"), KEYED, "blocked blocked blocked safe"),
        ("fenced by a walk", ROWS, write("metadata", b'{"runbook_lock":"r"}'), KEYED, "blocked blocked blocked blocked"),
        ("logs deleted, nothing to go on from", ROWS, empty("offsets", "commits"), KEYED, "blocked blocked blocked unknown"),
        ("state broken now, whole before", WINDOWS, lose("state/0/1/19.delta"), KEYED, "blocked safe blocked safe"),
        ("a state partition lost", WINDOWS, lose("state/0/1"), KEYED, "blocked blocked blocked safe"),
        ("state kept by a provider of another make", WINDOWS, kept_by_another, KEYED, "unknown unknown blocked safe"),
        ("an input file gone", ROWS, lose("../input/f3.json"), KEYED, "safe safe blocked blocked"),
        ("the input of a batch that must run gone", KILLED, lose("../input/f5.json"), KEYED, "blocked blocked blocked blocked"),
        ("the sink's log lost", ROWS, lose("../sink/_spark_metadata"), KEYED, "blocked blocked blocked safe"),
        ("a hole in the sink's log", ROWS, lose("../sink/_spark_metadata/11"), KEYED, "blocked blocked blocked safe"),
        ("the sink's log cannot be written", ROWS, write("../sink/_spark_metadata/.14.crc", b"crc"), KEYED, "blocked safe blocked safe"),
        ("the sink ahead with batches of another run", ROWS,
         all_of(lose("offsets/13", "commits/13", *(f"offsets/{batch}" for batch in range(5))), planned_an_hour_later(12)),
         KEYED, "blocked unknown blocked safe"),
        ("offsets that the registered Spark cannot read", "spark-4.2-named-sources", nothing,
         {"spark_version": "3.5.1", **KEYED}, "blocked blocked blocked safe"),
        ("Delta in order", "spark-4.2-delta", nothing, KEYED, "safe risky safe safe"),
        ("a source that makes new rows", "spark-4.2-rate", nothing, KEYED, "safe blocked blocked blocked"),
        ("a source that was not asked", "spark-4.2-kafka-shaped", nothing, KEYED, "safe unknown unknown unknown"),
        ("async progress tracking", "spark-4.2-async-progress", nothing, {}, "unknown blocked unknown unknown"),
        ("async progress tracking, a sink that takes rows once", "spark-4.2-async-progress", nothing,
         {"sink_format": "console", "idempotent": True}, "risky blocked unknown unknown"),
        ("async progress tracking, killed before a commit", "spark-4.2-async-progress", lose("commits/11"), {},
         "unknown blocked unknown unknown"),
        ("continuous mode", "spark-4.2-continuous", nothing, {}, "unknown blocked blocked blocked"),
        ("continuous mode, a sink that doubles", "spark-4.2-continuous", nothing,
         {"sink_format": "console", "idempotent": False}, "risky blocked blocked blocked"),
        ("a sink that has no reader", ROWS, nothing, {"sink_format": "kafka", **KEYED}, "safe unknown unknown unknown"),
        ("killed, a sink that doubles", "spark-4.2-foreachbatch-killed", nothing,
         {"sink_format": "console", "idempotent": False}, "risky unknown blocked unknown"),
        ("killed, a sink declared idempotent", "spark-4.2-foreachbatch-killed", nothing,
         {"sink_format": "console", "idempotent": True}, "safe unknown blocked unknown"),
        ("killed, a sink nobody knows", "spark-4.2-foreachbatch-killed", nothing,
         {"sink_format": "console"}, "unknown unknown blocked unknown"),
    ],
)  # fmt: skip
def test_a_situation_has_its_four_verdicts(
    situation: str, fixture: str, damage: Damage, how: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    root = at_home(fixture, tmp_path)
    damage(root / "checkpoint")
    paths = look(root, **how).paths
    assert " ".join(paths[path]["verdict"] for path in PATHS) == expected, paths
    assert all(paths[path]["reasons"] for path in PATHS)


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_checkpoint_has_four_verdicts_with_reasons(name: str, tmp_path: Path) -> None:
    paths = look(at_home(name, tmp_path)).paths
    assert tuple(paths) == PATHS
    for path in paths.values():
        assert path["verdict"] in WORDS and path["reasons"]
    assert isinstance(paths["replay"]["earliest_batch"], int | None)
