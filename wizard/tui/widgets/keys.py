"""The keys of the screen, in its last line; a click presses one.

Textual's own footer makes a widget of every key and makes them all anew whenever the focus moves: that takes longer than
everything else that a key press does. Here they are one line of text.
"""

from __future__ import annotations

from typing import Any

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

from wizard.tui.words import says

_ALWAYS = ("app.help", "app.quit")  # on the right, however narrow the screen is


class Keys(Widget):
    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[Any]) -> None:
        if screen is self.screen:
            self.refresh()

    def _told(self) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
        """The key, its name and what it does: those of the screen, and those that are always there."""
        found: dict[str, Binding] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.show and enabled:
                found.setdefault(binding.action, binding)
        told = {each.id: (each.key, self.app.get_key_display(each), each.description) for each in found.values()}
        return [each for name, each in told.items() if name not in _ALWAYS], [
            told[name] for name in _ALWAYS if name in told
        ]

    def _placed(self) -> list[tuple[int, str, str, str]]:
        """Each with the column that it begins at. What does not fit is left out; `?` names all."""
        ours, always = self._told()
        room = self.size.width - sum(_width(*each) for each in always)
        placed, at = [], 0
        for each in ours:
            if at + _width(*each) > room:
                break
            placed.append((at, *each))
            at += _width(*each)
        at = max(at, room)
        for each in always:
            placed.append((at, *each))
            at += _width(*each)
        return placed

    def render(self) -> Content:
        told, end = Content(""), 0
        for at, _, key, does in self._placed():
            told += says(" " * (at - end), (f" {key} ", "bold $footer-key-foreground"), f"{does} ")
            end = at + _width("", key, does)
        return told

    def on_click(self, event: events.Click) -> None:
        event.stop()
        for at, key, shown, does in self._placed():
            if at <= event.x < at + _width(key, shown, does):
                self.app.simulate_key(key.split(",")[0])
                return


def _width(_: str, key: str, does: str) -> int:
    return len(key) + len(does) + 3
