"""The checkpoint: what state it is in, the fence, and the two ways of changing it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import replace

from wizard import durable
from wizard.catalogue.effects import Effect, Keep, Move, Write
from wizard.catalogue.live.binding import action, probe
from wizard.catalogue.live.careful import careful
from wizard.catalogue.live.known import batch_of, chosen_identity, new_id, offsets_of, query_id, remember
from wizard.catalogue.live.sink import truncate
from wizard.catalogue.world import Plan, Seen, World, fails, holds, unknown
from wizard.checkpoint.reader import Checkpoint, read_checkpoint
from wizard.checkpoint.rollback import cuts
from wizard.diagnosis.diagnose import Diagnosis, diagnose
from wizard.diagnosis.findings import Finding
from wizard.diagnosis.subject import subject_of
from wizard.errors import RunbookError
from wizard.jobs.control.open import open_controller
from wizard.jobs.control.stopped import Watch
from wizard.jobs.model import Job
from wizard.jobs.paths import canonical, is_inside
from wizard.postgres import table_place
from wizard.store import open_store
from wizard.text import some

FENCE = "runbook_lock"
METADATA, METADATA_CRC = "metadata", ".metadata.crc"

_UNREADABLE = [
    "CHECKPOINT_ABSENT",
    "NOT_A_CHECKPOINT",
    "BARE_LOG",
    "METADATA_MISSING",
    "METADATA_UNREADABLE",
    "OFFSETS_UNREADABLE",
    "OFFSETS_GAP",
    "COMMIT_UNREADABLE",
    "STATE_BROKEN",
    "SOURCE_LOG_BROKEN",
    "OPERATOR_METADATA_UNREADABLE",
]
_INCONSISTENT = [
    "CHECKPOINT_ABSENT",
    "COMMITS_BEHIND",
    "COMMITS_AHEAD",
    "COMMITS_WITHOUT_OFFSETS",
    "HALF_DELETED",
    "OFFSETS_GAP",
    "ORPHAN_CRC",
    "STATE_STALE",
    "SOURCES_DIFFER",
    "SINK_ABSENT",
    "SINK_AHEAD",
    "SINK_BEHIND",
    "SINK_EMPTIED",
    "SINK_ANOTHER_QUERY",
    "SINK_MOVED",
    "SINK_FILES_GONE",
    "SINK_LOG_HOLE",
    "SINK_LOG_ABSENT",
    "SINK_LOG_UNREADABLE",
]
_UNTOLD = ("UNLISTED", "NEWER_FORMAT", "STATE_ABSENT")
_UNCOMPARABLE = (*_UNTOLD, "SINK_UNREADABLE", "SINK_UNKNOWN_KIND", "SINK_OLDER", "ASYNC_PROGRESS", "CONTINUOUS_MODE")


@probe("checkpoint.readable")
@careful
def readable(world: World) -> Seen:
    seen = _diagnosis(world)
    bad = _found(seen, _UNREADABLE)
    if seen.checkpoint.fence is not None and seen.checkpoint.fence != world.run:
        return fails(f"run {seen.checkpoint.fence} has put its fence in place of metadata")
    if bad:
        return fails(*_lines(bad))
    if untold := _found(seen, _UNTOLD):
        return unknown(*_lines(untold))
    last = seen.checkpoint
    return holds(f"{last.url}: planned batch {last.planned}, committed {last.committed}", seen.restart.says)


@probe("checkpoint.consistent")
@careful
def consistent(world: World) -> Seen:
    seen = _diagnosis(world)
    if bad := _found(seen, _INCONSISTENT):
        return fails(*_lines(bad))
    if untold := _found(seen, _UNCOMPARABLE):
        return unknown(*_lines(untold))
    committed, last = seen.checkpoint.committed, seen.sink.last_batch if seen.sink else None
    if last is None and committed is not None:
        return unknown(f"batch {committed} is committed, and the output does not say which batch it holds")
    if seen.sink is not None and seen.sink.sparse and last is not None and committed is not None and last < committed:
        after = f"batches {last + 1} to {committed} had no rows, or they are gone"
        return unknown(f"batch {committed} is committed, and the newest with rows in the output is {last}: {after}")
    return holds(f"planned {seen.checkpoint.planned}, committed {committed}, the output holds up to {last}")


@probe("checkpoint.exclusive")
@careful
def exclusive(world: World) -> Seen:
    shared = list(_sharing(world))
    if shared:
        return fails(*shared)
    watch = world.watches.setdefault(world.job.checkpoint, Watch(world.job.checkpoint))
    alone = f"no other job of {world.registry.path} uses this checkpoint or output"
    if not _moves(world.job, watch):
        return holds(alone, f"the checkpoint has not moved for {world.job.settle_seconds:g} s")
    state = open_controller(world.registry, world.job).status().state
    if state == "stopped":
        return fails("the job is stopped and its checkpoint moves: something else writes to it")
    return unknown(alone, f"the checkpoint moves, and the job is {state}: a second writer cannot be ruled out")


@probe("checkpoint.unfenced")
@careful
def unfenced(world: World) -> Seen:
    seen = _read(world)
    if isinstance(seen, str):
        return unknown(seen)
    if seen.fence is not None:
        return fails(
            f"run {seen.fence} has left its fence; `runbook continue {seen.fence}` or `runbook undo {seen.fence}`"
        )
    return holds("metadata holds no fence" if seen.exists else "there is no checkpoint, and so no fence")


@probe("checkpoint.fenced")
@careful
def fenced(world: World) -> Seen:
    seen = _read(world)
    if isinstance(seen, str):
        return unknown(seen)
    if seen.fence == world.run:
        return holds(f"{world.job.checkpoint}/{METADATA} holds the fence of this walk and no query id")
    return fails(
        f"the fence in metadata is that of run {seen.fence}" if seen.fence else "there is no fence in metadata"
    )


@probe("checkpoint.absent")
@careful
def absent(world: World) -> Seen:
    seen = _read(world)
    if isinstance(seen, str):
        return unknown(seen)
    if left := _children(world, seen):
        return fails(f"{world.job.checkpoint} still holds {some(left)}", left=left)
    return holds("only the fence is there" if seen.fence is not None else "there is nothing at all")


@probe("checkpoint.at_target")
@careful
def at_target(world: World) -> Seen:
    batch = batch_of(world)
    seen = _read(world)
    if isinstance(seen, str):
        return unknown(seen)
    if (seen.planned, seen.committed) != (batch, batch):
        return fails(f"planned {seen.planned}, committed {seen.committed}; both are to be {batch}")
    store = open_store(world.job.checkpoint)
    offsets = offsets_of(store, batch)
    if isinstance(offsets, str):
        return unknown(offsets)
    if batch and batch - 1 not in seen.offset_names.ids:
        return fails(f"offsets/{batch - 1} is not there, and Spark needs the last two")
    if newer := cuts(store, seen, batch, offsets):
        return fails(*(f"{cut.directory} still holds {some(cut.names)}" for cut in newer))
    return holds(f"last offset and last commit are {batch}; no state or source log is newer")


@action("checkpoint.fence")
def fence(world: World) -> Plan:
    job = world.job
    seen = read_checkpoint(open_store(job.checkpoint))
    metadata = durable.join(job.checkpoint, METADATA)
    text = json.dumps(
        {
            FENCE: world.run,
            "job": job.name,
            "about": f"fenced by runbook; `runbook continue {world.run}` or `runbook undo {world.run}` lifts it",
        }
    )
    effects: list[Effect] = [Keep.of(job.checkpoint)]
    crc = durable.exists(durable.join(job.checkpoint, METADATA_CRC))
    # First the checksum: on a local disk one without its file blocks Spark's next write of that file.
    effects += [Move.of(job.checkpoint, _fence_quarantine(world), (METADATA_CRC,))] if crc else []
    effects.append(Write.of(world, metadata, text, "the fence: no query id, so no start gets as far as a batch"))
    kept = {"id": seen.query_id, "metadata": _text(durable.read(metadata)), "crc": crc}
    notes = () if seen.exists else (f"there is no checkpoint at {job.checkpoint}: the fence stands alone in it",)
    return Plan(tuple(effects), remember(world, "fence", kept), notes)


@action("checkpoint.delete")
def delete(world: World) -> Plan:
    seen = read_checkpoint(open_store(world.job.checkpoint))
    _must_be_fenced(world, seen)
    children = _children(world, seen)
    if not children:
        return Plan((), notes=("nothing is left to move",))
    return Plan((Keep.of(world.job.checkpoint), Move.of(world.job.checkpoint, quarantine(world), _ordered(children))))


@action("checkpoint.rollback")
def rollback(world: World) -> Plan:
    batch = batch_of(world)
    store = open_store(world.job.checkpoint)
    seen = read_checkpoint(store)
    _must_be_fenced(world, seen)
    offsets = offsets_of(store, batch)
    if isinstance(offsets, str):
        raise RunbookError(f"{offsets}; the checkpoint cannot be taken back to batch {batch}")
    if batch not in seen.commit_names.ids:
        raise RunbookError(f"commits/{batch} is not there; the checkpoint cannot be taken back to batch {batch}")
    moves = [
        Move.of(durable.join(store.url, cut.directory), durable.join(quarantine(world), cut.directory), cut.names)
        for cut in cuts(store, seen, batch, offsets)
    ]
    notes = (f"planned {seen.planned} → {batch}, committed {seen.committed} → {batch}",)
    return Plan((Keep.of(world.job.checkpoint), *moves), notes=notes)


@action("checkpoint.new_identity")
def new_identity(world: World) -> Plan:
    identity = new_id(world)
    return Plan(
        (),
        remember(world, "identity", identity),
        (f"query id {query_id(world)} → {identity}, written when the fence is lifted",),
    )


def lift_fence(world: World) -> list[Effect]:
    """What takes the fence down: the old metadata again, one with the new id, or none where the start is a fresh one."""
    seen = read_checkpoint(open_store(world.job.checkpoint))
    if seen.fence != world.run:
        return []
    path = durable.join(world.job.checkpoint, METADATA)
    kept = world.memory.get("fence", {}).get(world.job.name, {})
    identity = chosen_identity(world)
    if not _children(world, seen):
        return [Write.of(world, path, None, "the fence goes; Spark starts at batch 0 under a new id")]
    if identity is None and kept.get("id") is None:
        # The old metadata was lost or damaged. Spark before 4.2 made a new id of it, later ones refuse to start.
        identity = new_id(world)
    if identity is not None:
        return [
            Write.of(world, path, json.dumps({"id": identity}, separators=(",", ":")), f"the new query id {identity}")
        ]
    back: list[Effect] = [Write.of(world, path, kept["metadata"], f"the query id as it was, {kept['id']}")]
    if kept.get("crc"):
        back.append(Move.of(_fence_quarantine(world), world.job.checkpoint, (METADATA_CRC,)))
    return back


def reset_effects(world: World) -> list[Effect]:
    """All of a reset but the start, for a job that stands still: fence, output, checkpoint, and the fence gone again."""
    up = fence(world)
    lifted = durable.join(world.quarantine, world.job.name, "lifted")
    children = [name for name in durable.names(world.job.checkpoint) if name not in (METADATA, METADATA_CRC)]
    effects: list[Effect] = []
    for effect in up.effects:
        # Carried out once more after a kill, it must not put the fence up over a job that may run by then.
        effects.append(replace(effect, until=durable.join(lifted, METADATA)) if isinstance(effect, Write) else effect)
    effects += truncate(world).effects
    effects += [Move.of(world.job.checkpoint, quarantine(world), _ordered(children))] if children else []
    return [*effects, Move(world.job.checkpoint, lifted, (METADATA,), 1)]


def quarantine(world: World) -> str:
    return durable.join(world.quarantine, world.job.name, "checkpoint")


def _fence_quarantine(world: World) -> str:
    return durable.join(world.quarantine, world.job.name, "fence")


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None  # damaged: it holds no id, and the bytes are in quarantine


def _ordered(children: list[str]) -> tuple[str, ...]:
    """Offsets before commits, as in a rollback: were the fence to fall in between, Spark would fail and not skip."""
    first = [name for name in ("offsets", "commits") if name in children]
    return (*first, *(name for name in children if name not in first))


def _must_be_fenced(world: World, seen: Checkpoint) -> None:
    if seen.fence != world.run and "checkpoint.fenced" not in world.assumed:
        raise RunbookError(f"{world.job.checkpoint}: the fence of run {world.run} is not in place; nothing was moved")


def _children(world: World, seen: Checkpoint) -> list[str]:
    """What lies in the checkpoint besides the fence."""
    fenced = seen.fence is not None or "checkpoint.fenced" in world.assumed
    return [name for name in durable.names(world.job.checkpoint) if name != METADATA or not fenced]


def _read(world: World) -> Checkpoint | str:
    """The checkpoint, or why it cannot be seen. Damage is for the probes to judge."""
    seen = read_checkpoint(open_store(world.job.checkpoint))
    if seen.metadata is not None and seen.metadata.why == "denied":
        return str(seen.metadata)
    unlisted = [f"{path} cannot be listed: {error}" for path, error in seen.unlisted.items()]
    return unlisted[0] if unlisted else seen


def _diagnosis(world: World) -> Diagnosis:
    return diagnose(subject_of(world.job))


def _found(seen: Diagnosis, codes: Iterable[str]) -> list[Finding]:
    return [found for found in seen.findings if found.code in set(codes)]


def _lines(findings: list[Finding]) -> list[str]:
    return [f"{found.message} ({found.evidence})" for found in findings]


def _moves(job: Job, watch: Watch) -> bool:
    """Whether the checkpoint changes while it is watched, until it has stood still for as long as the job asks."""
    quiet = watch.look()
    before = watch.last
    while quiet < job.settle_seconds:
        time.sleep(min(job.settle_seconds / 5, job.settle_seconds - quiet + 0.001))
        quiet = watch.look()
        if watch.last != before:
            return True
    return False


def _sharing(world: World) -> Iterable[str]:
    mine, my_table = _places(world.job), _table(world.job)
    for other in world.registry.jobs.values():
        if other.name == world.job.name:
            continue
        if my_table is not None and my_table == _table(other):
            yield f"the output of job {other.name} is the table that this one writes: {my_table}"
        for theirs, what in _places(other):
            for place, my in mine:
                if is_inside(theirs, place) or is_inside(place, theirs):
                    yield f"the {what} of job {other.name} and the {my} of this one are one place, or one inside the other"


def _table(job: Job) -> str | None:
    return table_place(job.sink.options) if job.sink.format.lower() == "jdbc" else None


def _places(job: Job) -> list[tuple[str, str]]:
    found = [(canonical(job.checkpoint), "checkpoint")]
    return found + ([(canonical(job.sink.path), "output")] if job.sink.path else [])
