"""A reset without an outage: a second output built beside the first, proved, and switched to."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from wizard import durable
from wizard.catalogue.effects import Build, Effect, MakeDirectory, Move, Write
from wizard.catalogue.effects.build import left, read_goal, unit
from wizard.catalogue.live.aside import Beside, beside_of, registry_arguments, set_aside
from wizard.catalogue.live.binding import action, probe
from wizard.catalogue.live.config import earliest_text
from wizard.catalogue.world import Plan, Seen, World, fails, holds, unknown
from wizard.errors import BadInput, RunbookError
from wizard.jobs.control.open import open_controller
from wizard.jobs.model import Job, ProcessControl, Registry
from wizard.jobs.paths import canonical, is_inside, resolve
from wizard.jobs.registry import load_registry
from wizard.text import plural, some

_NONE = "no new output has been set aside in this walk"
_WITH_OFFSETS = ("kafka", "log", "runbook-log")


@action("beside.prepare")
def beside_prepare(world: World) -> Plan:
    beside = beside_of(world) or set_aside(world)
    roots = [beside.sink, beside.checkpoint, beside.old_sink, beside.old_checkpoint]
    known = world.memory.get("roots", [])
    remember = {"beside": beside.as_memory(), "roots": [*known, *(root for root in roots if root not in known)]}
    return Plan((MakeDirectory(beside.sink), MakeDirectory(beside.checkpoint)), remember)


@probe("beside.ready")
def beside_ready(world: World) -> Seen:
    beside = beside_of(world)
    if beside is None:
        return fails(_NONE)
    try:
        for path in (beside.sink, beside.checkpoint):
            if there := durable.names(path):
                return fails(f"{path} is not empty: it holds {some(there)}")
            if Path(path).is_absolute() and not durable.is_directory(path):
                return fails(f"{path} is not there")
    except (RunbookError, OSError) as error:
        return unknown(str(error))
    for path in (beside.sink, beside.checkpoint):
        for job in world.registry.jobs.values():
            for used in (job.checkpoint, job.sink.path):
                if used and (
                    is_inside(canonical(path), canonical(used)) or is_inside(canonical(used), canonical(path))
                ):
                    return fails(f"{path} and {used}, which {job.name} uses, are one inside the other")
    return holds(f"{beside.sink} and {beside.checkpoint} are there and empty")


@action("beside.build")
def beside_build(world: World) -> Plan:
    beside = beside_of(world)
    if beside is None:
        raise BadInput(f"{_NONE}; begin the reset again")
    place = _place(world)
    config = earliest_text(world.job)
    effects: list[Effect] = []
    if config is not None and world.job.config is not None:
        effects.append(
            Write.of(world, _config_file(world), config, "the job's configuration, from the earliest offsets")
        )
    text = json.dumps(other_registry(world, beside), indent=1, ensure_ascii=False)
    effects.append(Write.of(world, _registry_file(world), text, "the registry with the new paths"))
    effects.append(Build(world.job.name, _registry_file(world), durable.join(place, "goal.json")))
    return Plan(tuple(effects))


@probe("beside.built")
def beside_built(world: World) -> Seen:
    if beside_of(world) is None:
        return fails(_NONE)
    if not durable.exists(_registry_file(world)) or not durable.exists(durable.join(_place(world), "goal.json")):
        return fails("the build has not begun")
    try:
        registry = load_registry(_registry_file(world))
        job = registry.jobs[world.job.name]
        goal = read_goal(durable.join(_place(world), "goal.json"))
        rest = left(goal, job)
        status = open_controller(registry, job).status()
    except (RunbookError, OSError, ValueError) as error:
        return unknown(str(error))
    if rest:
        return fails(f"{rest} {unit(goal)} of the source as it was when the build began are not committed yet")
    if status.state != "stopped":
        return fails(f"the build has caught up and is not stopped: {status.says}")
    return holds(f"{job.checkpoint} has committed all that the source had when the build began", goal=goal)


@action("old.retire")
def old_retire(world: World) -> Plan:
    beside = beside_of(world)
    if beside is None:
        raise BadInput(f"{_NONE}; there is nothing to retire")
    effects = []
    for what, path in (("output", beside.old_sink), ("checkpoint", beside.old_checkpoint)):
        if names := tuple(durable.names(path)):
            effects.append(Move.of(path, durable.join(world.quarantine, f"old-{what}"), names))
    return Plan(tuple(effects))


@probe("old.retired")
def old_retired(world: World) -> Seen:
    beside = beside_of(world)
    if beside is None:
        return fails(_NONE)
    try:
        left_over = {path: durable.names(path) for path in (beside.old_sink, beside.old_checkpoint)}
        registry = load_registry(world.registry.path)
    except (RunbookError, OSError) as error:
        return unknown(str(error))
    for path, names in left_over.items():
        if names:
            return fails(f"{path} still holds {plural(len(names), 'entry', 'entries')}: {some(names)}")
    for job in registry.jobs.values():
        for named in (job.checkpoint, job.sink.path, *(source.path for source in job.sources)):
            if named and any(is_inside(canonical(named), canonical(old)) for old in left_over):
                return fails(f"{registry.path}: {job.name} still names {named}")
    return holds(f"{beside.old_sink} and {beside.old_checkpoint} are empty, and no job of the registry names them")


def other_registry(world: World, beside: Beside) -> dict[str, Any]:
    """The registry as data, every path absolute, this job's output and checkpoint exchanged for the new ones."""
    registry, name = world.registry, world.job.name
    if not isinstance(world.job.control, ProcessControl):
        kind = world.job.control.kind if world.job.control else "no control"
        raise BadInput(f"{name} has {kind}; only a job of kind process can be started a second time on other paths")
    words = registry_arguments(registry, world.job)
    if not words:
        raise BadInput(
            f"the start command of {name} does not name {registry.path}, so it cannot be given other paths; build the"
            " new output by hand, or reset in place"
        )
    data = copy.deepcopy(registry.document.data)
    base = Path(registry.path).parent
    for raw in data["jobs"].values():
        _make_absolute(raw, base)
    data["runs"] = _place(world)
    mine = data["jobs"][name]
    mine["checkpoint"] = beside.checkpoint
    mine["sink"].get("options", {}).pop("path", None)
    mine["sink"]["path"] = beside.sink
    if world.job.config is not None:
        mine["config"]["file"] = _config_file(world)
    for source in mine["sources"] if "sources" in mine else [mine["source"]]:
        if source["format"].lower() in _WITH_OFFSETS:
            source.setdefault("options", {})["startingOffsets"] = "earliest"
    _start_with(mine["control"], words, _registry_file(world))
    return dict(data)


def _make_absolute(raw: dict[str, Any], base: Path) -> None:
    raw["checkpoint"] = resolve(raw["checkpoint"], base)
    for place in (*raw.get("sources", ()), *([raw["source"]] if "source" in raw else ()), raw["sink"]):
        for holder in (place, place.get("options", {})):
            if holder.get("path"):
                holder["path"] = resolve(holder["path"], base)
    if "config" in raw:
        raw["config"]["file"] = resolve(raw["config"]["file"], base)
    if raw.get("control", {}).get("kind") == "process":
        raw["control"]["cwd"] = resolve(raw["control"].get("cwd", "."), base)


def _start_with(control: dict[str, Any], words: dict[str, str], file: str) -> None:
    control.pop("pid_file", None)
    control["start"] = [
        f"{word[: len(word) - len(words[word])]}{file}" if word in words else word for word in control["start"]
    ]
    for name in [word.removeprefix("$") for word in words if word.startswith("$")]:
        control["env"][name] = file


def _place(world: World) -> str:
    return durable.join(world.place, "beside")


def _registry_file(world: World) -> str:
    return durable.join(_place(world), "jobs.yaml")


def _config_file(world: World) -> str:
    assert world.job.config is not None
    return durable.join(_place(world), f"config-{world.job.config.file.rpartition('/')[2]}")


def build_of(world: World) -> tuple[Registry, Job] | None:
    """The job as the build ran it; None before."""
    file = _registry_file(world)
    if not durable.exists(file):
        return None
    registry = load_registry(file)
    return registry, registry.jobs[world.job.name]
