"""All runs, and one of them told step by step, with the state of its record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import DataTable, OptionList, Static
from textual.widgets.option_list import Option

from wizard.text import printable
from wizard.tui.background import Looked
from wizard.tui.looks import Told, exported, look_at_runs, told
from wizard.tui.screens.page import ListPage, Page
from wizard.tui.widgets.banner import Banner
from wizard.tui.widgets.keys import Keys
from wizard.tui.words import lines, says

if TYPE_CHECKING:
    from wizard.audit.listing import Summary

_COLUMNS = (("began", 20), ("verdict", 14), ("runbook", 10), ("job", 22), ("by", 12))
_GOOD = {
    "resolved": "✓",
    "chosen": "✓",
    "undone": "←",
    "under way": "▶",
    "aborted": "!",
    "hand_over": "!",
    "empty": "·",
}
_MARKS = {
    "plain": ("·", "dim"),
    "good": ("✓", "$text-success"),
    "bad": ("✗", "$text-error"),
    "warn": ("!", "$text-warning"),
}


class AuditScreen(ListPage):
    COLUMNS, HINT = _COLUMNS, "a job, a verdict, a name"
    BINDINGS = [
        Binding("r", "refresh", "Read again", id="audit.refresh", show=False, tooltip="Read the runs again"),
        Binding("escape", "back", "Back", id="audit.back", tooltip="Back, or drop the filter"),
    ]

    def __init__(self, job: str = "") -> None:
        super().__init__()
        self.wanted = job
        self.runs: list[Summary] = []

    def on_mount(self) -> None:
        self.set_up()
        self.query_one(Banner).show("look", "audit")

    def on_screen_resume(self) -> None:
        self.action_refresh()

    def action_refresh(self) -> None:
        self.look("runs", look_at_runs)

    @on(Looked)
    def _looked(self, message: Looked) -> None:
        message.stop()
        if isinstance(message.found, Exception):
            self.query_one("#about", Static).update(says(("✗ ", "bold $text-error"), str(message.found)))
            return
        self.runs = message.found
        self.fill()

    def fill(self) -> None:
        from wizard.audit.listing import when

        table = self.query_one(DataTable)
        self.fit(run.job for run in self.runs)
        words = self.wanted.lower().split()
        for run in self.runs:
            cells = [
                when(run.began),
                f"{_GOOD.get(run.verdict, '✗')} {run.verdict}",
                run.runbook,
                run.job,
                ", ".join(run.who),
            ]
            if run.mode != "live":
                cells[2] += f" ({run.mode})"
            if all(word in " ".join([*cells, run.run]).lower() for word in words):
                table.add_row(*(Text(printable(cell)) for cell in cells), key=run.run)
        told = f"{table.row_count} of {len(self.runs)} runs" if words else f"all {len(self.runs)} runs"
        self.query_one(Banner).show("look", "audit", told)
        self._draw_about()

    @on(DataTable.RowHighlighted)
    def _draw_about(self) -> None:
        run = next((each for each in self.runs if each.run == self.under_cursor), None)
        about = self.query_one("#about", Static)
        if run is None:
            about.update(says("no run" + (" matches" if self.runs else " yet; every walk leaves one here")))
            return
        changed = "something is changed" if run.changed else "nothing is changed"
        about.update(lines([says((run.run, "bold")), says(f"{run.entries} entries, {changed}, head {run.head[:16]}…")]))

    @on(DataTable.RowSelected)
    def _open(self) -> None:
        if self.under_cursor:
            self.app.push_screen(RunScreen(self.under_cursor))

    def action_back(self) -> None:
        if self.focused is self.query_one("#filter"):
            self.drop_filter()
        else:
            super().action_back()


class RunScreen(Page):
    """A run step by step: up and down go through what happened, beside it what was seen and done there."""

    BINDINGS = [
        Binding("c", "pick_up", "Continue", id="run.continue", tooltip="Pick this run up where it was left"),
        Binding("u", "undo", "Undo", id="run.undo", tooltip="Put everything back as it was before this run"),
        Binding(
            "e", "export", "Export", id="run.export", tooltip="Write the run as a page, RUN.html, to this directory"
        ),
        Binding("y", "copy", "Copy", id="run.copy", tooltip="Copy the run as text"),
        Binding("escape", "back", "Back", id="run.back", tooltip="Back to all runs"),
    ]

    def __init__(self, run: str) -> None:
        super().__init__()
        self.run = run
        self.told: Told | None = None

    def compose(self) -> ComposeResult:
        yield Banner()
        yield Static(id="facts")
        with Horizontal(id="told"):
            yield OptionList(id="parts")
            with VerticalScroll(id="details"):
                yield Static()
        yield Keys()

    def on_mount(self) -> None:
        self.query_one(Banner).show("look", f"run {self.run}")
        self.query_one(OptionList).focus()

    def on_screen_resume(self) -> None:
        self._look()

    def _look(self) -> None:
        self.look("run", told, self.run)

    @on(Looked)
    def _looked(self, message: Looked) -> None:
        message.stop()
        if isinstance(message.found, Exception):
            self.query_one("#facts", Static).update(says(("✗ ", "bold $text-error"), str(message.found)))
        elif message.what == "exported":
            self.notify(f"written: {message.found}", markup=False)
        else:
            self._show(message.found)

    def _show(self, found: Told) -> None:
        self.told = found
        self.refresh_bindings()
        mark = ("✓ ", "bold $text-success") if found.sound else ("✗ ", "bold $text-error")
        rows: list[Any] = []
        for what, text in found.facts:
            if what in ("by", "from", "stands", "record", "unproved"):
                rows.append(says((f"{what:<9}", "dim"), *((mark, text) if what == "record" else (text,))))
        self.query_one("#facts", Static).update(lines(rows))
        parts = self.query_one(OptionList)
        at = parts.highlighted or 0
        parts.clear_options()
        parts.add_options(
            Option(says((f"{part.at[11:]} ", "dim"), (f"{_MARKS[part.mark][0]} ", f"bold {_MARKS[part.mark][1]}"), part.says))
            for part in found.parts
        )  # fmt: skip
        if found.parts:
            parts.highlighted = min(at, len(found.parts) - 1)

    @on(OptionList.OptionHighlighted)
    def _step(self, event: OptionList.OptionHighlighted) -> None:
        if self.told is None:
            return
        part = self.told.parts[event.option_index]
        rows: list[Any] = [says((part.says, "bold")), says((f"entry {part.entry}, {part.at} UTC", "dim"))]
        for what, texts in part.details:
            rows.append(says((f"{what}:", "dim")))
            rows += [says(f"  {text}") for text in texts]
        self.query_one("#details Static", Static).update(lines(rows))
        self.query_one("#details").scroll_home(animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a run that waits can be continued."""
        if action == "pick_up":
            return self.told is not None and self.told.waits
        return super().check_action(action, parameters)

    def action_pick_up(self) -> None:
        from wizard.tui.screens.take_back import GoOnDialog

        self.app.push_screen(GoOnDialog(self.run), self._go_on)

    def _go_on(self, sure: bool | None) -> None:
        if sure:
            self.app.push_screen(self.runbook_app.pick_up_of(self.run))

    def action_undo(self) -> None:
        from wizard.tui.screens.take_back import TakeBackDialog

        self.app.push_screen(TakeBackDialog(self.run), self._take_back)

    def _take_back(self, sure: bool | None) -> None:
        if sure:
            self.app.push_screen(self.runbook_app.undo_of(self.run))

    def action_export(self) -> None:
        self.look("exported", exported, self.run, str(Path.cwd()))

    def action_copy(self) -> None:
        if self.told is not None:
            self.app.copy_to_clipboard("\n".join(self.told.text))
            self.notify("Copied: the run as text.")
