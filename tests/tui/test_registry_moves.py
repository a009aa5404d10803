"""The registry is a file that others write: a walk and the screens go by what it says now, not by what it said."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from keyboard import at
from stand import ANSWERS, JOB, Stand
from textual.widgets import DataTable, Static

from wizard.tui.background import Looked, Lookout
from wizard.tui.eye import Eye
from wizard.tui.screens.fleet import FleetScreen
from wizard.tui.widgets.ended import Ended


def move_checkpoint(stand: Stand) -> Path:
    jobs, moved = Path(stand.jobs), stand.root / "elsewhere"
    shutil.move(stand.checkpoint, moved)
    jobs.write_text(jobs.read_text().replace("checkpoint: ./checkpoint\n", "checkpoint: ./elsewhere\n"))
    return moved


def add_job(stand: Stand) -> None:
    new = "{checkpoint: ./a, source: {format: rate}, sink: {format: parquet, path: ./b, key: [value]}}"
    with Path(stand.jobs).open("a") as file:
        file.write(f"  added: {new}\n")


def test_a_walk_begun_in_an_open_app_goes_by_the_registry_as_it_is_then(stand: Stand) -> None:
    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen(), (140, 45)) as hands:
            await hands.pilot.pause()
            moved = move_checkpoint(stand)
            await hands.app.push_screen(hands.app.walk_of(JOB, "reset", "dry run"))
            await hands.asked()
            await hands.answer("in_place")
            await hands.until(lambda: any(f"{moved}/metadata" in line for line in hands.walk.trail.lines))

    asyncio.run(go())


def test_what_an_action_wrote_into_the_registry_is_what_the_screens_look_at(stand: Stand) -> None:
    """A reset beside gives the job other paths; the next walk must not be begun on what was retired."""

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.walk_of(JOB, "reset")) as hands:
            await hands.asked()
            add_job(stand)
            assert set(hands.app.registry.jobs) == {JOB}
            await hands.to_confirmation(ANSWERS["reset"], "truncate")  # the fence is put up on the way
            await hands.until(lambda: set(hands.app.registry.jobs) == {JOB, "added"})

    asyncio.run(go())


def test_a_job_that_is_added_comes_into_the_fleet_and_a_registry_that_breaks_is_told(stand: Stand) -> None:
    jobs = Path(stand.jobs)
    good = jobs.read_text()

    async def go() -> None:
        async with at(stand.jobs, lambda app: FleetScreen(), (140, 45)) as hands:
            fleet = hands.app.screen
            assert isinstance(fleet, FleetScreen)

            async def looked_again() -> None:
                await hands.until(lambda: not fleet._pending)
                fleet.action_refresh()
                await hands.until(lambda: not fleet._pending)
                await hands.pilot.pause(0.3)

            add_job(stand)
            await looked_again()
            assert set(fleet.query_one(DataTable).rows) == {"added", JOB}
            jobs.write_text("jobs: [")
            await looked_again()
            assert set(fleet.query_one(DataTable).rows) == {"added", JOB}
            assert f"✗ {jobs}:" in str(fleet.query_one("#about", Static).render())
            await hands.app.push_screen(hands.app.walk_of(JOB, "reset"))
            assert await hands.asked() is None
            assert hands.walk.query_one(Ended) and f"✗ {jobs}:" in hands.seen() and hands.walk.walker.exit_code == 2
            hands.app.pop_screen()
            jobs.write_text(good)
            await looked_again()
            assert set(fleet.query_one(DataTable).rows) == {JOB}
            assert "✗" not in str(fleet.query_one("#about", Static).render())

    asyncio.run(go())
    assert stand.run_ids() == []


def test_who_opens_a_job_does_not_wait_for_the_fleet() -> None:
    told: SimpleQueue[str] = SimpleQueue()

    class Screen:
        def post_message(self, looked: Looked) -> None:
            told.put(looked.what)

    screen: Any = Screen()
    lookout = Lookout([Eye()])
    try:
        for name in ("one of the fleet", "another"):
            lookout.look(screen, name, time.sleep, 0.2, later=True)
        lookout.look(screen, "the job", time.sleep, 0)
        in_turn = [told.get(timeout=20) for _ in range(3)]
        assert in_turn[-1] == "another"  # the first of the fleet may have been begun before the job came
    finally:
        lookout.close()
