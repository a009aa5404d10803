"""Who is asked. The engine knows this interface alone: a terminal, an answers file and the TUI fill it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from wizard.engine.events import Event
from wizard.errors import BadInput, Stopped
from wizard.runbook.model import Ask, Do, Option
from wizard.strict_yaml import load_file


@dataclass(frozen=True)
class Choice:
    """An option by its name, and what was typed with it: a value where the option gives one, the words of a waiver."""

    option: str
    typed: str = ""


@dataclass(frozen=True)
class Question:
    step: Ask
    evidence: tuple[str, ...]  # what the last look showed
    complaint: str = ""  # why the last answer was not taken
    suggested: str = ""  # the option that fits what was observed; never one that waives


@dataclass(frozen=True)
class Confirmation:
    step: Do
    action: str
    phrase: str  # what must be typed
    preview: tuple[str, ...]  # the effects, a line each
    way_back: str
    destroys: bool


class Operator(Protocol):
    def tell(self, event: Event) -> None: ...

    def choose(self, question: Question) -> Choice: ...

    def confirm(self, asked: Confirmation) -> bool: ...


class Prepared:
    """Answers given beforehand, by step; what they leave open goes to somebody else, or stops the walk.

    place: in_place
    target: {option: by_batch, value: 7}
    loss: {option: accept, typed: "rows that the source no longer has are lost"}
    wait_commit: [again, again, stop]       # in turn, when a step is come to more than once
    """

    def __init__(self, answers: Mapping[str, Any], confirmed: str | None, behind: Operator) -> None:
        self.answers = dict(answers)
        self.confirmed = confirmed
        self.behind = behind
        self.turns: dict[str, int] = {}

    def tell(self, event: Event) -> None:
        self.behind.tell(event)

    def choose(self, question: Question) -> Choice:
        name = question.step.name
        if name not in self.answers:
            return self.behind.choose(question)
        turn = self.turns.get(name, 0)
        self.turns[name] = turn + 1
        given = self.answers[name]
        in_turn = given if isinstance(given, list) else [given]
        if turn >= len(in_turn) or question.complaint:
            if question.complaint:
                raise BadInput(f"the answer to {name!r} is not taken: {question.complaint}")
            return self.behind.choose(question)
        return _choice(name, in_turn[turn])

    def confirm(self, asked: Confirmation) -> bool:
        if self.confirmed is not None:
            return self.confirmed == asked.phrase
        return self.behind.confirm(asked)


class Nobody:
    """For `--no-input`: whatever is not answered beforehand stops the walk."""

    def __init__(self, tell: Any) -> None:
        self._tell = tell

    def tell(self, event: Event) -> None:
        self._tell(event)

    def choose(self, question: Question) -> Choice:
        options = ", ".join(option.name for option in question.step.options)
        raise Stopped(
            f"step {question.step.name!r} needs an answer ({options}) and nobody may be asked; give it with --answers"
        )

    def confirm(self, asked: Confirmation) -> bool:
        raise Stopped(
            f"step {asked.step.name!r} needs a confirmation and nobody may be asked; give --confirm {asked.phrase}"
        )


def load_answers(file: str) -> dict[str, Any]:
    document = load_file(file)
    if not isinstance(document.data, dict):
        raise BadInput(f"{file}:1: not a mapping of steps to answers; write lines such as `place: in_place`")
    for step, given in document.data.items():
        for each in given if isinstance(given, list) else [given]:
            if not isinstance(each, str | dict) or (isinstance(each, dict) and not isinstance(each.get("option"), str)):
                where = document.where((step,))
                raise BadInput(f"{where}: an answer is an option, or {{option: …, typed: …}}; not {each!r}")
    return dict(document.data)


def _choice(step: str, given: Any) -> Choice:
    if isinstance(given, str):
        return Choice(given)
    typed = given.get("typed", given.get("value", ""))
    return Choice(str(given["option"]), typed if isinstance(typed, str) else _text(typed))


def _text(value: Any) -> str:
    import json

    return json.dumps(value)


def fitting(step: Ask, name: str) -> Option | None:
    return next((option for option in step.options if option.name == name), None)
