"""The shipped runbooks, as files and as plain data read by another YAML loader than the tool's."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from wizard.problems import Problem
from wizard.runbook.lint import linted
from wizard.runbook.load import PathKey, read_data
from wizard.runbook.model import Where

ROOT = Path(__file__).parents[2]
NAMES = ("backfill", "replay", "reset", "resume", "triage")
FILES = {name: ROOT / "runbooks" / f"{name}.yaml" for name in NAMES}
_DATA = {name: yaml.safe_load(file.read_text("utf-8")) for name, file in FILES.items()}


def data(name: str) -> dict[str, Any]:
    return copy.deepcopy(_DATA[name])


def edited(name: str, *steps: str) -> dict[str, Any]:
    """Data of which only these steps may be changed; the others are shared, which copies a tenth as much."""
    original = _DATA[name]
    return {
        **original,
        "steps": {**original["steps"], **{step: copy.deepcopy(original["steps"][step]) for step in steps}},
    }


def is_shipped(name: str, step: str, body: dict[str, Any]) -> bool:
    """Whether this is the very body that `edited` shares for that step."""
    return _DATA[name]["steps"].get(step) is body


def nowhere(path: PathKey) -> Where:
    return Where("mutant", 1, 1)


def lint_data(mutant: dict[str, Any]) -> list[Problem]:
    return linted(read_data(mutant, "mutant", nowhere))
