"""What a walk knows by now: the batch it goes back to, the query's id behind the fence, a new id where one was chosen."""

from __future__ import annotations

import uuid
from typing import Any

from wizard.catalogue.world import World
from wizard.checkpoint.logfile import Unreadable
from wizard.checkpoint.offsets import OffsetEntry
from wizard.checkpoint.reader import read_checkpoint
from wizard.checkpoint.rollback import read_offsets
from wizard.errors import RunbookError
from wizard.store import Store, open_store


def batch_of(world: World) -> int:
    target = world.answers.get("target")
    if not isinstance(target, dict) or not isinstance(target.get("batch"), int):
        raise RunbookError("no batch to go back to has been chosen in this walk")
    return int(target["batch"])


def offsets_of(store: Store, batch: int) -> OffsetEntry | str:
    """The offsets of the batch to go back to, or why they cannot be read."""
    entry = read_offsets(store, batch)
    return str(entry) if isinstance(entry, Unreadable) else entry


def remember(world: World, what: str, value: Any) -> dict[str, Any]:
    """By job: a walk may change consumers too."""
    return {what: {**world.memory.get(what, {}), world.job.name: value}}


def stands_at(world: World, committed: int | None) -> bool:
    """Whether the newest commit is seen to be that one; where it cannot be seen, it is not."""
    seen = read_checkpoint(open_store(world.job.checkpoint))
    return not seen.unlisted and seen.committed == committed


def query_id(world: World) -> str | None:
    """The id under which the output knows the query: the fence hides it, the walk remembers it."""
    seen = read_checkpoint(open_store(world.job.checkpoint))
    kept = world.memory.get("fence", {}).get(world.job.name, {})
    return seen.query_id or (kept.get("id") if seen.fence == world.run else None)


def chosen_identity(world: World) -> str | None:
    chosen: str | None = world.memory.get("identity", {}).get(world.job.name)
    return chosen


def new_id(world: World) -> str:
    """The same at every look: a plan is made once to be shown and once to be carried out."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"runbook:{world.run}:{world.job.name}"))
