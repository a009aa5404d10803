"""The published JSON Schema, and its complaints told with a place and a fix.

`runbook.schema.json` is for editors: it has every name of the catalogue, with its sentence, to complete from. Those lists
are what `python -m wizard.runbook.schema` prints, and a test keeps them current; the rest of the file is written by hand.
The tool itself takes any name of the right form and leaves it to the catalogue to say which one was probably meant.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from wizard.catalogue import CATALOGUE, Catalogue, Entry
from wizard.runbook.names import shown, suggestion

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

KINDS = ("ask", "check", "do", "end")
MAX_STEPS, MAX_INSERTS, MAX_OPTIONS, MAX_ERRORS = 500, 100, 20, 100

T = TypeVar("T", dict[str, Any], list[Any])

PathKey = tuple[str | int, ...]


FILE = "runbook.schema.json"


@cache
def schema() -> dict[str, Any]:
    return dict(json.loads(files("wizard.runbook").joinpath(FILE).read_text(encoding="utf-8")))


def published(catalogue: Catalogue = CATALOGUE) -> str:
    """The text of the file as the catalogue would have it now."""
    return json.dumps(_with_names(_names_of(catalogue)), indent=2, ensure_ascii=False) + "\n"


def _names_of(catalogue: Catalogue) -> dict[str, Any]:
    probes = catalogue.probes
    return {
        "probe": _one_of(probes),
        "action": _one_of(catalogue.actions),
        "answer": _one_of(catalogue.answers),
        "waivable": _one_of({name: probe for name, probe in probes.items() if probe.waivable}),
        "attestable": _one_of({name: probe for name, probe in probes.items() if probe.attestable}),
        "outcome": {"enum": list(catalogue.outcomes)},
        "path": {"enum": list(catalogue.paths)},
    }


def _one_of(entries: Mapping[str, Entry]) -> dict[str, Any]:
    return {"oneOf": [{"const": name, "description": entry.says} for name, entry in entries.items()]}


def _with_names(names: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema(), "$defs": {**schema()["$defs"], **names}}


def complaints(data: object) -> Iterator[tuple[PathKey, str]]:
    """Where the data is not a runbook, and what to do about it."""
    if outsized := list(_outsized(data)):
        yield from outsized
        return
    # A file made to hurt has tens of thousands of mistakes; nobody needs more than the first few, in order.
    errors = islice(_validator().iter_errors(data), MAX_ERRORS)
    for error in sorted(errors, key=lambda error: [str(part) for part in error.absolute_path]):
        for leaf in _leaves(error):
            yield tuple(leaf.absolute_path), _told(leaf)


def _outsized(data: object) -> Iterator[tuple[PathKey, str]]:
    """More of anything than a runbook may have: told first, since to validate what is too much takes its time."""
    inserts = _inside(data, "insert", list)
    groups: dict[PathKey, dict[str, Any]] = {("steps",): _inside(data, "steps", dict)}
    groups |= {("insert", at, "steps"): _inside(each, "steps", dict) for at, each in enumerate(inserts)}
    if len(inserts) > MAX_INSERTS:
        yield ("insert",), f"more than {MAX_INSERTS} inserts; split it"
    elif sum(map(len, groups.values())) > MAX_STEPS:
        yield ("insert" if inserts else "steps",), f"more than {MAX_STEPS} steps; split it"
    else:
        for path, steps in groups.items():
            for name, body in steps.items():
                if len(_inside(body, "options", dict)) > MAX_OPTIONS:
                    yield (*path, name, "options"), f"more than {MAX_OPTIONS} options; ask twice"


def _inside(data: object, key: str, kind: type[T]) -> T:
    held = data.get(key) if isinstance(data, dict) else None
    return held if isinstance(held, kind) else kind()


@cache
def _validator() -> Any:
    # Imported here: a broken runbook is rare, and every command would pay for the import.
    from jsonschema import Draft202012Validator

    any_name = {"$ref": "#/$defs/fact"}
    open_to = {kind: any_name for kind in ("probe", "action", "answer", "waivable", "attestable")}
    return Draft202012Validator(_with_names(open_to))


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    """Of a step's four alternatives only the one its author meant is worth complaining about."""
    if error.validator != "oneOf" or not isinstance(error.instance, dict) or not error.absolute_path:
        yield error
        return
    kinds = [kind for kind in KINDS if kind in error.instance]
    if len(kinds) != 1:
        yield error
        return
    meant = KINDS.index(kinds[0])
    for inner in error.context or ():
        if inner.relative_schema_path[0] == meant:
            yield from _leaves(inner)


def _told(error: ValidationError) -> str:
    value: Any = error.instance
    rule: Any = error.validator_value
    schema: Any = error.schema
    match error.validator:
        case "oneOf" if not error.absolute_path:
            return "a runbook has start and steps, or extends and insert; not both, not neither"
        case "oneOf":
            return _kind_told(value)
        case "additionalProperties":
            allowed = schema.get("properties", {})
            extra = next(key for key in value if key not in allowed)
            return f"{shown(extra)} is not a key here{suggestion(extra, allowed)} (allowed: {', '.join(allowed)})"
        case "required":
            missing = [key for key in rule if key not in value]
            return f"{' and '.join(missing)} missing here; add {'it' if len(missing) == 1 else 'them'}"
        case "dependentRequired":
            pairs = {key: needs for key, needs in rule.items() if key in value}
            key, need = next((key, need) for key, needs in pairs.items() for need in needs if need not in value)
            return f"{key} needs {need} beside it"
        case "pattern" if "x-fix" in schema:
            return f"{shown(value)} {schema['x-fix']}"
        case "pattern":
            return f"{shown(value)} is not a name of small letters, digits and _{suggestion(value, _names())}"
        case "enum":
            return f"{shown(value)} is none of {', '.join(rule)}{_suggest(value, rule)}"
        case "const":
            return f"{shown(value)} must be {json.dumps(rule)} here"
        case "not":
            return "path is for `end: chosen` alone"
        case "maxProperties" | "maxItems" | "maxLength":
            return f"more than {rule} here; split it"
        case "type":
            return f"{shown(value)} is not {_NOUNS.get(str(rule), rule)}"
        case _:
            return f"{shown(value)} is not allowed here ({error.validator})"


_NOUNS = {"string": "text; quote it", "object": "a mapping of names to values", "array": "a list"}


def _kind_told(value: Any) -> str:
    if not isinstance(value, dict):
        return f"{shown(value)} is not a step; write {{check: …, cases: …}} or another of {', '.join(KINDS)}"
    kinds = [kind for kind in KINDS if kind in value]
    if kinds:
        return f"a step is exactly one of {', '.join(KINDS)}; this one is {' and '.join(kinds)}: make two steps of it"
    near = next((hint for key in value if isinstance(key, str) and (hint := suggestion(key, KINDS))), "")
    return f"a step is exactly one of {', '.join(KINDS)}; this one is none{near}"


def _suggest(value: object, known: Iterable[str]) -> str:
    return suggestion(value, known) if isinstance(value, str) else ""


def _names() -> list[str]:
    return [*CATALOGUE.probes, *CATALOGUE.actions, *CATALOGUE.answers, *KINDS]


if __name__ == "__main__":
    print(published(), end="")
