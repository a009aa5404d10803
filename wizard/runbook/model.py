"""A runbook as data: named steps, each exactly one of ask, check, do, end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Where:
    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Words:
    """What the operator is told: what happens here, why, and what it means to go without."""

    say: str = ""
    why: str = ""
    if_skipped: str = ""


@dataclass(frozen=True)
class Option:
    name: str
    say: str
    goto: str
    where: Where
    gives: str = ""  # an answer of the catalogue, typed in
    waives: str = ""  # a fact that need not hold from here on, because somebody took that upon themselves
    attests: str = ""  # a fact that somebody vouches for, because it cannot be observed
    type_out: str = ""  # the words a waiver must be given in


@dataclass(frozen=True)
class Ask:
    name: str
    where: Where
    words: Words
    question: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Check:
    name: str
    where: Where
    words: Words
    probe: str
    holds: str
    fails: str
    unknown: str


@dataclass(frozen=True)
class Do:
    name: str
    where: Where
    words: Words
    action: str
    verify: str
    goto: str
    on_fail: str
    confirm: str = ""
    on_decline: str = ""


@dataclass(frozen=True)
class End:
    name: str
    where: Where
    words: Words
    outcome: str
    path: str = ""


Step = Ask | Check | Do | End


@dataclass(frozen=True)
class Runbook:
    id: str
    file: str
    start: str
    steps: Mapping[str, Step]
    title: str = ""
    extends: tuple[str, ...] = field(default=())  # the runbooks it was built on, nearest first

    @property
    def digest(self) -> str:
        """SHA-256 over what is walked: steps and words, not their places in the file. A moved line changes nothing."""
        steps = {name: {"kind": type(step).__name__, **_bare(asdict(step))} for name, step in self.steps.items()}
        told = json.dumps({"id": self.id, "start": self.start, "steps": steps}, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(told.encode()).hexdigest()


def _bare(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    bare: dict[str, object] = {key: inner for key, inner in value.items() if key != "where"}
    if "options" in bare:
        options = bare["options"]
        assert isinstance(options, tuple)
        bare["options"] = [_bare(option) for option in options]
    return bare
