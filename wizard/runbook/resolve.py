"""The names in a runbook: steps it goes to, and entries of the catalogue it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wizard.catalogue import Catalogue
from wizard.problems import Problem
from wizard.runbook.model import Ask, Check, Do, End, Option, Runbook, Step, Where
from wizard.runbook.names import suggestion


def targets(step: Step) -> Iterator[tuple[str, str]]:
    """(what leads there, the step it leads to), in the order of the file."""
    match step:
        case Ask():
            for option in step.options:
                yield option.name, option.goto
        case Check():
            yield from (("holds", step.holds), ("fails", step.fails), ("unknown", step.unknown))
        case Do():
            yield from (("done", step.goto), ("failed", step.on_fail))
            if step.confirm:
                yield "declined", step.on_decline
        case End():
            return


def unresolved(runbook: Runbook, catalogue: Catalogue, start_at: Where) -> Iterator[Problem]:
    if runbook.start not in runbook.steps:
        what = f"start names no step, {runbook.start!r}{suggestion(runbook.start, runbook.steps)}"
        yield Problem("RB101", "error", what, str(start_at))
    for step in runbook.steps.values():
        for label, target in targets(step):
            if target not in runbook.steps:
                what = f"{step.name} goes to {target!r} on {label}, and there is no such step: add it, or name another"
                yield _at(step, "RB101", what + suggestion(target, runbook.steps))
        yield from _uncatalogued(step, catalogue)


def _uncatalogued(step: Step, catalogue: Catalogue) -> list[Problem]:
    match step:
        case Check():
            return _unknown(step, "probe", step.probe, catalogue.probes)
        case Do():
            unknown = _unknown(step, "action", step.action, catalogue.actions)
            return unknown or _misverified(step, catalogue)
        case Ask():
            return [problem for option in step.options for problem in _option(option, catalogue)]
        case End():
            paths = _unknown(step, "path", step.path, catalogue.paths) if step.path else []
            return paths + _unknown(step, "outcome", step.outcome, catalogue.outcomes)


def _misverified(step: Do, catalogue: Catalogue) -> list[Problem]:
    makes = catalogue.actions[step.action].makes
    if step.verify == makes:
        return []
    what = f"{step.action} makes {makes} true, and {step.verify!r} would not show it; write `verify: {makes}`"
    return [_at(step, "RB004", what)]


def _option(option: Option, catalogue: Catalogue) -> list[Problem]:
    wrong: list[Problem] = []
    if option.gives:
        wrong += _unknown(option, "answer", option.gives, catalogue.answers)
    for verb, fact in (("waives", option.waives), ("attests", option.attests)):
        if not fact:
            continue
        wrong += (unknown := _unknown(option, "fact", fact, catalogue.probes))
        if unknown:
            continue
        probe = catalogue.probes[fact]
        if not (probe.waivable if verb == "waives" else probe.attestable):
            what = f"nobody can say {verb} {fact}: the catalogue does not allow it; check it instead"
            wrong.append(_at(option, "RB005", what))
    return wrong


def _unknown(at: Step | Option, kind: str, name: str, known: Mapping[str, object]) -> list[Problem]:
    if name in known:
        return []
    return [_at(at, "RB003", f"there is no {kind} {name!r}{suggestion(name, known)} (docs/catalogue.md has them all)")]


def _at(at: Step | Option, code: str, what: str) -> Problem:
    return Problem(code, "error", what, str(at.where))
