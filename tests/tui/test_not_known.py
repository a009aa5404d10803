"""What cannot be seen any more is not shown as it was, what waits is shown where it can be picked up, no markup is believed."""

from __future__ import annotations

import asyncio

import pytest
from keyboard import at
from stand import ANSWERS, JOB, Stand
from textual.widgets import DataTable, OptionList, Static, TextArea

from wizard.errors import RunbookError
from wizard.tui.background import Looked
from wizard.tui.looks import JobLook, look_at_kept
from wizard.tui.screens.audit import AuditScreen, RunScreen
from wizard.tui.screens.explain import shortened
from wizard.tui.screens.fleet import FleetScreen
from wizard.tui.screens.job import JobScreen
from wizard.tui.screens.take_back import GoOnDialog


def test_a_job_that_cannot_be_looked_at_any_more_shows_no_path_as_safe(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: JobScreen(JOB), (140, 45)) as hands:
            job = hands.app.screen
            assert isinstance(job, JobScreen)
            await hands.until(lambda: job.seen and "✓ reset" in hands.seen())
            job.seen = JobLook(JOB, error="the disk does not answer")
            job._draw()
            await hands.pilot.pause(0.1)
            assert "✗ the disk does not answer" in hands.seen()
            assert "safe" not in hands.seen() and "✓" not in hands.seen()

    asyncio.run(go())


def test_runs_that_cannot_be_read_are_not_taken_for_none(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen(), (140, 45)) as hands:
            fleet = hands.app.screen
            assert isinstance(fleet, FleetScreen)
            await hands.until(lambda: fleet.jobs and not fleet._pending and not fleet._fresh)
            await hands.until(lambda: str(fleet.query_one(DataTable).get_row(JOB)[-1]) == "–")
            fleet.post_message(Looked("kept", RunbookError("the bucket does not answer")))
            await hands.until(lambda: str(fleet.query_one(DataTable).get_row(JOB)[-1]) == "?")
            await hands.until(lambda: "what runs have left is not known: the bucket does not answer" in hands.seen())

    asyncio.run(go())


def test_a_run_that_waits_is_opened_from_its_job_and_gone_on_with_after_a_question(stand: Stand) -> None:
    async def first() -> str:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.to_confirmation(ANSWERS["reset"], "truncate")
            return hands.walk.trail.run

    async def second(run: str) -> None:
        async with at(stand.jobs, lambda app: JobScreen(JOB), (140, 45)) as hands:
            await hands.until(lambda: f"runbook continue {run}" in hands.seen())
            assert "Open the run" in hands.seen()
            await hands.pilot.press("c")
            await hands.until(lambda: isinstance(hands.app.screen, RunScreen) and hands.app.screen.told)
            assert "c Continue" in " ".join(hands.seen().split())
            await hands.pilot.press("c")
            await hands.until(lambda: isinstance(hands.app.screen, GoOnDialog))
            await hands.pilot.press("enter")  # No has the focus
            await hands.pilot.pause()
            assert isinstance(hands.app.screen, RunScreen) and hands.app.walker is None
            await hands.pilot.press("c", "tab", "enter")
            await hands.to_confirmation({}, "truncate")
            assert hands.walk.trail.continued
            await hands.pilot.press("enter")
            await hands.asked()

    asyncio.run(second(asyncio.run(first())))


def test_a_run_that_is_over_cannot_be_continued_by_a_key(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.asked()
            await hands.answer("leave")
            await hands.asked()
            run = hands.walk.trail.run
            await hands.app.push_screen(RunScreen(run))
            await hands.until(lambda: "stands" in hands.seen())
            walk = hands.walk
            await hands.pilot.press("c")
            await hands.pilot.pause()
            assert "Continue" not in hands.seen() and hands.walk is walk

    asyncio.run(go())


@pytest.mark.parametrize("name", ["[red]x[/]", "[/]", "名前[bold"])
def test_a_name_that_looks_like_markup_is_shown_as_it_is(
    name: str, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a tag of it would end the app."""
    monkeypatch.setenv("RUNBOOK_OPERATOR", name)

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.asked()
            await hands.answer("leave")
            await hands.asked()
            await hands.app.push_screen(AuditScreen())
            await hands.until(lambda: name in hands.seen())
            await hands.pilot.press("enter")
            await hands.until(lambda: hands.app.screen.query(OptionList) and f"{name} began reset" in hands.seen())

    asyncio.run(go())


def test_of_a_huge_paste_the_ends_are_kept_and_what_is_left_out_is_said() -> None:
    text = "first\n" + "x" * 10_000_000 + "\nlast"
    kept = shortened(text)
    assert len(kept) < 210_000 and kept.startswith("first\n") and kept.endswith("\nlast")
    assert f"{len(text) - 200_000} characters left out here; `runbook explain FILE`" in kept
    assert shortened(text[:200_000]) == text[:200_000]


def test_a_paste_is_taken_back_by_emptying_the_field(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: JobScreen(JOB), (140, 45)) as hands:
            job = hands.app.screen
            assert isinstance(job, JobScreen)
            await hands.until(lambda: job.seen)
            await hands.pilot.press("x")
            await hands.until(lambda: hands.app.screen.query(TextArea))
            hands.app.screen.query_one(TextArea).text = "Caused by: java.lang.OutOfMemoryError: Java heap space"
            await hands.pilot.press("escape", "x")
            await hands.until(lambda: hands.app.screen.query(TextArea))
            assert "OutOfMemoryError" in hands.app.screen.query_one(TextArea).text
            await hands.until(
                lambda: "OUT_OF_MEMORY" in str(hands.app.screen.query_one("#meaning Static", Static).render())
            )
            hands.app.screen.query_one(TextArea).text = ""
            await hands.pilot.press("escape")
            await hands.pilot.pause()
            assert job.pasted == ""

    asyncio.run(go())


def test_an_undo_in_doubt_is_finished_by_an_undo(stand: Stand) -> None:
    from wizard.engine.journal import Journal
    from wizard.jobs.registry import load_registry

    async def go() -> str:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.to_confirmation(ANSWERS["reset"], "truncate")
            return hands.walk.trail.run

    run = asyncio.run(go())
    kept = look_at_kept(load_registry(stand.jobs))[JOB]
    assert kept.run == run and kept.says == f"a run waits: runbook continue {run}"
    Journal.reopen(str(stand.runs / run / "journal.jsonl")).append(
        "undo", who="x", host="x", pid=1, version="0", running=[]
    )
    assert look_at_kept(load_registry(stand.jobs))[JOB].says == f"a run waits: runbook undo {run}"
