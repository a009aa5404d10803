"""Ties code to a name of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from wizard.catalogue import CATALOGUE
from wizard.catalogue.world import Plan, Seen, World

ProbeCode = Callable[[World], Seen]
ActionCode = Callable[[World], Plan]
AnswerCode = Callable[[World, str], Any]

FAMILIES = (
    "job",
    "consumers",
    "checkpoint",
    "config",
    "sink",
    "source",
    "rows",
    "code",
    "target",
    "backfill",
    "beside",
    "diagnosis",
)
_PROBES: dict[str, ProbeCode] = {}
_ACTIONS: dict[str, ActionCode] = {}
_ANSWERS: dict[str, AnswerCode] = {}


def probe(name: str) -> Callable[[ProbeCode], ProbeCode]:
    return _bind(name, _PROBES, CATALOGUE.probes)


def action(name: str) -> Callable[[ActionCode], ActionCode]:
    return _bind(name, _ACTIONS, CATALOGUE.actions)


def answer(name: str) -> Callable[[AnswerCode], AnswerCode]:
    """Turns what the operator typed into a value, or raises BadInput that says what to type."""
    return _bind(name, _ANSWERS, CATALOGUE.answers)


def _bind(name: str, bound: dict[str, Any], declared: Any) -> Callable[[Any], Any]:
    def bind(function: Any) -> Any:
        if name not in declared:
            raise ValueError(f"{name} is not declared in the catalogue")
        if name in bound and bound[name].__module__ != function.__module__:
            raise ValueError(f"{name} is bound twice: {bound[name].__module__} and {function.__module__}")
        bound[name] = function
        return function

    return bind


def loaded() -> tuple[dict[str, ProbeCode], dict[str, ActionCode], dict[str, AnswerCode]]:
    for family in FAMILIES:
        import_module(f"wizard.catalogue.live.{family}")
    return _PROBES, _ACTIONS, _ANSWERS


def look(name: str, world: World) -> Seen:
    return loaded()[0][name](world)


def plan(name: str, world: World) -> Plan:
    return loaded()[1][name](world)


def understand(name: str, world: World, text: str) -> Any:
    return loaded()[2][name](world, text)
