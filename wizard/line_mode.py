"""The walk as lines of text: read by anybody, by a screen reader, by a script. It asks on the terminal, nowhere else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import IO, Any

from wizard.engine.events import Event, undone_in_words
from wizard.engine.operator import Choice, Confirmation, Question, fitting
from wizard.errors import Stopped
from wizard.text import Paint, printable

_MARKS = {"holds": ("✓", "green"), "fails": ("✗", "red"), "unknown": ("?", "yellow")}
_BANNERS = {
    "live": ("LIVE", "red"),
    "dry run": ("DRY RUN: nothing is changed", "cyan"),
    "rehearsal": ("REHEARSAL: on a clone", "cyan"),
}


class Narrator:
    """Events as sentences."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream, self.paint = stream, Paint(stream)
        self.mode, self.job = "live", ""

    def __call__(self, event: Event) -> None:
        teller: Callable[[Event], None] | None = getattr(self, f"_{event['event']}", None)
        if teller is not None:
            teller(event)

    def line(self, text: str = "") -> None:
        print(text, file=self.stream, flush=True)

    def _start(self, event: Event) -> None:
        self.mode, self.job = event["mode"], event["job"]
        word, colour = _BANNERS.get(event["mode"], (event["mode"].upper(), "red"))
        again = "picking up " if event.get("continued") else ""
        self.line(
            f"{self.paint(word, colour, 'bold')}  {again}{event['runbook']} {event['job']}: {event.get('title', '')}"
        )
        self.line(self.paint(f"run {event['run']}", "dim"))

    def _step(self, event: Event) -> None:
        if event.get("say") and event["type"] != "end":
            self.line()
            self.line(f"{self.paint(event['step'], 'bold')}: {event['say']}")
            if event.get("why"):
                self.line(self.paint(f"    why: {event['why']}", "dim"))

    def _seen(self, event: Event) -> None:
        mark, colour = ("~", "cyan") if event.get("assumed") else _MARKS[event["truth"]]
        word = "assumed" if event.get("assumed") else event["truth"]
        self.line(f"  {self.paint(mark, colour)} {event['fact']} {word}")
        if event.get("assumed"):
            return
        for text in event["evidence"]:
            self.line(f"      {printable(text)}")

    def _preview(self, event: Event) -> None:
        self.line(f"  {event['action']} would:" if event["effects"] else f"  {event['action']}")
        for text in (*event["effects"], *event["notes"]):
            self.line(f"    • {printable(text)}")
        self.line(self.paint(f"    way back: {event['way_back']}", "dim"))

    def _effect(self, event: Event) -> None:
        self.line(f"  → {printable(event['says'])}")

    def _progress(self, event: Event) -> None:
        self.line(self.paint(f"    {printable(event['line'])}", "dim"))

    def _outcome(self, event: Event) -> None:
        mark, colour, word = ("✓", "green", "done and verified") if event["ok"] else ("✗", "red", "not done")
        self.line(f"  {self.paint(mark, colour, 'bold')} {event['action']}: {word}")
        if not event["ok"]:
            for text in event["evidence"]:
                self.line(f"      {printable(text)}")

    def _settling(self, event: Event) -> None:
        self.line(f"  {event['action']} was in flight when this run stopped; looking at the world and finishing it")

    def _undoing(self, event: Event) -> None:
        self.line(f"  ← {event['step']}: take back: {printable(event['says'])}")

    def _undone(self, event: Event) -> None:
        line = f"{self.paint('✓ undone', 'green', 'bold')}: {undone_in_words(event)}; journal head {event['head']}"
        self.line(line)

    def _end(self, event: Event) -> None:
        good = event["outcome"] in ("resolved", "chosen")
        if self.mode == "dry run":
            self.line()
            self.line(
                f"{self.paint('nothing was changed', 'cyan', 'bold')}; it would end {event['outcome']}: {event['says']}"
            )
            return
        mark, colour = ("✓", "green") if good else ("✗", "red")
        self.line()
        self.line(f"{self.paint(mark + ' ' + event['outcome'], colour, 'bold')}: {event['says']}")
        if event["changed"] and not good:
            run = event["run"]
            self.line(f"  try again:  runbook continue {run}")
            self.line(f"  take back:  runbook undo {run}")
        if event.get("path"):
            self.line(f"  next:       runbook {event['path']} {self.job}".rstrip())
        self.line(self.paint(f"journal head {event['head']}", "dim"))


class JsonLines:
    """`--json`: every event is one line of JSON on stdout."""

    def __call__(self, event: Event) -> None:
        print(json.dumps(event, ensure_ascii=True, default=str), flush=True)


class Terminal:
    """Asks at the terminal. The end of its input stops the walk; it is never taken for an answer."""

    def __init__(self, tell: Callable[[Event], None], stream: IO[str] = sys.stderr) -> None:
        self._tell, self.stream, self.paint = tell, stream, Paint(stream)

    def tell(self, event: Event) -> None:
        self._tell(event)

    def choose(self, question: Question) -> Choice:
        step = question.step
        self._line()
        if question.complaint:
            self._line(self.paint(question.complaint, "red"))
        self._line(self.paint(step.question, "bold"))
        for number, each in enumerate(step.options, 1):
            mark = self.paint(" ← what was seen suggests this", "dim") if each.name == question.suggested else ""
            self._line(f"  {number}  {each.name}: {each.say}{mark}")
        while True:
            typed = self._read("number or name> ").strip()
            names = [option.name for option in step.options]
            name = names[int(typed) - 1] if typed.isdecimal() and 0 < int(typed) <= len(names) else typed
            option = fitting(step, name)
            if option is not None:
                break
            self._line(f"type a number from 1 to {len(names)}, or a name")
        if option.waives:
            self._line(f"Type this out, word for word: {self.paint(option.type_out, 'bold')}")
            return Choice(name, self._read("> ").strip())
        if option.gives:
            return Choice(name, self._read(f"{option.say} > ").strip())
        return Choice(name)

    def confirm(self, asked: Confirmation) -> bool:
        word = self.paint("This cannot be taken for granted.", "red", "bold") if asked.destroys else "Please confirm."
        self._line(f"{word} Way back: {asked.way_back}.")
        typed = self._read(f"Type {self.paint(asked.phrase, 'bold')} to go on, anything else to stop> ")
        return typed.strip() == asked.phrase

    def _line(self, text: str = "") -> None:
        print(text, file=self.stream, flush=True)

    def _read(self, prompt: str) -> str:
        print(prompt, end="", file=self.stream, flush=True)
        line: Any = sys.stdin.readline()
        if not line:
            raise Stopped("the input has ended; answer with --answers FILE and --confirm JOB, or at a terminal")
        return str(line)
