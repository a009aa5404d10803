"""Takes a run back, the last effect first; and, later, deletes for good what it had put aside."""

from __future__ import annotations

import time
from datetime import datetime

from wizard import __version__, durable
from wizard.catalogue.effects import Effect, Keep, Start, Stop
from wizard.catalogue.effects.control import ahead
from wizard.catalogue.world import World
from wizard.engine import runs
from wizard.engine.events import event
from wizard.engine.journal import Entry, Journal, first_entry
from wizard.engine.lock import Locks
from wizard.engine.operator import Operator
from wizard.engine.start import _who, broken, concerns, find_begun, held, let_go, reopened, state_of, tell_undone
from wizard.engine.state import State, fold
from wizard.engine.walk import Interrupted, read_manifest, words_of
from wizard.engine.way_back import refuse_if_irreversible, returned, written_again
from wizard.errors import BadInput, InDoubt, RunbookError, VerificationFailed
from wizard.jobs.control.open import open_controller
from wizard.jobs.control.stopped import stopped
from wizard.jobs.model import Registry
from wizard.jobs.registry import get_job, load_registry
from wizard.secrets import mask


def undo(registry: Registry, name: str, operator: Operator) -> str:
    """Puts checkpoint, output, configuration and job back as they were; says why not before touching anything."""
    found = find_begun(registry, name)
    state = state_of(found)
    if state.undone:
        if let_go(registry, found.id):  # killed when all was done
            return tell_undone(found, found.chain.head, operator)
        raise BadInput(f"{found.id} was undone already; nothing was done")
    if state.purged:
        raise BadInput(f"{found.id} was purged: what it had put aside is deleted, and there is no way back")
    if not state.intents:
        return tell_undone(found, _close(registry, found, state), operator)
    for each in state.locks:
        get_job(registry, each)  # one that was taken out of the registry since is bad input
    world = World(registry, get_job(registry, state.job), found.id, found.place)
    world.answers, world.memory, world.real = state.answers, state.memory, state.real
    world.say = lambda line: operator.tell(event("progress", run=found.id, line=line))
    with held(Locks(registry.runs, found.id, state.locks)):
        _refuse_if_walked_since(registry, state)
        steps = [(intent, read_manifest(found.place, intent)) for intent in state.intents]
        if not state.undoing:  # what was taken back by half is neither here nor there
            to_come = [each for each in steps if not written_again(world, each[0])]
            refuse_if_irreversible(world, to_come, returned(found.chain.entries))
        journal = reopened(found)
        operator.tell(event("undo", run=found.id, steps=[intent["step"] for intent, _ in reversed(steps)]))
        journal.append("undo", **_who(), version=__version__, running=_running(world, state))
        try:
            _stop_all(world, state, [effect for _, effects in steps for effect in effects])
            for intent, effects in reversed(steps):
                if why := written_again(world, intent):  # looked at anew: until a moment ago the job may have run
                    world.say(why)
                    continue
                for number, effect in reversed(list(enumerate(effects))):
                    if (intent["seq"], number) in state.undid:
                        continue
                    operator.tell(event("undoing", run=found.id, step=intent["step"], says=mask(effect.says())))
                    _take_back(world, effect, intent["step"])
                    journal.append("undid", intent=intent["seq"], number=number)
                _reload(world)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted in the middle of an undo, which is in doubt now; `runbook undo {found.id}` finishes it"
            ) from None
        past = [name for name in state.locks if ahead(world, name)]
        left = [name for name in _left_stopped(world, journal, steps) if name not in past]
        rest = {"stays": _not_taken_back(world, steps), "left_stopped": left, "ahead": past}
        journal.append("undone", **_who(), **rest)
        operator.tell(event("undone", run=found.id, head=journal.head, **rest))
        return journal.head


def _take_back(world: World, effect: Effect, step: str) -> None:
    try:
        effect.undo(world)
    except OSError as error:
        words = f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}"
    except Exception as error:  # noqa: BLE001  each store and library has its own
        words = words_of(error)
    else:
        return
    raise VerificationFailed(
        f"taking back {step} stopped: {mask(words)}; make it possible, then `runbook undo {world.run}` again"
    )


def _not_taken_back(world: World, steps: list[tuple[Entry, tuple[Effect, ...]]]) -> list[str]:
    """Jobs that went on from where they stood: what they committed since is theirs, and stays."""
    noted = {effect.root for _, effects in steps for effect in effects if isinstance(effect, Keep)}
    resumed = [
        effect.job
        for intent, effects in steps
        for effect in effects
        if isinstance(effect, Start) and intent["action"] in ("job.resume", "consumers.start")
    ]
    return sorted({job for job in resumed if world.registry.jobs[job].checkpoint not in noted})


def _close(registry: Registry, found: runs.Run, state: State) -> str:
    """A run that changed nothing has nothing to take back; left behind, it only has to let go of the job."""
    if state.ended is not None:
        if let_go(registry, found.id):
            return found.chain.head
        raise BadInput(f"{found.id} changed nothing; there is nothing to undo")
    with held(Locks(registry.runs, found.id, state.locks)):
        journal = reopened(found)
        journal.append("end", step=state.step, outcome="aborted", says="left behind before any change, and closed")
        return journal.head


def _refuse_if_walked_since(registry: Registry, state: State) -> None:
    """A later run moved the same files: taking this one back underneath it would mix the two."""
    for run in runs.all_runs(registry.runs):
        if run.id == state.run:
            continue
        if run.chain.bad is not None and (about := [job for job in state.locks if concerns(run, job)]):
            raise InDoubt(broken(run, about[0]))
        later = fold(run.chain.entries)
        if (
            (later.order, later.began) > (state.order, state.began)
            and later.changed
            and set(later.locks) & set(state.locks)
            and later.mode == state.mode
        ):
            raise InDoubt(f"run {run.id} came after {state.run} and changed the same jobs; undo that one first")


def _running(world: World, state: State) -> list[str]:
    jobs = world.registry.jobs
    return [name for name in state.locks if open_controller(world.registry, jobs[name]).status().state == "running"]


def _stop_all(world: World, state: State, effects: list[Effect]) -> None:
    """Whoever started them since: nothing may run while files are put back, the readers of the output included."""
    noted = {effect.root for effect in effects if isinstance(effect, Keep)}
    for name in reversed(state.locks):
        job = world.registry.jobs[name]
        controller = open_controller(world.registry, job)
        if controller.status().state == "running":
            world.say(f"stopping {name}")
            controller.stop(say=world.say)
        proof = stopped(job, controller, say=world.say)
        changed = name == state.job or job.checkpoint in noted
        if proof.outcome == "fails" or (proof.outcome == "unknown" and job.control is not None and changed):
            raise RunbookError(f"{name} is not stopped ({proof.says}); stop it, then `runbook undo {world.run}`")


def _left_stopped(world: World, journal: Journal, steps: list[tuple[Entry, tuple[Effect, ...]]]) -> list[str]:
    """Jobs that ran before the run, or when the undo began and not because of the run, and do not run now."""
    ran = {name for entry in journal.entries if entry["kind"] == "undo" for name in entry.get("running", ())}
    effects = [effect for _, each in steps for effect in each]
    ran -= {effect.job for effect in effects if isinstance(effect, Start)}
    ran |= {effect.job for effect in effects if isinstance(effect, Stop) and effect.was_running}
    controllers = {name: open_controller(world.registry, world.registry.jobs[name]) for name in ran}
    return sorted(name for name, controller in controllers.items() if controller.status().state != "running")


def _reload(world: World) -> None:
    world.registry = load_registry(world.registry.path)
    world.job = get_job(world.registry, world.job.name)


def purge(registry: Registry, name: str, confirmed: str | None) -> tuple[int, int]:
    """Deletes quarantine and displaced files of a run that has come to its end; (files, bytes) deleted."""
    found = runs.find_run(registry.runs, name)
    state = state_of(found)
    if state.open:
        raise InDoubt(f"{found.id} is {state.verdict}; settle it first with `runbook continue {found.id}`")
    if confirmed != found.id:
        raise BadInput(f"this deletes for good what {found.id} put aside; say so with --confirm {found.id}")
    counted = (0, 0)
    with held(Locks(registry.runs, found.id, [state.job])):
        journal = reopened(found)
        world = World(registry, get_job(registry, state.job), found.id, found.place)
        effects = [effect for intent in state.intents for effect in read_manifest(found.place, intent)]
        journal.append("purged", **_who())
        for effect in effects:
            things, size = effect.purge(world)
            counted = (counted[0] + things, counted[1] + size)
        for name in ("quarantine", "displaced"):
            place = durable.join(found.place, name)
            files, size = durable.size(place)
            counted = (counted[0] + files, counted[1] + size)
            durable.remove_tree(place)
    return counted


NOTHING_KEPT: dict[str, float] = {"files": 0, "bytes": 0, "oldest_seconds": 0}


def kept(registry: Registry, job: str) -> dict[str, float]:
    """How much is in quarantine for a job, and for how many seconds the oldest of it has been."""
    return kept_of_all(registry).get(job, dict(NOTHING_KEPT))


def kept_of_all(registry: Registry) -> dict[str, dict[str, float]]:
    """The same for every job that has anything, in one go over the runs.

    Of a run that has put nothing aside nothing is read, and of another only the first entry: what lies in quarantine lies
    there whatever became of the run.
    """
    found: dict[str, dict[str, float]] = {}
    for run in runs.run_ids(registry.runs):
        place = runs.place_of(registry.runs, run)
        files, size = durable.size(durable.join(place, "quarantine"))
        first = first_entry(durable.join(place, runs.JOURNAL)) if files else None
        if first is None:
            continue
        told = found.setdefault(str(first["job"]), dict(NOTHING_KEPT))
        told["files"] += files
        told["bytes"] += size
        told["oldest_seconds"] = max(told["oldest_seconds"], _age(str(first["at"])))
    return found


def _age(at: str) -> int:
    """Seconds since; 0 for what is no time."""
    try:
        return round(time.time() - datetime.fromisoformat(at).timestamp())
    except ValueError:
        return 0
