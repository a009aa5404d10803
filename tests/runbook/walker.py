"""A second, slow opinion: walks the YAML as it stands, with a set of facts in hand, and knows nothing of the proof.

It shares no code with wizard.runbook: it reads plain dictionaries, keeps what holds, what is owed and what was answered,
and complains on arrival. What the proof claims about all paths, this does on one path at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from wizard.catalogue import CATALOGUE, Catalogue

Steps = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class World:
    holds: frozenset[str] = frozenset()
    owed: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    refuted: frozenset[str] = frozenset()  # what the last look saw fail

    def learn(self, fact: str) -> World:
        return replace(self, holds=self.holds | {fact}, owed=self.owed - {fact})

    def forget(self, facts: tuple[str, ...], catalogue: Catalogue) -> World:
        gone = frozenset(facts)
        return replace(self, holds=self.holds - gone, owed=self.owed | (gone & catalogue.owed))

    def owe(self, facts: tuple[str, ...]) -> World:
        return replace(self, owed=self.owed | set(facts))

    def hear(self, answer: str) -> World:
        return replace(self, told=self.told | {answer})

    def see(self, fact: str, catalogue: Catalogue, fails: bool = False) -> World:
        if not by_word(fact, catalogue):
            return self
        return replace(self, refuted=self.refuted | {fact} if fails else self.refuted - {fact})


def by_word(fact: str, catalogue: Catalogue) -> bool:
    """Whether somebody's word stands for it only while it was not seen to fail."""
    return bool(catalogue.probes[fact].attestable or catalogue.probes[fact].waived_unseen)


def outcomes(step: dict[str, Any], world: World, catalogue: Catalogue = CATALOGUE) -> Iterator[tuple[str, str, World]]:
    """(what happens, the next step, the world then) for everything that can happen at a step."""
    if "check" in step:
        fact, cases = step["check"], step["cases"]
        yield "holds", cases["holds"], world.learn(fact).see(fact, catalogue)
        yield "fails", cases["fails"], world.forget((fact,), catalogue).see(fact, catalogue, fails=True)
        yield "unknown", cases["unknown"], world.forget((fact,), catalogue).see(fact, catalogue)
    elif "do" in step:
        action = catalogue.actions[step["do"]]
        after = world.forget(action.may_undo, catalogue).owe(action.owes)
        yield (
            "done",
            step["goto"],
            after if step["verify"] in action.may_undo else after.learn(step["verify"]).see(step["verify"], catalogue),
        )
        yield "failed", step["on_fail"], after.forget((action.makes, step["verify"]), catalogue).owe(action.owes)
        if "confirm" in step:
            yield "declined", step["on_decline"], world
    elif "ask" in step:
        for name, option in step["options"].items():
            after = world
            if "gives" in option:
                answer = catalogue.answers[option["gives"]]
                after = after.forget(answer.may_undo, catalogue).hear(answer.gives)
            for verb in ("waives", "attests"):
                if verb in option:
                    after = after.learn(option[verb])
            yield name, option["goto"], after


def ways(step: dict[str, Any]) -> list[tuple[str, str]]:
    """(what happens, the next step), in the order of `outcomes`, whatever the world."""
    if "check" in step:
        return [(case, step["cases"][case]) for case in ("holds", "fails", "unknown")]
    if "do" in step:
        named = (("done", "goto"), ("failed", "on_fail"), *((("declined", "on_decline"),) if "confirm" in step else ()))
        return [(label, step[key]) for label, key in named]
    return [(name, option["goto"]) for name, option in step.get("options", {}).items()]


def broken(step: dict[str, Any], world: World, catalogue: Catalogue = CATALOGUE) -> set[tuple[str, str]]:
    """(code, fact) for every demand that this step makes and this world does not meet."""
    wrong: set[tuple[str, str]] = set()
    if "do" in step:
        action = catalogue.actions[step["do"]]
        wrong |= {("RB201", fact) for fact in action.requires if fact not in world.holds}
        wrong |= {("RB203", f"given {name}") for name in action.takes if name not in world.told}
        if action.destroys and "confirm" not in step:
            wrong.add(("RB202", "confirmed"))
    elif "check" in step:
        wrong |= {
            ("RB203", f"given {name}") for name in catalogue.probes[step["check"]].takes if name not in world.told
        }
    elif "ask" in step:
        words = {option.get(verb) for option in step["options"].values() for verb in ("attests", "waives")}
        wrong |= {("RB206", f"unrefuted {fact}") for fact in words & world.refuted}
    elif "end" in step:
        outcome = catalogue.outcomes[step["end"]]
        claims = set(outcome.requires) | set(catalogue.paths[step["path"]].requires if "path" in step else ())
        wrong |= {("RB204", fact) for fact in claims if fact not in world.holds}
        if outcome.settles:
            wrong |= {("RB205", f"settled {fact}") for fact in world.owed - claims}
    return wrong


def replay(steps: Steps, start: str, labels: list[str], catalogue: Catalogue = CATALOGUE) -> tuple[str, World]:
    """Follow exactly these outcomes from the start; where they lead, and the world there."""
    name, world = start, World()
    for label in labels:
        name, world = {found: (to, after) for found, to, after in outcomes(steps[name], world, catalogue)}[label]
    return name, world


class Worlds:
    """Every world met so far under a number, and what each kind of step made of it: worked out once, met many times."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.worlds: list[World] = []
        self.numbers: dict[World, int] = {}
        self.works: dict[Work, dict[int, Arrival]] = {}
        self.first = self.numbered(World())

    def numbered(self, world: World) -> int:
        if world not in self.numbers:
            self.numbers[world] = len(self.worlds)
            self.worlds.append(world)
        return self.numbers[world]

    def known(self, steps: Steps) -> dict[str, dict[int, Arrival]]:
        """For each step, what is known so far of arriving at it, by the number of the world."""
        return {name: self.works.setdefault(_work(step), {}) for name, step in steps.items()}

    def arrive(self, step: dict[str, Any], known: dict[int, Arrival], world: int) -> Arrival:
        if world not in known:
            then = outcomes(step, self.worlds[world], self.catalogue)
            wrong = broken(step, self.worlds[world], self.catalogue)
            known[world] = wrong, [self.numbered(after) for _, _, after in then]
        return known[world]


Work = tuple[Any, ...]
Arrival = tuple[set[tuple[str, str]], list[int]]  # what is broken there, and the world after each of `outcomes`
MET = Worlds(CATALOGUE)


def _work(step: dict[str, Any]) -> Work:
    """All of a step that can make a difference to a world: everything but where it leads."""
    if "options" in step:
        words = ("gives", "waives", "attests")
        return tuple(tuple(option.get(word) for word in words) for option in step["options"].values())
    return tuple((key, step.get(key)) for key in ("check", "do", "verify", "confirm", "end", "path"))


def violations(steps: Steps, start: str, met: Worlds = MET) -> set[tuple[str, str, str]]:
    """(step, code, fact) of every demand that some path breaks, by going to every (step, world) there is."""
    known = met.known(steps)
    onward = {name: [to for _, to in ways(step)] for name, step in steps.items()}
    found: set[tuple[str, str, str]] = set()
    first = (start, met.first)
    seen, ahead = {first}, [first]
    while ahead:
        name, world = ahead.pop()
        wrong, after = known[name].get(world) or met.arrive(steps[name], known[name], world)
        if wrong:
            found.update((name, code, fact) for code, fact in wrong)
        for state in zip(onward[name], after, strict=True):
            if state not in seen:
                seen.add(state)
                ahead.append(state)
    return found


def paths(steps: Steps, start: str, met: Worlds = MET) -> Iterator[tuple[list[tuple[str, str, str]], int]]:
    """Every path as (step, what happens, next step), to an end or to the first step met twice: a loop is gone once.

    With it comes how many steps of the path make a demand that the world they are arrived at in does not meet.
    """
    known = met.known(steps)
    onward = {name: ways(step) for name, step in steps.items()}
    trail: list[tuple[str, str, str]] = []
    on_trail: set[str] = set()

    def walk(name: str, world: int, broken: int) -> Iterator[tuple[list[tuple[str, str, str]], int]]:
        wrong, after = met.arrive(steps[name], known[name], world)
        broken += bool(wrong)
        if name in on_trail or not onward[name]:
            yield trail, broken
            return
        on_trail.add(name)
        for (label, target), then in zip(onward[name], after, strict=True):
            trail.append((name, label, target))
            yield from walk(target, then, broken)
            trail.pop()
        on_trail.remove(name)

    yield from walk(start, met.first, 0)


def misshapen(steps: Steps, start: str) -> set[str]:
    """The graph's own faults, by following every edge until nothing new turns up."""
    onward = {name: {to for _, to in ways(step)} for name, step in steps.items()}
    met = {start} | _beyond(onward, start)
    can_end = {name for name, step in steps.items() if "end" in step}
    while more := {name for name, tos in onward.items() if name not in can_end and tos & can_end}:
        can_end |= more
    wrong = set()
    if met != set(steps):
        wrong.add("RB102")
    if not met <= can_end:
        wrong.add("RB103")
    if _goes_round({name: set() if "ask" in steps[name] else tos for name, tos in onward.items()}):
        wrong.add("RB104")
    return wrong


def _beyond(onward: dict[str, set[str]], name: str) -> set[str]:
    found: set[str] = set()
    fresh = set(onward[name])
    while fresh:
        found |= fresh
        fresh = {to for step in fresh for to in onward[step]} - found
    return found


def _goes_round(onward: dict[str, set[str]]) -> bool:
    """Whether a walk in depth ever meets a step that it has not yet come back from."""
    done: set[str] = set()

    def meets(name: str, above: frozenset[str]) -> bool:
        if name in above:
            return True
        if name in done:
            return False
        done.add(name)
        return any(meets(to, above | {name}) for to in onward[name])

    return any(meets(name, frozenset()) for name in onward)
