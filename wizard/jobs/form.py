"""Whether a registry has the right form: JSON Schema, told in words and with the place in the file."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from wizard.jobs.model import NEED_A_PATH, Problem
from wizard.secrets import mask
from wizard.strict_yaml import Document, PathKey

if TYPE_CHECKING:
    from jsonschema import ValidationError

_KINDS = {"object": "a mapping", "array": "a list", "string": "text", "number": "a number", "integer": "a whole number"}


@cache
def schema() -> dict[str, Any]:
    """The published schema."""
    text = resources.files("wizard.jobs").joinpath("registry.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def form_problems(document: Document) -> list[Problem]:
    """Everything wrong with the form, in the order of the file."""
    from jsonschema import Draft202012Validator  # 100 ms, and only registries need it

    found: dict[tuple[tuple[int, int], str], Problem] = {}
    for error in Draft202012Validator(schema()).iter_errors(document.data):
        for code, path, at_value, message in _told(error):
            place = document.position(path, value=at_value)
            jobs = (str(path[1]),) if len(path) > 1 and path[0] == "jobs" else ()
            problem = Problem(code, "error", message, document.where(path, value=at_value), jobs)
            found.setdefault((place, message), problem)
    for path, message in _beyond_schema(document.data):
        found[document.position(path, value=True), message] = Problem(
            "J002", "error", message, document.where(path, value=True), (str(path[1]),)
        )
    return [found[key] for key in sorted(found)]


def _told(error: ValidationError) -> Iterator[tuple[str, PathKey, bool, str]]:
    """Code, path, whether the value (and not its key) is at fault, message."""
    path: PathKey = tuple(error.absolute_path)
    what = _name(path)
    instance: Any = error.instance
    rule: Any = error.validator_value
    part: Any = error.schema
    fix = part.get("x-fix") if isinstance(part, dict) else None
    if "propertyNames" in error.schema_path:
        yield _bad_name(path, str(instance))
    elif error.validator == "additionalProperties":
        known = sorted(part["properties"])
        for key in instance:
            if key not in known:
                yield "J003", (*path, key), False, f"{what} has no key {key}; {_nearest(key, known)}"
    elif error.validator == "required":
        for key in rule:
            if key not in instance:
                yield "J002", path, False, f"{what} lacks {key}; add it"
    elif error.validator in ("oneOf", "anyOf") and not isinstance(instance, dict):
        return  # told by its type
    elif error.validator == "oneOf":
        both = "source" in instance and "sources" in instance
        wrong = "has both source and sources; keep one" if both else "lacks source; add it, or sources for several"
        yield "J002", path, False, f"{what} {wrong}"
    elif error.validator == "anyOf":
        yield "J002", path, False, f"{what} lacks query_name and query_id; add one, so that the query is known"
    elif error.validator == "type":
        yield "J002", path, True, _wrong_type(path, what, instance, rule)
    elif error.validator in ("enum", "const"):
        allowed = [str(value) for value in (rule if isinstance(rule, list) else [rule])]
        yield "J002", path, True, f"{what} cannot be {_shown(path, instance)}; {_nearest(str(instance), allowed)}"
    elif error.validator in ("minItems", "minLength", "minProperties"):
        yield "J002", path, True, f"{what} is empty; {fix or 'write something'}"
    else:
        yield "J002", path, True, f"{what} cannot be {_shown(path, instance)}; {fix or 'see docs/registry.md'}"


def _bad_name(path: PathKey, name: str) -> tuple[str, PathKey, bool, str]:
    if path != ("jobs",):
        return "J002", (*path, name), False, f"{name!a} cannot name an environment variable; use A-Z, 0-9 and _"
    fix = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:100] or "my-job"
    what = f"the job name {name[:120]!a} cannot be a directory name"
    return "J004", (*path, name), False, f"{what}; use a-z, 0-9, '.', '_' and '-', for example {fix}"


def _wrong_type(path: PathKey, what: str, instance: Any, rule: Any) -> str:
    kinds = [rule] if isinstance(rule, str) else rule
    if kinds == ["array"] and isinstance(instance, str) and path[-1] in ("start", "stop", "status"):
        try:
            words = shlex.split(mask(instance))
        except ValueError:
            words = mask(instance).split()
        return f"{what} is a shell string; write a list: {json.dumps(words, ensure_ascii=False)}"
    if kinds == ["array"] and isinstance(instance, str):
        return f"{what} must be a list; write [{_shown(path, instance)}]"
    if "string" in kinds and isinstance(instance, bool | int | float):
        return f'{what} must be text; quote it: "{_shown(path, instance)}"'
    wanted = " or ".join(_KINDS.get(kind, "true or false") for kind in kinds)
    if instance is None:
        return f"{what} is empty; write {wanted}"
    return f"{what} must be {wanted}; it is {_KINDS.get(_json_type(instance), 'true or false')} now"


def _beyond_schema(data: Any) -> Iterator[tuple[PathKey, str]]:
    """What JSON Schema cannot say."""
    jobs = data.get("jobs") if isinstance(data, dict) else None
    for name, job in jobs.items() if isinstance(jobs, dict) else ():
        if isinstance(job, dict):
            for path, problem in (*_answers(job.get("control")), *_sink_path(job.get("sink"))):
                full = ("jobs", name, *path)
                yield full, f"{_name(full)} {problem}"


def _answers(control: Any) -> Iterator[tuple[PathKey, str]]:
    if not isinstance(control, dict):
        return
    for which in ("running", "stopped"):
        answer = control.get(which)
        expression = answer.get("output") if isinstance(answer, dict) else None
        try:
            re.compile(expression if isinstance(expression, str) else "")
        except re.error as error:
            yield ("control", which, "output"), f"is no regular expression ({error}); correct it"
    if _same_answer(control.get("running", {"exit_codes": [0]}), control.get("stopped")):
        yield ("control", "stopped"), "is the same answer as running; give each its own exit code or output"


def _same_answer(running: Any, stopped: Any) -> bool:
    if not isinstance(running, dict) or not isinstance(stopped, dict):
        return False
    one, other = running.get("exit_codes"), stopped.get("exit_codes")
    if "output" in running or "output" in stopped or not isinstance(one, list) or not isinstance(other, list):
        return running == stopped
    return any(code in other for code in one)


def _sink_path(sink: Any) -> Iterator[tuple[PathKey, str]]:
    if not isinstance(sink, dict) or not isinstance(sink.get("format"), str):
        return
    options = sink["options"] if isinstance(sink.get("options"), dict) else {}
    if sink["format"].lower() in NEED_A_PATH and not sink.get("path") and not options.get("path"):
        yield ("sink",), "lacks path; add where the output is"
    if "path" in sink and options.get("path", sink["path"]) != sink["path"]:
        yield ("sink", "options", "path"), "is not the path of the sink; keep one of the two"


def _name(path: PathKey) -> str:
    """A path as an operator would say it: `sink.key of job ingest`."""
    if len(path) >= 2 and path[0] == "jobs":
        rest = _dotted(path[2:])
        job = str(path[1]) if str(path[1]).isprintable() else ascii(path[1])
        return f"{rest} of job {job}" if rest else f"job {job}"
    return _dotted(path) or "the registry"


def _dotted(path: PathKey) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _nearest(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    return f"write one of {', '.join(known)}" if len(known) > 1 else f"write {known[0]}"


def _shown(path: PathKey, value: Any) -> str:
    """A value in a message: short, on one line, and nothing from where secrets live."""
    if "options" in path or "env" in path:
        return "what it is"
    text = mask(str(value).lower() if isinstance(value, bool) else str(value))[:80]
    return (text if text.isprintable() else ascii(text)) or "empty"


def _json_type(value: Any) -> str:
    return {dict: "object", list: "array", str: "string", int: "integer", float: "number"}.get(type(value), "boolean")
