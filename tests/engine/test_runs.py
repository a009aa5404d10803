"""Which run is meant, which came later, and what a run whose journal does not hold keeps from being done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from stand import ANSWERS, JOB, Stand, fork, words

from wizard.engine.journal import Journal
from wizard.engine.runs import find_run, open_run
from wizard.engine.start import refuse_if_left_behind, state_of
from wizard.engine.undo import _refuse_if_walked_since
from wizard.errors import BadInput, InDoubt
from wizard.jobs.registry import load_registry

FIRST, SECOND = f"reset-{JOB}-20260102T000000-aaaa", f"replay-{JOB}-20260101T000000-bbbb"


def begun(stand: Stand, run: str, order: int, **more: Any) -> Journal:
    journal = Journal.create(str(stand.runs / run / "journal.jsonl"))
    journal.append("start", run=run, job=JOB, runbook="reset", digest="", mode="live", who="me", locks=[JOB],
                   step="rebuild", order=order, **more)  # fmt: skip
    journal.append("intent", step="truncate", action="sink.truncate", remember={}, effects=[])
    journal.append("end", step="done", outcome="resolved")
    return journal


@pytest.mark.parametrize("name", ["", "r", "bbb"])
def test_a_name_that_is_empty_or_next_to_it_means_no_run(name: str, stand: Stand) -> None:
    """`runbook undo "$RUN"` in a script, where RUN was never set."""
    begun(stand, SECOND, 1)
    with pytest.raises(BadInput, match="too short"):
        find_run(str(stand.runs), name)
    assert find_run(str(stand.runs), "bbbb").id == SECOND
    code, said = fork(words(stand, "undo", name, confirm=None))
    assert code == 2, said


def test_the_later_of_two_runs_is_undone_first_though_the_clock_was_set_back(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = load_registry(stand.jobs)
    begun(stand, FIRST, refuse_if_left_behind(registry, JOB))
    second = begun(stand, SECOND, refuse_if_left_behind(registry, JOB))
    at = str(second.entries[0]["at"])
    states = {run: state_of(open_run(str(stand.runs), run)) for run in (FIRST, SECOND)}
    states[FIRST].began = at.replace(at[:4], "2999")  # what the second one's clock would have called tomorrow
    with pytest.raises(InDoubt, match=f"run {SECOND} came after {FIRST}"):
        _refuse_if_walked_since(registry, states[FIRST])
    _refuse_if_walked_since(registry, states[SECOND])


def test_a_run_whose_very_first_entry_does_not_hold_is_in_the_way_of_the_next_one(stand: Stand) -> None:
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"], confirm=None))
    assert code == 4, said
    run = stand.only_run()
    journal = stand.runs / run / "journal.jsonl"
    for broken in (re.sub(rb'"mode":"live"', b'"mode":"dead"', journal.read_bytes(), count=1), b"garbage\n"):
        journal.write_bytes(broken)
        code, said = fork(words(stand, "resume", JOB, given=ANSWERS["resume"]))
        assert code == 8 and f"runbook audit verify {run}" in said, said
    assert stand.run_ids() == [run]


def test_a_journal_that_cannot_be_read_is_in_the_way_and_a_file_that_is_named_like_a_run_is_not(stand: Stand) -> None:
    (stand.runs / FIRST).parent.mkdir(exist_ok=True)
    (stand.runs / FIRST).write_text("notes")
    assert refuse_if_left_behind(load_registry(stand.jobs), JOB) == 1
    (stand.runs / SECOND / "journal.jsonl").mkdir(parents=True)
    with pytest.raises(InDoubt, match=f"the journal of {SECOND} does not hold"):
        refuse_if_left_behind(load_registry(stand.jobs), JOB)
    code, said = fork(["audit", "list", "--jobs", stand.jobs])
    assert code == 0 and "broken" in said, said


def test_an_undo_is_refused_beside_a_run_whose_journal_does_not_hold(stand: Stand) -> None:
    begun(stand, FIRST, 1)
    begun(stand, SECOND, 2)
    journal: Path = stand.runs / SECOND / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"sink.truncate", b"sink.rollback"))
    with pytest.raises(InDoubt, match="does not hold"):
        _refuse_if_walked_since(load_registry(stand.jobs), state_of(open_run(str(stand.runs), FIRST)))
