"""The fingerprint of a directory, taken when its turn comes and kept in the run's own directory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wizard import durable
from wizard.catalogue.effects.base import Effect
from wizard.catalogue.effects.control import controller_of

if TYPE_CHECKING:
    from wizard.catalogue.world import World


@dataclass(frozen=True)
class Record(Effect):
    """What a preview shows must be the same a moment later, and a live checkpoint moves: so only the place is planned."""

    kind: ClassVar[str] = "record"
    job: str
    root: str
    target: str

    def says(self) -> str:
        return f"note name, size and SHA-256 of every file below {self.root} in {self.target}"

    def do(self, world: World) -> None:
        world.roots().check(self.target)
        if durable.exists(self.target):
            return
        # Asked first: a job that is started while the files are read may have written some of them.
        state = controller_of(world, self.job).status().state
        noted = {"root": self.root, "state": state, "files": fingerprint(self.root)}
        durable.write(self.target, json.dumps(noted, sort_keys=True).encode())

    def undo(self, world: World) -> None:
        """Nothing was changed."""


def fingerprint(root: str) -> dict[str, list[Any]]:
    """Path below → [size, SHA-256]; half-written files and those that vanish meanwhile are left out."""
    found: dict[str, list[Any]] = {}
    for below, size in list(durable.files(root)):
        if not below.endswith(".tmp") and (digest := durable.digest(durable.join(root, below))) is not None:
            found[below] = [size, digest]
    return found
