"""The proof: on every path to a step, what the step needs is certain.

A must-analysis. `IN[start]` knows nothing, `IN[n]` is the intersection over all incoming edges of
`(IN[source] − drop) ∪ gain`, taken to the greatest fixpoint. Each edge treats each fact by itself, so the fixpoint is
exact over all paths: a fact is missing from IN[n] if and only if some path arrives at n without it, and a search over
(step, has the fact) finds the shortest such path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wizard.catalogue import CATALOGUE, Catalogue
from wizard.runbook.graph import Edge, Facts, at_start, edges, given, settled, unrefuted
from wizard.runbook.model import Ask, Check, Do, End, Runbook, Step


@dataclass(frozen=True)
class Violation:
    code: str
    step: str
    fact: str  # what is not certain there; for a missing confirmation, "confirmed"
    path: tuple[Edge, ...]  # the shortest way to arrive at the step without it


def prove(runbook: Runbook, catalogue: Catalogue = CATALOGUE) -> list[Violation]:
    """Nothing, if the runbook is safe on every path; else each demand that some path breaks, with that path."""
    return list(violations(runbook, catalogue))


def violations(runbook: Runbook, catalogue: Catalogue = CATALOGUE) -> Iterator[Violation]:
    """One after the other: each costs a search, and of a runbook that is all wrong the first few will do."""
    graph, initially = edges(runbook, catalogue), at_start(catalogue)
    outgoing = _outgoing(runbook, graph)
    arriving, bits = _fixpoint(runbook, outgoing, initially)
    for name, step in runbook.steps.items():
        if name not in arriving:
            continue  # no path arrives; the graph check has said so
        for code, fact in demands(step, catalogue):
            if not arriving[name] & bits.get(fact, 0):
                path = _without(fact, name, runbook.start, outgoing, fact in initially)
                yield Violation(code, name, fact, path)
        if isinstance(step, Do) and catalogue.actions[step.action].destroys and not step.confirm:
            path = _without("confirmed", name, runbook.start, outgoing, False)
            yield Violation("RB202", name, "confirmed", path)


def demands(step: Step, catalogue: Catalogue) -> list[tuple[str, str]]:
    """(code when broken, fact) for all that must be certain on arrival."""
    match step:
        case Do():
            action = catalogue.actions[step.action]
            asked = [("RB203", given(name)) for name in action.takes]
            return [*asked, *(("RB201", fact) for fact in action.requires)]
        case Check():
            return [("RB203", given(name)) for name in catalogue.probes[step.probe].takes]
        case End():
            outcome = catalogue.outcomes[step.outcome]
            claimed = [*outcome.requires, *(catalogue.paths[step.path].requires if step.path else ())]
            owed = sorted(catalogue.owed - set(claimed)) if outcome.settles else []
            return [*(("RB204", fact) for fact in claimed), *(("RB205", settled(fact)) for fact in owed)]
        case Ask():
            # Somebody's word stands for what cannot be seen, never for what was seen to be otherwise.
            words = [fact for option in step.options for fact in (option.attests, option.waives)]
            return [("RB206", unrefuted(fact)) for fact in dict.fromkeys(words) if fact in catalogue.by_word]


def certainties(runbook: Runbook, graph: Sequence[Edge], initially: Facts) -> dict[str, Facts]:
    """IN for every step that some path reaches."""
    arriving, bits = _fixpoint(runbook, _outgoing(runbook, graph), initially)
    return {name: frozenset(fact for fact, bit in bits.items() if known & bit) for name, known in arriving.items()}


def _fixpoint(
    runbook: Runbook, outgoing: Mapping[str, Sequence[Edge]], initially: Facts
) -> tuple[dict[str, int], dict[str, int]]:
    """IN as a number, a bit a fact, for every step that some path reaches; and the bit of each fact."""
    bits: dict[str, int] = {}

    def mask(facts: Facts) -> int:
        known = 0
        for fact in facts:
            known |= bits.setdefault(fact, 1 << len(bits))
        return known

    moves = {
        name: [(edge.target, ~mask(edge.drop), mask(edge.gain)) for edge in leaving]
        for name, leaving in outgoing.items()
    }
    arriving = {runbook.start: mask(initially)}
    ahead, waiting = deque([runbook.start]), {runbook.start}
    while ahead:
        name = ahead.popleft()
        waiting.discard(name)
        for target, keep, gain in moves[name]:
            carried = (arriving[name] & keep) | gain
            before = arriving.get(target)
            after = carried if before is None else before & carried
            if after != before:
                arriving[target] = after
                if target not in waiting:
                    waiting.add(target)
                    ahead.append(target)
    return arriving, bits


def _outgoing(runbook: Runbook, graph: Sequence[Edge]) -> dict[str, list[Edge]]:
    outgoing: dict[str, list[Edge]] = {name: [] for name in runbook.steps}
    for edge in graph:
        outgoing[edge.source].append(edge)
    return outgoing


def _without(
    fact: str, goal: str, start: str, outgoing: Mapping[str, Sequence[Edge]], initially: bool
) -> tuple[Edge, ...]:
    """The shortest path from start to goal that arrives without the fact; breadth first, ties in the file's order."""
    came: dict[tuple[str, bool], tuple[tuple[str, bool], Edge] | None] = {(start, initially): None}
    ahead = deque(came)
    while ahead:
        state = ahead.popleft()
        if state == (goal, False):
            path: list[Edge] = []
            while (step := came[state]) is not None:
                state, edge = step
                path.append(edge)
            return tuple(reversed(path))
        name, has = state
        for edge in outgoing[name]:
            after = (edge.target, fact in edge.gain or (has and fact not in edge.drop))
            if after not in came:
                came[after] = (state, edge)
                ahead.append(after)
    raise AssertionError(f"{fact} is certain at {goal}; the fixpoint and the search disagree")
