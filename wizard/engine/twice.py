"""A trial of whether the output takes a batch twice, on a clone of its own that is removed; the answer is kept."""

from __future__ import annotations

from pathlib import Path

from wizard import durable
from wizard.catalogue.live.twice import write_again
from wizard.catalogue.world import Seen, World, unknown
from wizard.engine import runs
from wizard.engine.clone import Clone, clone, remove
from wizard.errors import RunbookError
from wizard.jobs.control.open import open_controller
from wizard.jobs.model import Registry
from wizard.jobs.registry import get_job
from wizard.jobs.tried import note
from wizard.store import local_path


def try_twice(registry: Registry, job_name: str, *, patience: float = 120.0) -> Seen:
    """The answer is kept for the walks and diagnoses that come after."""
    job = get_job(registry, job_name)
    run = runs.new_run("twice", job_name)
    scratch = durable.join(local_path(registry.runs) or str(Path.cwd() / "runs"), "rehearsals", run)
    copied: Clone | None = None
    try:
        copied = clone(World(registry, job, run, scratch))
        seen = write_again(copied.registry, job_name, patience)
    except RunbookError as error:
        seen = unknown(f"a batch could not be written twice on a copy: {error}")
    finally:
        remove_clone(copied, job_name, scratch)
    if seen.truth != "unknown":
        note(registry, job, seen.holds, seen.evidence[0])
    return seen


def remove_clone(copied: Clone | None, job_name: str, scratch: str) -> None:
    try:
        if copied is not None:
            controller = open_controller(copied.registry, copied.registry.jobs[job_name])
            if controller.status().state == "running":
                controller.stop(timeout=10)
            remove(copied)
    finally:
        durable.remove_tree(scratch)
