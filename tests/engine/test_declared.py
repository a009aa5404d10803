"""The catalogue says what the code does: every name is bound, and an action makes, needs and disturbs what it declares."""

from __future__ import annotations

from typing import Any

import pytest
from stand import ANSWERS, JOB, Stand

from wizard.catalogue import CATALOGUE
from wizard.catalogue.effects import Effect
from wizard.catalogue.live.binding import loaded, look
from wizard.catalogue.world import World
from wizard.engine import walk
from wizard.engine.operator import Nobody, Prepared
from wizard.engine.start import begin
from wizard.jobs.registry import load_registry
from wizard.runbook.model import Do, End


def test_everything_declared_has_code_and_all_code_is_declared() -> None:
    probes, actions, answers = loaded()
    assert set(probes) == set(CATALOGUE.probes)
    assert set(actions) == set(CATALOGUE.actions)
    assert set(answers) == set(CATALOGUE.answers)


def holding(world: World) -> set[str]:
    """Every fact that can be asked now and holds."""
    askable = [name for name, probe in CATALOGUE.probes.items() if set(probe.takes) <= set(world.answers)]
    return {name for name in askable if look(name, world).holds}


class Watched(walk.Walk):
    """Looks at every fact of the catalogue before and after each action."""

    seen: list[tuple[str, set[str], set[str]]]

    def _carry_out(self, step: Do, effects: tuple[Effect, ...], done: int = 0) -> End | None:
        patience, self.world.patience = self.world.patience, 0.0
        before = holding(self.world)
        self.world.patience = patience
        ended = super()._carry_out(step, effects, done)
        self.world.patience = 0.0
        self.seen.append((step.action, before, holding(self.world)))
        self.world.patience = patience
        return ended


@pytest.mark.parametrize(
    ("path", "actions"),
    [
        ("reset", ["checkpoint.fence", "sink.truncate", "checkpoint.delete", "config.earliest", "job.start_fresh"]),
        ("replay", ["checkpoint.fence", "sink.rollback", "checkpoint.rollback", "job.start_replayed"]),
        ("resume", ["job.stop", "job.resume"]),
    ],
)
def test_an_action_does_what_it_declares(
    path: str, actions: list[str], stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, set[str], set[str]]] = []
    monkeypatch.setattr(Watched, "seen", seen, raising=False)
    monkeypatch.setattr("wizard.engine.start.Walk", Watched)
    registry = load_registry(stand.jobs)
    if path == "resume":
        from wizard.jobs.control.open import open_controller

        open_controller(registry, registry.jobs[JOB]).start()
    told: list[dict[str, Any]] = []
    ending = begin(registry, JOB, path, Prepared(ANSWERS[path], JOB, Nobody(told.append)), patience=20)
    assert ending.outcome == "resolved"
    assert [action for action, _, _ in seen] == actions
    vouched = {entry["attests"] for entry in stand.journal(ending.run) if entry.get("attests")}
    undeclared: dict[str, list[str]] = {}
    for name, before, after in seen:
        action = CATALOGUE.actions[name]
        assert action.makes in after, f"{name} does not make {action.makes}"
        assert set(action.requires) - before <= vouched, f"{name} was done without {set(action.requires) - before}"
        undeclared[name] = sorted(before - after - set(action.may_undo))
    assert undeclared == {name: [] for name in actions}, "these were undone without having been declared"
