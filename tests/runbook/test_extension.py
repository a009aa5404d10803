"""A team's own runbooks: found on a search path, and built on shipped ones without going around them."""

from __future__ import annotations

from pathlib import Path

import pytest
import walker
import yaml
from shipped import ROOT, data

from wizard.errors import BadInput
from wizard.runbook.lint import lint_runbook, proved
from wizard.runbook.model import Do
from wizard.runbook.search import find, known, search_path, shipped

EXAMPLE = ROOT / "docs" / "examples" / "reset-with-ticket.yaml"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runbooks").mkdir()
    return tmp_path


def extension(text: str, id: str = "mine") -> str:
    return f"runbook: 1\nid: {id}\nextends: reset\ninsert:\n{text}"


def test_the_how_tos_example_proves_and_keeps_every_step_of_its_base() -> None:
    assert lint_runbook(EXAMPLE) == []
    runbook = proved(EXAMPLE)
    assert set(runbook.steps) == {*data("reset")["steps"], "still_alone", "ticket", "no_ticket"}
    assert runbook.extends == ("reset",)
    fence = runbook.steps["fence"]
    assert isinstance(fence, Do) and fence.goto == "still_alone"
    assert str(runbook.steps["ticket"].where).endswith("reset-with-ticket.yaml:15:7")
    assert runbook.digest != proved(ROOT / "runbooks" / "reset.yaml").digest


def test_the_how_to_shows_the_example_word_for_word() -> None:
    assert EXAMPLE.read_text("utf-8") in (ROOT / "docs" / "runbooks.md").read_text("utf-8")


def test_no_walk_of_the_example_empties_the_output_without_a_ticket() -> None:
    inserted = yaml.safe_load(EXAMPLE.read_text("utf-8"))["insert"][0]["steps"]
    base = data("reset")
    steps = {name: body for name, body in base["steps"].items()}
    steps["fence"]["goto"] = "still_alone"
    steps |= inserted
    for path, _ in walker.paths(steps, base["start"]):
        if any(source == "truncate" for source, _, _ in path):
            assert ("ticket", "approved", "truncate") in path


def test_guards_before_one_step_are_walked_in_the_order_of_the_file(elsewhere: Path) -> None:
    ask = "{{ask: 'Sure?', options: {{sure: {{say: Sure., goto: rebuild}}}}}}"
    text = "".join(f"  - {{before: rebuild, steps: {{{name}: {ask.format()}}}}}\n" for name in ("one", "two"))
    mine = elsewhere / "mine.yaml"
    mine.write_text(extension(text))
    runbook = proved(mine)
    assert runbook.start == "one"
    assert [option.goto for option in runbook.steps["one"].options] == ["two"]  # type: ignore[union-attr]
    assert [option.goto for option in runbook.steps["two"].options] == ["rebuild"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("insert", "code", "says"),
    [
        ("{before: delte, steps: {x: {end: aborted}}}", "RB302", "did you mean 'delete'?"),
        ("{before: delete, steps: {fence: {end: aborted}}}", "RB304", "rename it"),
        ("{before: truncate, steps: {x: {check: job.stopped, cases: {holds: delete, fails: aborted, unknown: aborted}}}}",
         "RB303", "x goes to delete on holds"),
        ("{before: delete, steps: {x: {end: resolved}}}", "RB303", "may stop a walk, not complete it"),
        ("{before: delete, steps: {x: {do: consumers.start, verify: consumers.running, goto: delete, on_fail: aborted}}}",
         "RB201", "delete does checkpoint.delete, which requires consumers.stopped"),
        ("{before: delete, steps: {x: {check: job.stopped, cases: {holds: delete, fails: x, unknown: aborted}}}}",
         "RB104", "x → x"),
    ],
)  # fmt: skip
def test_an_extension_cannot_take_a_guard_away(elsewhere: Path, insert: str, code: str, says: str) -> None:
    mine = elsewhere / "mine.yaml"
    mine.write_text(extension(f"  - {insert}\n"))
    found = [problem for problem in lint_runbook(mine) if problem.code == code]
    assert found and any(says in problem.message for problem in found)


@pytest.mark.parametrize("first", ["late", "early"])
def test_a_step_inserted_elsewhere_is_no_way_around_what_lies_between(elsewhere: Path, first: str) -> None:
    groups = {
        "late": "  - {before: start, steps: {late: {ask: 'a?', options: {go: {say: s, goto: start}}}}}\n",
        "early": "  - {before: place, steps: {early: {ask: 'b?', options: {go: {say: s, goto: place}, "
        "around: {say: s, goto: late}}}}}\n",
    }
    other = "early" if first == "late" else "late"
    mine = elsewhere / "mine.yaml"
    mine.write_text(extension(groups[first] + groups[other]))
    (problem,) = lint_runbook(mine)
    assert problem.code == "RB303" and "early goes to late on around" in problem.message


def test_a_base_that_cannot_be_found_is_named_with_the_nearest_one(elsewhere: Path) -> None:
    mine = elsewhere / "mine.yaml"
    mine.write_text(extension("  - {before: delete, steps: {x: {end: aborted}}}\n").replace("reset", "rest"))
    (problem,) = lint_runbook(mine)
    assert (problem.code, problem.where) == ("RB301", f"{mine}:3:1")
    assert "did you mean 'reset'?" in problem.message


def test_a_file_of_a_shipped_name_extends_the_shipped_one_and_is_found_before_it(elsewhere: Path) -> None:
    own = elsewhere / "runbooks" / "reset.yaml"
    own.write_text(EXAMPLE.read_text("utf-8").replace("id: reset-with-ticket", "id: reset"))
    assert find("reset").resolve() == own
    assert "ticket" in proved(own).steps


def test_a_runbook_that_calls_itself_otherwise_is_not_walked(elsewhere: Path) -> None:
    """Its journal would have the id, under which the run could not be picked up, or another runbook would be found."""
    own = elsewhere / "runbooks" / "reset.yaml"
    own.write_text(EXAMPLE.read_text("utf-8"))
    with pytest.raises(BadInput, match="RB006 the file is found as 'reset' and calls itself 'reset-with-ticket'"):
        proved(find("reset"))
    assert [problem.severity for problem in lint_runbook(own)] == ["error"]


def test_runbooks_that_extend_each_other_are_refused(elsewhere: Path) -> None:
    for name, base in (("one", "two"), ("two", "one")):
        text = extension("  - {before: delete, steps: {x: {end: aborted}}}\n", name).replace("reset", base)
        (elsewhere / "runbooks" / f"{name}.yaml").write_text(text)
    assert [problem.code for problem in lint_runbook("runbooks/one.yaml")] == ["RB301"]


def test_the_search_path_is_here_then_the_configuration_then_the_package(elsewhere: Path) -> None:
    configured = elsewhere / "team"
    configured.mkdir()
    (configured / "drain.yaml").write_text("")
    assert search_path([configured]) == [Path("runbooks"), configured, shipped()]
    assert set(known([configured])) == {"backfill", "drain", "replay", "reset", "resume", "triage"}
    with pytest.raises(BadInput, match="did you mean 'replay'"):
        find("repaly")
