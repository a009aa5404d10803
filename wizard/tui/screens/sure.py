"""A question with two answers. The focus is on the one that changes nothing."""

from __future__ import annotations

from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from wizard.tui.words import lines


class Sure(ModalScreen[bool]):
    """True: do it."""

    BINDINGS = [Binding("escape", "no", "No", id="sure.no", tooltip="Leave it as it is")]
    NO, YES = "No", "Yes"
    DANGER = False

    def words(self) -> list[Any]:
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(lines(self.words()))
            with Horizontal(classes="buttons"):
                yield Button(self.NO, id="no", variant="primary")
                yield Button(self.YES, id="yes", variant="error" if self.DANGER else "default")

    def on_mount(self) -> None:
        self.query_one("#no", Button).focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "yes")

    def action_no(self) -> None:
        self.dismiss(False)
