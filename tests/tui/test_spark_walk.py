"""A whole reset in the TUI on the demo pipeline and real Spark, row-exact at its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from keyboard import at

from wizard.counting import count
from wizard.demo import run_demo
from wizard.jobs.control.open import open_controller
from wizard.jobs.registry import load_registry

ANSWERS = {"place": "in_place", "who": "stop", "readers_too": "reset", "wait_commit": "again", "wait_moving": "again"}


@pytest.mark.spark
@pytest.mark.slow
def test_the_reset_of_the_demo_is_walked_to_a_row_exact_end(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    run_demo(root)
    jobs = str(root / "jobs.yaml")

    async def go() -> None:
        async with at(jobs, lambda app: app.walk_of("sensor-raw-ingest", "reset"), (140, 45)) as hands:
            hands.seconds = 240.0
            await hands.to_the_end(ANSWERS)
            assert hands.walk.trail.ended is not None, hands.seen()
            assert hands.walk.trail.ended["outcome"] == "resolved", hands.seen()

    try:
        asyncio.run(go())
        assert count(root)["raw"].exact
    finally:
        registry = load_registry(jobs)
        for job in registry.jobs.values():
            controller = open_controller(registry, job)
            if controller.status().state == "running":
                controller.stop()
