"""The second output of a reset *beside*: where it is, and how it is told apart from the first."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from wizard.catalogue.world import World
from wizard.errors import BadInput
from wizard.jobs.model import Job, ProcessControl, Registry

_SUFFIX = re.compile(r"\.beside-[a-p]{8}/*\Z")


@dataclass(frozen=True)
class Beside:
    suffix: str
    checkpoint: str
    sink: str
    old_checkpoint: str
    old_sink: str

    def as_memory(self) -> dict[str, object]:
        return {
            "suffix": self.suffix,
            "new": {"checkpoint": self.checkpoint, "sink": self.sink},
            "old": {"checkpoint": self.old_checkpoint, "sink": self.old_sink},
        }


def beside_of(world: World) -> Beside | None:
    """What this walk has set aside; None where it has not."""
    told = world.memory.get("beside")
    if not told:
        return None
    new, old = told["new"], told["old"]
    return Beside(told["suffix"], new["checkpoint"], new["sink"], old["checkpoint"], old["sink"])


def set_aside(world: World) -> Beside:
    """The paths a walk would set aside: next to the old ones, and told from every other walk's by its run id."""
    job = world.job
    if job.sink.path is None:
        raise BadInput(f"the sink of {job.name} ({job.sink.format}) has no path, so nothing can be built beside it")
    # Letters only: a number in a path may look like a date, which the registry refuses.
    digest = hashlib.sha256(world.run.encode()).digest()[:4]
    suffix = ".beside-" + "".join(chr(ord("a") + half) for byte in digest for half in (byte >> 4, byte & 15))
    return Beside(
        suffix, renamed(job.checkpoint, suffix), renamed(job.sink.path, suffix), job.checkpoint, job.sink.path
    )


def renamed(path: str, suffix: str) -> str:
    """The second build replaces the first one's suffix, so that names do not grow."""
    return _SUFFIX.sub("", path.rstrip("/")) + suffix


def registry_arguments(registry: Registry, job: Job) -> dict[str, str]:
    """The words of the start command, and the variables of its environment, that name this registry, with what they name."""
    control = job.control
    if not isinstance(control, ProcessControl):
        return {}
    wanted = os.path.realpath(registry.path)

    def names_it(text: str) -> bool:
        return bool(text) and os.path.realpath(Path(control.cwd) / text) == wanted

    found = {}
    for word in control.start:
        value = word.partition("=")[2] if word.startswith("--") and "=" in word else word
        if names_it(value):
            found[word] = value
    found |= {f"${name}": value for name, value in control.env.items() if names_it(value)}
    return found
