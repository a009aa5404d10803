"""The same demands on every kind of sink: see `conformance.py`, and docs/adapters.md for adding one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from worlds import act, journalled, look, planned, take_back

sys.path.insert(0, str(Path(__file__).parent))

from conformance import CASES, Case, rows_of

from wizard.catalogue.live.rows import exact
from wizard.catalogue.world import World
from wizard.errors import RunbookError
from wizard.sinks.interface import SinkReport
from wizard.sinks.open import open_sink


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    made: Case = CASES[request.param](tmp_path, lambda: request.getfixturevalue("database"))
    return made


def report(world: World) -> SinkReport:
    from wizard.catalogue.live.known import query_id

    sink = open_sink(world.job.sink.path, world.job.sink.format, world.job.sink.options, world.job.sink.key)
    assert sink is not None
    return sink.report(query_id(world))


def test_a_report_says_what_is_there_and_changes_nothing(case: Case) -> None:
    before = case.ids()
    assert before == rows_of(case, case.last)
    told = report(case.world())
    assert (told.exists, told.last_batch, told.problems) == (True, case.last, ())
    assert told.rows in (None, before.total())
    assert told.idempotent in (True, None), "False is said by a registry or by a trial, not by a look"
    assert report(case.world()) == told and case.ids() == before
    assert look(case.world(), "checkpoint.consistent").holds


def test_an_output_that_is_not_there_is_empty_and_no_error(case: Case) -> None:
    case.remove()
    world = case.world()
    told = report(world)
    assert (told.exists, told.last_batch, told.problems) == (False, None, ())
    assert look(world, "sink.empty").holds
    assert planned(world, "sink.truncate").effects == ()


def test_it_is_emptied_and_comes_back_and_each_may_be_done_twice(case: Case) -> None:
    world, before = case.world(), case.ids()
    assert look(world, "sink.empty").truth == "fails"
    act(world, "checkpoint.fence")
    effects = act(world, "sink.truncate")
    for effect in journalled(effects):
        effect.do(world)
    assert look(world, "sink.empty").holds and not case.ids()
    take_back(world, effects)
    take_back(world, effects)
    assert case.ids() == before


def test_it_goes_back_to_any_batch_and_forth_again(case: Case) -> None:
    before = case.ids()
    for batch in (0, case.last // 2, case.last):
        world = case.world()
        world.run = f"{world.run} to {batch}"
        world.answers["target"] = {"batch": batch}
        assert look(world, "target.sink_log").holds
        effects = act(world, "sink.rollback")
        for effect in journalled(effects):
            effect.do(world)
        assert case.ids() == rows_of(case, batch)
        assert look(world, "sink.at_target").holds
        take_back(world, effects)
        take_back(world, effects)
        assert case.ids() == before


def test_the_proof_tells_a_row_that_is_there_twice_and_one_that_is_not_there(case: Case) -> None:
    job = case.world().job
    seen = exact(job)
    assert seen.holds, seen.evidence
    case.double()
    assert case.ids().total() > rows_of(case, case.last).total()
    seen = exact(job)
    assert (seen.truth, seen.data["doubled"]["rows"] > 0, seen.data["missing"]["rows"]) == ("fails", True, 0)


def test_the_proof_tells_a_row_that_is_not_there(case: Case) -> None:
    case.lose()
    lost = rows_of(case, case.last) - case.ids()
    seen = exact(case.world().job)
    assert (seen.truth, seen.data["missing"]["rows"], seen.data["doubled"]["rows"]) == ("fails", lost.total(), 0)
    assert [example["id"] for example in seen.data["missing"]["examples"]] == sorted(lost)[:5]


def test_what_cannot_be_read_is_never_taken_for_empty_or_right(case: Case) -> None:
    case.spoil()
    world = case.world()
    world.answers["target"] = {"batch": 1}
    problems = report(world).problems
    assert {problem.code for problem in problems} & {"SINK_UNREADABLE", "SINK_LOG_UNREADABLE"}
    assert all("\n" not in problem.evidence for problem in problems)
    for name in ("rows.exact", "sink.empty", "sink.at_target", "target.sink_log", "sink.accepts_replay"):
        assert not look(world, name).holds, name
    with pytest.raises(RunbookError):
        planned(world, "sink.rollback")
