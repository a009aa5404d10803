"""What a journal says about a run: where it stands, what is certain, what is in doubt. Folded, never stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from wizard.catalogue import CATALOGUE
from wizard.engine.journal import Entry


@dataclass
class State:
    run: str = ""
    job: str = ""
    runbook: str = ""
    digest: str = ""
    mode: str = "live"
    who: str = ""
    began: str = ""
    order: int = 0  # after which others of its jobs it came, whatever a clock says
    step: str = ""  # the one to go on with
    led: str = ""  # the step that led to it
    locks: list[str] = field(default_factory=list)
    real: tuple[str, ...] = ()  # where declared places that are links led to
    answers: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    waived: set[str] = field(default_factory=set)
    attested: set[str] = field(default_factory=set)
    made: list[str] = field(default_factory=list)  # facts that finished actions made and nothing has undone since
    intents: list[Entry] = field(default_factory=list)  # all that were begun, in order; the way back goes through them
    doubt: Entry | None = None  # an intent without an outcome
    done: int = 0  # how many of its effects were seen to return
    failed: Entry | None = None  # the last intent, where its outcome was not what it was to make
    undid: list[tuple[int, int]] = field(default_factory=list)  # (entry of the intent, effect) taken back so far
    ended: str | None = None
    undoing: bool = False
    undone: bool = False
    purged: bool = False

    @property
    def changed(self) -> bool:
        """Whether anything may have been changed that has not been taken back."""
        return bool(self.intents) and not self.undone

    @property
    def open(self) -> bool:
        """Whether somebody has to pick it up before this job can be walked again."""
        if self.undone or self.ended in ("resolved", "chosen"):
            return False
        return self.changed or self.ended is None

    @property
    def verdict(self) -> str:
        if self.undone:
            return "undone"
        if self.undoing:
            return "undo in doubt"
        if self.ended is None:
            return "in doubt" if self.doubt else "left behind"
        return self.ended


def fold(entries: Iterable[Entry]) -> State:
    state = State()
    for entry in entries:
        _take(state, entry)
    return state


def _take(state: State, entry: Entry) -> None:
    match entry["kind"]:
        case "start":
            state.run, state.job, state.runbook = entry["run"], entry["job"], entry["runbook"]
            state.digest, state.mode, state.who = entry["digest"], entry["mode"], entry["who"]
            state.real, state.order = tuple(entry.get("real", ())), int(entry.get("order", 0))
            state.locks, state.began, state.step = list(entry["locks"]), entry["at"], entry["step"]
        case "probe":
            _go(state, entry)
            # What was waived or vouched for was said of what had been seen until then.
            state.waived.discard(entry.get("fact", ""))
            state.attested.discard(entry.get("fact", ""))
            if "lost" in entry:
                _lost(state, entry)
        case "confirm":
            _go(state, entry)
        case "answer":
            _go(state, entry)
            _answered(state, entry)
        case "intent":
            state.intents.append(entry)
            state.doubt, state.done, state.failed = entry, 0, None
            state.memory |= entry["remember"]
        case "did":
            state.done = entry["number"] + 1
        case "outcome":
            state.failed = None if entry["ok"] or not state.intents else state.intents[-1]
            state.doubt = None
            _done(state, entry)
            # A step that failed is the one to try again; where it leads is only how the walk ended.
            state.step = entry["goto"] if entry["ok"] else entry["step"]
        case "end":
            state.ended = entry["outcome"]
            if state.open and entry["step"] == state.step:
                state.step = state.led or state.step  # picked up, it looks or asks again; an end leads nowhere
        case "continued":
            state.ended = None
        case "undo":
            state.undoing = True
        case "undid":
            state.undid.append((entry["intent"], entry["number"]))
        case "undone":
            state.undone, state.undoing, state.doubt = True, False, None
        case "purged":
            state.purged = True


def _go(state: State, entry: Entry) -> None:
    if "goto" in entry:
        state.led, state.step = entry["step"], entry["goto"]


def _lost(state: State, entry: Entry) -> None:
    """What a finished action had made is no more: it counts as one that failed with all its effects done."""
    state.made.remove(entry["fact"])
    state.failed = next(intent for intent in state.intents if intent["seq"] == entry["lost"])
    state.done = len(state.failed["effects"])


def _answered(state: State, entry: Entry) -> None:
    if entry.get("gives"):
        answer = CATALOGUE.answers[entry["gives"]]
        state.answers[answer.gives] = entry["value"]
        state.made = [fact for fact in state.made if fact not in answer.may_undo]
    if entry.get("waives"):
        state.waived.add(entry["waives"])
    if entry.get("attests"):
        state.attested.add(entry["attests"])


def _done(state: State, entry: Entry) -> None:
    action = CATALOGUE.actions[entry["action"]]
    lost = {*action.may_undo, action.makes}
    state.made = [fact for fact in state.made if fact not in lost]
    # What was waived or vouched for was said of the world before this.
    state.waived -= set(action.may_undo)
    state.attested -= set(action.may_undo)
    if entry["ok"]:
        state.made.append(action.makes)
