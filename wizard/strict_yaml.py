"""YAML without the surprises: what an operator reads in the file is what the tool gets.

    doc = load(text, "jobs.yaml")
    doc.data                                  # plain dict, list, str, int, float, bool, None
    doc.where(("jobs", "ingest", "sink"))     # "jobs.yaml:12:5"

Whatever two YAML readers could read differently is refused (`on`, `010`, `1:20`, `1e5`), and so is whatever
makes a short file a long one (anchors) or calls code (tags). The parser's events are folded on our own stack:
nothing recurses, nothing is built before it was looked at, and every refusal is made at the first offending event.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import yaml

from wizard.errors import BadInput

MAX_BYTES = 5_000_000
MAX_DEPTH = 50
MAX_VALUES = 500_000

PathKey = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_SWITCHES = frozenset(("on", "off", "yes", "no", "y", "n"))
_WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")
_TRAPS = (
    (re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z"), "a number in base 60 to YAML 1.1"),
    (re.compile(r"[-+]?0[0-9_]+\Z"), "an octal number to YAML 1.1"),
    (re.compile(r"[-+]?0[xob][0-9a-fA-F_]+\Z"), "a number in another base to some YAML readers"),
    (re.compile(r"[-+]?[0-9]+_[0-9_]*(?:\.[0-9_]*)?\Z"), "a number to YAML 1.1 and text to YAML 1.2"),
    (re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+\Z"), "text to YAML 1.1 and a number to YAML 1.2"),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"), "not a finite number"),
    (re.compile(r"[-+]?[0-9]{19,}\Z"), "a number too large to be kept exactly everywhere"),
)
# U+0085, U+2028 and U+2029 end a line for YAML 1.1 and for nobody's editor; surrogates are undecodable bytes.
_BAD_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a value is: its key (itself, in a list or at the top), then the value, as (line, column) from 1."""

    key: tuple[int, int]
    value: tuple[int, int]
    inside: dict[str | int, _Spot]


_LEAF: dict[str | int, _Spot] = {}  # one for all scalars, never written to: a dict each would double the memory


@dataclass(frozen=True)
class Document:
    name: str
    data: Any
    positions: _Spot

    def position(self, path: PathKey, *, value: bool = False) -> tuple[int, int]:
        """The (line, column) of the key at `path`, or of its value; where there is none, of the nearest thing above."""
        spot = self.positions
        for depth, part in enumerate(path):
            below = spot.inside.get(part)
            if below is None:
                return spot.key if depth else spot.value
            spot = below
        return spot.value if value else spot.key

    def where(self, path: PathKey, *, value: bool = False) -> str:
        line, column = self.position(path, value=value)
        return f"{self.name}:{line}:{column}"


def load_file(path: str | Path, name: str | None = None) -> Document:
    """Like `load`, from a local file whose size is looked at before it is read."""
    shown = name or str(path)
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        said = error.strerror or str(error)
        raise BadInput(f"{shown}: cannot be read ({said}); check the path and its permissions") from None
    return load(raw, shown)


def load(text: str | bytes, name: str) -> Document:
    """Parse one document, or raise BadInput with `name:line:column: what; what to do`."""
    return _Fold(name).fold(_decoded(text, name))


def _decoded(text: str | bytes, name: str) -> str:
    if len(text) > MAX_BYTES:
        _refuse(name, 1, 1, f"larger than {MAX_BYTES:,} bytes", "split it into several files")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            good = error.object[: error.start].decode("utf-8")
            what = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
            _refuse(name, *_line_column(good, len(good)), what, "save the file as UTF-8")
    text = text.removeprefix("\ufeff")
    if bad := _BAD_CHARACTER.search(text):
        what = f"the character U+{ord(bad[0]):04X} is not allowed"
        _refuse(name, *_line_column(text, bad.start()), what, 'take it out, or escape it in "double quotes"')
    if (tab := text.find("\t")) >= 0:
        _refuse(name, *_line_column(text, tab), "a tab", 'indent with spaces, and inside "double quotes" write \\t')
    return text


def _line_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _refuse(name: str, line: int, column: int, what: str, fix: str) -> NoReturn:
    raise BadInput(f"{name}:{line}:{column}: {what}; {fix}")


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not been seen yet."""

    data: Any
    spot: _Spot
    key: str | None = None
    key_at: tuple[int, int] = (0, 0)


class _Fold:
    def __init__(self, name: str) -> None:
        self.name = name
        self.open: list[_Open] = []
        self.values = 0
        self.root: Document | None = None
        self.at = (1, 1)

    def refuse(self, what: str, fix: str) -> NoReturn:
        _refuse(self.name, *self.at, what, fix)

    def fold(self, text: str) -> Document:
        documents = 0
        for event in self.events(text):
            self.at = (event.start_mark.line + 1, event.start_mark.column + 1)
            if isinstance(event, yaml.ScalarEvent):
                self.guard(event)
                self.scalar(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                self.guard(event)
                self.begin({} if isinstance(event, yaml.MappingStartEvent) else [])
            elif isinstance(event, yaml.CollectionEndEvent):
                self.open.pop()
            elif isinstance(event, yaml.AliasEvent):
                self.refuse(f"the alias *{_short(event.anchor or '')} is not allowed", "write the value out")
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.refuse("a second document", "take out the --- and what follows, a file has one")
        if self.root is None or self.root.data is None:
            _refuse(self.name, 1, 1, "the file is empty", "write the document, or name another file")
        return self.root

    def events(self, text: str) -> Iterator[Any]:
        try:
            yield from yaml.parse(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            # Where a quote was never closed, not the last line of the file.
            unclosed = "end of stream" in str(error.problem)
            mark = (unclosed and error.context_mark) or error.problem_mark
            if mark:
                self.at = (mark.line + 1, mark.column + 1)
            self.invalid(f"{error.context or ''} {error.problem or ''}")
        except (yaml.YAMLError, ValueError) as error:  # ValueError: PyYAML's own parser on "\\U00110000"
            self.invalid(str(error))

    def invalid(self, said: str) -> NoReturn:
        said = " ".join(said.split()).replace("; ", ", ")
        self.refuse(f"not valid YAML ({_short(said)})", "check indentation, quotes and brackets here and just above")

    def guard(self, event: Any) -> None:
        if event.anchor is not None:
            self.refuse(f"the anchor &{_short(event.anchor)} is not allowed", "write the value out where it is needed")
        if event.tag is not None:
            self.refuse(f"the tag {_short(event.tag)} is not allowed", "take it out, and quote the value if it is text")
        self.values += 1
        if self.values > MAX_VALUES:
            self.refuse(f"more than {MAX_VALUES:,} values", "split it into several files")

    def scalar(self, event: Any) -> None:
        top = self.open[-1] if self.open else None
        if top is None or top.key is not None or isinstance(top.data, list):
            self.place(self.resolved(event), _LEAF)
            return
        if event.value == "<<" and event.implicit[0]:
            self.refuse("the merge key << is not allowed", "write the keys out")
        key = self.resolved(event)
        if not isinstance(key, str):
            self.refuse(f"the key {_short(event.value) or 'that is empty'} is not text", "quote it")
        if key in top.data:
            line, _ = top.spot.inside[key].key
            self.refuse(f"the key {_short(key)} is there twice (first on line {line})", "take one out")
        top.key, top.key_at = key, self.at

    def begin(self, data: Any) -> None:
        if self.open and isinstance(self.open[-1].data, dict) and self.open[-1].key is None:
            self.refuse("a key that is a list or a mapping", "write it as text, quoted if the brackets are meant")
        if len(self.open) >= MAX_DEPTH:
            self.refuse(f"nested more than {MAX_DEPTH} deep", "flatten it")
        self.open.append(_Open(data, self.place(data, {})))

    def place(self, value: Any, inside: dict[str | int, _Spot]) -> _Spot:
        if not self.open:
            spot = _Spot(self.at, self.at, inside)
            self.root = Document(self.name, value, spot)
            return spot
        top = self.open[-1]
        if isinstance(top.data, list):
            spot = top.spot.inside[len(top.data)] = _Spot(self.at, self.at, inside)
            top.data.append(value)
            return spot
        assert top.key is not None
        spot = top.spot.inside[top.key] = _Spot(top.key_at, self.at, inside)
        top.data[top.key] = value
        top.key = None
        return spot

    def resolved(self, event: Any) -> str | int | float | bool | None:
        text: str = event.value
        if not event.implicit[0]:
            if not text.isascii() and _SURROGATE.search(text):
                self.refuse("an escape that is half a character", "write the character itself")
            return text
        if text in _WORDS:
            return _WORDS[text]
        if text.lower() in _SWITCHES:
            self.refuse(f"{text} is true or false to YAML 1.1", f'quote it ("{text}"), or write true or false')
        if text[0] not in "+-.0123456789":
            return text
        if _INT.match(text) and abs(number := int(text)) < 2**63:
            return number
        for trap, why in _TRAPS:
            if trap.match(text):
                self.refuse(f"{_short(text)} is {why}", "quote it if it is text, or write a plain decimal number")
        if _FLOAT.match(text):
            if math.isinf(float(text)):
                self.refuse(f"{_short(text)} is not a finite number", "quote it if it is text")
            return float(text)
        return text


def _short(text: str) -> str:
    text = text if len(text) <= 100 else text[:97] + "..."
    return text if text.isprintable() else ascii(text)
