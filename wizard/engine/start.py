"""Begins a walk, picks one up, and finds the ones left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wizard import __version__, durable
from wizard.catalogue.world import World
from wizard.engine import runs
from wizard.engine.dry_run import Planned, load_plan, refuse_if_moved, use_up
from wizard.engine.events import event
from wizard.engine.journal import Journal, first_entry
from wizard.engine.lock import Locks, raise_held, read_lock, whoami
from wizard.engine.operator import Operator
from wizard.engine.runs import JOURNAL, Run
from wizard.engine.state import State, fold
from wizard.engine.walk import Ending, Walk
from wizard.errors import BadInput, InDoubt, Stopped, WorldMoved
from wizard.jobs.graph import consumers
from wizard.jobs.model import Registry
from wizard.jobs.registry import check_job, get_job
from wizard.roots import behind_links
from wizard.runbook.lint import proved
from wizard.runbook.model import Runbook
from wizard.runbook.search import find


def begin(
    registry: Registry, job_name: str, runbook_name: str, operator: Operator, *, patience: float = 120.0,
    mode: str = "live", plan_file: str | None = None,
) -> Ending:  # fmt: skip
    """A new walk from the start of the runbook to an end."""
    runbook = proved(find(runbook_name))
    job = get_job(registry, job_name)
    check_job(registry, job_name)
    told = load_plan(plan_file, runbook.id, job_name) if plan_file else None
    refuse_if_left_behind(registry, job_name)
    run = runs.new_run(runbook.id, job_name)
    place = runs.place_of(registry.runs, run)
    world = World(registry, job, run, place, patience=patience)
    affected = [job_name, *consumers(registry, job_name)]
    with held(Locks(registry.runs, run, affected)):
        order = refuse_if_left_behind(registry, job_name, run)
        if plan_file and told:
            refuse_if_moved(told, world, runbook.digest, plan_file)
            use_up(told, registry, run, plan_file)
            operator = Planned(told, operator)
        journal = Journal.create(durable.join(place, JOURNAL))
        journal.append(
            "start", run=run, job=job_name, runbook=runbook.id, digest=runbook.digest, mode=mode, locks=affected,
            registry=registry.path, version=__version__, step=runbook.start, plan=plan_file,
            real=behind_links(world.declared()), order=order, **_who(),
        )  # fmt: skip
        walk = Walk(runbook, world, journal, operator)
        walk.tell("start", job=job_name, runbook=runbook.id, mode=mode, title=runbook.title)
        return walk.run()


def pick_up(registry: Registry, name: str, operator: Operator, *, patience: float = 120.0) -> Ending:
    """Goes on with a run that was killed, interrupted, or handed over after a change."""
    found = find_begun(registry, name)
    state = state_of(found)
    if state.undoing:
        raise BadInput(f"{found.id} is being undone; it cannot be continued, `runbook undo {found.id}` finishes it")
    if not state.open:
        if let_go(registry, found.id):
            says = "It had come to its end, and only its lock was left; that is released."
            ending = Ending(found.id, state.verdict, state.step, says, state.changed, found.chain.head)
            if state.undone:
                tell_undone(found, ending.head, operator)
            else:
                operator.tell(ending.told())
            return ending
        raise BadInput(f"{found.id} has ended ({state.verdict}); there is nothing to continue")
    runbook = same_runbook(state)
    world = World(registry, get_job(registry, state.job), found.id, found.place, patience=patience)
    with held(Locks(registry.runs, found.id, state.locks)):
        if elsewhere := set(behind_links(world.declared())) - set(state.real):
            raise WorldMoved(f"a link of {state.job} leads to {min(elsewhere)}, and did not when {found.id} began")
        journal = reopened(found)
        journal.append("continued", **_who(), version=__version__, torn=found.chain.torn)
        walk = Walk(runbook, world, journal, operator)
        walk.tell("start", job=state.job, runbook=runbook.id, mode=state.mode, title=runbook.title, continued=True)
        if found.chain.torn:
            walk.tell("progress", line=f"{found.chain.torn}; it was never acknowledged and is dropped")
        with walk.told_when_interrupted():
            walk.verify_made()
            if walk.state.doubt is not None:
                end = walk.settle()
                if end is not None:
                    return walk.end(end)
            walk.take_again()
        return walk.run()


def reopened(run: Run) -> Journal:
    """The journal to write on in, by who holds the locks: what was read before they were taken must still be all."""
    journal = Journal.reopen(run.journal)
    if journal.head != run.chain.head:
        raise InDoubt(f"{run.id} went on while it was being looked at; `runbook audit show {run.id}`, then try again")
    return journal


def tell_undone(found: Run, head: str, operator: Operator) -> str:
    """Of a run that is taken back already, or never changed a thing: that it is so, and what its journal says stays."""
    entry = next((each for each in reversed(found.chain.entries) if each["kind"] == "undone"), {})
    rest = {name: list(entry.get(name, ())) for name in ("stays", "left_stopped", "ahead")}
    operator.tell(event("undone", run=found.id, head=head, **rest))
    return head


def find_begun(registry: Registry, name: str) -> Run:
    """The run; or, where it was killed before its first entry and left nothing but its lock, that lock goes."""
    if not runs.open_run(registry.runs, name).chain.entries and let_go(registry, name):
        raise Stopped(f"{name} was ended before its first entry; nothing was done, and its lock is released")
    return runs.find_run(registry.runs, name)


def let_go(registry: Registry, run: str) -> bool:
    """Releases the locks that a run left behind when it was killed; whether there were any."""
    left = [job for job in registry.jobs if (read_lock(registry.runs, job) or {}).get("run") == run]
    if not left:
        return False
    with held(Locks(registry.runs, run, left)):
        return True


def same_runbook(state: State) -> Runbook:
    runbook = proved(find(state.runbook))
    if runbook.digest != state.digest:
        raise WorldMoved(
            f"runbook {runbook.id} ({runbook.file}) has changed since run {state.run} began; put it back as it was, "
            f"or take the run back with `runbook undo {state.run}`"
        )
    return runbook


def state_of(run: Run) -> State:
    if run.chain.bad is not None:
        seq, why = run.chain.bad
        raise InDoubt(
            f"{run.journal}: entry {seq} {why}; the journal cannot be trusted, `runbook audit verify {run.id}`"
        )
    if not run.chain.entries:
        raise BadInput(f"{run.journal}: holds no entry; nothing was done in this run")
    return fold(run.chain.entries)


def refuse_if_left_behind(registry: Registry, job: str, mine: str = "") -> int:
    """A run that changed something and did not come to a good end has to be settled before the next one.

    Returns the number of the next one: which of two came later is not for a clock to say, which may be set back.
    """
    holder = read_lock(registry.runs, job)
    if holder is not None and holder.get("run") != mine:
        raise_held(job, holder)
    order = 0
    for run in runs.all_runs(registry.runs):
        state = fold(run.chain.entries)
        order = max(order, state.order)
        if run.chain.bad is not None and concerns(run, job):
            raise InDoubt(broken(run, job))
        if job in state.locks and state.mode == "live" and state.open and (state.changed or state.undoing):
            raise InDoubt(
                f"{job}: run {run.id} by {state.who} was left {state.verdict}; "
                f"`runbook {'undo' if state.undoing else 'continue'} {run.id}`"
                + ("" if state.undoing else f", or `runbook undo {run.id}`")
            )
    return order + 1


def concerns(run: Run, job: str) -> bool:
    """Whether a run whose journal does not hold is about a job; as far as can be told from what is left of it."""
    first = first_entry(run.journal)
    locks = first.get("locks") if first is not None else None
    return job in locks if isinstance(locks, list) else f"-{job}-" in run.id


def broken(run: Run, job: str) -> str:
    number = run.chain.bad[0] if run.chain.bad is not None else 0
    return (
        f"{job}: the journal of {run.id} does not hold (entry {number}), so what it has done is not known; "
        f"`runbook audit verify {run.id}`, and when all is seen to be right, move {run.place} away"
    )


@contextmanager
def held(locks: Locks) -> Iterator[None]:
    locks.take()
    try:
        yield
    finally:
        locks.release()


def _who() -> dict[str, Any]:
    me = whoami()
    return {"who": me["who"], "host": me["host"], "pid": me["pid"]}
