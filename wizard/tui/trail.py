"""What the events of a walk add up to: where it is, what was taken, what was seen. Folded, as the journal is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wizard.engine.events import Event, undone_in_words

MODES = ("live", "dry run", "rehearsal", "undo")


@dataclass(frozen=True)
class Fact:
    name: str
    truth: str  # holds, fails, unknown, or looking
    evidence: tuple[str, ...] = ()
    assumed: bool = False


@dataclass(frozen=True)
class Done:
    step: str
    action: str
    ok: bool
    evidence: tuple[str, ...] = ()


@dataclass
class Trail:
    mode: str = "live"
    run: str = ""
    job: str = ""
    runbook: str = ""
    continued: bool = False
    step: str = ""
    say: str = ""
    why: str = ""
    taken: list[str] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)  # the latest look at each, the last one looked at last
    action: str = ""
    effects: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    way_back: str = ""
    destroys: bool = False
    at: int = -1  # the effect that is being carried out
    looking: str = ""
    progress: str = ""
    done: list[Done] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  # all that happened, a line each
    busy_since: float = field(default_factory=time.monotonic)
    ended: Event | None = None

    def take(self, event: Event) -> None:
        teller: Callable[[Event], None] | None = getattr(self, f"_{event['event']}", None)
        if teller is not None:
            teller(event)

    def _start(self, event: Event) -> None:
        self.mode, self.run, self.job = event["mode"], event["run"], event["job"]
        self.runbook, self.continued = event["runbook"], bool(event.get("continued"))
        self._busy()
        self.lines.append(f"{'picked up' if self.continued else 'begun'}: {self.runbook} {self.job}")

    def _step(self, event: Event) -> None:
        if self.step and self.step not in self.taken:
            self.taken.append(self.step)
        self.step, self.say, self.why = event["step"], event.get("say", ""), event.get("why", "")
        self.action, self.effects, self.notes, self.way_back, self.at = "", [], [], "", -1
        self.destroys = False
        self._busy()

    def _looking(self, event: Event) -> None:
        self.looking, self.progress = event["fact"], ""
        self._busy()

    def _seen(self, event: Event) -> None:
        self.looking, self.progress = "", ""
        fact = Fact(event["fact"], event["truth"], tuple(event["evidence"]), bool(event.get("assumed")))
        self.facts = [*(known for known in self.facts if known.name != fact.name), fact]
        word = "~ {} assumed" if fact.assumed else f"{MARKS[fact.truth]} {{}} {fact.truth}"
        self.lines.append(word.format(fact.name))

    def _preview(self, event: Event) -> None:
        self.action, self.effects = event["action"], list(event["effects"])
        self.notes, self.way_back, self.destroys = list(event["notes"]), event["way_back"], event["destroys"]
        if self.mode == "dry run":
            self.lines += [f"· would: {line}" for line in self.effects]

    def _effect(self, event: Event) -> None:
        self.at = event["number"]
        self.progress = ""
        self.lines.append(f"→ {event['says']}")
        self._busy()

    def _progress(self, event: Event) -> None:
        self.progress = event["line"]

    def _answer(self, event: Event) -> None:
        self.lines.append(f"› {event['step']}: {event['option']}")
        self._busy()

    def _outcome(self, event: Event) -> None:
        self.done.append(Done(event["step"], event["action"], event["ok"], tuple(event["evidence"])))
        self.lines.append(
            f"{'✓' if event['ok'] else '✗'} {event['action']} {'verified' if event['ok'] else 'not done'}"
        )
        if not event["ok"]:
            self.lines += [f"  {line}" for line in event["evidence"]]
        self.at = -1

    def _settling(self, event: Event) -> None:
        self.step, self.action = event["step"], event["action"]
        self.lines.append(f"! {event['action']} was in flight when this run stopped; it is settled now")

    def _undo(self, event: Event) -> None:
        self.mode, self.run = "undo", event["run"]
        self._busy()

    def _undoing(self, event: Event) -> None:
        self.step = event["step"]
        self.lines.append(f"← {event['step']}: {event['says']}")

    def _undone(self, event: Event) -> None:
        self.lines.append(f"✓ undone: {undone_in_words(event)}")
        self.ended = event

    def _end(self, event: Event) -> None:
        if self.step and self.step not in self.taken:
            self.taken.append(self.step)
        self.ended = event
        good = event["outcome"] in ("resolved", "chosen")
        self.lines.append(f"{'✓' if good else '✗'} {event['outcome']}: {event['says']}")

    def _busy(self) -> None:
        self.busy_since = time.monotonic()


MARKS = {"holds": "✓", "fails": "✗", "unknown": "?", "looking": "…"}
