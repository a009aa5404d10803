"""The steps as edges that gain and drop facts, and the checks that need no facts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wizard.catalogue import Catalogue
from wizard.runbook.model import Ask, Check, Do, End, Runbook, Step
from wizard.runbook.resolve import targets

Facts = frozenset[str]
NOTHING: Facts = frozenset()


@dataclass(frozen=True)
class Edge:
    source: str
    label: str
    target: str
    gain: Facts = NOTHING
    drop: Facts = NOTHING


def given(name: str) -> str:
    """The fact that an answer of this kind has been given."""
    return f"given {name}"


def settled(fact: str) -> str:
    """The fact that nothing done so far still owes `fact`."""
    return f"settled {fact}"


def unrefuted(fact: str) -> str:
    """The fact that the last look at `fact`, if there was one, did not see it fail."""
    return f"unrefuted {fact}"


def at_start(catalogue: Catalogue) -> Facts:
    """Nothing is known of the world, nothing is owed to it, and nothing was seen to fail."""
    return frozenset((*map(settled, catalogue.owed), *map(unrefuted, catalogue.by_word)))


def edges(runbook: Runbook, catalogue: Catalogue) -> list[Edge]:
    return [edge for step in runbook.steps.values() for edge in _edges(step, catalogue)]


def _edges(step: Step, catalogue: Catalogue) -> list[Edge]:
    def edge(
        label: str, target: str, gain: Iterable[str] = (), drop: Iterable[str] = (), owe: Iterable[str] = ()
    ) -> Edge:
        # Learning that a fact holds settles it; losing it, or doing what owes it, opens the debt (again).
        gained, dropped = frozenset(gain), frozenset(drop)
        if settles := gained & catalogue.owed:
            gained = gained.union(map(settled, settles))
        if opens := (dropped & catalogue.owed).union(owe):
            dropped = dropped.union(map(settled, opens))
        return Edge(step.name, label, target, gained, dropped)

    match step:
        case Check():
            fact, seen = (step.probe,), _seen(step.probe, catalogue)
            return [
                edge("holds", step.holds, gain=(*fact, *seen)),
                edge("fails", step.fails, drop=(*fact, *seen)),
                edge("unknown", step.unknown, gain=seen, drop=fact),
            ]
        case Do():
            action = catalogue.actions[step.action]
            verified = frozenset((step.verify, *_seen(step.verify, catalogue))) - frozenset(action.may_undo)
            tried = (step.verify, action.makes, *action.may_undo)
            found = [
                edge("done", step.goto, gain=verified, drop=action.may_undo, owe=action.owes),
                edge("failed", step.on_fail, drop=tried, owe=action.owes),
            ]
            return [*found, edge("declined", step.on_decline)] if step.confirm else found
        case Ask():
            found = []
            for option in step.options:
                answer = catalogue.answers[option.gives] if option.gives else None
                words = [fact for fact in (option.waives, option.attests) if fact]
                gain = [*words, given(answer.gives)] if answer else words
                found.append(edge(option.name, option.goto, gain=gain, drop=answer.may_undo if answer else ()))
            return found
        case End():
            return []


def _seen(fact: str, catalogue: Catalogue) -> tuple[str, ...]:
    """What a look changes about whose word may stand for a fact."""
    return (unrefuted(fact),) if fact in catalogue.by_word else ()


def reachable(runbook: Runbook) -> set[str]:
    return _closure([runbook.start], {name: [to for _, to in targets(step)] for name, step in runbook.steps.items()})


def ending(runbook: Runbook) -> set[str]:
    """The steps from which some end can be reached."""
    back: dict[str, list[str]] = {name: [] for name in runbook.steps}
    for name, step in runbook.steps.items():
        for _, target in targets(step):
            back[target].append(name)
    return _closure([name for name, step in runbook.steps.items() if isinstance(step, End)], back)


def _closure(roots: Iterable[str], onward: Mapping[str, Sequence[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = deque(roots)
    while ahead:
        name = ahead.popleft()
        if name not in seen:
            seen.add(name)
            ahead.extend(onward[name])
    return seen


def cycle_without_ask(runbook: Runbook) -> list[str]:
    """A shortest loop that the tool could go round by itself for ever, or nothing."""
    onward = {
        name: [] if isinstance(step, Ask) else [to for _, to in targets(step)] for name, step in runbook.steps.items()
    }
    left = _knotted(onward)
    loops = (_loop(name, onward, left) for name in runbook.steps if name in left)
    return min((loop for loop in loops if loop), key=len, default=[])


def _knotted(onward: Mapping[str, Sequence[str]]) -> set[str]:
    """What remains when steps that lead nowhere are taken away again and again: the loops, and what leads to them."""
    count = {name: len(targets) for name, targets in onward.items()}
    back: dict[str, list[str]] = {name: [] for name in onward}
    for name, tos in onward.items():
        for to in tos:
            back[to].append(name)
    gone = deque(name for name, many in count.items() if many == 0)
    left = set(onward)
    while gone:
        name = gone.popleft()
        left.discard(name)
        for before in back[name]:
            count[before] -= 1
            if count[before] == 0:
                gone.append(before)
    return left


def _loop(root: str, onward: Mapping[str, Sequence[str]], within: set[str]) -> list[str]:
    came: dict[str, str] = {}
    ahead = deque([root])
    while ahead:
        name = ahead.popleft()
        for to in onward[name]:
            if to == root:
                loop = [name]
                while loop[-1] != root:
                    loop.append(came[loop[-1]])
                return [*reversed(loop), root]
            if to in within and to not in came:
                came[to] = name
                ahead.append(to)
    return []
