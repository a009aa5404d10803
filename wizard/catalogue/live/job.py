"""The job itself: stopped, started in four ways, and seen to work again."""

from __future__ import annotations

import time
from typing import Any

from wizard.catalogue.effects import Effect, Start, Stop
from wizard.catalogue.live.binding import action, probe
from wizard.catalogue.live.checkpoint import lift_fence
from wizard.catalogue.live.extent import reading
from wizard.catalogue.world import Plan, Seen, World, fails, holds, unknown
from wizard.checkpoint.reader import Checkpoint, read_checkpoint
from wizard.jobs.control.open import open_controller
from wizard.jobs.control.stopped import Watch
from wizard.jobs.control.stopped import stopped as prove_stopped
from wizard.jobs.model import Job
from wizard.sources.open import caught_up
from wizard.store import open_store

_POLL_SECONDS = 0.5


@probe("job.stopped")
def job_stopped(world: World) -> Seen:
    return stopped(world, world.job)


def stopped(world: World, job: Job) -> Seen:
    """For any job of the walk; since when its checkpoint stands still is remembered from one look to the next."""
    watch = world.watches.setdefault(job.checkpoint, Watch(job.checkpoint))
    proof = prove_stopped(job, open_controller(world.registry, job), watch, world.say)
    return Seen(proof.outcome, (f"{job.name}: {proof.says}",), proof.evidence)


@probe("job.running")
def job_running(world: World) -> Seen:
    return running(world, world.job)


def running(world: World, job: Job) -> Seen:
    status = open_controller(world.registry, job).status()
    word = {"running": holds, "stopped": fails, "unknown": unknown}[status.state]
    return word(f"{job.name}: {status.says}")


@probe("batch.committed")
def batch_committed(world: World) -> Seen:
    """Waits, for as long as the world's patience, unless the job dies first."""
    since, began = _since(world)
    return _awaited(world, lambda ck: _committed(world, ck, since, began))


def _since(world: World) -> tuple[dict[str, Any], str]:
    """Where the job stood when this walk started it; one that it did not start, when it was first looked at."""
    if "started" in world.memory:
        return world.memory["started"], "the start"
    return world.stood.setdefault(world.job.checkpoint, _started(world)["started"]), "it was first looked at"


def _committed(world: World, ck: Checkpoint, since: dict[str, Any], began: str) -> Seen:
    if ck.in_flight and ck.committed is not None:
        return fails(f"batch {ck.in_flight[-1]} is planned and not yet committed (last commit {ck.committed})")
    if ck.committed is None:
        return fails("no batch has been committed yet")
    before = since["committed"]
    if before is None or ck.committed > before:
        return holds(
            f"batch {ck.committed} is committed"
            + (f", after batch {before} before {began}" if before is not None else "")
        )
    if (why := caught_up(world.job, ck)) is not None:
        return holds(f"batch {ck.committed} was the last to commit: {why}")
    return fails(f"no batch after {before} has been committed since {began}")


@probe("offsets.moving")
def offsets_moving(world: World) -> Seen:
    since, began = _since(world)
    return _awaited(world, lambda ck: _moved(world, ck, since, began))


def _moved(world: World, ck: Checkpoint, since: dict[str, Any], began: str) -> Seen:
    latest = ck.latest_offsets
    if latest is None or ck.committed is None:
        return fails("the checkpoint has no offsets yet")
    now = [source.offset for source in latest.sources]
    if since["offsets"] is not None and now != since["offsets"]:
        return holds(f"offsets went on from {_short(since['offsets'])} to {_short(now)}")
    if since["offsets"] is None:
        return holds(f"offsets began anew and stand at {_short(now)} after batch {ck.committed}")
    if (why := caught_up(world.job, ck)) is not None:
        return holds(f"offsets stand at {_short(now)}: {why}")
    return fails(f"offsets still stand at {_short(now)}, where they stood before {began}")


def _awaited(world: World, look: Any) -> Seen:
    deadline = time.monotonic() + world.patience
    store = open_store(world.job.checkpoint)
    while True:
        alive = running(world, world.job)
        seen: Seen = look(read_checkpoint(store))
        if seen.holds:
            # A job that committed and then died is not one that works.
            return seen if alive.truth != "fails" else fails(*alive.evidence, *seen.evidence)
        if alive.truth == "fails":
            return fails(*alive.evidence, *seen.evidence)
        if time.monotonic() >= deadline:
            return seen
        time.sleep(_POLL_SECONDS)


def wait_until_caught_up(world: World) -> bool:
    """Whether the job has committed all its sources have, within the world's patience."""
    return _awaited(world, lambda ck: holds() if not ck.in_flight and caught_up(world.job, ck) else fails()).holds


def _short(offsets: Any) -> str:
    text = str(offsets)
    return text if len(text) <= 80 else text[:77] + "…"


@action("job.stop")
def job_stop(world: World) -> Plan:
    return Plan((stop_of(world, world.job),))


def stop_of(world: World, job: Job) -> Stop:
    return Stop(job.name, open_controller(world.registry, job).status().state == "running")


@action("job.resume")
def job_resume(world: World) -> Plan:
    return Plan((Start(world.job.name),), _started(world))


@action("job.start_fresh")
def job_start_fresh(world: World) -> Plan:
    notes = reading(world.job, read_checkpoint(open_store(world.job.checkpoint)), None)
    return _lift_and_start(world, {"started": {"committed": None, "offsets": None}}, notes)


@action("job.start_replayed")
def job_start_replayed(world: World) -> Plan:
    return _lift_and_start(world, _started(world), [])


@action("job.start_beside")
def job_start_beside(world: World) -> Plan:
    return Plan((Start(world.job.name),), _started(world))


def _lift_and_start(world: World, remember: dict[str, Any], notes: list[str]) -> Plan:
    effects: tuple[Effect, ...] = (*lift_fence(world), Start(world.job.name))
    return Plan(effects, remember, tuple(notes))


def _started(world: World) -> dict[str, Any]:
    """Where the checkpoint stood when the job was started, for what is looked at afterwards."""
    ck = read_checkpoint(open_store(world.job.checkpoint))
    latest = ck.latest_offsets
    offsets = [source.offset for source in latest.sources] if latest else None
    return {"started": {"committed": ck.committed, "offsets": offsets}}
