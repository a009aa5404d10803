"""From YAML to a Runbook, or to everything that is wrong with it.

    reading = read(text, "runbooks/reset.yaml", library)
    reading.runbook      # None when a problem is an error
    reading.problems

Strict YAML first, then the JSON Schema, then the names, so that each stage may trust the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from wizard import strict_yaml
from wizard.catalogue import CATALOGUE, Catalogue
from wizard.errors import BadInput
from wizard.problems import Problem
from wizard.runbook.extend import Insert, expanded
from wizard.runbook.model import Ask, Check, Do, End, Option, Runbook, Step, Where, Words
from wizard.runbook.names import suggestion
from wizard.runbook.resolve import unresolved
from wizard.runbook.schema import KINDS, complaints

# The largest shipped tree is a tenth of this. A file beyond it is refused before a byte of it is parsed.
MAX_BYTES = 256 * 1024
MAX_BASES = 5
MAX_PROBLEMS = 50

PathKey = tuple[str | int, ...]
Place = Callable[[PathKey], Where]


class Unfound(Exception):
    """A library has no runbook of that name. Carries the names it has."""

    def __init__(self, known: list[str]) -> None:
        super().__init__(known)
        self.known = known


@dataclass(frozen=True)
class Reading:
    runbook: Runbook | None
    problems: tuple[Problem, ...]


# Finds the text and name of the runbook that `extends` names, as seen from the file that says so.
Library = Callable[[str, str], tuple[bytes, str]]


def no_library(name: str, seen_from: str) -> tuple[bytes, str]:
    raise Unfound([])


def read_file(path: str | Path, library: Library = no_library, catalogue: Catalogue = CATALOGUE) -> Reading:
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        what = f"cannot be read ({error.strerror or error}); check the path and its permissions"
        return _refused("RB001", what, Where(str(path), 1, 1))
    return read(raw, str(path), library, catalogue)


def read(
    text: str | bytes, name: str, library: Library = no_library, catalogue: Catalogue = CATALOGUE, bases: int = 0
) -> Reading:
    if len(text) > MAX_BYTES:
        what = f"larger than {MAX_BYTES // 1024} KiB, which no runbook needs to be; split it"
        return _refused("RB001", what, Where(name, 1, 1))
    try:
        document = strict_yaml.load(text, name)
    except BadInput as error:
        return _refused("RB001", *_placed(str(error), name))

    def place(path: PathKey) -> Where:
        return Where(name, *document.position(path))

    return read_data(document.data, name, place, library, catalogue, bases)


def read_data(
    data: object,
    name: str,
    place: Place,
    library: Library = no_library,
    catalogue: Catalogue = CATALOGUE,
    bases: int = 0,
) -> Reading:
    """The stages after YAML, for data that came from anywhere."""
    wrong = [Problem("RB002", "error", what, str(place(path))) for path, what in complaints(data)]
    if wrong:
        return Reading(None, tuple(wrong[:MAX_PROBLEMS]))
    assert isinstance(data, dict)
    return interpreted(data, name, place, library, catalogue, bases)


def interpreted(
    data: Mapping[str, Any],
    name: str,
    place: Place,
    library: Library = no_library,
    catalogue: Catalogue = CATALOGUE,
    bases: int = 0,
) -> Reading:
    """The stages after the schema, for data that is known to keep to it."""
    wrong: list[Problem] = []
    runbook: Runbook | None
    if "extends" in data:
        runbook, wrong = _extension(data, name, place, library, catalogue, bases)
    else:
        steps = _steps(data["steps"], ("steps",), place)
        runbook = Runbook(data["id"], name, data["start"], steps, data.get("title", ""))
    if runbook is not None:
        wrong = [*wrong, *islice(unresolved(runbook, catalogue, place(("start",))), MAX_PROBLEMS)]
    if any(problem.severity == "error" for problem in wrong):
        return Reading(None, tuple(wrong[:MAX_PROBLEMS]))
    return Reading(runbook, tuple(wrong))


def _extension(
    data: Mapping[str, Any], name: str, place: Place, library: Library, catalogue: Catalogue, bases: int
) -> tuple[Runbook | None, list[Problem]]:
    at = str(place(("extends",)))
    if bases >= MAX_BASES:
        what = f"more than {MAX_BASES} runbooks built on each other; flatten them"
        return None, [Problem("RB301", "error", what, at)]
    try:
        text, found = library(data["extends"], name)
    except Unfound as error:
        what = f"no runbook named {data['extends']!r} on the search path{suggestion(data['extends'], error.known)}"
        return None, [Problem("RB301", "error", what, at)]
    base = read(text, found, library, catalogue, bases + 1)
    if base.runbook is None:
        return None, list(base.problems)
    inserts = [
        Insert(item["before"], place(("insert", index)), _steps(item["steps"], ("insert", index, "steps"), place))
        for index, item in enumerate(data["insert"])
    ]
    return expanded(base.runbook, data["id"], name, data.get("title", base.runbook.title), inserts)


def _steps(data: Mapping[str, Any], path: PathKey, place: Place) -> dict[str, Step]:
    return {name: _step(name, body, (*path, name), place) for name, body in data.items()}


def _step(name: str, body: Mapping[str, Any], path: PathKey, place: Place) -> Step:
    where = place(path)
    words = Words(body.get("say", ""), body.get("why", ""), body.get("if_skipped", ""))
    match next(kind for kind in KINDS if kind in body):
        case "ask":
            options = tuple(
                Option(name=key, where=place((*path, "options", key)), **option)
                for key, option in body["options"].items()
            )
            return Ask(name, where, words, body["ask"], options)
        case "check":
            return Check(name, where, words, body["check"], **body["cases"])
        case "do":
            confirm, declined = body.get("confirm", ""), body.get("on_decline", "")
            return Do(name, where, words, body["do"], body["verify"], body["goto"], body["on_fail"], confirm, declined)
        case _:
            return End(name, where, words, body["end"], body.get("path", ""))


def _refused(code: str, what: str, where: Where | str) -> Reading:
    return Reading(None, (Problem(code, "error", what, str(where)),))


def _placed(message: str, name: str) -> tuple[str, str]:
    found = re.match(re.escape(name) + r":\d+:\d+", message)
    if not found:
        return message, f"{name}:1:1"
    return message[found.end() :].removeprefix(": "), found[0]
