"""The frame that every log of a checkpoint shares: a version line, then lines of JSON.

Parsers return what they understood or an `Unreadable` that says why not; they never raise on what a file holds.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Literal

from wizard.store import Content

LOG_LIMIT = 16 * 1024 * 1024
"""An offsets or commits file is a few KB; past this it is not one."""

COMPACT_LIMIT = 256 * 1024 * 1024
"""A compacted file log lists every file of the stream's life."""

MAX_LONG = 2**63 - 1

Why = Literal["missing", "denied", "too-large", "empty", "cut", "not-text", "version", "newer", "shape"]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is there (or should be) and cannot be used, with Spark's own reaction where it is known."""

    path: str
    why: Why
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Framed:
    version: int
    lines: tuple[str, ...]


def batch_id(name: str) -> int | None:
    """The batch a log file's name stands for: Spark takes a name that parses as a long, and ignores all others."""
    if name.isascii() and name.isdigit() and len(name) <= 19:
        number = int(name)
        return number if number <= MAX_LONG else None
    return None


def frame(path: str, content: Content, newest: int, *, trim: bool = False) -> Framed | Unreadable:
    """Splits a log file; `newest` is the highest version any known Spark writes for it. Only commits `trim` its line."""
    if content.missing:
        return Unreadable(path, "missing", "the file is not there")
    if content.error is not None:
        return Unreadable(path, "denied", f"cannot be read: {content.error}")
    if content.too_large is not None:
        return Unreadable(path, "too-large", f"is {content.too_large} bytes, no log file is that large")
    if not content.data.strip(b"\0 \r\n\t"):
        return Unreadable(path, "empty", "is empty: it was cut short" if not content.data else "holds no text")
    try:
        text = content.data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Unreadable(path, "not-text", f"is not UTF-8 text (byte {error.start})")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    first = lines[0].strip() if trim else lines[0].removesuffix("\r")
    digits = first[1:]
    if not first.startswith("v") or not (digits.isascii() and digits.isdigit()) or len(digits) > 9 or int(digits) == 0:
        return Unreadable(path, "version", f"does not start with a version line but with {first[:40]!r}")
    version = int(digits)
    if version > newest:
        return Unreadable(path, "newer", f"is version v{version}; versions up to v{newest} are known")
    return Framed(version, tuple(line.rstrip("\r") for line in lines[1:]))


def parse_json(path: str, text: str, what: str) -> Any | Unreadable:
    """JSON of any kind; nesting, numbers and surrogates beyond reason are told, not raised."""
    try:
        value = _DECODER.decode(text)
        if text.count("[") + text.count("{") > _DEEPEST and _deeper_than(value, _DEEPEST):
            raise RecursionError
        return value
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        why: Why = "cut" if at_end else "shape"
        return Unreadable(
            path, why, f"{what} is not JSON ({error.msg} at character {error.pos})" + (": cut short" if at_end else "")
        )
    except RecursionError:
        return Unreadable(path, "shape", f"{what} is nested too deeply")
    except ValueError as error:
        return Unreadable(path, "shape", f"{what} holds a number that is too large ({str(error)[:60]})")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text[:20])
    return number


# `Infinity` and `NaN` are not JSON, and could not be printed as such.
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)
_DEEPEST = 100


def _deeper_than(value: Any, depth: int) -> bool:
    """Whether values lie more than `depth` deep: what only just parses would overflow the stack when it is printed."""
    level = [value]
    for _ in range(depth):
        level = [
            inner for outer in level if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]  # fmt: skip
    return bool(level)


def parse_object(path: str, text: str, what: str) -> dict[str, Any] | Unreadable:
    value = parse_json(path, text, what)
    if isinstance(value, (Unreadable, dict)):
        return value
    return Unreadable(path, "shape", f"{what} is not a JSON object")


def long_of(value: object) -> int | None:
    """A JSON number that fits Java's long; booleans are not numbers."""
    if isinstance(value, int) and not isinstance(value, bool) and -MAX_LONG - 1 <= value <= MAX_LONG:
        return value
    return None
