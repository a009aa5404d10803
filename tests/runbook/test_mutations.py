"""One edit to a shipped runbook: rejected with a path that a replay confirms, or really still safe."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
import walker
from shipped import NAMES, data, edited, is_shipped, lint_data, nowhere

from wizard.runbook.lint import shape
from wizard.runbook.load import interpreted
from wizard.runbook.model import Runbook
from wizard.runbook.proof import prove

Mutant = dict[str, Any]
PROOF = "RB2"
# Somebody answers for these by name whether they fail or cannot be seen.
WAIVED_THOUGH_IT_FAILS = {"consumers.running", "source.has_next_offsets"}


def led(step: dict[str, Any], old: str, new: str) -> None:
    for holder, key in edges(step):
        if holder[key] == old:
            holder[key] = new


def edges(step: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    if "check" in step:
        return [(step["cases"], case) for case in ("holds", "fails", "unknown")]
    if "do" in step:
        return [(step, key) for key in ("goto", "on_fail", "on_decline") if key in step]
    return [(option, "goto") for option in step.get("options", {}).values()]


def steps_with(name: str, key: str) -> list[str]:
    return [step for step, body in data(name)["steps"].items() if key in body]


def without_a_check(name: str) -> Iterator[tuple[str, Mutant]]:
    for step in steps_with(name, "check"):
        mutant = data(name)
        onward = mutant["steps"].pop(step)["cases"]["holds"]
        for body in mutant["steps"].values():
            led(body, step, onward)
        mutant["start"] = onward if mutant["start"] == step else mutant["start"]
        yield f"without {step}", mutant


def with_an_outcome_taken_for_yes(name: str) -> Iterator[tuple[str, Mutant]]:
    for step in steps_with(name, "check"):
        for case in ("unknown", "fails"):
            mutant = data(name)
            cases = mutant["steps"][step]["cases"]
            cases[case] = cases["holds"]
            yield f"{step}: {case} taken for holds", mutant


def with_a_failure_left_to_somebodys_word(name: str) -> Iterator[tuple[str, Mutant]]:
    for step in steps_with(name, "check"):
        cases = data(name)["steps"][step]["cases"]
        options = data(name)["steps"][cases["unknown"]].get("options", {}).values()
        fact = data(name)["steps"][step]["check"]
        words = {option.get("attests") or option.get("waives") for option in options}
        if fact in words and cases["fails"] != cases["unknown"] and fact not in WAIVED_THOUGH_IT_FAILS:
            mutant = data(name)
            mutant["steps"][step]["cases"]["fails"] = cases["unknown"]
            yield f"{step}: what fails is asked for like what is unknown", mutant


def without_a_confirmation(name: str) -> Iterator[tuple[str, Mutant]]:
    for step in steps_with(name, "confirm"):
        mutant = data(name)
        del mutant["steps"][step]["confirm"], mutant["steps"][step]["on_decline"]
        yield f"{step} unconfirmed", mutant


def without_somebodys_word(name: str) -> Iterator[tuple[str, Mutant]]:
    for step in steps_with(name, "options"):
        for option, body in data(name)["steps"][step]["options"].items():
            for word in {"waives", "attests", "gives"} & set(body):
                mutant = data(name)
                del mutant["steps"][step]["options"][option][word]
                yield f"{step}.{option} without {word}", mutant


def without_an_action(name: str) -> Iterator[tuple[str, Mutant]]:
    for step in steps_with(name, "do"):
        mutant = data(name)
        onward = mutant["steps"].pop(step)["goto"]
        for body in mutant["steps"].values():
            led(body, step, onward)
        mutant["start"] = onward if mutant["start"] == step else mutant["start"]
        yield f"without {step}", mutant


def with_a_failure_led_elsewhere(name: str) -> Iterator[tuple[str, Mutant]]:
    failures = ("fails", "unknown", "on_fail", "on_decline")
    original = data(name)["steps"]
    for step, body in original.items():
        for holder, key in edges(body):
            if key not in failures:
                continue
            for target in original:
                if target != holder[key]:
                    mutant = edited(name, step)
                    body = mutant["steps"][step]
                    (body["cases"] if key in ("fails", "unknown") else body)[key] = target
                    yield f"{step}: {key} led to {target}", mutant


def with_two_steps_swapped(name: str) -> Iterator[tuple[str, Mutant]]:
    """Each does the other's work at its own place: what they check or do changes places, where they lead stays."""
    names = [step for step, body in data(name)["steps"].items() if "check" in body or "do" in body]
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            mutant = edited(name)
            first, second = mutant["steps"][one], mutant["steps"][other]
            mutant["steps"][one], mutant["steps"][other] = at_place_of(second, first), at_place_of(first, second)
            yield f"{one} and {other} swapped", mutant


def at_place_of(work: dict[str, Any], place: dict[str, Any]) -> dict[str, Any]:
    good = place["cases"]["holds"] if "check" in place else place["goto"]
    bad = place["cases"]["fails"] if "check" in place else place["on_fail"]
    unknown = place["cases"]["unknown"] if "check" in place else place["on_fail"]
    if "check" in work:
        return {"check": work["check"], "cases": {"holds": good, "fails": bad, "unknown": unknown}}
    moved = {"do": work["do"], "verify": work["verify"], "goto": good, "on_fail": bad}
    if "confirm" in work:
        moved |= {"confirm": work["confirm"], "on_decline": place.get("on_decline", unknown)}
    return moved


def with_two_steps_in_each_others_name(name: str) -> Iterator[tuple[str, Mutant]]:
    """A line moved by hand: each body keeps where it leads, and is arrived at in the other's stead."""
    names = [step for step, body in data(name)["steps"].items() if "end" not in body]
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            mutant = edited(name)
            mutant["steps"][one], mutant["steps"][other] = mutant["steps"][other], mutant["steps"][one]
            yield f"{one} and {other} renamed to each other", mutant


def built(mutant: Mutant) -> Runbook:
    # Past the schema, which takes nine tenths of the time and has nothing to say about where an edge leads.
    runbook = interpreted(mutant, "mutant", nowhere).runbook
    assert runbook is not None
    return runbook


ORIGINALS = {name: built(data(name)) for name in NAMES}


def rebuilt(name: str, mutant: Mutant) -> Runbook:
    """The same, of which only the bodies that are not the shipped ones are read anew."""
    shared = {step for step, body in mutant["steps"].items() if is_shipped(name, step, body)}
    unread = {step: {"end": "aborted"} if step in shared else body for step, body in mutant["steps"].items()}
    fresh = built({**mutant, "steps": unread})
    steps = {step: ORIGINALS[name].steps[step] if step in shared else fresh.steps[step] for step in unread}
    return replace(fresh, steps=steps)


def confirmed(mutant: Mutant, runbook: Runbook, name: str) -> set[tuple[str, str, str]]:
    """What the proof rejects the mutant for, each one replayed by the walker before it counts."""
    found = set()
    for violation in prove(runbook):
        labels = [edge.label for edge in violation.path]
        at, world = walker.replay(mutant["steps"], mutant["start"], labels)
        assert at == violation.step, name
        assert (violation.code, violation.fact) in walker.broken(mutant["steps"][at], world), name
        found.add((violation.step, violation.code, violation.fact))
    return found


@pytest.fixture(autouse=True)
def nothing_old_is_collected() -> Iterator[None]:
    """The collector goes over all that pytest has loaded again and again: a fifth of the time of fifteen thousand mutants."""
    gc.freeze()
    yield
    gc.unfreeze()


EVERY = os.environ.get("RUNBOOK_ALL_SCENARIOS") == "1"  # else a third of the edits that may be safe
MUST_REJECT = (
    without_a_check,
    with_an_outcome_taken_for_yes,
    with_a_failure_left_to_somebodys_word,
    without_a_confirmation,
    without_somebodys_word,
)
MAY_BE_SAFE = (
    without_an_action,
    with_a_failure_led_elsewhere,
    with_two_steps_swapped,
    with_two_steps_in_each_others_name,
)


@pytest.mark.parametrize("mutate", MUST_REJECT)
def test_no_guard_and_no_confirmation_can_be_taken_out(mutate: Any, tell: Callable[[str], None]) -> None:
    rejected = 0
    for name in NAMES:
        for what, mutant in mutate(name):
            problems = lint_data(mutant)
            assert any(problem.code.startswith(PROOF) for problem in problems), f"{name}: {what} was accepted"
            assert confirmed(mutant, built(mutant), f"{name}: {what}")
            rejected += 1
    tell(f"{mutate.__name__}: {rejected} / {rejected} rejected, each counter-example replayed")


@pytest.mark.parametrize("mutate", MAY_BE_SAFE)
def test_an_edit_is_rejected_exactly_when_a_walk_can_go_wrong(mutate: Any, tell: Callable[[str], None]) -> None:
    count: Counter[str] = Counter()
    for name in NAMES:
        for what, mutant in islice(mutate(name), 0, None, 1 if EVERY else 3):
            runbook = rebuilt(name, mutant)
            wrong = walker.violations(mutant["steps"], mutant["start"])
            assert confirmed(mutant, runbook, f"{name}: {what}") == wrong, f"{name}: {what}"
            bent = walker.misshapen(mutant["steps"], mutant["start"])
            assert {problem.code for problem in shape(runbook)} == bent, f"{name}: {what}"
            count["unsafe, rejected" if wrong else "misshapen, rejected" if bent else "safe, accepted"] += 1
    tell(f"{mutate.__name__}: {dict(count)}{'' if EVERY else ', a third of them'}")
    assert count["unsafe, rejected"]


def test_a_mutant_read_in_part_is_the_mutant_read_in_full() -> None:
    for mutate in MAY_BE_SAFE:
        for _, mutant in islice(mutate("reset"), 0, None, 97):
            assert rebuilt("reset", mutant) == built(mutant)


def test_an_edit_that_adds_a_guard_or_words_is_accepted() -> None:
    mutant = data("reset")
    mutant["steps"]["again"] = {
        "check": "job.stopped",
        "cases": {"holds": "delete", "fails": "hand_over", "unknown": "hand_over"},
    }
    mutant["steps"]["truncate"]["goto"] = "again"
    mutant["steps"]["delete"]["say"] = "Other words."
    assert lint_data(mutant) == []
