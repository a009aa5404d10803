"""The fleet, a job, the audit, help, themes: what they show, that every key is told, that no colour is needed."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from keyboard import Hands, at, screen_text
from stand import JOB, Stand, differing
from textual import events
from textual.widgets import DataTable, TextArea

from wizard.errors import BadInput
from wizard.runbook.lint import proved
from wizard.runbook.search import find
from wizard.tui.app import RunbookApp
from wizard.tui.eye import Eye
from wizard.tui.looks import JobLook, look_at_job, read_registry
from wizard.tui.outline import ahead, flat, outline
from wizard.tui.screens.audit import AuditScreen, RunScreen
from wizard.tui.screens.fleet import FleetScreen
from wizard.tui.screens.job import JobScreen
from wizard.tui.themes import THEMES


async def looked_at(hands: Hands) -> FleetScreen:
    await hands.pilot.pause()
    fleet = hands.app.screen
    assert isinstance(fleet, FleetScreen)
    while len(fleet.jobs) < len(hands.app.registry.jobs) or fleet._fresh:
        await hands.pilot.pause(0.05)
    await hands.pilot.pause(0.1)
    return fleet


def more_jobs(stand: Stand, count: int) -> None:
    """Jobs that were never started, below the one there is."""
    jobs = stand.root / "jobs.yaml"
    block = "".join(
        f"  idle-{n:04}:\n    checkpoint: ./none/{n}\n    source: {{format: log, path: ./log, options: {{subscribe: t}}}}\n"
        f"    sink: {{format: parquet, path: ./none-out/{n}, key: [offset]}}\n"
        for n in range(count)
    )
    jobs.write_text(jobs.read_text() + block)


def test_the_fleet_shows_state_batch_lag_and_findings_and_looking_changes_nothing(stand: Stand) -> None:
    before = differing(stand.everything(), {})
    world = stand.everything()

    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen()) as hands:
            fleet = await looked_at(hands)
            cells = [str(cell) for cell in fleet.query_one(DataTable).get_row(JOB)]
            # Four batches of 8 rows are committed of 48; one more was killed.
            assert cells[:3] == [JOB, "■ stopped", "3"] and cells[4] == str(48 - 4 * 8)
            assert "LOOKING" in hands.seen() and "4 in flight" in hands.seen()

    asyncio.run(go())
    assert before and differing(stand.everything(), world) == []


def test_the_fleet_is_filtered_sorted_and_opens_a_job(stand: Stand) -> None:
    more_jobs(stand, 5)

    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen()) as hands:
            fleet = await looked_at(hands)
            table = fleet.query_one(DataTable)
            assert table.row_count == 6
            await hands.pilot.press("slash", *"idle", "minus", *"0003", "enter")
            await hands.pilot.pause()
            assert [str(row.key.value) for row in table.ordered_rows] == ["idle-0003"]
            await hands.pilot.press("escape", "s")
            await hands.pilot.pause()
            assert table.row_count == 6 and fleet.sort_by == "job"
            names = [str(row.key.value) for row in table.ordered_rows]
            assert names == sorted(names)
            await hands.pilot.press("ctrl+end", "enter")
            await hands.pilot.pause(0.5)
            assert isinstance(hands.app.screen, JobScreen) and hands.app.screen.job == names[-1]
            await hands.pilot.press("escape")
            assert hands.app.screen is fleet

    asyncio.run(go())


def test_letters_typed_right_behind_the_slash_go_into_the_filter(stand: Stand) -> None:
    """Typed faster than the screen draws, an `a` would open the audit."""

    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen()) as hands:
            fleet = await looked_at(hands)
            for key, letter in (("slash", "/"), ("a", "a"), ("s", "s")):
                pressed = events.Key(key, letter)
                pressed.set_sender(hands.app)
                hands.app._driver.send_message(pressed)  # type: ignore[union-attr]
            await hands.pilot.pause(0.2)
            assert hands.app.screen is fleet and fleet.wanted == "as" and fleet.sort_by == "trouble"

    asyncio.run(go())


def test_a_click_on_the_last_line_presses_the_key_and_what_does_not_fit_is_left_out_whole(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen()) as hands:
            await looked_at(hands)
            line = hands.seen().splitlines()[-1]
            await hands.pilot.click("Keys", offset=(line.index("Audit") + 1, 0))
            await hands.pilot.pause(0.2)
            assert isinstance(hands.app.screen, AuditScreen)
        async with at(stand.jobs, lambda app: FleetScreen(), (40, 10)) as hands:
            await looked_at(hands)
            line = hands.seen().splitlines()[-1]
            assert line.split() == ["⏎", "Open", "/", "Filter", "…", "?", "Help", "^q", "Quit"]
        async with at(stand.jobs, lambda app: FleetScreen(), (120, 30)) as hands:
            await looked_at(hands)
            line = " ".join(hands.seen().splitlines()[-1].split())
            assert "r Look again" in line and "^t Theme" in line and "…" not in line
            await hands.pilot.press("slash")
            await hands.pilot.pause(0.1)
            assert "f1 Help" in " ".join(hands.seen().splitlines()[-1].split())  # a ? is a letter now

    asyncio.run(go())


def test_a_long_name_has_the_room_that_a_wide_screen_leaves(stand: Stand) -> None:
    name = "a-job-with-a-name-" + "x" * 40
    more_jobs(stand, 1)
    jobs = stand.root / "jobs.yaml"
    jobs.write_text(jobs.read_text().replace("idle-0000", name))

    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen(), (80, 24)) as hands:
            await looked_at(hands)
            await hands.pilot.press("end")
            rows = slice(2, 5)  # the line below the table has the whole name
            assert not any(name in line for line in hands.seen().splitlines()[rows])
            await hands.pilot.resize_terminal(140, 45)
            await hands.until(lambda: any(name in line for line in hands.seen().splitlines()[rows]))
            await hands.pilot.resize_terminal(80, 24)
            await hands.until(lambda: "KEPT" in hands.seen())

    asyncio.run(go())


def test_the_palette_names_an_action_once(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen()) as hands:
            await hands.pilot.pause()
            titles = [command.title for command in hands.app.get_system_commands(hands.app.screen)]
            assert titles.count("Help (?)") == 1

    asyncio.run(go())


def test_a_look_whose_process_is_killed_is_taken_again_and_none_is_taken_once_the_app_closes(stand: Stand) -> None:
    eye = Eye()
    registry = eye.look(read_registry, (stand.jobs,))
    os.kill(eye.start().pid, signal.SIGKILL)
    found = eye.look(look_at_job, (registry, JOB))
    assert isinstance(found, JobLook) and found.last_batch == 3 and found.in_flight == 4
    missing = eye.look(look_at_job, (registry, "nothing"))
    assert isinstance(missing, BadInput) and "no job nothing" in str(missing)
    eye.kill()
    assert "closing" in str(eye.look(look_at_job, (registry, JOB)))
    eye.end()


def test_a_job_shows_four_paths_with_reasons_its_batches_and_where_it_stands(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: JobScreen(JOB), (140, 45)) as hands:
            await hands.pilot.pause()
            screen = hands.app.screen
            assert isinstance(screen, JobScreen)
            while screen.seen is None:
                await hands.pilot.pause(0.05)
            await hands.pilot.pause(0.2)
            told = hands.seen()
            for path in ("✓ resume", "✓ replay", "✓ backfill", "✓ reset"):
                assert path in told
            assert "batch 4 runs again" in told and "SINK_ORPHANS" in told
            assert "✓✓✓✓?" in told  # batches 0 to 3 committed, 4 in flight
            assert "earliest 0, committed 16, latest 24; lag 8" in told

    asyncio.run(go())


def test_a_pasted_stack_trace_is_explained(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: JobScreen(JOB), (140, 45)) as hands:
            await hands.pilot.pause()
            await hands.pilot.press("x")
            await hands.pilot.pause()
            hands.app.screen.query_one(TextArea).insert("Caused by: java.lang.OutOfMemoryError: Java heap space")
            for _ in range(100):
                await hands.pilot.pause(0.05)
                if "OUT_OF_MEMORY" in hands.seen():
                    break
            assert "OUT_OF_MEMORY" in hands.seen()

    asyncio.run(go())


@pytest.mark.parametrize("screen", [lambda app: FleetScreen(), lambda app: JobScreen(JOB)], ids=["fleet", "job"])
def test_every_binding_with_a_name_is_in_the_help(screen: Any, stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, screen, (140, 45)) as hands:
            await hands.pilot.pause(0.3)
            bindings = [each.binding for each in hands.app.screen.active_bindings.values() if each.binding.id]
            assert len(bindings) > 5
            await hands.pilot.press("question_mark")
            await hands.pilot.pause()
            told = " ".join(hands.seen().split())
            for binding in bindings:
                assert (binding.tooltip or binding.description) in told, binding

    asyncio.run(go())


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
def test_the_same_words_stand_in_every_theme(theme: str, stand: Stand) -> None:
    async def go() -> str:
        async with at(stand.jobs, lambda app: FleetScreen()) as hands:
            hands.app.theme = theme
            await looked_at(hands)
            return hands.seen()

    told = asyncio.run(go())
    assert "■ stopped" in told and JOB in told


def test_no_color_leaves_only_black_and_white(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset", "dry run")) as hands:
            assert hands.app.no_color
            await hands.asked()
            strips = hands.app.screen._compositor.render_strips()
            for strip in strips:
                for segment in strip.apply_filter(hands.app._filters[-1], hands.app.screen.background_colors[1]):
                    for colour in (segment.style.color, segment.style.bgcolor) if segment.style else ():
                        if colour is not None and colour.triplet is not None:
                            assert len(set(colour.triplet)) == 1, segment

    asyncio.run(go())


def test_the_audit_tells_a_run_step_by_step_and_writes_its_page(stand: Stand, tmp_path: Path) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            prompt = await hands.asked()
            assert prompt is not None
            await hands.answer("leave")
            await hands.asked()
        run = stand.only_run()
        async with at(stand.jobs, lambda app: RunScreen(run), (140, 45)) as hands:
            await hands.pilot.pause()
            for _ in range(100):
                await hands.pilot.pause(0.05)
                if "✓ holds" in hands.seen():
                    break
            told = hands.seen()
            assert "✓ holds" in told and "aborted" in told and "source.can_rebuild" in told
            await hands.pilot.press("e")
            for _ in range(100):
                await hands.pilot.pause(0.05)
                if (tmp_path / f"{run}.html").exists():
                    break
            assert run in (tmp_path / f"{run}.html").read_text()

    asyncio.run(go())


@pytest.mark.parametrize("name", ["resume", "replay", "backfill", "reset", "triage"])
def test_the_tree_holds_every_step_once_and_the_start_comes_first(name: str) -> None:
    runbook = proved(find(name))
    steps = [step for _, step in flat(outline(runbook))]
    assert sorted(steps) == sorted(runbook.steps) and steps[0] == runbook.start
    assert ahead(runbook, runbook.start) | {runbook.start} == set(runbook.steps)


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
def test_a_confirmation_is_on_the_screen_whole(size: tuple[int, int], stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset"), size) as hands:
            prompt = await hands.to_confirmation({"place": "in_place"}, "truncate")
            await hands.pilot.pause(0.2)
            visible = hands.app.screen.region
            for widget in prompt.query("Input, Button"):
                assert widget.region.area and visible.contains_region(widget.region), widget
            assert "Stop here" in screen_text(hands.app) and "Type ingest" in screen_text(hands.app)

    asyncio.run(go())


def test_the_palette_offers_every_key_by_name(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen()) as hands:
            await hands.pilot.pause(0.2)
            app = hands.app
            assert isinstance(app, RunbookApp)
            titles = [command.title for command in app.get_system_commands(app.screen)]
            assert {"Filter (/)", "Sort (s)", "Audit (a)", "Quit (Ctrl+q)"} <= set(titles)

    asyncio.run(go())
