"""A job that reads the output is part of every path: what it has read is looked at before anything is written anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stand import ANSWERS, JOB, READER, Stand, differing, fork, words

from wizard.catalogue.live.binding import look
from wizard.catalogue.world import Seen, World
from wizard.diagnosis.diagnose import Diagnosis, diagnose
from wizard.diagnosis.subject import direct_consumers, subject_of
from wizard.jobs.registry import load_registry

TWICE = "consumers may read rows twice"


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """The newest batch is in the output and not committed, and the reader has it."""
    made = Stand.build(tmp_path / "w", cut="log", reader=True)
    yield made
    made.stop_all()


def diagnosed(stand: Stand) -> Diagnosis:
    registry = load_registry(stand.jobs)
    return diagnose(subject_of(registry.jobs[JOB], direct_consumers(registry)[JOB]))


def told(seen: Diagnosis) -> list[str]:
    return [found.evidence for found in seen.findings if found.code == "CONSUMER_AHEAD"]


def seen(stand: Stand, fact: str) -> Seen:
    registry = load_registry(stand.jobs)
    return look(fact, World(registry, registry.jobs[JOB], "run-1", str(stand.runs / "run-1")))


def all_rows(stand: Stand) -> None:
    stand.finish()
    assert stand.found(JOB) == stand.expected()
    assert stand.found(READER) == stand.expected()


def test_a_reader_that_has_what_the_output_shows_makes_no_difference(stand: Stand) -> None:
    assert told(diagnosed(stand)) == []
    assert diagnosed(stand).paths["resume"]["verdict"] == "safe"
    assert seen(stand, "consumers.consistent").holds and seen(stand, "consumers.safe").holds


@pytest.mark.parametrize(("files", "says"), [(True, "no longer there"), (False, "that the log of")])
def test_one_that_has_read_what_is_about_to_be_written_again_is_told_before(
    files: bool, says: str, stand: Stand
) -> None:
    stand.lose_newest(files=files)
    (evidence,) = told(diagnosed(stand))
    assert says in evidence
    resume = diagnosed(stand).paths["resume"]
    assert resume["verdict"] == "risky" and f"{READER} has read rows" in resume["reasons"][0]
    assert seen(stand, "consumers.consistent").truth == "fails"
    assert seen(stand, "consumers.safe").holds  # it stands still
    stand.start(READER)
    assert seen(stand, "consumers.safe").truth == "fails"


def walked(stand: Stand, path: str, **given: Any) -> tuple[int, str]:
    return fork(words(stand, path, JOB, given=ANSWERS[path] | given))


def test_a_resume_stops_it_first_and_resets_it_when_the_rows_are_proved(stand: Stand) -> None:
    stand.lose_newest()
    stand.start(READER)
    code, said = walked(stand, "resume", who="stop", readers_too="reset")
    assert code == 0, said
    assert stand.runs_now(READER)
    all_rows(stand)


def test_without_an_answer_about_it_nothing_is_started_and_nothing_changed(stand: Stand) -> None:
    stand.lose_newest()
    stand.start(READER)
    before = stand.tree()
    code, said = walked(stand, "resume")
    assert code == 3 and "who" in said, said
    assert differing(stand.tree(), before) == []
    assert stand.runs_now(READER) and not stand.runs_now(JOB)


def test_left_running_on_somebodys_word_it_has_the_rows_twice_and_the_walk_says_so(stand: Stand) -> None:
    stand.lose_newest()
    stand.start(READER)
    code, said = walked(stand, "resume", who={"option": "leave_alone", "typed": TWICE}, readers_too="stop")
    assert code == 4 and f"{READER}: has read" in said, said
    stand.finish()
    assert stand.found(JOB) == stand.expected()
    assert stand.found(READER) - stand.expected()
    (waived,) = [entry for entry in stand.journal(stand.only_run()) if entry.get("waives")]
    assert (waived["waives"], waived["typed"]) == ("consumers.safe", TWICE)


@pytest.mark.parametrize("read", [True, False])
def test_a_backfill_asks_about_it_only_where_it_had_read_the_rows_before(read: bool, tmp_path: Path) -> None:
    stand = Stand.build(tmp_path / "w", cut="", reader=read)
    stand.can_be_run_over_a_range()
    stand.lose()
    if not read:
        stand.add_reader()
    stand.start(READER)
    try:
        code, said = walked(stand, "backfill", **({"who": "stop", "readers_too": "reset"} if read else {}))
        assert code == 0, said
        assert ("who: Decide about the consumers" in said) == read
        assert stand.runs_now(READER)
        all_rows(stand)
    finally:
        stand.stop_all()


def test_files_outside_the_log_are_no_rows_unless_a_job_goes_by_the_listing(tmp_path: Path) -> None:
    stand = Stand.build(tmp_path / "w", cut="files", reader=True)
    clean = seen(stand, "in_flight.clean")
    assert clean.holds and "only a reader that lists the directory sees them" in clean.evidence[1]
    registry = stand.root / "jobs.yaml"
    registry.write_text(
        registry.read_text().replace("{format: parquet, path: ./out}", "{format: parquet, path: './out/part-*'}")
    )
    unclean = seen(stand, "in_flight.clean")
    assert unclean.truth == "fails" and READER in unclean.evidence[0]
    left = {path for path in stand.sink.glob("part-*") if path.name not in logged(stand)}
    assert left
    code, said = walked(stand, "resume")
    assert code == 0, said
    assert not any(path.exists() for path in left)
    stand.stop_all()
    stand.finish_one(JOB)
    assert stand.found(JOB) == stand.expected()


def logged(stand: Stand) -> str:
    return "".join(path.read_text() for path in (stand.sink / "_spark_metadata").glob("[0-9]*"))


def test_a_source_whose_files_have_other_names_now_can_still_rebuild_what_was_made_of_it(stand: Stand) -> None:
    """By the rows: the batch was run again, and its rows are in other files."""
    stand.lose_newest()
    stand.finish_one(JOB)
    code, said = fork(words(stand, "reset", READER, given={"place": "in_place"}, confirm=READER))
    assert code == 0 and "every row of the output was found in the files that are there now" in said, said
    all_rows(stand)


def test_the_rows_that_an_undo_cannot_bring_back_to_a_reader_are_told_and_it_is_not_started(stand: Stand) -> None:
    stand.lose_newest()
    stand.start(READER)
    code, said = walked(stand, "resume", who="stop", readers_too="reset")
    assert code == 0, said
    code, said = fork(words(stand, "undo", stand.only_run(), "--json", confirm=None))
    assert code == 0, said
    (undone,) = [
        event for line in said.splitlines() if line.startswith("{") and (event := json.loads(line))["event"] == "undone"
    ]
    assert (undone["stays"], undone["ahead"]) == ([JOB], [READER])
    assert not stand.runs_now(READER)
    code, said = fork(["audit", "show", stand.only_run(), "--jobs", stand.jobs])
    assert code == 0 and f"{JOB} had gone on from where it stood" in said
    assert f"{READER} has read rows that its source no longer shows; reset it before it is started" in said
