"""Whoever is asked may decline, talk nonsense, fall silent or go away: the walk stops, and says where it stands."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from stand import ANSWERS, JOB, TOPIC, Stand, fork, words

from wizard.engine.events import event
from wizard.line_mode import Narrator
from wizard.sources.embedded_log import EmbeddedLog


def asked(stand: Stand, *first: str) -> list[str]:
    """A command that asks at its standard input."""
    return [*first, "--jobs", stand.jobs, "--plain", "--wait", "20"]


def typed(tmp_path: Path, *lines: str) -> str:
    file = tmp_path / "typed"
    file.write_text("".join(f"{line}\n" for line in lines))
    return str(file)


def test_stopped_before_any_change_is_exit_3(stand: Stand, tmp_path: Path) -> None:
    before = stand.tree()
    for given in ({"place": "leave"}, {}):
        code, said = fork(words(stand, "reset", JOB, given=given))
        assert code == 3, said
    assert "'place' needs an answer (in_place, beside, leave)" in said
    code, said = fork(asked(stand, "reset", JOB), stdin=typed(tmp_path))
    assert code == 3 and "the input has ended" in said, said
    assert stand.tree() == before


@pytest.mark.parametrize("confirm", ["another", None])
def test_declined_or_not_given_after_a_change_is_exit_4_and_can_be_gone_on_with(
    confirm: str | None, stand: Stand
) -> None:
    before = stand.tree()
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"], confirm=confirm))
    run = stand.only_run()
    assert code == 4, said
    assert f"runbook continue {run}" in said and f"runbook undo {run}" in said
    assert sorted(path.name for path in stand.sink.glob("part-*"))  # the fence is all that was done
    code, said = fork(words(stand, "continue", run, given=ANSWERS["reset"]))
    assert code == 0, said
    stand.finish()
    assert stand.found() == stand.expected()
    code, said = fork(words(stand, "undo", run, confirm=None))
    assert code == 0, said
    assert stand.tree() == before


def test_the_input_ends_after_a_change(stand: Stand, tmp_path: Path) -> None:
    before = stand.tree()
    code, said = fork(asked(stand, "reset", JOB), stdin=typed(tmp_path, "in_place"))
    assert code == 4 and "the input has ended" in said, said
    code, said = fork(words(stand, "undo", stand.only_run(), confirm=None))
    assert code == 0, said
    assert stand.tree() == before


def test_nonsense_is_asked_again_and_a_waiver_is_typed_word_for_word(stand: Stand, tmp_path: Path) -> None:
    assert EmbeddedLog(stand.root / "log", TOPIC).drop_before(0, 8) > 0
    before = stand.tree()
    lines = (
        "",
        "99",
        "0",
        "yes",
        "accept",
        "rows are lost",
        "1",
        " rows that the source  no longer has are lost ",
        "leave",
    )
    code, said = fork(asked(stand, "reset", JOB), stdin=typed(tmp_path, *lines))
    assert code == 3, said
    assert said.count("type a number from 1 to 2, or a name") == 4
    assert said.count("this must be typed out, word for word: rows that the source no longer has are lost") == 1
    journal = stand.journal(stand.only_run())
    assert [(e["step"], e["option"], e.get("waives")) for e in journal if e["kind"] == "answer"] == [
        ("loss", "accept", "source.can_rebuild"),
        ("place", "leave", None),
    ]
    assert stand.tree() == before


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"place": "sideways"}, "'sideways' is not one of in_place, beside, leave"),
        ({"place": {"option": "in_place "}}, "is not one of"),
    ],
)
def test_an_answer_given_beforehand_that_does_not_fit_is_exit_2(
    given: dict[str, object], says: str, stand: Stand
) -> None:
    before = stand.tree()
    code, said = fork(words(stand, "reset", JOB, given=given))
    assert code == 2 and says in said, said
    assert stand.tree() == before


def test_answers_that_say_again_run_out(stand: Stand) -> None:
    """A job that starts and never commits: the list is gone through, and then the walk stops."""
    registry = stand.root / "jobs.yaml"
    text = registry.read_text()
    start = next(line for line in text.splitlines() if "start:" in line)
    registry.write_text(text.replace(start, '      start: [python, -c, "import time; time.sleep(60)"]'))
    command = words(stand, "reset", JOB, given=ANSWERS["reset"] | {"wait_commit": ["again", "again"]})
    command[command.index("--wait") + 1] = "0.1"
    code, said = fork(command)
    assert code == 4, said
    assert "'wait_commit' needs an answer" in said.splitlines()[-1] and "runbook undo" in said.splitlines()[-1]
    journal = stand.journal(stand.only_run())
    assert [entry["option"] for entry in journal if entry["kind"] == "answer"] == ["in_place", "again", "again"]


def test_nobodys_word_stands_against_what_is_seen(stand: Stand) -> None:
    """The registry says that the job begins at a time; its operator says that it begins with the first row."""
    registry = stand.root / "jobs.yaml"
    option = "subscribe: t, startingOffsetsByTimestamp: '{}'"
    registry.write_text(registry.read_text().replace("subscribe: t", option))
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"] | {"by_hand": "set"}))
    assert code == 5, said
    assert "offsets.earliest" in said and "startingOffsetsByTimestamp" in said.splitlines()[-1]
    assert "job.start_fresh" not in [e.get("action") for e in stand.journal(stand.only_run()) if e["kind"] == "intent"]
    registry.write_text(registry.read_text().replace(option, "subscribe: t"))
    code, said = fork(words(stand, "continue", stand.only_run(), given=ANSWERS["reset"]))
    assert code == 0, said
    stand.finish()
    assert stand.found() == stand.expected()


def test_a_walk_whose_reader_goes_away_is_not_called_a_success(stand: Stand) -> None:
    """`runbook reset … | head -1`: the walk goes to its end or says that it did not; it never just ends with 0."""
    import os

    reading, writing = os.pipe()
    os.close(reading)
    code, _ = fork(words(stand, "reset", JOB, given=ANSWERS["reset"]), lambda: os.dup2(writing, 1) and None)
    os.close(writing)
    ended = [entry["outcome"] for entry in stand.journal(stand.only_run()) if entry["kind"] == "end"]
    assert (code == 0) == (ended == ["resolved"])
    assert ended == ["resolved"]


def test_lines_name_the_next_command_with_its_job_and_a_dry_run_says_what_it_would_say() -> None:
    told = io.StringIO()
    for mode, path in (("live", "reset"), ("dry run", "")):
        narrator = Narrator(told)
        narrator(event("start", run="r", job="ingest", runbook="triage", mode=mode, title="t"))
        narrator(
            event("end", run="r", outcome="chosen", says="This way.", changed=False, head="h", exit_code=0, path=path)
        )
    assert "  next:       runbook reset ingest\n" in told.getvalue()
    assert "nothing was changed; it would end chosen: This way.\n" in told.getvalue()
