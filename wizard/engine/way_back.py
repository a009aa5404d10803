"""Whether a run can still be taken back: said before anything is touched, and what of it stays as it is."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from wizard import durable
from wizard.catalogue.effects import Effect, Irreversible, Keep, Move, Write
from wizard.catalogue.live.known import stands_at
from wizard.catalogue.world import World
from wizard.engine.journal import Entry
from wizard.errors import BadInput
from wizard.roots import OutsideRoots

Steps = list[tuple[Entry, tuple[Effect, ...]]]


def refuse_if_irreversible(world: World, steps: Steps, done: set[tuple[int, int]]) -> None:
    """`done` are the effects that were seen to return, as (entry of the intent, number)."""
    effects = [effect for _, each in steps for effect in each]
    refuse_if_moved_away(world, effects)
    reasons = [why for effect in effects if (why := effect.cannot_undo(world))]
    reasons += [*_taken(steps, done), *_cleaned(effects)] if not reasons else []
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise Irreversible(f"{world.run} cannot be undone: {reasons[0]}{more}; nothing was touched")


def refuse_if_moved_away(world: World, effects: list[Effect]) -> None:
    """The registry may name other places by now; what the run has changed is where it was."""
    named = (getattr(effect, name, None) for effect in effects for name in ("source", "path", "root", "sink"))
    roots = world.roots()
    for place in sorted({place for place in named if isinstance(place, str)}):
        try:
            roots.check(place)
        except OutsideRoots:
            raise BadInput(
                f"{place} was changed by {world.run} and is not a place of its jobs in {world.registry.path} any more; "
                "put the registry, or the link it names, back as it was, then undo"
            ) from None


def returned(entries: Iterable[Entry]) -> set[tuple[int, int]]:
    """The effects that the journal has seen return."""
    found: set[tuple[int, int]] = set()
    intent = -1
    for entry in entries:
        if entry["kind"] == "intent":
            intent = entry["seq"]
        elif entry["kind"] == "did":
            found.add((intent, entry["number"]))
    return found


def written_again(world: World, intent: Entry) -> str | None:
    """Why what the batch in flight had left stays where it was put: the job has run that batch again since.

    Put back, it would be there twice; and all that came with and after that batch is the job's, whose checkpoint stays.
    """
    if intent["action"] != "sink.clear_in_flight":
        return None
    cleared = intent["remember"].get("cleared", {}).get(world.job.name)
    if cleared is None or stands_at(world, cleared["committed"]):
        return None
    return f"what the batch in flight had left in {world.job.name}'s output stays put aside: it has run again since"


def _taken(steps: Steps, done: set[tuple[int, int]]) -> Iterator[str]:
    """What a finished move has put somewhere must be there. At its old place may be something else by now."""
    put: dict[tuple[str, str], None] = {}
    for intent, effects in steps:
        for number, effect in enumerate(effects):
            if isinstance(effect, Move) and (intent["seq"], number) in done:
                for name in effect.names:
                    put.pop((effect.source, name), None)
                    put[effect.target, name] = None
    for place in sorted({place for place, _ in put}):
        there = set(durable.names(place))
        if gone := [name for at, name in put if at == place and name not in there]:
            yield f"{durable.join(place, gone[0])} is gone, and not by this run{_more(gone)}"


def _cleaned(effects: list[Effect]) -> Iterator[str]:
    """What was left in place must still be there: Spark clears away what it no longer needs to go on from where it is."""
    moves = [effect for effect in effects if isinstance(effect, Move)]
    moved = {durable.join(move.source, name) for move in moves for name in move.names}
    moved |= {effect.path for effect in effects if isinstance(effect, Write)}
    known: dict[str, set[str]] = {}
    for effect in effects:
        if isinstance(effect, Keep):
            known.setdefault(effect.root, set()).update(effect.files)
    for root, files in known.items():
        there = {below for below, _ in durable.files(root)}
        gone = sorted(below for below in files - there if not _passing(below) and not _among(moved, root, below))
        if gone:
            yield f"{durable.join(root, gone[0])}, which this run left in place, was cleared away since{_more(gone)}"


def _more(gone: list[str]) -> str:
    return f" ({len(gone)} in all)" if len(gone) > 1 else ""


def _among(moved: set[str], root: str, below: str) -> bool:
    parts = below.split("/")
    return any(durable.join(root, *parts[: n + 1]) in moved for n in range(len(parts)))


def _passing(below: str) -> bool:
    """Half-written files of a writer that is gone; nobody needs them."""
    return posixpath.basename(below).removesuffix(".crc").endswith((".tmp", durable.TEMPORARY))
