"""The broker goes away in the middle of a walk: a clear stop, nothing lost, and `runbook continue` completes it."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pipeline import JOBS, PATIENT, RUNBOOK, TABLES, Workspace, end_jobs, produce

from wizard.jobs.control.open import open_controller
from wizard.jobs.registry import load_registry

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture
def down_for_a_while(workspace: Workspace) -> Iterator[Workspace]:
    """800 records read, 100 to come; whatever a test does to the broker, the next one finds it up."""
    workspace.only(JOBS[0])
    produce(workspace.broker, workspace.topic, 800)
    workspace.once(JOBS[0])
    produce(workspace.broker, workspace.topic, 100, first=800)
    try:
        yield workspace
    finally:
        end_jobs(workspace.root)
        workspace.broker.stop()
        workspace.broker.start()


def walk_until(workspace: Workspace, step: str, *arguments: str, **given: Any) -> tuple[int, str]:
    """Walks a reset and takes the broker away when it comes to the step; the exit code, and the last line told."""
    command = [
        RUNBOOK,
        "reset",
        JOBS[0],
        *workspace.answers(**given),
        "--json",
        *arguments,
        "--jobs",
        workspace.root / "jobs.yaml",
    ]
    with (workspace.root / "told.log").open("w+") as told:
        walk = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told, text=True)
        assert walk.stdout is not None
        for line in walk.stdout:
            event = json.loads(line)
            if event["event"] == "step" and event["step"] == step:
                workspace.broker.stop()
        code = walk.wait(900)
        walk.stdout.close()
        told.seek(0)
        return code, told.read().strip().splitlines()[-1]


def row_exact(workspace: Workspace) -> None:
    wanted = Counter((partition, offset) for partition, offset, _, _ in workspace.broker.read(workspace.topic))
    assert wanted.total() == 900
    workspace.wait_for(TABLES[0], wanted)
    assert workspace.keys(TABLES[0]) == wanted


def test_away_before_the_output_is_emptied_nothing_is_and_continue_completes_it(down_for_a_while: Workspace) -> None:
    workspace = down_for_a_while
    before = workspace.keys(TABLES[0])
    code, line = walk_until(workspace, "fence")
    run = workspace.last_run()
    assert code == 5
    assert line.startswith(
        "runbook: sink.truncate requires source.can_rebuild, which cannot be seen: the Kafka cluster"
    )
    assert f"`runbook continue {run}` looks again" in line
    assert workspace.keys(TABLES[0]) == before, "the rows are all still there"
    workspace.broker.start()
    workspace.runbook("continue", run, *workspace.answers(**PATIENT))
    row_exact(workspace)


def test_away_while_the_job_starts_it_is_told_and_continue_completes_it(down_for_a_while: Workspace) -> None:
    workspace = down_for_a_while
    code, line = walk_until(workspace, "committed", "--wait", "5")
    run = workspace.last_run()
    assert code == 4
    assert line.startswith("runbook: step 'wait_commit' needs an answer") and f"`runbook continue {run}`" in line
    workspace.broker.start()
    registry = load_registry(workspace.root / "jobs.yaml")
    controller = open_controller(registry, registry.jobs[JOBS[0]])
    if controller.status().state == "stopped":
        controller.start()  # it gives up after a minute or so, and whoever starts it has to start it again
    workspace.runbook("continue", run, *workspace.answers(**PATIENT))
    row_exact(workspace)


def test_away_in_the_proof_it_is_not_called_proved_and_continue_completes_it(down_for_a_while: Workspace) -> None:
    workspace = down_for_a_while
    code, line = walk_until(workspace, "exact", **PATIENT)
    run = workspace.last_run()
    assert code == 4
    assert line.startswith("runbook: step 'unproved' needs an answer") and f"`runbook continue {run}`" in line
    workspace.broker.start()
    workspace.runbook("continue", run, *workspace.answers(unproved="again", **PATIENT))
    row_exact(workspace)
