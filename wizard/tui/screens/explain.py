"""A pasted stack trace or log, explained."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static, TextArea

from wizard.tui.background import Looked
from wizard.tui.looks import explained
from wizard.tui.words import lines, says

# A screen that holds more stands still while it breaks the lines. Spark says what was wrong at the beginning of a trace
# and in the causes at its end.
_HEAD, _TAIL = 20_000, 180_000


def shortened(text: str) -> str:
    if len(text) <= _HEAD + _TAIL:
        return text
    left_out = len(text) - _HEAD - _TAIL
    return f"{text[:_HEAD]}\n… {left_out} characters left out here; `runbook explain FILE` reads them all …\n{text[-_TAIL:]}"


class Trace(TextArea):
    async def _on_paste(self, event: events.Paste) -> None:
        """Before Textual's own, which puts it in."""
        event.text = shortened(event.text)


class ExplainDialog(ModalScreen[str]):
    """Gives back what was pasted, so that the job's verdicts take it into account."""

    BINDINGS = [
        Binding("f2", "explain", "Explain", id="explain.go", tooltip="Explain what was pasted"),
        Binding("escape", "leave", "Back", id="explain.back", tooltip="Back to the job"),
    ]

    def __init__(self, pasted: str = "") -> None:
        super().__init__()
        self.pasted = pasted

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -tall"):
            yield Static(says(("Paste a stack trace or the end of a driver log", "bold"), ("  (Esc goes back)", "dim")))
            yield Trace(self.pasted, id="pasted", show_line_numbers=False)
            with VerticalScroll(id="meaning"):
                yield Static()
            with Horizontal(classes="buttons"):
                yield Button("Explain", id="go", variant="primary")
                yield Button("Back", id="back")

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()
        if self.pasted:
            self.action_explain()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.action_explain() if event.button.id == "go" else self.action_leave()

    @on(TextArea.Changed)
    def _pasted(self) -> None:
        self.action_explain()

    def action_explain(self) -> None:
        from wizard.tui.app import RunbookApp

        assert isinstance(self.app, RunbookApp)
        self.app.lookout.look(self, "explained", explained, self.query_one(TextArea).text)

    @on(Looked)
    def _looked(self, message: Looked) -> None:
        message.stop()
        found = says(str(message.found)) if isinstance(message.found, Exception) else lines(message.found)
        self.query_one("#meaning Static", Static).update(found)

    def action_leave(self) -> None:
        self.dismiss(self.query_one(TextArea).text)
