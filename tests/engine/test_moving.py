"""A job that this walk did not start, such as the live one of a backfill, is seen to move before it is said to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import standin
from stand import JOB, WATCH_SECONDS, Stand

from wizard.catalogue.live.binding import look
from wizard.catalogue.world import World
from wizard.jobs.control.process import ProcessController
from wizard.jobs.registry import load_registry

MOVES = ("batch.committed", "offsets.moving")


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """Two batches are committed, more is to be read, and the job runs and does nothing."""
    monkeypatch.setattr(ProcessController.__init__, "__defaults__", (WATCH_SECONDS,))
    made = Stand.build(tmp_path / "w", batches=2, cut="")
    registry = made.root / "jobs.yaml"
    start = next(line for line in registry.read_text().splitlines() if "start:" in line)
    registry.write_text(registry.read_text().replace(start, '      start: [python, -c, "import time; time.sleep(60)"]'))
    yield made
    made.stop()


def test_a_job_that_runs_and_stands_still_is_not_called_moving(stand: Stand) -> None:
    registry = load_registry(stand.jobs)
    world = World(registry, registry.jobs[JOB], "run-1", str(stand.runs / "run-1"), patience=0.0)
    stand.start(JOB)
    for fact in MOVES:
        seen = look(fact, world)
        assert seen.truth == "fails" and "it was first looked at" in seen.evidence[0]
    job = standin.Job(JOB, stand.jobs)
    job.start()
    assert job.step()
    assert all(look(fact, world).holds for fact in MOVES)


def test_one_whose_source_has_nothing_left_is_not_waited_for(stand: Stand) -> None:
    stand.finish_one(JOB)
    registry = load_registry(stand.jobs)
    world = World(registry, registry.jobs[JOB], "run-1", str(stand.runs / "run-1"), patience=0.0)
    stand.start(JOB)
    assert all(look(fact, world).holds for fact in MOVES)
