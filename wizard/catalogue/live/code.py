"""What may not change between two starts: seen in the registry and the config file, asked where it cannot be seen."""

from __future__ import annotations

from typing import Any

from wizard.catalogue.live.binding import probe
from wizard.catalogue.world import Seen, World, fails, holds, unknown
from wizard.checkpoint.reader import Checkpoint, read_checkpoint
from wizard.errors import RunbookError
from wizard.store import open_store
from wizard.strict_yaml import load_file

# How the registry's formats show in a checkpoint's offsets.
_KINDS = {"kafka": "kafka", "log": "kafka", "runbook-log": "kafka", "delta": "delta", "rate": "rate"}
_FILES = frozenset(("parquet", "json", "csv", "orc", "text", "avro"))
_SHUFFLE = "spark.sql.shuffle.partitions"


def _checkpoint(world: World) -> Checkpoint:
    return read_checkpoint(open_store(world.job.checkpoint))


@probe("code.same_sources")
def same_sources(world: World) -> Seen:
    """The registry says what the job reads; the checkpoint, what it read."""
    there = _checkpoint(world).sources
    if not there:
        return unknown("the checkpoint has no offsets to compare the sources with")
    declared = world.job.sources
    if len(there) != len(declared):
        return fails(f"the checkpoint has {len(there)} sources, the registry {len(declared)}")
    told = []
    for number, (source, seen) in enumerate(zip(declared, there, strict=True)):
        expected = "file" if source.format in _FILES else _KINDS.get(source.format)
        if expected is None:
            return unknown(f"source {number} is of format {source.format}, which cannot be compared")
        if seen.kind != expected:
            return fails(f"source {number} is {source.format} in the registry and {seen.kind} in the checkpoint")
        if expected == "kafka" and (wrong := _other_topics(source.options, seen.offset)):
            return fails(f"source {number}: {wrong}")
        told.append(f"source {number}: {source.format}, as in the checkpoint")
    return holds(*told)


def _other_topics(options: dict[str, str], offset: Any) -> str | None:
    subscribed = {name.strip() for name in options.get("subscribe", "").split(",")} - {""}
    topics = set(offset) if isinstance(offset, dict) else set()
    if subscribed and topics and subscribed != topics:
        return f"the registry subscribes to {', '.join(sorted(subscribed))}, the checkpoint has {', '.join(sorted(topics))}"
    return None


@probe("code.same_operators")
def same_operators(world: World) -> Seen:
    """A plan cannot be seen before it runs. What the checkpoint has is shown, so that it can be compared by eye."""
    operators = _checkpoint(world).operators
    if not operators:
        return unknown("the checkpoint has no stateful operator; whether the code has one now cannot be seen")
    named = ", ".join(f"{op.id} {op.name} ({op.partitions} partitions)" for op in operators)
    return unknown(f"the checkpoint has: {named}; whether the code still has the same cannot be seen")


@probe("code.same_confs")
def same_confs(world: World) -> Seen:
    pinned = _checkpoint(world).confs
    if not pinned:
        return unknown("the checkpoint pins no confs (before Spark 2.3, or no batch yet)")
    if world.job.config is None:
        return unknown("the registry does not say where the job's configuration is")
    try:
        data = load_file(world.job.config.file).data
    except RunbookError as error:
        return unknown(str(error))
    wanted = _wanted(data if isinstance(data, dict) else {})
    differing = [
        f"{name}: {value} in the configuration, {pinned[name]} in the checkpoint, which wins with only a warning"
        for name, value in wanted.items()
        if name in pinned and pinned[name] != value
    ]
    if differing:
        return fails(*differing)
    same = sorted(set(wanted) & set(pinned))
    return holds(f"{world.job.config.file}: " + (f"{', '.join(same)} as pinned" if same else "asks for no pinned conf"))


def _wanted(config: dict[str, Any]) -> dict[str, str]:
    conf = config.get("conf")
    wanted = {str(key): str(value) for key, value in conf.items()} if isinstance(conf, dict) else {}
    if "shufflePartitions" in config:
        wanted[_SHUFFLE] = str(config["shufflePartitions"])
    return wanted
