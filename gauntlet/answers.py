"""What an operator answers who follows the advice, waives nothing and says no falsehood."""

from __future__ import annotations

import re
from typing import Any

from stage import GOLD, Hole

from wizard.spark.scenarios import Scenario
from wizard.spark.workspace import Workspace

_AGAIN = ["again"] * 3

# Where a step offers to go on without a proof, or to lose rows, the answer is to stop.
_COMMON: dict[str, Any] = {
    "running": "stop",
    "repair": "lost",
    "compare": "stop",
    "other_writer": ["stopped", "unclear"],
    "loss": "stop",
    "say_sources": "same",
    "say_operators": "same",
    "say_confs": "same",
    "changed": "stays",
    "say_in_flight": "twice",
    "wait_commit": [*_AGAIN, "stop"],
    "wait_moving": [*_AGAIN, "stop"],
    "unproved": "stop",
    "who": "stop",
    "readers_too": "reset",
    "readers_loss": "other",
    "too_far": "leave",
}
_OWN: dict[str, dict[str, Any]] = {
    "resume": {},
    "replay": {},
    "backfill": {"gone": "leave", "overlap": "leave", "pause": "stop", "wait": [*_AGAIN, "stop"]},
    "reset": {"loss": "leave", "by_hand": "stop", "place": "in_place"},
    "reset beside": {
        "loss": "leave",
        "place": "beside",
        "built_unproved": "leave",
        "ready": "now",
        "beside_who": "stop",
        "beside_wait_commit": [*_AGAIN, "stop"],
        "beside_wait_moving": [*_AGAIN, "stop"],
        "beside_unproved": "stop",
        "beside_readers_too": "reset",
        "beside_readers_loss": "other",
        "keep": "retire",
    },
}


def answers(path: str, diagnosis: dict[str, Any], hole: Hole | None) -> dict[str, Any]:
    given = {**_COMMON, **_OWN[path]}
    if path == "replay":
        given["target"] = {"option": "by_batch", "value": str(_target(diagnosis))}
    if path == "backfill":
        hole = hole or Hole(0, "by_batches", "1")
        given["range"] = {"option": hole.option, "value": hole.value}
    return given


def _target(diagnosis: dict[str, Any]) -> int:
    """Two batches back, or as far as the diagnosis says that it can go."""
    earliest = diagnosis["paths"]["replay"]["earliest_batch"]
    committed = diagnosis["batches"]["committed"]
    return max(0 if earliest is None else earliest, (committed or 0) - 2)


def fix(scenario: Scenario, path: str, workspace: Workspace) -> str:
    """What the runbook asks the operator to take back before the checkpoint can be used again; done, and said."""
    if path not in ("resume", "replay"):
        return ""
    conf = workspace.conf(GOLD)
    if scenario.name == "state-schema-changed":
        conf.write_text(conf.read_text().replace('unique: "reading_id, sensor", ', ""))
        return "release taken back first"
    if scenario.name == "shuffle-partitions-changed":
        conf.write_text(re.sub(r"shufflePartitions: \d+", "shufflePartitions: 2", conf.read_text()))
        return "setting taken back first"
    return ""
