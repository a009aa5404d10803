"""How a walk ended: what happened, what state things are in, the next command."""

from __future__ import annotations

from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widgets import Button, Static

from wizard.engine.events import undone_in_words
from wizard.errors import RunbookError
from wizard.tui.trail import Trail
from wizard.tui.widgets.prompt import Prompt
from wizard.tui.words import MARKS, lines, says


class Next(Message):
    """What the operator wants after the end: close, continue, undo, or the path that the walk has chosen."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what


class Ended(Prompt):
    def __init__(self, trail: Trail, result: Any) -> None:
        super().__init__()
        self.trail, self.result = trail, result
        self.good = _good(trail, result)
        self.set_class(not self.good, "-bad")
        self.set_class(self.good and trail.mode != "dry run", "-good")

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="ended"):
            yield Static(lines(self._what()))
        with Horizontal(classes="buttons"):
            yield Button("Close", id="close", variant="primary")
            if self.open:
                yield Button("Try again", id="continue")
                yield Button("Take back", id="undo")
            elif self.leads_to:
                yield Button(f"Go on: {self.leads_to} {self.trail.job}", id="path")

    @property
    def open(self) -> bool:
        """Whether the run waits to be picked up or taken back."""
        ended, live = self.trail.ended, self.trail.mode in ("live", "undo")
        if not self.trail.run or not live or self.good:
            return False
        return bool(ended["changed"]) if ended and "changed" in ended else bool(self.trail.done or self.trail.at >= 0)

    @property
    def leads_to(self) -> str:
        """The path that is to be walked next."""
        return str((self.trail.ended or {}).get("path") or "") if self.trail.mode == "live" else ""

    def _what(self) -> list[Any]:
        trail, run = self.trail, self.trail.run
        told: list[Any] = []
        if isinstance(self.result, RunbookError):
            told.append(says(("✗ ", "bold $text-error"), (str(self.result), "bold")))
        elif trail.mode == "dry run" and trail.ended is not None:
            told.append(says((f"~ this walk would end {trail.ended['outcome']}", "bold"), f": {trail.ended['says']}"))
        elif trail.ended is not None and trail.ended["event"] == "end":
            mark, style = ("✓", "bold $text-success") if self.good else ("✗", "bold $text-error")
            told.append(says((f"{mark} {trail.ended['outcome']}: ", style), (trail.ended["says"], "bold")))
        else:
            told.append(says(("✓ undone: ", "bold $text-success"), (undone_in_words(trail.ended or {}), "bold")))
        if trail.mode == "dry run":
            told.append(says("Nothing was changed, and nothing was written down. What it would do:"))
            return [*told, *(line for line in trail.lines if line.startswith("· would"))]
        if trail.mode == "rehearsal" and hasattr(self.result, "lines"):
            return [*told, *self.result.lines()]
        if not self.good and not isinstance(self.result, RunbookError):
            told += self._cause()
        told += self._state()
        if self.open:
            told.append(says("try again:  ", (f"runbook continue {run}", "bold")))
            told.append(says("take back:  ", (f"runbook undo {run}", "bold")))
        elif self.leads_to:
            told.append(says("next:  ", (f"runbook {self.leads_to} {trail.job}", "bold")))
        if trail.ended and trail.ended.get("head"):
            told.append(says((f"journal head {trail.ended['head'][:16]}…", "dim")))
        return told

    def _cause(self) -> list[Any]:
        """What stopped the walk: the action that was not done, or else the last look."""
        failed = self.trail.done[-1] if self.trail.done and not self.trail.done[-1].ok else None
        if failed is not None:
            return [says((f"✗ {failed.action}: ", "bold $text-error"), "; ".join(failed.evidence))]
        last = self.trail.facts[-1] if self.trail.facts else None
        if last is None or last.truth == "holds":
            return []
        mark, style = MARKS[last.truth]
        return [says((f"{mark} {last.name} {last.truth}: ", f"bold {style}"), "; ".join(last.evidence))]

    def _state(self) -> list[Any]:
        """What the walk did: the last word on each step."""
        done = {each.step: each for each in self.trail.done}
        if not done:
            return [says("Nothing was changed.")] if not self.good else []
        marks = [f"{'✓' if each.ok else '✗'} {each.step}" for each in done.values()]
        return [says("done: ", ", ".join(marks))]

    def on_mount(self) -> None:
        self.query_one("#close", Button).focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if self.listens():
            self.post_message(Next(str(event.button.id)))


def _good(trail: Trail, result: Any) -> bool:
    if isinstance(result, BaseException) or trail.ended is None:
        return False
    return trail.ended["event"] == "undone" or trail.ended.get("outcome") in ("resolved", "chosen")
