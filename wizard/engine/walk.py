"""A walk over a proved runbook: look, ask, act, and prove each act. The one engine under every way of using it.

Before each action: the plan is made and shown, somebody confirms it where it destroys, every fact it requires is
probed again, and the plan is made once more; had the world moved in between, the walk stops. Then, in this order and
no other: intent → fsync → act → verify → outcome → fsync.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from wizard import durable
from wizard.catalogue import CATALOGUE
from wizard.catalogue.declare import Action
from wizard.catalogue.effects import Effect, Start, load
from wizard.catalogue.live.binding import look, plan, understand
from wizard.catalogue.world import Plan, Seen, World, unknown
from wizard.engine.events import Event, event
from wizard.engine.journal import Entry, Journal
from wizard.engine.operator import Choice, Confirmation, Operator, Question, fitting
from wizard.engine.state import State, fold
from wizard.errors import BadInput, ExitCode, JournalUnwritable, RunbookError, Stopped, VerificationFailed, WorldMoved
from wizard.jobs.registry import get_job, load_registry
from wizard.runbook.model import Ask, Check, Do, End, Option, Runbook
from wizard.secrets import mask, mask_all

_UP = ("job.running", "consumers.running")
"""A job that was started may have ended with the machine, or by itself. Nobody's work is lost by starting it again."""

_OF_A_JOB_THAT_STANDS = (
    "job.stopped",
    "checkpoint.readable",
    "checkpoint.consistent",
    "checkpoint.exclusive",
    "source.has_next_offsets",
    "in_flight.clean",
)
"""A job that runs moves these by itself; of one that is down they must hold before it is started once more."""

Q = TypeVar("Q")
T = TypeVar("T")


class Interrupted(RunbookError):
    exit_code = ExitCode.INTERRUPTED


@dataclass(frozen=True)
class Ending:
    """How a walk ended. `path` is set where triage chose one."""

    run: str
    outcome: str
    step: str
    says: str
    changed: bool
    head: str
    path: str = ""

    @property
    def exit_code(self) -> ExitCode:
        if self.outcome in ("resolved", "chosen"):
            return ExitCode.OK
        return ExitCode.VERIFICATION_FAILED if self.changed else ExitCode.STOPPED

    def told(self) -> Event:
        return event("end", run=self.run, outcome=self.outcome, says=self.says, changed=self.changed, head=self.head,
                     exit_code=int(self.exit_code), path=self.path)  # fmt: skip


class Walk:
    def __init__(self, runbook: Runbook, world: World, journal: Journal, operator: Operator) -> None:
        self.runbook, self.world, self.journal, self.operator = runbook, world, journal, operator
        self.state: State = fold(journal.entries)
        self.last: tuple[str, Seen] | None = None  # the fact looked at last, and what was seen
        self.in_flight = ""
        self.down: dict[str, Seen] = {}  # what this run had started and is not up any more
        world.say = lambda line: self.tell("progress", line=line)
        self._take_over_memory()

    def _take_over_memory(self) -> None:
        self.world.answers, self.world.memory = self.state.answers, self.state.memory
        self.world.waived, self.world.real = frozenset(self.state.waived), self.state.real

    def tell(self, kind: str, **says: Any) -> None:
        self.operator.tell(event(kind, run=self.world.run, **says))

    def record(self, kind: str, **says: Any) -> Entry:
        entry = self.journal.append(kind, **says)
        self.state = fold([*self.journal.entries])
        self._take_over_memory()
        return entry

    # --- the walk

    def run(self) -> Ending:
        """From where the journal says to an end."""
        with self.told_when_interrupted():
            while True:
                step = self.runbook.steps[self.state.step]
                self.tell(
                    "step", step=step.name, type=type(step).__name__.lower(), say=step.words.say, why=step.words.why
                )
                if isinstance(step, Check):
                    self._check(step)
                elif isinstance(step, Ask):
                    self._ask(step)
                elif isinstance(step, Do):
                    failed = self._do(step)
                    if failed is not None:
                        return self.end(failed)
                else:
                    return self.end(step)

    @contextmanager
    def told_when_interrupted(self) -> Iterator[None]:
        """Ctrl-C ends a walk with one line that says what is in flight, and what to type."""
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted(self._interrupted()) from None

    def _asked(self, ask: Callable[[Q], T], question: Q) -> T:
        """An answer; where nobody gives one, exit 3 says that nothing was changed, and that must be so."""
        try:
            return ask(question)
        except (Stopped, BadInput) as error:
            if not self.state.changed:
                raise
            kind = BadInput if isinstance(error, BadInput) else VerificationFailed
            raise kind(f"{error}{self._way_back()}") from None

    def _interrupted(self) -> str:
        run = self.world.run
        if self.in_flight:
            return f"interrupted in the middle of {self.in_flight}, which is in doubt now; `runbook continue {run}` settles it, `runbook undo {run}` takes it back"
        if self.state.changed:
            return f"interrupted between two steps; `runbook continue {run}` goes on, `runbook undo {run}` takes back what was done"
        return f"interrupted before any change; nothing was done (run {run})"

    def _check(self, step: Check) -> None:
        seen = self.see(step.probe)
        goto = {"holds": step.holds, "fails": step.fails, "unknown": step.unknown}[seen.truth]
        self.record("probe", step=step.name, fact=step.probe, **_told(seen), goto=goto)
        self.last = (step.probe, seen)

    def see(self, fact: str) -> Seen:
        """A look at the live world. Nothing that happens there stops the walk: what cannot be seen is unknown."""
        self.tell("looking", fact=fact, says=CATALOGUE.probes[fact].says)
        try:
            seen = look(fact, self.world)
        except Exception as error:  # noqa: BLE001  as in `_carry_out`
            seen = unknown(f"it could not be looked at: {words_of(error)}")
        self.tell("seen", fact=fact, **_told(seen))
        return seen

    def _ask(self, step: Ask) -> None:
        complaint = ""
        while True:
            evidence = self.last[1].evidence if self.last else ()
            question = Question(step, evidence, complaint, self._suggested(step))
            self.tell("question", step=step.name, question=step.question, options=[o.name for o in step.options])
            choice = self._asked(self.operator.choose, question)
            option = fitting(step, choice.option)
            if option is None:
                complaint = f"{choice.option!r} is not one of {', '.join(o.name for o in step.options)}"
                continue
            try:
                value = self._taken(option, choice)
            except BadInput as error:
                complaint = str(error)
                continue
            break
        said = {"step": step.name, "question": step.question, "option": option.name, "goto": option.goto}
        if option.gives:
            said |= {"gives": option.gives, "typed": choice.typed, "value": value}
        if option.waives:
            said |= {"waives": option.waives, "typed": choice.typed}
        if option.attests:
            said |= {"attests": option.attests}
        self.record("answer", **said, who=self.who())
        self.tell("answer", step=step.name, option=option.name)

    def _taken(self, option: Option, choice: Choice) -> Any:
        if option.waives and " ".join(choice.typed.split()) != option.type_out:
            raise BadInput(f"this must be typed out, word for word: {option.type_out}")
        if option.gives:
            return understand(option.gives, self.world, choice.typed)
        return None

    def _suggested(self, step: Ask) -> str:
        """The option that goes on from what was seen: to the action that makes the fact, else to another look."""
        if self.last is None or self.last[1].holds:
            return ""
        fact = self.last[0]
        for option in step.options:
            target = self.runbook.steps[option.goto]
            if not (option.waives or option.attests) and isinstance(target, Do) and target.verify == fact:
                return option.name
        return ""

    def who(self) -> str:
        from wizard.engine.lock import operator_name

        return operator_name()

    # --- actions

    def _do(self, step: Do) -> End | None:
        """Goes on to the next step, or returns the end that a failure leads to."""
        action = CATALOGUE.actions[step.action]
        rest = self._rest_of(step)
        try:
            planned = rest or plan(step.action, self.world)
        except Exception as error:  # noqa: BLE001  as in `_carry_out`
            return self._failed_before(step, words_of(error))
        preview = tuple(mask(effect.says()) for effect in planned.effects)
        self.tell("preview", step=step.name, action=step.action, effects=list(preview), notes=list(planned.notes),
                  destroys=action.destroys, way_back=action.way_back)  # fmt: skip
        if step.confirm and not self._confirmed(step, preview):
            return None
        evidence = self._still_required(step, self._required_again(action) if rest else action.requires)
        try:
            again = rest or plan(step.action, self.world)
        except Exception as error:  # noqa: BLE001  as in `_carry_out`
            raise WorldMoved(f"{step.action} was possible a moment ago: {words_of(error)}{self._way_back()}") from None
        if _canonical(again) != _canonical(planned):
            raise WorldMoved(
                f"{step.action}: what it would do has changed since it was shown; look again{self._way_back()}"
            )
        self._intend(step, again, evidence)
        return self._carry_out(step, again.effects)

    def _rest_of(self, step: Do) -> Plan | None:
        """What is left of a failed attempt that has itself undone what it requires; None where it can be begun anew.

        A start lifts the fence first: when the job then does not come up, no second start could ask for a fence.
        """
        failed, action = self.state.failed, CATALOGUE.actions[step.action]
        if failed is None or failed["step"] != step.name:
            return None
        disturbed = [fact for fact in action.requires if fact in action.may_undo]
        if all(self.see(fact).holds for fact in disturbed):
            return None
        effects = read_manifest(self.world.place, failed)
        # A job that came up and died a moment later is to be started once more.
        left = [each for n, each in enumerate(effects) if n >= self.state.done or isinstance(each, Start)]
        return Plan(tuple(left), failed["remember"], ("begun before, and failed: this is what is left of it",))

    def _required_again(self, action: Action) -> list[str]:
        """What the action has itself disturbed cannot be required of a world in which it was begun.

        But a job that is not up must be seen to stand still before it is started once more, and what it had begun to
        write must not come to be there twice.
        """
        standing = action.makes == "job.running" and (
            self.see("job.stopped").holds or not self.see("job.running").holds
        )
        again = _OF_A_JOB_THAT_STANDS if standing else ()
        required = [fact for fact in action.requires if fact not in action.may_undo or fact in again]
        return [*required, "in_flight.clean"] if standing and "in_flight.clean" not in required else required

    def _confirmed(self, step: Do, preview: tuple[str, ...]) -> bool:
        phrase = step.confirm.replace("{job.name}", self.world.job.name)
        action = CATALOGUE.actions[step.action]
        asked = Confirmation(step, step.action, phrase, preview, action.way_back, action.destroys)
        given = self._asked(self.operator.confirm, asked)
        if given:
            self.record("confirm", step=step.name, action=step.action, given=True, phrase=phrase, who=self.who())
        else:
            self.record("confirm", step=step.name, action=step.action, given=False, phrase=phrase, who=self.who(),
                        goto=step.on_decline)  # fmt: skip
        return given

    def _still_required(self, step: Do, required: Iterable[str]) -> dict[str, Any]:
        """Every required fact, seen again right before the action. The evidence goes into the intent."""
        evidence: dict[str, Any] = {}
        for fact in required:
            waived = fact in self.state.waived
            if waived and not CATALOGUE.probes[fact].waived_unseen:
                evidence[fact] = {"truth": "unknown", "evidence": ["waived"]}
                continue
            seen = self.see(fact)
            evidence[fact] = _told(seen)
            if seen.truth == "unknown" and (waived or fact in self.state.attested):
                # A word stands for what cannot be seen, not against what is seen.
                evidence[fact]["evidence"].append("waived" if waived else "vouched for by the operator")
                continue
            if not seen.holds:
                why = "; ".join(seen.evidence)
                found = "cannot be seen" if seen.truth == "unknown" else "does not hold, whoever answered for it"
                if not waived and fact not in self.state.attested and seen.truth == "fails":
                    found = "no longer holds"
                raise WorldMoved(f"{step.action} requires {fact}, which {found}: {why}{self._way_back()}")
        return evidence

    def _way_back(self) -> str:
        if not self.state.changed:
            return "; nothing was changed"
        run = self.world.run
        return f"; `runbook continue {run}` looks again, `runbook undo {run}` takes back what was done"

    def _intend(self, step: Do, planned: Plan, evidence: dict[str, Any]) -> None:
        effects = [effect.as_dict() for effect in planned.effects]
        text = json.dumps(effects, sort_keys=True).encode()
        sha = hashlib.sha256(text).hexdigest()
        manifest = durable.join(self.world.place, "manifests", f"{len(self.journal.entries)}.json")
        try:
            durable.write(manifest, text, 0o660)  # it may hold a configuration file that is not for everybody
        except OSError as error:
            raise JournalUnwritable(
                f"{manifest}: cannot be written ({error.strerror or error}); nothing was done"
            ) from None
        self.record(
            "intent",
            step=step.name,
            action=step.action,
            who=self.who(),
            effects=[mask(effect.says()) for effect in planned.effects],
            manifest=manifest[len(self.world.place) + 1 :],
            sha256=sha,
            remember=planned.remember,
            answers={name: self.state.answers[name] for name in CATALOGUE.actions[step.action].takes},
            before=evidence,
        )

    def _carry_out(self, step: Do, effects: tuple[Effect, ...], done: int = 0) -> End | None:
        self.in_flight = step.action
        error = ""
        moved = False
        for number, effect in enumerate(effects):
            if number < done:
                continue
            self.tell("effect", step=step.name, number=number, of=len(effects), says=mask(effect.says()))
            try:
                effect.do(self.world)
            except WorldMoved as problem:
                error, moved = str(problem), True
            except Exception as problem:  # noqa: BLE001  each store and library has its own; the walk takes `on_fail`
                error = words_of(problem)
            if error:
                break
            self.record("did", step=step.name, number=number)
        self._reload()
        seen = unknown(error) if error else self.see(step.verify)
        ok = seen.holds
        self.record("outcome", step=step.name, action=step.action, ok=ok, fact=step.verify, **_told(seen),
                    goto=step.goto if ok else step.on_fail)  # fmt: skip
        self.in_flight = ""
        self.last = (step.verify, seen)
        self.tell("outcome", step=step.name, action=step.action, ok=ok, **_told(seen))
        if moved:
            raise WorldMoved(f"{step.action}: {error}{self._way_back()}")
        return None if ok else self._where_failure_leads(step)

    def _reload(self) -> None:
        """An action may have rewritten the registry; the walk goes on with what it says now."""
        self.world.registry = load_registry(self.world.registry.path)
        self.world.job = get_job(self.world.registry, self.world.job.name)

    def _failed_before(self, step: Do, words: str) -> End | None:
        """The action could not even be planned. Nothing was changed by it."""
        self.record("refused", step=step.name, action=step.action, error=words)
        self.last = (step.verify, unknown(words))
        self.tell("outcome", step=step.name, action=step.action, ok=False, truth="unknown", evidence=[words])
        return self._where_failure_leads(step)

    def _where_failure_leads(self, step: Do) -> End | None:
        target = self.runbook.steps[step.on_fail]
        if isinstance(target, End):
            return target
        # Not an end: somebody is asked, or something is looked at. The walk goes on there.
        self.record("probe", step=step.name, fact=step.verify, **_told(self.last[1] if self.last else unknown()),
                    goto=step.on_fail)  # fmt: skip
        return None

    # --- picking up, ending

    def settle(self) -> End | None:
        """An intent without an outcome: its effects are carried out again, each doing what is left of it."""
        doubt = self.state.doubt
        assert doubt is not None
        step = self.runbook.steps[doubt["step"]]
        assert isinstance(step, Do)
        self.tell("settling", step=step.name, action=step.action)
        self._still_required(step, self._required_again(CATALOGUE.actions[step.action]))
        return self._carry_out(step, read_manifest(self.world.place, doubt), self.state.done)

    def verify_made(self) -> None:
        """What finished steps made must still be so; somebody may have been here in between."""
        doubt = self.state.doubt
        # What the action in doubt disturbs is settled with it.
        disturbed = set(CATALOGUE.actions[doubt["action"]].may_undo) if doubt else set()
        for fact in self.state.made:
            if fact in self.state.waived or fact in disturbed:
                continue
            seen = self.see(fact)
            if seen.truth == "fails" and fact in _UP:
                self.down[fact] = seen
                continue
            self.record("probe", step=self.state.step, fact=fact, **_told(seen), again=True)
            if not seen.holds:
                raise WorldMoved(
                    f"{fact} held when this run stopped and does not now: {'; '.join(seen.evidence)}{self._way_back()}"
                )

    def take_again(self) -> None:
        """The steps that started what is down by now; the earliest is recorded last, and gone on with."""
        for fact in reversed([each for each in self.state.made if each in self.down]):
            makers = [each for each in self.state.intents if CATALOGUE.actions[each["action"]].makes == fact]
            self.tell("progress", line=f"{makers[-1]['action']} was done, and its job is down: the step is taken again")
            self.record("probe", step=self.state.step, fact=fact, **_told(self.down[fact]), goto=makers[-1]["step"],
                        lost=makers[-1]["seq"], again=True)  # fmt: skip

    def end(self, step: End) -> Ending:
        outcome = CATALOGUE.outcomes[step.outcome]
        if outcome.settles:
            for fact in outcome.requires:
                if fact not in self.state.waived and not self._seen_to_hold(fact, step.name):
                    raise VerificationFailed(
                        f"the end {step.name} claims {fact}, which was not seen to hold{self._way_back()}"
                    )
        self.record("end", step=step.name, outcome=step.outcome, path=step.path, says=step.words.say or outcome.says)
        ending = Ending(self.world.run, step.outcome, step.name, step.words.say or outcome.says, self.state.changed,
                        self.journal.head, step.path)  # fmt: skip
        self.operator.tell(ending.told())
        return ending

    def _seen_to_hold(self, fact: str, step: str) -> bool:
        """The last look at it, or a new one where there was none since the run was picked up."""
        for entry in reversed(self.journal.entries):
            if entry["kind"] == "continued":
                break
            if entry["kind"] in ("probe", "outcome") and entry["fact"] == fact:
                return bool(entry["truth"] == "holds")
        seen = self.see(fact)
        self.record("probe", step=step, fact=fact, **_told(seen), again=True)
        return seen.holds


def read_manifest(place: str, intent: Entry) -> tuple[Effect, ...]:
    """The effects of an intent, or an error: a manifest that was changed is not carried out."""
    path = durable.join(place, intent["manifest"])
    try:
        text = durable.read(path)
    except OSError as error:
        raise RunbookError(f"{path}: cannot be read ({error.strerror or error}); nothing was done") from None
    if text is None or hashlib.sha256(text).hexdigest() != intent["sha256"]:
        raise WorldMoved(f"{path}: is gone, or not what entry {intent['seq']} of the journal says; restore it")
    return tuple(load(told) for told in json.loads(text))


def _canonical(planned: Plan) -> str:
    return json.dumps([[effect.as_dict() for effect in planned.effects], planned.remember], sort_keys=True, default=str)


def _told(seen: Seen) -> dict[str, Any]:
    told: dict[str, Any] = {"truth": seen.truth, "evidence": [mask(line) for line in seen.evidence]}
    return told | ({"data": mask_all(seen.data)} if seen.data else {})


def words_of(error: BaseException) -> str:
    if isinstance(error, RunbookError):
        return mask(str(error))
    return mask(f"{type(error).__name__}: {' '.join(str(error).split())}"[:400])
