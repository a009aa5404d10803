"""Thousands of small runbooks over made-up catalogues: the proof and a search of every path say the same."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

import walker

from wizard.catalogue import Action, Answer, Catalogue, Outcome, Path, Probe, collect
from wizard.runbook import graph
from wizard.runbook.lint import shape
from wizard.runbook.load import interpreted
from wizard.runbook.model import Where
from wizard.runbook.proof import certainties, prove

GRAPHS = 4_000
FACTS = [f"fact.{letter}" for letter in "abcde"]


def some(dice: random.Random, names: list[str], most: int) -> tuple[str, ...]:
    return tuple(dice.sample(names, dice.randint(0, most)))


def made_up_catalogue(dice: random.Random) -> Catalogue:
    probes = [
        Probe(
            fact,
            "",
            "",
            takes=("value",) if dice.random() < 0.15 else (),
            waivable="so",
            attestable="so" if dice.random() < 0.5 else "",
            waived_unseen=dice.random() < 0.3,
        )
        for fact in FACTS
    ]
    untaken = [probe.name for probe in probes if not probe.takes]
    actions = []
    for number in range(4):
        takes = ("value",) if dice.random() < 0.3 or not untaken else ()
        names = FACTS if takes else untaken
        makes = dice.choice(names)
        actions.append(
            Action(
                f"act.n{number}",
                "",
                makes,
                "",
                requires=some(dice, names, min(2, len(names))),
                may_undo=some(dice, [fact for fact in FACTS if fact != makes], 2),
                owes=some(dice, FACTS, 1),
                takes=takes,
                destroys=dice.random() < 0.3,
            )
        )
    ends = [Outcome("resolved", "", requires=some(dice, FACTS, 1), settles=True), Outcome("hand_over", "")]
    answers = [Answer("value.typed", "value", "", may_undo=some(dice, FACTS, 2))]
    return collect([*probes, *actions, *answers, *ends, Path("reset", "", ())])


def made_up_steps(dice: random.Random, catalogue: Catalogue) -> walker.Steps:
    names = [f"s{number}" for number in range(dice.randint(2, 9))]
    onward = dice.random() < 0.5  # half of them mostly go forward to an end, as written ones do
    steps: walker.Steps = {}
    for place, name in enumerate(names):
        later = names[place + 1 :] if onward and dice.random() < 0.9 else names

        def to(among: list[str] = later or names) -> str:
            return dice.choice(among[:3] if onward else among)

        kind = dice.choice(("check", "check", "do", "do", "ask", "end"))
        if onward:
            kind = "end" if name == names[-1] else dice.choice(("check", "check", "do", "ask"))
        if kind == "check":
            cases = {case: to() for case in ("holds", "fails", "unknown")}
            steps[name] = {"check": dice.choice(FACTS), "cases": cases}
        elif kind == "do":
            action = dice.choice(list(catalogue.actions.values()))
            steps[name] = {"do": action.name, "verify": action.makes, "goto": to(), "on_fail": to()}
            if dice.random() < 0.5:
                steps[name] |= {"confirm": "{job.name}", "on_decline": to()}
        elif kind == "ask":
            extras = [{}, {"gives": "value.typed"}, {"waives": dice.choice(FACTS), "type_out": "so"}]
            extras += [{"attests": fact} for fact in FACTS if catalogue.probes[fact].attestable][:1]
            options = {f"o{number}": {"say": "so", "goto": to(), **dice.choice(extras)} for number in range(2)}
            steps[name] = {"ask": "?", "options": options}
        else:
            steps[name] = {"end": dice.choice(("resolved", "hand_over"))}
    return steps


def every_world(steps: walker.Steps, start: str, catalogue: Catalogue) -> dict[tuple[str, walker.World], int]:
    """Each (step, world) that can come about, and after how many outcomes at the earliest."""
    first = (start, walker.World())
    depth, ahead = {first: 0}, deque([first])
    while ahead:
        name, world = state = ahead.popleft()
        for _, target, after in walker.outcomes(steps[name], world, catalogue):
            if (target, after) not in depth:
                depth[target, after] = depth[state] + 1
                ahead.append((target, after))
    return depth


def test_thousands_of_random_runbooks_are_judged_as_a_search_of_all_paths_judges_them(
    tell: Callable[[str], None],
) -> None:
    dice = random.Random(20261118)
    unsafe = misshapen = counter_examples = 0
    for _ in range(GRAPHS):
        catalogue = made_up_catalogue(dice)
        steps = made_up_steps(dice, catalogue)
        data = {"runbook": 1, "id": "random", "start": "s0", "steps": steps}
        runbook = interpreted(data, "random", lambda path: Where("random", 1, 1), catalogue=catalogue).runbook
        assert runbook is not None
        worlds = every_world(steps, "s0", catalogue)

        shortest: dict[tuple[str, str, str], int] = {}
        for (name, world), depth in worlds.items():
            for code, fact in walker.broken(steps[name], world, catalogue):
                shortest[name, code, fact] = min(depth, shortest.get((name, code, fact), depth))
        found = prove(runbook, catalogue)
        assert {(one.step, one.code, one.fact): len(one.path) for one in found} == shortest

        for one in found:
            at, world = walker.replay(steps, "s0", [edge.label for edge in one.path], catalogue)
            assert at == one.step and (one.code, one.fact) in walker.broken(steps[at], world, catalogue)

        certain = certainties(runbook, graph.edges(runbook, catalogue), graph.at_start(catalogue))
        for name, facts in certain.items():
            always = frozenset.intersection(*(world.holds for at, world in worlds if at == name))
            assert always == {fact for fact in facts if fact in FACTS}
        assert set(certain) == {name for name, _ in worlds}

        bent = walker.misshapen(steps, "s0")
        assert {problem.code for problem in shape(runbook)} == bent
        unsafe += bool(found)
        misshapen += bool(bent)
        counter_examples += len(found)
    tell(f"{GRAPHS} random runbooks agree: {unsafe} unsafe, {misshapen} misshapen, {counter_examples} replayed")
    assert GRAPHS * 0.2 < unsafe < GRAPHS
