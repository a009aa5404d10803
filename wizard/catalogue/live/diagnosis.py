"""The evidence as a whole, and the diagnosis' verdict on each path."""

from __future__ import annotations

from wizard.catalogue.live.binding import probe
from wizard.catalogue.world import Seen, World, fails, holds, unknown
from wizard.diagnosis.diagnose import Diagnosis, diagnose
from wizard.diagnosis.subject import direct_consumers, subject_of
from wizard.jobs.control.open import open_controller
from wizard.jobs.tried import tried
from wizard.sources.open import open_source

_UNREAD = frozenset(("SINK_UNREADABLE", "SINK_UNKNOWN_KIND", "CHECKPOINT_UNREADABLE"))


@probe("evidence.complete")
def evidence_complete(world: World) -> Seen:
    """Everything was reached. That something is wrong with it is for the verdicts."""
    seen = _diagnosis(world)
    missing = [found.message for found in seen.findings if found.code in _UNREAD]
    for number, source in enumerate(world.job.sources):
        view = open_source(source)
        if view is None:
            missing.append(f"source {number} is of kind {source.format}, which cannot be asked")
    status = open_controller(world.registry, world.job).status()
    if status.state == "unknown":
        missing.append(f"the controller: {status.says}")
    if missing:
        return unknown(*missing)
    ck = seen.checkpoint
    return holds(
        f"checkpoint: planned {ck.planned}, committed {ck.committed}",
        f"job: {status.says}",
        *(f"{found.severity}: {found.message}" for found in seen.findings if found.severity != "info"),
    )


def _verdict(path: str) -> None:
    @probe(f"verdict.{path}")
    def verdict(world: World) -> Seen:
        told = _diagnosis(world).paths[path]
        reasons = tuple(told["reasons"]) or (f"nothing speaks against it: {path} is {told['verdict']}",)
        match told["verdict"]:
            case "safe":
                return holds(*reasons)
            case "blocked":
                return fails(*reasons)
            case _:
                return unknown(*reasons)


def _diagnosis(world: World) -> Diagnosis:
    readers = direct_consumers(world.registry)[world.job.name]
    return diagnose(subject_of(world.job, readers, tried(world.registry, world.job)))


for _path in ("resume", "replay", "backfill", "reset"):
    _verdict(_path)
