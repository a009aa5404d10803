"""Everything that is wrong with a runbook, as problems with a stable code, a place, a counter-example and a fix."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from wizard.catalogue import CATALOGUE, Catalogue
from wizard.errors import BadInput
from wizard.problems import Problem
from wizard.runbook import graph
from wizard.runbook.load import MAX_PROBLEMS, Reading, read, read_file
from wizard.runbook.model import Do, Runbook
from wizard.runbook.proof import Violation, violations
from wizard.runbook.search import library

CODES = {
    "RB001": "not a file of plain, unambiguous YAML",
    "RB002": "not of the form the schema gives",
    "RB003": "names something that the catalogue does not have",
    "RB004": "an action is verified by a fact that does not show it was done",
    "RB005": "waives or attests a fact that only a probe may establish",
    "RB006": "file name and id differ, so a run of it could not be picked up",
    "RB101": "goes to a step that does not exist",
    "RB102": "a step that no path reaches",
    "RB103": "a step from which no end can be reached",
    "RB104": "a loop without an ask, that the tool could go round for ever",
    "RB201": "an action whose requirement is not certain on every path",
    "RB202": "a destroying action without a confirmation",
    "RB203": "an answer is used that was not given on every path",
    "RB204": "an end that claims what is not certain on every path",
    "RB205": "an end that leaves something owed",
    "RB206": "somebody's word stands for what was seen to fail",
    "RB301": "extends a runbook that cannot be found or built on",
    "RB302": "inserts before a step that the extended runbook does not have",
    "RB303": "an inserted step that goes around the runbook it extends",
    "RB304": "an inserted step with the name of another",
}


def lint_files(paths: Sequence[str | Path], config: Sequence[str | Path] = ()) -> list[Problem]:
    return [problem for path in paths for problem in lint_runbook(path, config)]


def lint_runbook(path: str | Path, config: Sequence[str | Path] = ()) -> list[Problem]:
    return _looked_at(path, config)[1]


def _looked_at(path: str | Path, config: Sequence[str | Path]) -> tuple[Runbook | None, list[Problem]]:
    reading = read_file(path, library(config))
    problems = linted(reading)
    runbook = reading.runbook
    if runbook is not None and runbook.id != Path(path).stem:
        # The journal has the id, and whoever picks the run up looks for a file of that name.
        what = f"the file is found as {Path(path).stem!r} and calls itself {runbook.id!r}; rename one"
        problems.append(Problem("RB006", "error", what, f"{path}:1:1"))
    return runbook, problems


def lint_text(text: str | bytes, name: str) -> list[Problem]:
    return linted(read(text, name, library(())))


def proved(path: str | Path, config: Sequence[str | Path] = ()) -> Runbook:
    """The runbook, proved; or BadInput with the first thing that is wrong. What the engine walks comes from here."""
    runbook, problems = _looked_at(path, config)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more: runbook lint {path})" if len(errors) > 1 else ""
        first = errors[0]
        raise BadInput(f"{first.where}: {first.code} {first.message.splitlines()[0]}{more}")
    assert runbook is not None
    return runbook


def linted(reading: Reading, catalogue: Catalogue = CATALOGUE) -> list[Problem]:
    """All problems of a reading, the graph's and the proof's included where the stages before let it come to that."""
    if reading.runbook is None:
        return list(reading.problems)
    return [*reading.problems, *check(reading.runbook, catalogue)]


def check(runbook: Runbook, catalogue: Catalogue = CATALOGUE) -> list[Problem]:
    found = islice(violations(runbook, catalogue), MAX_PROBLEMS)
    return shape(runbook)[:MAX_PROBLEMS] + [_told(violation, runbook, catalogue) for violation in found]


def shape(runbook: Runbook) -> list[Problem]:
    """What is wrong with the graph whatever its steps do."""

    def problem(code: str, name: str, what: str) -> Problem:
        return Problem(code, "error", what, str(runbook.steps[name].where))

    reached, ending = graph.reachable(runbook), graph.ending(runbook)
    found = [
        problem("RB102", name, f"no path from {runbook.start} reaches {name}; lead to it, or take it out")
        for name in runbook.steps
        if name not in reached
    ]
    found += [
        problem("RB103", name, f"{name} can never come to an end; give it a way to an `end` step")
        for name in runbook.steps
        if name in reached and name not in ending
    ]
    if loop := graph.cycle_without_ask(runbook):
        what = f"{' → '.join(loop)} goes round without asking anybody; put an `ask` in it, or let one of them stop"
        found.append(problem("RB104", loop[0], what))
    return found


def _told(violation: Violation, runbook: Runbook, catalogue: Catalogue) -> Problem:
    step = runbook.steps[violation.step]
    what = f"{_claim(violation, runbook)}; {_fix(violation, catalogue)}\n{counter_example(violation, runbook)}"
    return Problem(violation.code, "error", what, str(step.where))


def counter_example(violation: Violation, runbook: Runbook) -> str:
    """The path that breaks it, a line a step, each with the line of the file it is on."""
    told = [f"  {runbook.steps[edge.source].where}: {edge.source} → {edge.label}" for edge in violation.path]
    return "\n".join([*told, f"  {runbook.steps[violation.step].where}: {violation.step}"])


def _bare(fact: str) -> str:
    """`rows.exact` of `settled rows.exact`."""
    return fact.rpartition(" ")[2]


def _claim(violation: Violation, runbook: Runbook) -> str:
    step = runbook.steps[violation.step]
    fact = _bare(violation.fact)
    match violation.code:
        case "RB202":
            assert isinstance(step, Do)
            return f"{step.name} does {step.action}, which destroys, and nobody confirms it"
        case "RB203":
            return f"{step.name} needs to be told the {fact}, and on the path below nobody was asked"
        case "RB204":
            return f"{step.name} claims {fact}, which is not certain on the path below"
        case "RB205":
            return f"{step.name} ends with {fact} still owed on the path below"
        case "RB206":
            return f"{step.name} lets somebody's word stand for {fact}, which was seen to fail on the path below"
        case _:
            assert isinstance(step, Do)
            return f"{step.name} does {step.action}, which requires {fact}, and that is not certain on the path below"


def _fix(violation: Violation, catalogue: Catalogue) -> str:
    fact = _bare(violation.fact)
    if violation.code == "RB202":
        return 'add `confirm: "{job.name}"` and `on_decline`'
    if violation.code == "RB203":
        giving = [answer.name for answer in catalogue.answers.values() if answer.gives == fact]
        return f"ask before, with an option that `gives: {' | '.join(giving)}`"
    if violation.code == "RB206":
        return f"lead only the `unknown` of `check: {fact}` to {violation.step}"
    lost = next((edge for edge in reversed(violation.path) if violation.fact in edge.drop), None)
    after = f" after {lost.source} → {lost.label}, where it was lost" if lost else ""
    making = [f"`do: {name}`" for name, action in catalogue.actions.items() if action.makes == fact]
    ways = " or ".join([f"`check: {fact}`", *making])
    return f"put {ways}{after}, and lead only its good outcome to {violation.step}"
