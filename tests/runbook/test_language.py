"""The language: what is accepted, what is refused, where the refusal points, and what it suggests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from shipped import FILES, ROOT

from wizard.errors import BadInput
from wizard.runbook.lint import CODES, lint_runbook, lint_text, proved
from wizard.runbook.load import read

# The sample of the design, word for word, with the steps it leaves out filled in.
SAMPLE = """\
runbook: 1
id: reset
start: stopped
steps:
  stopped:  {check: job.stopped, cases: {holds: complete, fails: stop, unknown: hand_over}}
  stop:     {do: job.stop, verify: job.stopped, goto: complete, on_fail: hand_over}
  complete: {check: source.can_rebuild, cases: {holds: why, fails: hand_over, unknown: hand_over}}
  why:      {ask: "What must survive?", options: {nothing: {say: All goes., goto: readers}, output: {say: It., goto: aborted}}}
  readers:  {check: consumers.stopped, cases: {holds: alone, fails: hand_over, unknown: hand_over}}
  alone:    {check: checkpoint.exclusive, cases: {holds: free, fails: hand_over, unknown: hand_over}}
  free:     {check: checkpoint.unfenced, cases: {holds: fence, fails: hand_over, unknown: hand_over}}
  fence:    {do: checkpoint.fence, verify: checkpoint.fenced, goto: truncate, on_fail: hand_over}
  truncate: {do: sink.truncate, confirm: "{job.name}", verify: sink.empty, goto: delete, on_fail: hand_over, on_decline: aborted}
  delete:   {do: checkpoint.delete, confirm: "{job.name}", verify: checkpoint.absent, goto: earliest, on_fail: hand_over, on_decline: aborted}
  earliest: {do: config.earliest, verify: offsets.earliest, goto: start, on_fail: hand_over}
  start:    {do: job.start_fresh, verify: job.running, goto: commits, on_fail: hand_over}
  commits:  {check: batch.committed, cases: {holds: moves, fails: hand_over, unknown: hand_over}}
  moves:    {check: offsets.moving, cases: {holds: exact, fails: hand_over, unknown: hand_over}}
  exact:    {check: rows.exact, cases: {holds: behind, fails: hand_over, unknown: hand_over}}
  behind:   {check: consumers.consistent, cases: {holds: done, fails: hand_over, unknown: hand_over}}
  done:     {end: resolved}
  aborted:  {end: aborted}
  hand_over: {end: hand_over}
"""


def only(text: str) -> tuple[str, str, str]:
    (problem,) = lint_text(text, "x.yaml")
    return problem.code, problem.where, problem.message


def test_the_designs_own_sample_is_accepted() -> None:
    assert lint_text(SAMPLE, "reset.yaml") == []


def test_a_checkpoint_cannot_be_deleted_over_a_full_output() -> None:
    problems = lint_text(SAMPLE.replace("goto: truncate, on_fail", "goto: delete, on_fail"), "reset.yaml")
    told = next(problem for problem in problems if problem.code == "RB201" and "sink.empty" in problem.message)
    assert told.where == "reset.yaml:14:3"
    assert told.message == (
        "delete does checkpoint.delete, which requires sink.empty, and that is not certain on the path below; "
        "put `check: sink.empty` or `do: sink.truncate`, and lead only its good outcome to delete\n"
        "  reset.yaml:5:3: stopped → holds\n"
        "  reset.yaml:7:3: complete → holds\n"
        "  reset.yaml:8:3: why → nothing\n"
        "  reset.yaml:9:3: readers → holds\n"
        "  reset.yaml:10:3: alone → holds\n"
        "  reset.yaml:11:3: free → holds\n"
        "  reset.yaml:12:3: fence → done\n"
        "  reset.yaml:14:3: delete"
    )


@pytest.mark.parametrize(
    ("old", "new", "code", "where", "says"),
    [
        ("check: job.stopped", "check: job.stoped", "RB003", "5:3", "did you mean 'job.stopped'?"),
        ("do: job.stop,", "do: job.stpo,", "RB003", "6:3", "did you mean 'job.stop'?"),
        ("holds: complete,", "holds: complet,", "RB101", "5:3", "did you mean 'complete'?"),
        ("start: stopped", "start: stoped", "RB101", "3:1", "did you mean 'stopped'?"),
        ("verify: job.stopped", "verify: job.running", "RB004", "6:3", "write `verify: job.stopped`"),
        ("on_fail: hand_over}\n  complete", "on_fial: hand_over}\n  complete", "RB002", "6:3", "on_fail"),
        (", unknown: hand_over}}\n  stop:", "}}\n  stop:", "RB002", "5:34", "unknown missing here"),
        ("  done:     {end: resolved}", "  done:     {end: resolve}", "RB002", "21:14", "did you mean 'resolved'?"),
        ("{end: resolved}", "{end: resolved, path: reset}", "RB002", "21:3", "path is for `end: chosen` alone"),
        ("{end: resolved}", "{end: chosen}", "RB002", "21:3", "path missing here"),
        ("runbook: 1", "runbook: 2", "RB002", "1:1", "must be 1"),
        ('confirm: "{job.name}", verify: sink', 'confirm: "y", verify: sink', "RB002", "13:33", "{job.name}"),
        ("goto: readers}", "goto: readers, waives: sink.empty, type_out: x}", "RB005", "8:", "check it instead"),
        ("goto: readers}", "goto: readers, waives: rows.exact}", "RB002", "8:", "waives needs type_out beside it"),
        ("  aborted:  {end: aborted}", "  aborted:  {end: aborted}\n  lost: {end: aborted}", "RB102", "23:3", "lost"),
        ("holds: complete, fails: stop,", "holds: stopped, fails: stop,", "RB104", "5:3", "stopped → stopped"),
    ],
)
def test_a_mistake_is_refused_with_its_place_and_a_fix(old: str, new: str, code: str, where: str, says: str) -> None:
    assert old in SAMPLE
    problems = lint_text(SAMPLE.replace(old, new, 1), "x.yaml")
    found = [problem for problem in problems if problem.code == code and f"x.yaml:{where}" in problem.where]
    assert found, problems
    assert any(says in problem.message for problem in found), [problem.message for problem in found]


def test_a_step_that_can_never_end_is_refused() -> None:
    text = 'runbook: 1\nid: x\nstart: a\nsteps:\n  a: {ask: "Well?", options: {again: {say: Again., goto: a}}}\n'
    assert only(text)[:2] == ("RB103", "x.yaml:5:3")


def test_an_answer_must_have_been_asked_for() -> None:
    text = (
        "runbook: 1\nid: x\nstart: a\nsteps:\n"
        "  a: {check: target.state, cases: {holds: e, fails: e, unknown: e}}\n  e: {end: hand_over}\n"
    )
    code, where, message = only(text)
    assert (code, where) == ("RB203", "x.yaml:5:3")
    assert "gives: target.by_batch | target.by_time | target.by_offset" in message


def test_the_engine_gets_no_runbook_that_is_not_proved(tmp_path: Path) -> None:
    bad = tmp_path / "reset.yaml"
    bad.write_text(SAMPLE.replace("goto: truncate, on_fail", "goto: delete, on_fail"))
    with pytest.raises(BadInput, match=r"reset\.yaml:\d+:3: RB\d+ .* \(and \d+ more: runbook lint .*\)$"):
        proved(bad)
    assert proved(FILES["reset"]).id == "reset"


def test_a_file_that_cannot_be_read_is_a_problem_and_not_a_traceback(tmp_path: Path) -> None:
    assert [problem.code for problem in lint_runbook(tmp_path / "none.yaml")] == ["RB001"]
    assert [problem.code for problem in lint_runbook(tmp_path)] == ["RB001"]


def test_the_digest_is_of_what_is_walked_and_not_of_where_it_stands() -> None:
    one, moved = read(SAMPLE, "a.yaml").runbook, read("\n\n" + SAMPLE, "b.yaml").runbook
    other = read(SAMPLE.replace("All goes.", "Nothing stays."), "a.yaml").runbook
    assert one and moved and other
    assert one.digest == moved.digest != other.digest


def test_every_code_a_problem_can_have_is_listed() -> None:
    import re

    used = set()
    for file in (ROOT / "wizard" / "runbook").glob("*.py"):
        used |= set(re.findall(r'"(RB\d{3})"', file.read_text("utf-8")))
    assert used == set(CODES)
    documented = (ROOT / "docs" / "runbooks.md").read_text("utf-8")
    assert [code for code, says in CODES.items() if f"`{code}` | {says}" not in documented] == []


def test_loading_a_runbook_loads_nothing_heavy() -> None:
    program = "import sys, json, wizard.runbook.lint, wizard.runbook.draw, wizard.catalogue.page; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"pyspark", "textual", "rich", "deltalake", "jsonschema", "fsspec", "click"}
    assert {name.split(".")[0] for name in json.loads(done.stdout)} & heavy == set()
