"""A walk that changes nothing: real looks, real plans, real branches; what it cannot know yet it assumes, and says so.

It can save a plan: what was chosen, what would be done, and a fingerprint of the world it was made for. A plan is
carried out once, and only in that world.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Any

from wizard import __version__, durable
from wizard.catalogue import CATALOGUE
from wizard.catalogue.live.binding import plan
from wizard.catalogue.live.tables import is_table, table_fingerprint
from wizard.catalogue.world import Seen, World
from wizard.engine import runs
from wizard.engine.journal import Entry, Journal
from wizard.engine.lock import whoami
from wizard.engine.operator import Choice, Operator, Question
from wizard.engine.walk import Ending, Walk, words_of
from wizard.errors import BadInput, JournalUnwritable, WorldMoved
from wizard.jobs.control.stopped import fingerprint as tree_fingerprint
from wizard.jobs.model import Registry
from wizard.jobs.registry import check_job, get_job
from wizard.runbook.lint import proved
from wizard.runbook.model import Do, End
from wizard.runbook.search import find
from wizard.secrets import mask

FORMAT = 1


class Unwritten(Journal):
    """The journal of a walk that leaves no trace."""

    def _write(self, entry: Entry) -> None:
        return


class DryWalk(Walk):
    def __init__(self, *given: Any) -> None:
        self.kept: dict[str, Any] = {}  # what the actions would have written down
        super().__init__(*given)
        self.assumed: set[str] = set()
        self.steps: list[dict[str, Any]] = []

    def see(self, fact: str) -> Seen:
        if fact not in self.assumed:
            return super().see(fact)
        seen = Seen("holds", (f"assumed, not looked at: {CATALOGUE.probes[fact].says}",), {"assumed": True})
        self.tell("seen", fact=fact, truth="holds", evidence=list(seen.evidence), assumed=True)
        return seen

    def _do(self, step: Do) -> End | None:
        action = CATALOGUE.actions[step.action]
        evidence = self._still_required(step, action.requires)
        try:
            planned = plan(step.action, self.world)
        except Exception as error:  # noqa: BLE001  as in the walk itself
            if not self.assumed:
                return self._failed_before(step, words_of(error))
            # It stands on what earlier steps only pretended to do.
            effects, notes, remember = [], [f"known only when the steps before it are done ({words_of(error)})"], {}
        else:
            effects, notes = [mask(effect.says()) for effect in planned.effects], list(planned.notes)
            remember = planned.remember
        self.tell("preview", step=step.name, action=step.action, effects=effects, notes=notes,
                  destroys=action.destroys, way_back=action.way_back)  # fmt: skip
        self.steps.append({"step": step.name, "action": step.action, "effects": effects, "notes": notes,
                           "destroys": action.destroys, "required": evidence})  # fmt: skip
        self.assumed |= {action.makes, *action.may_undo, *action.owes}
        self.world.assumed = frozenset(self.assumed)
        self.record("outcome", step=step.name, action=step.action, ok=True, fact=step.verify, truth="holds",
                    evidence=["assumed"], goto=step.goto, assumed=True)  # fmt: skip
        self.kept |= remember
        self._take_over_memory()
        return None

    def _take_over_memory(self) -> None:
        super()._take_over_memory()
        self.world.memory = {**self.world.memory, **self.kept}


@dataclass(frozen=True)
class Preview:
    ending: Ending
    steps: list[dict[str, Any]]
    plan: dict[str, Any] = field(default_factory=dict)


def dry_run(
    registry: Registry, job_name: str, runbook_name: str, operator: Operator, *, patience: float = 120.0
) -> Preview:
    runbook = proved(find(runbook_name))
    job = get_job(registry, job_name)
    check_job(registry, job_name)
    run = runs.new_run(runbook.id, job_name)
    world = World(registry, job, run, runs.place_of(registry.runs, run), patience=patience)
    before = fingerprint(world)
    journal = Unwritten(durable.join(world.place, runs.JOURNAL))
    journal.append("start", run=run, job=job_name, runbook=runbook.id, digest=runbook.digest, mode="dry run",
                   locks=[], registry=registry.path, version=__version__, step=runbook.start, **whoami())  # fmt: skip
    walk = DryWalk(runbook, world, journal, operator)
    walk.tell("start", job=job_name, runbook=runbook.id, mode="dry run", title=runbook.title)
    ending = walk.run()
    choices: dict[str, list[dict[str, str]]] = {}
    for entry in journal.entries:
        if entry["kind"] == "answer":
            choices.setdefault(entry["step"], []).append({"option": entry["option"], "typed": entry.get("typed", "")})
    told = {
        "plan": FORMAT,
        "id": str(uuid.uuid4()),
        "made": journal.entries[0]["at"],
        "by": whoami()["who"],
        "job": job_name,
        "runbook": runbook.id,
        "digest": runbook.digest,
        "choices": choices,
        "steps": walk.steps,
        "ends": ending.outcome,
        "fingerprint": before,
    }
    return Preview(ending, walk.steps, told | {"seal": _seal(told)})


def _seal(told: dict[str, Any]) -> str:
    """Over all the rest of a plan: what was previewed and perhaps approved is what is carried out."""
    rest = {name: value for name, value in told.items() if name != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def fingerprint(world: World) -> dict[str, str]:
    """Every file of checkpoint and output by name, size and time; config and registry by their bytes."""
    job = world.job
    told = {"checkpoint": tree_fingerprint(job.checkpoint).digest}
    if job.sink.path:
        told["sink"] = tree_fingerprint(job.sink.path).digest
    elif is_table(job):
        told["sink"] = table_fingerprint(job)
    told["registry"] = durable.digest(world.registry.path) or "gone"
    if job.config:
        told["config"] = durable.digest(job.config.file) or "gone"
    return told


def load_plan(file: str, runbook: str, job: str) -> dict[str, Any]:
    try:
        with open(file, "rb") as opened:
            told = json.loads(opened.read())
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}; give a plan made with --dry-run --plan") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file}: not a plan ({error}); make one with --dry-run --plan") from None
    if not _is_plan(told):
        raise BadInput(f"{file}: not a plan of this version of runbook; make one with --dry-run --plan")
    if (told["runbook"], told["job"]) != (runbook, job):
        raise BadInput(f"{file}: is a plan for {told['runbook']} {told['job']}, not for {runbook} {job}")
    if told["seal"] != _seal(told):
        raise BadInput(f"{file}: was changed since it was saved; make a new plan with --dry-run --plan")
    return dict(told)


def _is_plan(told: Any) -> bool:
    if not isinstance(told, dict) or told.get("plan") != FORMAT:
        return False
    texts = all(isinstance(told.get(name), str) for name in ("id", "job", "runbook", "digest", "seal"))
    marks, choices = told.get("fingerprint"), told.get("choices")
    if not texts or not re.fullmatch(r"[0-9a-f-]{36}", told["id"]) or not isinstance(marks, dict):
        return False
    return isinstance(choices, dict) and all(
        isinstance(each, list) and all(isinstance(one, dict) and isinstance(one.get("option"), str) for one in each)
        for each in choices.values()
    )


def refuse_if_moved(told: dict[str, Any], world: World, digest: str, file: str) -> None:
    if told["digest"] != digest:
        raise WorldMoved(f"{file}: the runbook has changed since the plan was made; make a new plan")
    now, then = fingerprint(world), told["fingerprint"]
    moved = sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
    if moved:
        raise WorldMoved(f"{file}: {' and '.join(moved)} changed since the plan was made; make a new plan")


def use_up(told: dict[str, Any], registry: Registry, run: str, file: str) -> None:
    """Of two who carry out one plan, one wins; nobody does it twice."""
    mark = json.dumps({"run": run, **whoami()}).encode()
    try:
        first = durable.create(durable.join(registry.runs, "plans", f"{told['id']}.json"), mark)
    except OSError as error:
        raise JournalUnwritable(
            f"{registry.runs}: cannot be written ({error.strerror or error}); nothing was done"
        ) from None
    if not first:
        used = json.loads(durable.read(durable.join(registry.runs, "plans", f"{told['id']}.json")) or b"{}")
        raise WorldMoved(f"{file}: was carried out already, in run {used.get('run')}; a plan works once")


class Planned:
    """Chooses what the plan chose; what it did not foresee goes to the operator behind it."""

    def __init__(self, told: dict[str, Any], behind: Operator) -> None:
        self.left = {step: list(choices) for step, choices in told["choices"].items()}
        self.behind = behind

    def tell(self, event: dict[str, Any]) -> None:
        self.behind.tell(event)

    def choose(self, question: Question) -> Choice:
        left = self.left.get(question.step.name)
        if not left or question.complaint:
            return self.behind.choose(question)
        chosen = left.pop(0)
        return Choice(chosen["option"], chosen.get("typed", ""))

    def confirm(self, asked: Any) -> bool:
        return self.behind.confirm(asked)


def save_plan(told: dict[str, Any], file: str) -> str:
    text = json.dumps(told, indent=1, sort_keys=True).encode()
    try:
        durable.write(file, text)
    except OSError as error:
        raise BadInput(f"{file}: cannot be written ({error.strerror})") from None
    return hashlib.sha256(text).hexdigest()
