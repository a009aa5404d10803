"""The runbook as a tree, with where the walk is, what was taken and what was skipped."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from wizard.runbook.model import Do, End, Runbook
from wizard.tui.outline import ahead, flat, outline
from wizard.tui.trail import Trail
from wizard.tui.words import lines, says


class Outline(VerticalScroll):
    """Marks say it without colour: ✓ taken, ~ taken in a dry run, ✗ failed, ▶ here, · may come, – passed by.

    A ! asks for a confirmation.
    """

    def __init__(self) -> None:
        super().__init__(id="outline")
        self.runbook: Runbook | None = None
        self._rows: list[tuple[int, str]] = []

    def compose(self) -> ComposeResult:
        yield Static()

    def draw(self, runbook: Runbook) -> None:
        self.runbook = runbook
        self._rows = list(flat(outline(runbook)))

    def follow(self, trail: Trail) -> None:
        runbook = self.runbook
        if runbook is None:
            return
        here = trail.step
        coming = ahead(runbook, here) if here in runbook.steps and not trail.ended else set()
        failed = {done.step for done in trail.done if not done.ok} - {done.step for done in trail.done if done.ok}
        marks = {name: _mark(name, here, trail, coming, failed) for _, name in self._rows}
        self.query_one(Static).update(lines(_label(runbook, depth, name, marks[name]) for depth, name in self._rows))
        at = next((line for line, (_, name) in enumerate(self._rows) if name == here), None)
        if at is not None:
            self.call_after_refresh(self.scroll_to, None, max(0, at - self.size.height // 2), animate=False)


def _mark(name: str, here: str, trail: Trail, coming: set[str], failed: set[str]) -> tuple[str, str]:
    if trail.mode == "dry run" and (name in trail.taken or (trail.ended and name == here)):
        return "~", "bold" if name == here else ""  # nothing was done there: that is not the mark of what is proved
    if name == here and not (trail.ended and name in failed):
        if trail.ended:
            good = trail.ended.get("outcome") in ("resolved", "chosen") or trail.ended["event"] == "undone"
            return ("✓", "bold $text-success") if good else ("✗", "bold $text-error")
        return "▶", "bold reverse"
    if name in failed:
        return "✗", "$text-error"
    if name in trail.taken:
        return "✓", "$text-success"
    return ("·", "") if name in coming else ("–", "dim")


def _label(runbook: Runbook, depth: int, name: str, mark: tuple[str, str]) -> Content:
    step = runbook.steps[name]
    sign = " !" if isinstance(step, Do) and step.confirm else " ■" if isinstance(step, End) else ""
    return says("  " * depth, (f"{mark[0]} {name}{sign}", mark[1]))
