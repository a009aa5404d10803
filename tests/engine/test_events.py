"""The stream of `--json` is what its schema says, for real walks, and the schema knows every kind."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from walked import walked

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "wizard/engine/events.schema.json").read_text())
KINDS = {name for name in SCHEMA["$defs"] if name not in ("run", "rows")}


def told_in_the_code() -> set[str]:
    """The kinds that the sources name: `tell("kind", …)`, `event("kind", …)`, `{"event": "kind", …}`."""
    found = set()
    for path in [*(ROOT / "wizard/engine").glob("*.py"), ROOT / "wizard/walking.py"]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in ("tell", "event"):
                    found.add(node.args[0].value)
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == "event" and isinstance(value, ast.Constant):
                        found.add(value.value)
    return found


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_has_every_kind_that_is_told_and_no_other() -> None:
    assert told_in_the_code() == KINDS
    assert {each["$ref"].rpartition("/")[2] for each in SCHEMA["oneOf"]} == KINDS


def test_every_event_of_a_dry_run_a_walk_a_continue_and_an_undo_is_as_published() -> None:
    validator = Draft202012Validator(SCHEMA)
    events = walked().events
    wrong = [(event, error.message) for event in events for error in validator.iter_errors(event)]
    assert wrong == []
    assert {event["mode"] for event in events if event["event"] == "start"} == {"dry run", "live"}
    # purged and report are of commands of their own.
    assert {event["event"] for event in events} == KINDS - {"purged", "report"}


def test_what_is_seen_is_masked_before_it_is_told_or_journalled() -> None:
    from wizard.catalogue.world import holds
    from wizard.engine.walk import _told

    seen = holds(
        "jdbc:x://u:hunter2@db", argv=["submit", "--password", "hunter2"], env={"API_TOKEN": "hunter2"}, files=7
    )
    assert _told(seen) == {
        "truth": "holds",
        "evidence": ["jdbc:x://u:***@db"],
        "data": {"argv": ["submit", "--password", "***"], "env": {"API_TOKEN": "***"}, "files": 7},
    }


@pytest.mark.parametrize("kind", sorted(KINDS - {"purged", "report"}))
def test_a_field_that_is_missing_unknown_or_of_another_type_is_not_as_published(kind: str) -> None:
    validator = Draft202012Validator(SCHEMA)
    event = next(event for event in walked().events if event["event"] == kind)
    for name in SCHEMA["$defs"][kind]["required"]:
        assert not validator.is_valid({key: value for key, value in event.items() if key != name}), name
        assert not validator.is_valid({**event, name: None}), name
    assert not validator.is_valid({**event, "surprise": 1})
