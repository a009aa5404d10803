"""The job's own configuration: where it starts to read, and which paths it is registered with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wizard import durable
from wizard.catalogue.effects import Effect, Write
from wizard.catalogue.live.aside import Beside, beside_of, renamed
from wizard.catalogue.live.binding import action, probe
from wizard.catalogue.world import Plan, Seen, World, fails, holds, unknown
from wizard.errors import BadInput, RunbookError
from wizard.jobs.edit import get_value, set_value
from wizard.jobs.graph import readers
from wizard.jobs.model import Job, Registry
from wizard.jobs.paths import canonical, is_glob, is_inside, resolve
from wizard.jobs.registry import load_registry
from wizard.strict_yaml import PathKey, load

_WITH_OFFSETS = frozenset(("kafka", "log", "runbook-log"))
_FILES = frozenset(("parquet", "json", "csv", "orc", "text", "avro"))
_BY_TIME = ("startingtimestamp", "startingoffsetsbytimestamp")  # Spark looks at these first
_BY_VERSION = ("startingversion", "startingtimestamp")  # of a Delta table
_EARLIEST = -2  # as in the JSON of Spark's Kafka source


@probe("offsets.earliest")
def offsets_earliest(world: World) -> Seen:
    return starts_earliest(world.job)


@action("config.earliest")
def config_earliest(world: World) -> Plan:
    effects, notes = earliest_effects(world, world.job)
    return Plan(effects, notes=notes)


def starts_earliest(job: Job) -> Seen:
    """Whether a new checkpoint of this job begins with the first row there is."""
    try:
        by_nature = [_by_nature(job, index) for index in range(len(job.sources))]
        by_time = _told_to(job, _BY_TIME) if not all(by_nature) else None
    except (RunbookError, OSError) as error:
        return unknown(str(error))
    if all(by_nature):
        return holds(*(words for words in by_nature if words))
    if any(
        source.format.lower() not in _WITH_OFFSETS
        for source, words in zip(job.sources, by_nature, strict=True)
        if not words
    ):
        return unknown(f"where a new query on a source of format {job.source.format} begins is not known")
    if by_time is not None:
        return fails(f"{by_time}, which wins over its starting offsets")
    if job.config is None or job.config.starting_offsets is None:
        return unknown(f"the registry does not say where {job.name} has its starting offsets (config.starting_offsets)")
    try:
        path, document = _setting(job)
        value = get_value(document, path)
    except KeyError:
        return fails(f"{job.config.file} does not set {job.config.starting_offsets}; Spark then begins at the latest")
    except (RunbookError, OSError) as error:
        return unknown(str(error))
    where = document.where(path, value=True)
    shown = f"{where}: {job.config.starting_offsets} is {value if isinstance(value, str) else json.dumps(value)}"
    return holds(shown) if _is_earliest(value) else fails(shown)


def earliest_effects(world: World, job: Job) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """What sets a job's starting offsets to the earliest, and what is to be said about it."""
    seen = starts_earliest(job)
    if seen.holds:
        return (), seen.evidence
    if job.config is None or job.config.starting_offsets is None:
        return (), (*seen.evidence, "nothing is written: set them where the job has them")
    path, _ = _setting(job)
    text = _text(job.config.file)
    changed = set_value(text, job.config.file, path, "earliest")
    return (Write.of(world, job.config.file, changed, f"{job.config.starting_offsets}: earliest", ours=False),), ()


def earliest_text(job: Job) -> str | None:
    """The config file as it would be with the earliest offsets; None where there is none."""
    if job.config is None:
        return None
    text = _text(job.config.file)
    if job.config.starting_offsets is None or starts_earliest(job).holds:
        return text
    return set_value(text, job.config.file, _setting(job)[0], "earliest")


def _by_nature(job: Job, index: int) -> str | None:
    source = job.sources[index]
    kind = source.format.lower()
    if kind in _FILES:
        return f"a file source has no starting offsets: a new checkpoint reads every file of {source.path}"
    if kind == "delta" and _told_to(job, _BY_VERSION) is None:
        return f"a Delta source begins with the whole table unless it is told a version: {source.path}"
    return None


def _told_to(job: Job, options: tuple[str, ...]) -> str | None:
    """Where the job is given one of these options, in any spelling: by the registry, or anywhere in its config file."""
    for source in job.sources:
        if named := [name for name in source.options if name.lower() in options]:
            return f"the registry gives {job.name} the option {named[0]}"
    if job.config is None:
        return None
    document = load(_text(job.config.file), job.config.file)
    for path in _keys(document.data):
        if str(path[-1]).lower() in options:
            return f"{document.where(path)}: {job.name} is given the option {path[-1]}"
    return None


def _keys(data: Any, above: PathKey = ()) -> Iterator[PathKey]:
    for key, value in data.items() if isinstance(data, dict) else ():
        yield (*above, key)
        yield from _keys(value, (*above, key))


def _setting(job: Job) -> tuple[PathKey, Any]:
    """Where the setting is: a key with that very name, else what its dots lead to."""
    assert job.config is not None and job.config.starting_offsets is not None
    name = job.config.starting_offsets
    document = load(_text(job.config.file), job.config.file)
    if isinstance(document.data, dict) and name in document.data:
        return (name,), document
    return tuple(name.split(".")), document


def _text(file: str) -> str:
    data = durable.read(file)
    if data is None:
        raise BadInput(f"{file}: there is no such config file; correct config.file in the registry")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{file}: is not UTF-8 text; set the starting offsets by hand") from None


def _is_earliest(value: Any) -> bool:
    if isinstance(value, str) and value.strip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return False
    if isinstance(value, dict):
        offsets = [at for parts in value.values() if isinstance(parts, dict) for at in parts.values()]
        return bool(offsets) and all(at == _EARLIEST for at in offsets)
    return isinstance(value, str) and value.strip().lower() == "earliest"


@probe("registry.switched")
def registry_switched(world: World) -> Seen:
    beside = beside_of(world)
    if beside is None:
        return fails("no new output has been set aside in this walk")
    try:
        registry = load_registry(world.registry.path)
    except RunbookError as error:
        return unknown(str(error))
    job = registry.jobs.get(world.job.name)
    if job is None:
        return fails(f"{registry.path} no longer has the job {world.job.name}")
    wrong = [
        f"{registry.path}: {what} of {job.name} is {now}, not {wanted}"
        for what, now, wanted in (
            ("the checkpoint", job.checkpoint, beside.checkpoint),
            ("the output", job.sink.path or "nowhere", beside.sink),
        )
        if canonical(now) != canonical(wanted)
    ]
    old = canonical(beside.old_sink)
    for other in registry.jobs.values():
        wrong += [
            f"{registry.path}: {other.name} still reads {source.path}"
            for source in other.sources
            if source.path and is_inside(canonical(source.path), old)
        ]
    if wrong:
        return fails(*wrong)
    by_hand = [
        f"{name} is not started with {registry.path}; see that it reads {beside.sink}"
        for name in readers(registry)[job.name]
        if not named_by(registry, registry.jobs[name])
    ]
    return holds(f"{registry.path}: {job.name} has {beside.sink} and {beside.checkpoint}", *by_hand)


@action("registry.switch")
def registry_switch(world: World) -> Plan:
    beside = beside_of(world)
    if beside is None:
        raise BadInput("no new output has been set aside in this walk; begin the reset again")
    text, changed = switched_text(world.registry, world.job, beside)
    about = f"{', '.join(changed)} → *{beside.suffix}"
    return Plan((Write.of(world, world.registry.path, text, about, ours=False),))


def switched_text(registry: Registry, job: Job, beside: Beside) -> tuple[str, list[str]]:
    """The registry with the new paths in it, and the names of what was changed."""
    text = _text(registry.path)
    document = load(text, registry.path)
    base = Path(registry.path).parent
    changes: list[tuple[PathKey, str]] = [(("jobs", job.name, "checkpoint"), beside.checkpoint)]
    changes += [(_place(document, ("jobs", job.name, "sink")), beside.sink)]
    old = canonical(beside.old_sink)
    for name, other in registry.jobs.items():
        for index, source in enumerate(other.sources):
            if not source.path or name not in readers(registry)[job.name]:
                continue
            place = canonical(source.path)
            if is_inside(place, old):
                several = "sources" in document.data["jobs"][name]
                at: PathKey = ("jobs", name, "sources", index) if several else ("jobs", name, "source")
                changes.append((_place(document, at), beside.sink + place[len(old) :]))
            elif is_glob(place) or is_inside(old, place):
                raise BadInput(
                    f"{document.where(('jobs', name))}: {name} reads {source.path}, which takes in {beside.old_sink} and more;"
                    f" it cannot be pointed at {beside.sink} alone: give it a path of its own first"
                )
    for path, wanted in changes:
        now = get_value(document, path)
        new = renamed(now, beside.suffix)
        # As it was written, relative or not, wherever that names the same place.
        new = new if canonical(resolve(new, base)) == canonical(wanted) else wanted
        text = set_value(text, registry.path, path, new)
    return text, [".".join(str(part) for part in path[1:]) for path, _ in changes]


def _place(document: Any, at: PathKey) -> PathKey:
    """Where a source or sink has its path: its own key, or Spark's option."""
    raw = get_value(document, at)
    return (*at, "path") if "path" in raw else (*at, "options", "path")


def named_by(registry: Registry, job: Job) -> bool:
    """Whether the job is started with this registry, and so takes its paths from it."""
    from wizard.catalogue.live.aside import registry_arguments

    return bool(registry_arguments(registry, job))
