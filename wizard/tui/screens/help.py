"""Every key of the screen it was called from, and what the marks mean."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from wizard.tui.words import lines, says

_KEYS = {"question_mark": "?", "slash": "/", "escape": "Esc", "enter": "Enter"}
_MARKS = (
    "✓ holds, taken, safe      ✗ fails, blocked, not done",
    "? not known               ! risky, a warning, or needs confirming",
    "▶ here   · may come   – passed by   ■ an end   ~ assumed (dry run)",
)


def readable(binding: Binding) -> str:
    key = binding.key_display or binding.key.split(",")[0]
    return _KEYS.get(key, key.replace("ctrl+", "Ctrl+"))


class HelpScreen(ModalScreen[None]):
    BINDINGS = [Binding("escape,question_mark,f1,q", "dismiss", "Close", id="help.close")]

    def __init__(self, about: Screen[Any]) -> None:
        super().__init__()
        self.about = about

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -tall"), VerticalScroll():
            yield Static(lines(self._words()))

    def _words(self) -> list[Any]:
        told: list[Any] = [says(("Keys", "bold"))]
        seen: set[str] = set()
        for active in self.about.active_bindings.values():
            binding = active.binding
            if binding.id and binding.action not in seen and binding.description:
                seen.add(binding.action)
                told.append(says((f"  {readable(binding):<8}", "bold"), binding.tooltip or binding.description))
        told += [
            says(("  Tab     ", "bold"), "To the next thing; Shift+Tab back"),
            says(("  Ctrl+P  ", "bold"), "The command palette: all of this by name"),
            says(("  mouse   ", "bold"), "Everything can be clicked; drag over text and Ctrl+C copies it"),
            says(""),
            says(("Marks", "bold")),
            *(says(f"  {line}") for line in _MARKS),
            says(""),
            says(("Line mode", "bold")),
            says("  Every command takes --plain: the same walk as lines of text, for a screen reader or a script."),
        ]
        return told
