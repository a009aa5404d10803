"""A walk's world around a recorded checkpoint or a workspace, and the engine's part in miniature: do, do again, undo."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import wizard.catalogue.live.checkpoint
import wizard.catalogue.live.target  # noqa: F401  names are bound by importing
from wizard.catalogue.effects import Effect, load
from wizard.catalogue.live.binding import _ACTIONS, _ANSWERS, _PROBES
from wizard.catalogue.world import Plan, Seen, World
from wizard.jobs.registry import load_registry

REGISTRY = """
version: 1
runs: ./runs
jobs:
  job:
    checkpoint: {root}/checkpoint
    source: {{format: {source}, path: {root}/input}}
    sink: {{format: {sink}, path: {root}/sink, key: [id]}}
    spark_version: "4.2.0"
    control: {{kind: process, start: [{python}, -c, pass], settle_seconds: 0.1}}
"""


def around(root: Path, *, sink: str = "parquet", source: str = "json", place: Path | None = None) -> World:
    """`root` holds checkpoint/, sink/ and input/, as the recorded ones do."""
    path = root / "jobs.yaml"
    path.write_text(REGISTRY.format(root=root, sink=sink, source=source, python=sys.executable))
    return in_registry(path, "job", place or root / "runs/run-1")


def in_registry(path: Path, job: str, place: Path) -> World:
    registry = load_registry(path)
    return World(registry, registry.jobs[job], "run-1", str(place))


def look(world: World, name: str) -> Seen:
    return _PROBES[name](world)


def planned(world: World, name: str) -> Plan:
    return _ACTIONS[name](world)


def answered(world: World, name: str, text: str) -> object:
    return _ANSWERS[name](world, text)


def journalled(effects: Iterable[Effect]) -> list[Effect]:
    """As they come back from the journal."""
    return [load(json.loads(json.dumps(effect.as_dict()))) for effect in effects]


def act(world: World, name: str) -> list[Effect]:
    """Plans, does, and remembers."""
    plan = planned(world, name)
    assert plan == planned(world, name), "a plan made twice over one world must be the same"
    effects = journalled(plan.effects)
    for effect in effects:
        effect.do(world)
    world.memory |= json.loads(json.dumps(plan.remember))
    return effects


def take_back(world: World, effects: list[Effect]) -> None:
    assert [effect.cannot_undo(world) for effect in effects] == [None] * len(effects)
    for effect in reversed(effects):
        effect.undo(world)


def tree(*roots: Path) -> dict[str, bytes | None]:
    """Every file with its bytes and every directory (None) below some roots."""
    found: dict[str, bytes | None] = {}
    for root in roots:
        for directory, _, files in os.walk(root):
            found[directory] = None
            found.update((f"{directory}/{name}", Path(directory, name).read_bytes()) for name in files)
    return found
