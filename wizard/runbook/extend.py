"""An extension: guards put before steps of another runbook, none of which can be gone around.

Every way into the step named by `before` is led to the first inserted step instead. An inserted step goes on to
another of its group, to that step, or to an end that promises nothing: so each walk of the extended runbook is a walk
of the base with guards in between, or stops early. The result is proved as a whole, like any other runbook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wizard.problems import Problem
from wizard.runbook.model import Ask, Check, Do, End, Runbook, Step, Where
from wizard.runbook.names import suggestion
from wizard.runbook.resolve import targets

_STOPS = ("aborted", "hand_over")


@dataclass(frozen=True)
class Insert:
    before: str
    where: Where
    steps: Mapping[str, Step]

    @property
    def entry(self) -> str:
        return next(iter(self.steps))


def expanded(
    base: Runbook, id: str, file: str, title: str, inserts: Sequence[Insert]
) -> tuple[Runbook | None, list[Problem]]:
    steps, start = dict(base.steps), base.start
    known = {*base.steps, *(name for insert in inserts for name in insert.steps)}
    wrong: list[Problem] = []
    for insert in inserts:
        found = [*_misplaced(insert, base), *_clashing(insert, steps), *_wandering(insert, base, known)]
        wrong += found
        if found:
            continue
        steps = {name: _led(step, insert.before, insert.entry) for name, step in steps.items()}
        start = insert.entry if start == insert.before else start
        steps |= insert.steps
    if wrong:
        return None, wrong
    return Runbook(id, file, start, steps, title, (base.id, *base.extends)), []


def _misplaced(insert: Insert, base: Runbook) -> list[Problem]:
    if insert.before in base.steps:
        return []
    what = f"{base.id} has no step {insert.before!r} to come before{suggestion(insert.before, base.steps)}"
    return [Problem("RB302", "error", what, str(insert.where))]


def _clashing(insert: Insert, steps: Mapping[str, Step]) -> list[Problem]:
    return [
        Problem("RB304", "error", f"there is a step {name!r} already ({steps[name].where}); rename it", str(step.where))
        for name, step in insert.steps.items()
        if name in steps
    ]


def _wandering(insert: Insert, base: Runbook, known: set[str]) -> list[Problem]:
    """Steps inserted elsewhere go on to where they were put, so a way into them is a way around what lies between."""
    stops = {name for name, step in base.steps.items() if isinstance(step, End) and step.outcome in _STOPS}
    allowed = {*insert.steps, insert.before, *stops}
    wrong = []
    for name, step in insert.steps.items():
        if isinstance(step, End) and step.outcome not in _STOPS:
            what = f"{name} ends {step.outcome}: an inserted step may stop a walk, not complete it; end aborted"
            wrong.append(Problem("RB303", "error", what, str(step.where)))
        for label, target in targets(step):
            if target in known and target not in allowed:
                what = (
                    f"{name} goes to {target} on {label}: inserted steps go on to {insert.before!r}, or stop; "
                    "anything else would go around a step of the runbook it extends"
                )
                wrong.append(Problem("RB303", "error", what, str(step.where)))
    return wrong


def _led(step: Step, old: str, new: str) -> Step:
    def to(target: str) -> str:
        return new if target == old else target

    match step:
        case Ask():
            return replace(step, options=tuple(replace(option, goto=to(option.goto)) for option in step.options))
        case Check():
            return replace(step, holds=to(step.holds), fails=to(step.fails), unknown=to(step.unknown))
        case Do():
            return replace(step, goto=to(step.goto), on_fail=to(step.on_fail), on_decline=to(step.on_decline))
        case End():
            return step
