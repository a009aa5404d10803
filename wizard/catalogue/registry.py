"""The declarations, collected by name, and checked against each other when they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

from wizard.catalogue.declare import Action, Answer, Entry, Outcome, Path, Probe

T = TypeVar("T", Probe, Action, Answer, Outcome, Path)


@dataclass(frozen=True)
class Catalogue:
    probes: Mapping[str, Probe]
    actions: Mapping[str, Action]
    answers: Mapping[str, Answer]
    outcomes: Mapping[str, Outcome]
    paths: Mapping[str, Path]

    @cached_property
    def given(self) -> frozenset[str]:
        """What answers give, under the names that `takes` uses."""
        return frozenset(answer.gives for answer in self.answers.values())

    @cached_property
    def by_word(self) -> frozenset[str]:
        """What somebody's word stands for while it cannot be seen, and no longer when it was seen to fail."""
        return frozenset(probe.name for probe in self.probes.values() if probe.attestable or probe.waived_unseen)

    @cached_property
    def owed(self) -> frozenset[str]:
        return frozenset(fact for action in self.actions.values() for fact in action.owes)


def collect(entries: Iterable[Entry]) -> Catalogue:
    """A catalogue, or ValueError: a declaration that names nothing is a mistake of ours, and is found at import."""
    kinds: dict[type, dict[str, Entry]] = {Probe: {}, Action: {}, Answer: {}, Outcome: {}, Path: {}}
    for entry in entries:
        names = kinds[type(entry)]
        if entry.name in names:
            raise ValueError(f"{entry.name} is declared twice")
        names[entry.name] = entry

    found = Catalogue(
        probes=_only(Probe, kinds),
        actions=_only(Action, kinds),
        answers=_only(Answer, kinds),
        outcomes=_only(Outcome, kinds),
        paths=_only(Path, kinds),
    )
    _checked(found)
    return found


def _only(kind: type[T], kinds: Mapping[type, Mapping[str, Entry]]) -> Mapping[str, T]:
    return MappingProxyType({name: entry for name, entry in kinds[kind].items() if isinstance(entry, kind)})


def _checked(catalogue: Catalogue) -> None:
    for action in catalogue.actions.values():
        _known(catalogue, action.name, (*action.requires, action.makes, *action.may_undo, *action.owes), action.takes)
        if action.makes in action.may_undo:
            raise ValueError(f"{action.name} undoes what it makes, {action.makes}")
        _can_be_asked(catalogue, action.name, (*action.requires, action.makes), action.takes)
    for probe in catalogue.probes.values():
        _known(catalogue, probe.name, (), probe.takes)
    for answer in catalogue.answers.values():
        _known(catalogue, answer.name, answer.may_undo, ())
    for outcome in catalogue.outcomes.values():
        _known(catalogue, outcome.name, outcome.requires, ())
    for path in catalogue.paths.values():
        _known(catalogue, path.name, path.requires, ())


def _known(catalogue: Catalogue, name: str, facts: tuple[str, ...], takes: tuple[str, ...]) -> None:
    for fact in facts:
        if fact not in catalogue.probes:
            raise ValueError(f"{name} names {fact}, which no probe can observe")
    for taken in takes:
        if taken not in catalogue.given:
            raise ValueError(f"{name} takes {taken}, which no answer gives")


def _can_be_asked(catalogue: Catalogue, name: str, facts: tuple[str, ...], takes: tuple[str, ...]) -> None:
    # The engine probes every required fact again right before the action, with the action's own answers.
    for fact in facts:
        missing = set(catalogue.probes[fact].takes) - set(takes)
        if missing:
            raise ValueError(f"{name} needs {fact} probed, but does not take {', '.join(sorted(missing))}")
