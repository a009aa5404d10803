"""The restart rules of CHECKPOINTS.md, as `predict` tells them from the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import NAMES, as_recorded, facts, look
from restart_cases import CASES, Case, prepare


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_damaged_checkpoint_is_told_as_spark_will_take_it(case: Case, tmp_path: Path) -> None:
    version = case.spark or ("4.2.0" if case.proved else None)
    told = look(prepare(case, tmp_path), spark_version=version).restart
    assert (told.action, told.batch) == (case.action, case.batch)
    if case.error is None:
        assert told.error is None
    else:
        assert told.error is not None and case.error in told.error


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_checkpoint_goes_on_or_runs_its_last_batch_again(name: str, tmp_path: Path) -> None:
    known = facts(name)
    planned, killed = known["last_batch_planned"], known["killed"]
    told = look(as_recorded(name, tmp_path)).restart
    assert (told.action, told.batch) == (("rerun", planned) if killed else ("next", planned + 1))


def test_skipped_batches_are_named(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "C < M - 1 runs only M again")
    assert "batches 11, 12 are planned, not committed, and skipped" in look(prepare(case, tmp_path)).restart.says


def test_a_release_that_was_not_told_is_not_guessed_from_files_that_are_not_there(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "half deleted, release not known")
    told = look(prepare(case, tmp_path)).restart
    assert "4.1 and later refuse" in told.says and "earlier ones run over what is left" in told.says
