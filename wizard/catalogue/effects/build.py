"""A second output built by the job's own start command, under a registry that gives it other paths.

What "caught up" means is fixed when the build begins, and kept in the run's directory. The process outlives this one: a
walk that was killed finds it running, or what it has done, and goes on from there.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wizard import durable
from wizard.catalogue.effects.base import Effect
from wizard.checkpoint.logfile import LOG_LIMIT
from wizard.checkpoint.offsets import OffsetEntry, log_offset, parse_offsets
from wizard.checkpoint.reader import read_checkpoint
from wizard.errors import RunbookError
from wizard.jobs.control.open import open_controller
from wizard.jobs.model import Job
from wizard.jobs.paths import is_glob
from wizard.jobs.registry import load_registry
from wizard.sources.interface import OffsetSource, TableSource, as_offsets
from wizard.sources.open import open_source
from wizard.sources.rows import input_paths, plain
from wizard.store import open_store
from wizard.text import span

if TYPE_CHECKING:
    from wizard.catalogue.world import World

_POLL_SECONDS = 0.5
_SAY_SECONDS = 5.0
STUCK_SECONDS = 900.0
"""For how long a build may commit nothing."""


@dataclass(frozen=True)
class Build(Effect):
    kind: ClassVar[str] = "build"
    job: str
    registry: str  # the other registry, in the run's directory
    goal: str  # where it is written down what "caught up" means

    def says(self) -> str:
        return f"run {self.job} with {self.registry} until it has caught up with its source, then stop it"

    def do(self, world: World) -> None:
        registry = load_registry(self.registry)
        job = registry.jobs[self.job]
        for path in (self.goal, job.checkpoint, job.sink.path or job.checkpoint):
            world.roots().check(path)
        if not durable.exists(self.goal):
            durable.write(self.goal, json.dumps(goal_of(job), sort_keys=True).encode())
        goal = read_goal(self.goal)
        controller = open_controller(registry, job)
        if left(goal, job) and controller.status().state != "running":
            controller.start()
        self._wait(world, job, goal, controller)
        controller.stop(say=world.say)

    def _wait(self, world: World, job: Job, goal: dict[str, Any], controller: Any) -> None:
        began = moved = told = time.monotonic()
        first = now = left(goal, job)
        while now:
            time.sleep(_POLL_SECONDS)
            before, now = now, left(goal, job)
            at = time.monotonic()
            moved = at if now != before else moved
            if now and (status := controller.status()).state != "running":
                last = (status.evidence.get("last_lines") or ["it wrote nothing"])[-1]
                raise RunbookError(f"the build of {job.name} ended before it had caught up ({status.says}): {last}")
            if at - moved > STUCK_SECONDS:
                raise RunbookError(
                    f"the build of {job.name} has committed nothing for {span(at - moved)}; it still runs"
                )
            if now and at - told >= _SAY_SECONDS:
                told = at
                rest = f", about {span((at - began) / (first - now) * now)} left" if now < first else ""
                world.say(f"{first - now} of {first} {unit(goal)} built{rest}")
        world.say(f"{first} {unit(goal)} built in {span(time.monotonic() - began)}")

    def undo(self, world: World) -> None:
        """What it has built is displaced with the directory that was made for it."""
        if not durable.exists(self.registry):
            return
        registry = load_registry(self.registry)
        open_controller(registry, registry.jobs[self.job]).stop(say=world.say)


def goal_of(job: Job) -> dict[str, Any]:
    """Where the source ends now."""
    if len(job.sources) != 1:
        raise RunbookError(
            f"{job.name} reads {len(job.sources)} sources; when it has caught up with all cannot be told"
        )
    source = open_source(job.source)
    if isinstance(source, OffsetSource):
        ends = source.ends()
        return {"start": ends.earliest, "end": ends.latest}
    if source is None or is_glob(job.source.path or ""):
        raise RunbookError(
            f"where the source of {job.name} ({job.source.format} {job.source.path}) ends cannot be told"
        )
    if isinstance(source, TableSource):
        return {"versions": source.read_up_to(None)[1]}
    return {"files": sorted(source.seen())}


def read_goal(path: str) -> dict[str, Any]:
    data = durable.read(path)
    if data is None:
        raise RunbookError(f"{path} is not there: no build has begun")
    goal: dict[str, Any] = json.loads(data)
    return goal


def unit(goal: dict[str, Any]) -> str:
    return next((kind for kind in ("files", "versions") if kind in goal), "rows")


def left(goal: dict[str, Any], job: Job) -> int:
    """How much of the goal the job's checkpoint has not committed yet: rows, or files."""
    store = open_store(job.checkpoint)
    ck = read_checkpoint(store)
    offset: Any = None
    if ck.committed is not None:
        path = f"offsets/{ck.committed}"
        entry = parse_offsets(ck.committed, path, store.read(path, LOG_LIMIT))
        offset = entry.sources[0].offset if isinstance(entry, OffsetEntry) else None
    if "files" in goal:
        log, at = next(iter(ck.source_logs.values()), None), log_offset(offset)
        read = set() if log is None or at is None else {plain(p) for p in input_paths(store, log, up_to=at)}
        return sum(path not in read for path in goal["files"])
    if "versions" in goal:
        source = open_source(job.source)
        assert isinstance(source, TableSource)
        return max(0, int(goal["versions"]) - source.read_up_to(offset)[0])
    stands = as_offsets(offset) or {}
    return sum(
        max(0, end - max(stands.get(topic, {}).get(p, 0), goal["start"][topic][p]))
        for topic, parts in goal["end"].items()
        for p, end in parts.items()
    )
