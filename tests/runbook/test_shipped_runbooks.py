"""The shipped trees: proved, walked on every path, and told in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import walker
from shipped import FILES, NAMES, ROOT, data

from wizard.catalogue import CATALOGUE
from wizard.runbook.graph import edges
from wizard.runbook.lint import lint_files, proved


def test_nothing_else_is_in_the_room_of_runbooks() -> None:
    assert sorted(NAMES) == sorted(path.stem for path in (ROOT / "runbooks").iterdir())


def test_all_shipped_runbooks_prove() -> None:
    assert lint_files(list(FILES.values())) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_path_can_be_walked_and_keeps_its_promises(name: str, tell: Callable[[str], None]) -> None:
    runbook, raw = proved(FILES[name]), data(name)
    graph = {(edge.source, edge.label, edge.target) for edge in edges(runbook, CATALOGUE)}
    found = walked = 0
    taken: set[tuple[str, str, str]] = set()
    for path, broken in walker.paths(raw["steps"], raw["start"]):
        found += 1
        taken.update(path)
        walked += not broken
    tell(f"{name}: {walked} / {found} paths walked, {len(taken)} / {len(graph)} outcomes taken")
    assert walked == found > 0
    assert taken == graph


@pytest.mark.parametrize("name", NAMES)
def test_no_world_that_can_come_about_breaks_a_promise(name: str) -> None:
    raw = data(name)
    assert walker.violations(raw["steps"], raw["start"]) == set()


@pytest.mark.parametrize("name", NAMES)
def test_each_step_says_what_and_why_and_what_happens_if_skipped(name: str) -> None:
    for step in proved(FILES[name]).steps.values():
        words = step.words
        assert words.say, step.name
        if type(step).__name__ != "End":
            assert words.why and words.if_skipped, step.name


def test_the_reset_goes_in_the_one_order_there_is() -> None:
    raw = data("reset")
    order = ["job.stopped", "sink.truncate", "checkpoint.delete", "config.earliest", "job.start_fresh", "rows.exact"]
    for path, _ in walker.paths(raw["steps"], raw["start"]):
        steps = [raw["steps"][source] for source, _, _ in path]
        done = [step.get("do") or step.get("check") for step in steps]
        if "job.start_fresh" in done:
            met = [name for name in done if name in order]
            assert [name for name in order if name in met] == met


def test_every_catalogued_action_is_used_by_some_shipped_runbook() -> None:
    used = {step["do"] for name in NAMES for step in data(name)["steps"].values() if "do" in step}
    assert used == set(CATALOGUE.actions)


def as_told(name: str, **answers: str) -> tuple[list[str], str]:
    """The steps of the walk in which all goes well, questions and named checks answered so; and how it ends."""
    steps, at, met = data(name)["steps"], data(name)["start"], []
    while "end" not in steps[at]:
        assert at not in met, f"{at} is met twice: {met}"
        met.append(at)
        outcomes = dict(walker.ways(steps[at]))
        wanted = answers.get(at) or ("holds" if "check" in steps[at] else "done")
        at = outcomes[wanted]
    return met, steps[at]["end"]


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("resume", {}),
        ("replay", {"target": "by_batch"}),
        ("backfill", {"range": "by_offsets"}),
        ("reset", {"place": "in_place"}),
        ("reset", {"place": "beside", "ready": "now", "keep": "retire"}),
    ],
)
def test_a_walk_in_which_all_goes_well_asks_only_what_to_do_and_is_resolved(name: str, answers: dict[str, str]) -> None:
    assert as_told(name, **answers)[1] == "resolved"


@pytest.mark.parametrize(
    ("name", "answers", "prefix"),
    [
        ("replay", {"target": "by_batch"}, ""),
        ("reset", {"place": "in_place"}, ""),
        ("reset", {"place": "beside", "ready": "now", "keep": "retire"}, "beside_"),
    ],
)
def test_consumers_are_stopped_before_the_job_and_reset_after_it_is_proved(
    name: str, answers: dict[str, str], prefix: str
) -> None:
    running = {f"{prefix}readers": "fails", f"{prefix}who": "stop", f"{prefix}stopped": "fails"}
    behind = {f"{prefix}consistent": "fails", f"{prefix}readers_too": "reset", "readers_running": "fails"}
    met, end = as_told(name, **answers, **running, **behind)
    steps = data(name)["steps"]
    done = [steps[step].get("do") or steps[step].get("check") for step in met]
    order = ["consumers.stop", "job.stop", "rows.exact", "consumers.down", "consumers.reset", "consumers.start"]
    places = [done.index(each) for each in order]
    assert places == sorted(places)
    assert end == "resolved"


@pytest.mark.parametrize("name", ("replay", "reset"))
def test_a_consumer_left_running_is_stopped_and_seen_to_be_before_it_is_reset(name: str) -> None:
    raw, walks = data(name), 0
    for path, _ in walker.paths(raw["steps"], raw["start"]):
        taken = [
            (raw["steps"][source].get("do") or raw["steps"][source].get("check"), label) for source, label, _ in path
        ]
        if ("consumers.reset", "done") in taken:
            place = taken.index(("consumers.reset", "done"))
            proved_at = max(i for i, seen in enumerate(taken[:place]) if seen == ("consumers.down", "holds"))
            assert all(what != "consumers.start" for what, _ in taken[proved_at:place])
            assert ("consumers.stop", "done") in taken[:proved_at]
            walks += 1
    assert walks
