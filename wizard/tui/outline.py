"""A runbook as a tree: the way things should go from top to bottom, what leads away from it below the step it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from wizard.runbook.model import End, Runbook
from wizard.runbook.resolve import targets


@dataclass
class Branch:
    step: str
    below: list[Branch] = field(default_factory=list)


def outline(runbook: Runbook) -> list[Branch]:
    """Every step that can be reached, once; the ends last."""
    seen: set[str] = set()
    tree = _line(runbook, runbook.start, seen)
    ends = [name for name, step in runbook.steps.items() if isinstance(step, End)]
    return [*tree, *(Branch(name) for name in ends)]


def _line(runbook: Runbook, start: str, seen: set[str]) -> list[Branch]:
    line: list[Branch] = []
    name = start
    while name not in seen and not isinstance(runbook.steps[name], End):
        seen.add(name)
        line.append(Branch(name))
        name = next(to for _, to in targets(runbook.steps[name]))
    for branch in line:
        for _, to in list(targets(runbook.steps[branch.step]))[1:]:
            branch.below += _line(runbook, to, seen)
    return line


def ahead(runbook: Runbook, step: str) -> set[str]:
    """Every step that can still come after this one."""
    found: set[str] = set()
    left = [step]
    while left:
        for _, to in targets(runbook.steps[left.pop()]):
            if to not in found:
                found.add(to)
                left.append(to)
    return found


def flat(tree: list[Branch], depth: int = 0) -> Iterator[tuple[int, str]]:
    for branch in tree:
        yield depth, branch.step
        yield from flat(branch.below, depth + 1)
