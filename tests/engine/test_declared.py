"""The catalogue says what the code does: every name is bound, and an action makes, needs and disturbs what it declares."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kill_driver import CASES
from stand import ANSWERS, JOB, READER, Stand, apart, impatient, without_spark

from wizard.catalogue import CATALOGUE
from wizard.catalogue.effects import Effect
from wizard.catalogue.live.binding import loaded, look, understand
from wizard.catalogue.world import World
from wizard.engine import start, walk
from wizard.engine.operator import Nobody, Prepared
from wizard.jobs.registry import load_registry
from wizard.runbook.model import Do, End

STOP, START = "consumers.stop", "consumers.start"
BUILT_BESIDE = ["beside.prepare", "beside.build"]
ACTIONS = {
    "reset": ["checkpoint.fence", "sink.truncate", "checkpoint.delete", "config.earliest", "job.start_fresh"],
    "replay": ["checkpoint.fence", "sink.rollback", "checkpoint.rollback", "job.start_replayed"],
    "resume": ["job.stop", "job.resume"],
    "backfill": ["range.pin", "live.record", "backfill.run"],
    "beside-reader": [*BUILT_BESIDE, STOP, "registry.switch", "job.start_beside", STOP, "consumers.reset",
                      "old.retire", START],
    "reset-delta": ["checkpoint.fence", "sink.truncate", "checkpoint.delete", "config.earliest", "job.start_fresh"],
}  # fmt: skip


def test_everything_declared_has_code_and_all_code_is_declared() -> None:
    probes, actions, answers = loaded()
    assert set(probes) == set(CATALOGUE.probes)
    assert set(actions) == set(CATALOGUE.actions)
    assert set(answers) == set(CATALOGUE.answers)


class Watched(walk.Walk):
    """Looks at every fact of the catalogue before and after each action."""

    seen: list[tuple[str, set[str], set[str]]]
    target: Any = None

    def _carry_out(self, step: Do, effects: tuple[Effect, ...], done: int = 0) -> End | None:
        before = self.holding()
        ended = super()._carry_out(step, effects, done)
        self.seen.append((step.action, before, self.holding()))
        return ended

    def holding(self) -> set[str]:
        """Every fact that can be asked now and holds; about a target too, where the walk was given none."""
        now = replace(self.world, patience=0.0, answers={"target": self.target, **self.world.answers})
        askable = [name for name, probe in CATALOGUE.probes.items() if set(probe.takes) <= set(now.answers)]
        return {name for name in askable if look(name, now).holds}


def walked(stand: Stand, case: str) -> None:
    """In a child of its own: it may open a Delta table, and waits less."""
    impatient()
    without_spark()
    registry = load_registry(stand.jobs)
    Watched.seen, start.Walk = [], Watched
    world = World(registry, registry.jobs[JOB], "x", str(stand.runs / "x"))
    Watched.target = understand("target.by_batch", world, "1")
    path = CASES[case].path
    told = Prepared(ANSWERS[path] | CASES[case].given, JOB, Nobody(lambda event: None))
    ending = start.begin(registry, JOB, path, told, patience=20)
    assert ending.outcome in ("resolved", "chosen")
    assert [action for action, _, _ in Watched.seen] == ACTIONS[case]
    vouched = {entry["attests"] for entry in stand.journal(ending.run) if entry.get("attests")}
    undeclared: list[str] = []
    for name, before, after in Watched.seen:
        action = CATALOGUE.actions[name]
        assert action.makes in after, f"{name} does not make {action.makes}"
        assert set(action.requires) - before <= vouched, f"{name} was done without {set(action.requires) - before}"
        undeclared += [f"{name}: {fact}" for fact in sorted(before - after - set(action.may_undo))]
    assert undeclared == [], "these were undone without having been declared"


EVERY = os.environ.get("RUNBOOK_ALL_SCENARIOS") == "1"
LONG = {"reset-delta"}  # left to `make gauntlet`


@pytest.mark.parametrize("case", [case for case in ACTIONS if EVERY or case not in LONG])
def test_an_action_does_what_it_declares(case: str, tmp_path: Path) -> None:
    given = CASES[case]
    apart(lambda: Stand.build(tmp_path / "w", sink=given.sink, cut=given.cut, reader=given.reader) and None)
    stand = Stand(tmp_path / "w")
    if given.path == "backfill":
        stand.can_be_run_over_a_range()
    if given.hole:
        stand.lose()
    if given.reader:
        stand.start(READER)
    if case == "resume":
        stand.start(JOB)
    try:
        apart(lambda: walked(stand, case))
    finally:
        stand.stop_all()


def test_every_action_is_seen_to_do_what_it_declares_but_two_that_have_tests_of_their_own() -> None:
    """tests/catalogue/live: test_sink.py clears a batch in flight, test_checkpoint.py gives a new identity."""
    walked = {action for actions in ACTIONS.values() for action in actions}
    assert set(CATALOGUE.actions) - walked == {"sink.clear_in_flight", "checkpoint.new_identity"}
