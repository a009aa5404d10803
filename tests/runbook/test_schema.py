"""The published JSON Schema: current, a schema, and of one mind with the tool about the shipped runbooks."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from shipped import NAMES, ROOT, data

from wizard.catalogue import CATALOGUE
from wizard.runbook.schema import published, schema

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.yaml"))
VALIDATOR = Draft202012Validator(schema())


def named(kind: str) -> set[str]:
    return {choice["const"] for choice in schema()["$defs"][kind]["oneOf"]}


def test_the_file_is_what_the_catalogue_would_have_it() -> None:
    text = (ROOT / "wizard" / "runbook" / "runbook.schema.json").read_text("utf-8")
    assert text == published(), "put there what `python -m wizard.runbook.schema` prints"


def test_an_author_elsewhere_can_have_a_copy_printed() -> None:
    done = subprocess.run([sys.executable, "-m", "wizard.runbook.schema"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == schema()


def test_it_is_a_schema_and_has_every_name_there_is() -> None:
    Draft202012Validator.check_schema(schema())
    assert named("probe") == set(CATALOGUE.probes)
    assert named("action") == set(CATALOGUE.actions)
    assert named("answer") == set(CATALOGUE.answers)
    assert "rows.exact" in named("waivable") and "job.stopped" not in named("waivable")
    assert "code.same_sources" in named("attestable") and "rows.exact" not in named("attestable")
    assert schema()["$defs"]["outcome"]["enum"] == list(CATALOGUE.outcomes)
    assert schema()["$defs"]["path"]["enum"] == list(CATALOGUE.paths)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_runbook_keeps_to_it(name: str) -> None:
    assert list(VALIDATOR.iter_errors(data(name))) == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_keeps_to_it_and_says_so_to_the_editor(file: Any) -> None:
    text = file.read_text("utf-8")
    assert list(VALIDATOR.iter_errors(yaml.safe_load(text))) == []
    first = text.splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (file.parent / first.partition("=")[2]).resolve() == ROOT / "wizard" / "runbook" / "runbook.schema.json"


def test_there_is_an_example() -> None:
    assert EXAMPLES


@pytest.mark.parametrize(
    ("step", "key", "value"),
    [
        ("stopped", "check", "job.stoped"),
        ("truncate", "do", "sink.trunkate"),
        ("truncate", "verify", "sink.truncate"),
        ("truncate", "confirm", "yes"),
        ("done", "end", "resolve"),
        ("stopped", "do", "job.stop"),
    ],
)
def test_an_editor_marks_what_the_tool_would_refuse(step: str, key: str, value: str) -> None:
    mutant = data("reset")
    mutant["steps"][step][key] = value
    assert [list(error.absolute_path) for error in VALIDATOR.iter_errors(mutant)] == [["steps", step]]


def test_only_what_the_catalogue_lets_go_can_be_waived() -> None:
    mutant = data("reset")
    mutant["steps"]["loss"]["options"]["accept"]["waives"] = "sink.empty"
    assert not VALIDATOR.is_valid(mutant)
