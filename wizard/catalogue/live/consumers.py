"""The jobs that read this output, near and far: stopped first, reset where they must be, started last."""

from __future__ import annotations

import dataclasses

from wizard.catalogue.effects import Effect, Start
from wizard.catalogue.live.binding import action, look, probe
from wizard.catalogue.live.checkpoint import reset_effects
from wizard.catalogue.live.config import earliest_effects
from wizard.catalogue.live.job import running, stop_of, stopped
from wizard.catalogue.live.tables import is_table
from wizard.catalogue.world import Plan, Seen, Truth, World, holds, unknown
from wizard.diagnosis.consumers import what_it_read
from wizard.errors import RunbookError
from wizard.jobs.graph import consumers, producers
from wizard.jobs.model import Job


def readers(world: World) -> list[Job]:
    """The nearest first."""
    return [world.registry.jobs[name] for name in consumers(world.registry, world.job.name)]


def _all(seen: list[Seen], none: str) -> Seen:
    """The worst of several answers, with the evidence of all."""
    if not seen:
        return holds(none)
    worst: Truth = next((word for word in ("fails", "unknown") if any(s.truth == word for s in seen)), "holds")
    return Seen(worst, tuple(line for each in seen for line in each.evidence))


_NOBODY = "nothing in the registry reads this output"


@probe("consumers.stopped")
def consumers_stopped(world: World) -> Seen:
    return _all([stopped(world, job) for job in readers(world)], _NOBODY)


@probe("consumers.down")
def consumers_down(world: World) -> Seen:
    return consumers_stopped(world)


@probe("consumers.running")
def consumers_running(world: World) -> Seen:
    """Those that ran before the walk stopped them; one that was down before is left as it was."""
    wanted = world.memory.get("consumers_ran")
    jobs = [job for job in readers(world) if wanted is None or job.name in wanted]
    if wanted is None:
        # This walk stopped nobody, so nobody has to be started by it.
        return holds("this walk stopped no consumer") if readers(world) else holds(_NOBODY)
    return _all([running(world, job) for job in jobs], "no consumer was running before")


@probe("consumers.consistent")
def consumers_consistent(world: World) -> Seen:
    return _all([_consistent(job) for job in readers(world)], _NOBODY)


@probe("consumers.safe")
def consumers_safe(world: World) -> Seen:
    """One that stands still reads nothing, whatever it has; it is dealt with before it is started again."""
    return _all([_safe(world, job) for job in readers(world)], _NOBODY)


def _safe(world: World, job: Job) -> Seen:
    has_read = _consistent(job)
    if has_read.holds:
        return has_read
    still = stopped(world, job)
    return Seen("holds" if still.holds else has_read.truth, (*has_read.evidence, *still.evidence))


def _consistent(job: Job) -> Seen:
    """Whether everything this job has read is still there to be read."""
    read = what_it_read(job)
    truth: Truth = "unknown" if read.there is None else "holds" if read.there else "fails"
    return Seen(truth, (read.says,))


@probe("consumers.rebuildable")
def consumers_rebuildable(world: World) -> Seen:
    """What this walk rebuilds, or a consumer it resets, can be read again. Any other source must still have its rows."""
    within = {world.job.name, *(job.name for job in readers(world))}
    seen: list[Seen] = []
    for job in readers(world):
        others = [name for name in producers(world.registry, job.name) if name not in within]
        if len(job.sources) == 1:
            seen.append(holds(f"{job.name}: reads nothing but what this walk rebuilds"))
        elif others:
            seen.append(look("source.can_rebuild", dataclasses.replace(world, job=job)))
        else:
            seen.append(unknown(f"{job.name}: reads {len(job.sources)} sources, not all of them in the registry"))
    return _all(seen, _NOBODY)


@action("consumers.stop")
def consumers_stop(world: World) -> Plan:
    stops = [stop_of(world, job) for job in reversed(readers(world))]
    # A walk may stop them twice (again before a reset): who ran at the first stop is still owed a start at the second.
    ran = {*world.memory.get("consumers_ran", ()), *(stop.job for stop in stops if stop.was_running)}
    return Plan(tuple(stops), {"consumers_ran": sorted(ran)})


@action("consumers.start")
def consumers_start(world: World) -> Plan:
    wanted = world.memory.get("consumers_ran", [])
    return Plan(tuple(Start(job.name) for job in readers(world) if job.name in wanted))


@action("consumers.reset")
def consumers_reset(world: World) -> Plan:
    """The nearest that holds what is gone, and everything behind it: what it wrote goes too."""
    effects: list[Effect] = []
    touched: set[str] = set()
    for job in readers(world):
        behind = set(producers(world.registry, job.name)) & touched
        if behind or not _consistent(job).holds:
            if job.sink.path is None and not is_table(job):
                raise RunbookError(f"{job.name} has no output path in the registry; reset it by hand")
            touched.add(job.name)
            effects += [*reset_effects(dataclasses.replace(world, job=job)), *earliest_effects(world, job)[0]]
    return Plan(tuple(effects), notes=(f"resets {', '.join(sorted(touched)) or 'nobody'}",))
