"""Whole walks in the TUI, by keyboard, on a workspace of its own: to the end, declined, failed, interrupted, picked up."""

from __future__ import annotations

import asyncio
import shutil
import time
from typing import Any

import pytest
from keyboard import Hands, at
from stand import ANSWERS, JOB, Stand, differing
from textual.widgets import Button, Input

from wizard.jobs.control.process import ProcessController
from wizard.tui.screens.job import JobScreen
from wizard.tui.screens.leave import LeaveDialog
from wizard.tui.widgets import prompt as prompt_widgets
from wizard.tui.widgets.ended import Ended
from wizard.tui.widgets.prompt import Choices, Confirm


def answers(path: str) -> dict[str, Any]:
    return {"wait_commit": "again", "wait_moving": "again", **ANSWERS[path]}


@pytest.mark.parametrize("path", ["reset", "replay", "resume", "backfill"])
def test_a_path_is_walked_to_its_end_with_the_keyboard_alone(path: str, stand: Stand) -> None:
    if path == "backfill":
        stand.can_be_run_over_a_range()
        stand.lose()
        assert stand.expected() - stand.found()
        stand.start(JOB)

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, path)) as hands:
            await hands.to_the_end(answers(path))
            if path == "backfill":  # the log of a file sink has one writer: the live job stands, and is resumed
                assert "✓ chosen" in hands.seen() and f"runbook resume {JOB}" in hands.seen()
                await hands.pilot.press("tab", "enter")
                await hands.to_the_end(answers("resume"))
            assert hands.walk.trail.ended is not None, hands.seen()
            assert hands.walk.trail.ended["outcome"] == "resolved", hands.seen()
            assert "✓ resolved" in hands.seen() and "LIVE" in hands.seen()
            await hands.pilot.press("enter")  # Close has the focus
            await hands.pilot.pause()
        assert hands.app.return_value == 0

    asyncio.run(go())
    stand.finish()
    assert stand.found() == stand.expected()


def test_a_walk_that_cannot_go_on_says_why_and_what_to_type(stand: Stand) -> None:
    """How the stand-in's code is run over a range is not known; a backfill on Spark is in tests/catalogue/live."""

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "backfill"), (140, 45)) as hands:
            await hands.to_the_end(answers("backfill"))
            told = " ".join(hands.seen().split())
            assert "✗ hand_over" in told and "backfill.repeatable unknown" in told
            assert f"how to run the code of {JOB} over a range is not known" in told
            assert f"runbook undo {hands.walk.trail.run}" in told

    asyncio.run(go())


def test_enter_on_a_destructive_prompt_declines_and_nothing_is_destroyed(stand: Stand) -> None:
    rows = stand.found()

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset"), (140, 45)) as hands:
            prompt = await hands.to_confirmation(answers("reset"), "truncate")
            assert hands.app.focused is prompt.query_one("#decline")
            await hands.pilot.press("enter")
            assert await hands.asked() is None
            assert hands.walk.trail.ended is not None and hands.walk.trail.ended["outcome"] == "aborted"
            assert f"runbook undo {hands.walk.trail.run}" in hands.seen()
        assert hands.app.walker is not None and hands.app.walker.exit_code == 4

    asyncio.run(go())
    assert stand.found() == rows
    assert [entry["action"] for entry in stand.journal(stand.only_run()) if entry["kind"] == "intent"] == [
        "checkpoint.fence"
    ]


def test_only_the_name_of_the_job_frees_the_button_and_enter_in_the_field_never_confirms(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            prompt = await hands.to_confirmation(answers("reset"), "truncate")
            confirm, field = prompt.query_one("#confirm", Button), prompt.query_one(Input)
            field.focus()
            await hands.pilot.press(*"INGEST", "enter")
            assert confirm.disabled and hands.app.focused is prompt.query_one("#decline")
            field.value = ""
            field.focus()
            await hands.pilot.press(*JOB)
            assert not confirm.disabled
            await hands.pilot.press("enter")
            assert hands.walk.waiting and hands.app.focused is confirm  # asked for, not yet given
            field.focus()
            await hands.pilot.press("backspace")
            assert confirm.disabled and hands.walk.waiting

    asyncio.run(go())


def test_a_key_typed_ahead_answers_nothing(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter held down on one question must not run through the next one."""
    monkeypatch.setattr(prompt_widgets, "DEAF_SECONDS", 20.0)  # however slow the machine is between two keys

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.until(lambda: hands.walk.waiting and hands.walk.query("Choices"))
            prompt = hands.walk.query_one(Choices)
            assert prompt.deaf
            await hands.pilot.press("down", "enter")
            assert hands.walk.waiting and hands.walk.query_one(Choices) is prompt

    asyncio.run(go())


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (140, 45), (200, 60)])
def test_every_answer_is_in_sight_at_every_size_and_after_a_smaller_one(size: tuple[int, int], stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset"), (60, 15)) as hands:
            await hands.asked()
            await hands.pilot.resize_terminal(*size)
            await hands.until(lambda: "3 leave: Change nothing." in hands.seen())
            assert ("changes are real" in hands.seen()) == (size[0] >= 100)  # the banner is drawn again

    asyncio.run(go())


def test_the_rest_of_what_will_be_touched_is_read_with_the_arrows(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset"), (60, 15)) as hands:
            await hands.to_confirmation(answers("reset"), "truncate")
            assert "/sink" not in hands.seen()
            await hands.pilot.press(*["down"] * 6)
            await hands.until(lambda: "/sink" in hands.seen())
            assert hands.app.focused is not None and hands.app.focused.id == "decline"

    asyncio.run(go())


class Clock:
    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now


def test_enter_held_down_in_the_field_of_a_confirmation_never_goes_through(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keyboard sends a key that is held down again after half a second, and then thirty times a second."""

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            prompt = await hands.to_confirmation(answers("reset"), "truncate")
            monkeypatch.setattr(prompt_widgets, "DEAF_SECONDS", 0.7)
            monkeypatch.setattr(prompt_widgets, "time", clock := Clock())
            prompt.query_one(Input).focus()
            await hands.pilot.press(*JOB, "enter")
            assert hands.app.focused is prompt.query_one("#confirm")
            for seconds in (0.5, *[0.033] * 40):
                clock.now += seconds
                await hands.pilot.press("enter")
            assert hands.walk.waiting and hands.prompt() is None and hands.app.focused is prompt.query_one("#confirm")
            await hands.pilot.pause(0.2)  # until all of them have come
            clock.now += 0.8  # let go, and pressed again
            await hands.pilot.press("enter")
            await hands.until(lambda: not prompt.is_attached)

    asyncio.run(go())


def test_a_key_that_answered_the_last_prompt_does_not_close_the_end(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.asked()
            monkeypatch.setattr(prompt_widgets, "DEAF_SECONDS", 20.0)
            await hands.answer("leave")
            await hands.until(lambda: hands.walk.over and hands.app.focused and hands.app.focused.id == "close")
            await hands.pilot.press("enter", "enter")
            assert hands.walk.query(Ended) and hands.app.screen is hands.walk and hands.app.is_running

    asyncio.run(go())


def test_a_start_that_fails_shows_what_happened_and_the_way_back_which_works(stand: Stand) -> None:
    config = stand.root / "conf.yaml"
    config.write_text(config.read_text().replace("maxOffsetsPerTrigger: 8", "maxOffsetsPerTrigger: eight"))
    before = stand.tree()

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset"), (140, 45)) as hands:
            # On a slow machine it dies only after it was seen to run: then no batch is committed.
            await hands.to_the_end(answers("reset") | {"wait_commit": "stop"})
            run = hands.walk.trail.run
            told = hands.seen()
            assert "✗ hand_over" in told and ("✗ start" in told or "✗ committed" in told)
            assert f"runbook continue {run}" in told and f"runbook undo {run}" in told
            assert hands.walk.walker.exit_code == 4
            first = hands.walk
            await hands.pilot.click("#undo")
            await hands.pilot.pause()
            await hands.pilot.press("tab", "enter")  # from No to Take it back
            await hands.until(lambda: hands.walk is not first and hands.walk.over)
            await hands.asked()
            assert "✓ undone" in hands.seen() and "TAKING BACK" in hands.seen()

    asyncio.run(go())
    assert differing(stand.tree(), before) == []


def test_storage_lost_in_the_middle_of_a_walk_is_told_and_nothing_more_is_done(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.to_confirmation(answers("reset"), "truncate")
            shutil.move(stand.checkpoint, stand.root / "lost")
            stand.checkpoint.write_text("not a directory any more")
            await hands.confirm()
            assert await hands.asked() is None
            told = " ".join(hands.seen().split())
            assert "✗" in told and "runbook continue" in told
            assert hands.app.walker is not None
            assert hands.app.walker.exit_code == 5, hands.app.walker.error

    asyncio.run(go())
    assert [entry["action"] for entry in stand.journal(stand.only_run()) if entry["kind"] == "intent"] == [
        "checkpoint.fence"
    ]
    stand.checkpoint.unlink()
    shutil.move(stand.root / "lost", stand.checkpoint)


async def leave(hands: Hands) -> None:
    await hands.pilot.press("ctrl+q")
    await hands.pilot.pause()
    assert isinstance(hands.app.screen, LeaveDialog)
    await hands.pilot.press("tab", "enter")  # from Stay to Leave


def test_a_walk_that_was_left_is_picked_up_and_ends_well(stand: Stand) -> None:
    async def first() -> str:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.to_confirmation(answers("reset"), "delete")
            await hands.pilot.press("ctrl+q")
            await hands.pilot.pause()
            assert f"runbook continue {hands.walk.trail.run}" in hands.seen()
            await hands.pilot.press("enter")  # Stay has the focus
            await hands.pilot.pause()
            assert hands.walk.waiting
            await leave(hands)
            await hands.until(lambda: hands.walk.walker.over)
            assert hands.walk.walker.exit_code == 130
            return hands.walk.trail.run

    async def second(run: str) -> None:
        async with at(stand.jobs, lambda app: app.pick_up_of(run)) as hands:
            await hands.to_the_end(answers("reset"))
            assert hands.walk.trail.continued
            assert hands.walk.trail.ended is not None and hands.walk.trail.ended["outcome"] == "resolved"
            assert not hands.walk.query_one(Ended).open

    asyncio.run(second(asyncio.run(first())))
    stand.finish()
    assert stand.found() == stand.expected()


def test_leaving_in_the_middle_of_an_action_waits_until_it_is_done_and_verified(stand: Stand) -> None:
    ProcessController.__init__.__defaults__ = (4.0,)  # a start is watched for so long, and is in flight until then

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.to_confirmation(answers("reset"), "delete")
            await hands.confirm()
            await hands.until(lambda: hands.walk.walker.in_action == "start")
            await hands.pilot.press("ctrl+q")
            await hands.pilot.pause()
            assert "not cut in half" in " ".join(hands.seen().split())
            await hands.pilot.press("tab", "enter")
            await hands.until(lambda: hands.walk.walker.over)
        assert hands.app.return_value == 130

    asyncio.run(go())
    entries = stand.journal(stand.only_run())
    intents = [entry["step"] for entry in entries if entry["kind"] == "intent"]
    outcomes = [entry["step"] for entry in entries if entry["kind"] == "outcome"]
    assert intents == outcomes and intents[-1] == "start"


def test_a_rehearsal_is_called_one_and_walks_for_real_on_a_clone(stand: Stand) -> None:
    """The job runs on the clone; of the live one nothing moves, and the clone is gone."""

    def live() -> dict[str, Any]:
        apart = {str(stand.root), str(stand.runs)}
        return {name: mark for name, mark in stand.everything().items() if name not in apart and "/runs/" not in name}

    before = live()

    async def go() -> None:
        async with at(stand.jobs, lambda app: JobScreen(JOB), (140, 45)) as hands:
            await hands.until(lambda: isinstance(hands.app.screen, JobScreen) and hands.app.screen.seen)
            await hands.pilot.press("4")
            await hands.pilot.pause()
            await hands.pilot.press("down", "enter")  # dry run, rehearsal
            await hands.until(lambda: hands.app.walk_screen is not None)
            assert isinstance(await hands.asked(), Choices)
            assert "REHEARSAL" in hands.seen() and "LIVE" not in hands.seen()
            await hands.answer("in_place")
            await hands.to_the_end(answers("reset"))
            told = " ".join(hands.seen().split())
            assert "REHEARSAL" in told and "LIVE" not in told
            assert f"rehearsal of reset on a clone of {JOB}: resolved" in told
            assert "48 of 48 source rows" in told and "32 of 32 source rows" in told

    asyncio.run(go())
    assert differing(live(), before) == []
    assert list(stand.runs.glob("rehearsals/*")) == [] and stand.run_ids() == []


def test_a_dry_run_is_called_one_and_changes_nothing(stand: Stand) -> None:
    before = stand.everything()

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset", "dry run")) as hands:
            await hands.to_the_end(answers("reset"))
            told = hands.seen()
            assert "DRY RUN" in told and "LIVE" not in told
            assert "this walk would end resolved" in " ".join(told.split())
            assert "~ start" in told and "✓ start" not in told  # what was not done has not the mark of what was

    asyncio.run(go())
    assert differing(stand.everything(), before) == []


def test_the_engines_own_error_is_shown_and_is_the_exit_code(stand: Stand) -> None:
    """A second walk of a job that one holds."""
    (stand.runs / "locks").mkdir(parents=True)

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as one:
            await one.asked()
            async with at(stand.jobs, lambda app: app.walk_of(JOB, "resume")) as other:
                await other.asked()
                assert "✗" in other.seen() and one.walk.trail.run in other.seen().replace("\n", "").replace(" ", "")
            assert other.app.walker is not None and other.app.walker.exit_code == 6

    asyncio.run(go())


def test_the_suggested_answer_is_marked_beforehand_with_its_evidence(stand: Stand) -> None:
    async def go() -> None:
        from wizard.jobs.control.open import open_controller
        from wizard.jobs.registry import load_registry

        registry = load_registry(stand.jobs)
        open_controller(registry, registry.jobs[JOB]).start()
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "resume"), (140, 45)) as hands:
            prompt = await hands.asked()
            assert isinstance(prompt, Choices) and prompt.question.step.name == "running"
            assert prompt.question.suggested == "stop"
            told = " ".join(hands.seen().split())
            assert "what was seen suggests this" in told
            assert prompt.query_one("OptionList").highlighted == 0  # type: ignore[attr-defined]

    asyncio.run(go())


def test_a_prompt_without_a_suggestion_has_nothing_marked(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            prompt = await hands.asked()
            assert isinstance(prompt, Choices) and not isinstance(prompt, Confirm)
            await hands.pilot.press("enter")
            await hands.pilot.pause(0.1)
            assert hands.prompt() is prompt

    asyncio.run(go())


def test_triage_is_walked_from_the_job_and_leads_to_a_path(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: JobScreen(JOB), (140, 45)) as hands:
            await hands.until(lambda: isinstance(hands.app.screen, JobScreen) and hands.app.screen.seen)
            await hands.pilot.press("t")
            await hands.until(lambda: hands.app.walk_screen is not None)
            prompt = await hands.asked()
            assert isinstance(prompt, Choices) and hands.walk.trail.runbook == "triage"
            assert all(each in hands.seen() for each in (option.name for option in prompt.question.step.options))

    asyncio.run(go())
