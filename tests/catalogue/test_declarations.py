"""The catalogue's declarations: whole, consistent with each other, and on the page."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from wizard.catalogue import CATALOGUE, FAMILIES, Action, Answer, Probe, collect
from wizard.catalogue.page import page

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_declarations_say() -> None:
    current = (ROOT / "docs" / "catalogue.md").read_text("utf-8")
    assert current == page(), "run: python -m wizard.catalogue.page > docs/catalogue.md"


def test_every_entry_has_a_sentence_for_the_operator() -> None:
    for family in FAMILIES:
        for entry in family.ENTRIES:
            assert entry.says.endswith("."), entry.name
            assert entry.name.isascii()


def test_a_family_is_declarations_and_imports_nothing_that_acts() -> None:
    for family in FAMILIES:
        tree = ast.parse(Path(str(family.__file__)).read_text("utf-8"))
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert modules <= {"__future__", "wizard.catalogue.declare"}, family.__name__


def test_what_destroys_requires_jobs_that_stand_still_or_an_output_that_was_left_behind() -> None:
    for action in CATALOGUE.actions.values():
        if action.destroys:
            assert {"job.stopped", "consumers.down", "registry.switched"} & set(action.requires), action.name
            assert "undo" in action.way_back, action.name


def test_every_start_owes_the_proof_of_its_effect() -> None:
    starts = [action for action in CATALOGUE.actions.values() if action.makes == "job.running"]
    assert len(starts) == 4
    for action in starts:
        assert set(action.owes) == {"job.running", "batch.committed", "offsets.moving", "rows.exact"}
        assert "job.stopped" in action.requires and "job.stopped" in action.may_undo


def test_rows_that_were_compared_before_a_stop_are_not_certain_after_it() -> None:
    assert "rows.exact" in CATALOGUE.actions["job.stop"].may_undo


def test_what_is_taken_out_of_an_output_is_nobody_elses() -> None:
    for name in ("sink.clear_in_flight", "sink.truncate", "sink.rollback"):
        assert "checkpoint.exclusive" in CATALOGUE.actions[name].requires, name


def test_no_consumer_is_emptied_on_somebodys_word_that_it_stands_still() -> None:
    assert {"consumers.down", "rows.exact"} <= set(CATALOGUE.actions["consumers.reset"].requires)
    down = CATALOGUE.probes["consumers.down"]
    assert not down.waivable and not down.attestable
    assert "consumers.down" in CATALOGUE.actions["consumers.start"].may_undo


def test_a_checkpoint_goes_only_after_its_output() -> None:
    assert {"job.stopped", "checkpoint.fenced", "sink.empty"} <= set(CATALOGUE.actions["checkpoint.delete"].requires)
    assert "sink.at_target" in CATALOGUE.actions["checkpoint.rollback"].requires
    assert "checkpoint.absent" in CATALOGUE.actions["config.earliest"].requires


PROBE = Probe("a.b", "", "")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([PROBE, PROBE], "a.b is declared twice"),
        ([Action("x.y", "", makes="a.b", way_back="")], "x.y names a.b, which no probe can observe"),
        ([PROBE, Action("x.y", "", makes="a.b", way_back="", may_undo=("a.b",))], "x.y undoes what it makes"),
        (
            [PROBE, Action("x.y", "", makes="a.b", way_back="", takes=("range",))],
            "x.y takes range, which no answer gives",
        ),
        (
            [
                Probe("a.b", "", "", takes=("range",)),
                Answer("range.typed", "range", ""),
                Action("x.y", "", makes="a.b", way_back=""),
            ],
            "x.y needs a.b probed, but does not take range",
        ),
    ],
)
def test_a_declaration_that_does_not_fit_is_found_at_once(entries: list[Probe | Action], says: str) -> None:
    with pytest.raises(ValueError, match=says.replace(".", r"\.")):
        collect(entries)
