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
from textual.widgets import Input, TextArea

from wizard.tui.words import says

Key = tuple[str, str, str]
_MORE: Key = ("more", "…", "")
_ALWAYS = ("app.help", "app.quit")  # on the right, however narrow the screen is


class Keys(Widget):
    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[Any]) -> None:
        if screen is self.screen:
            self.refresh()

    def _told(self) -> tuple[list[Key], list[Key]]:
        """The key, its name and what it does: those of the screen, the lesser ones last, and those that are always there."""
        found: dict[str, Binding] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.id and enabled:
                found.setdefault(binding.action, binding)
        told = {each.id: (each.key, self._shown(each), each.description) for each in found.values()}
        lesser = {each.id for each in found.values() if not each.show}
        ours = sorted((name for name in told if name not in _ALWAYS), key=lesser.__contains__)
        return [told[name] for name in ours], [told[name] for name in _ALWAYS if name in told]

    def _shown(self, binding: Binding) -> str:
        if binding.id == "app.help" and isinstance(self.screen.focused, Input | TextArea):
            return "f1"  # what else calls for help is a letter there
        return self.app.get_key_display(binding)

    def _placed(self) -> list[tuple[int, str, str, str]]:
        """Each with the column that it begins at. What does not fit is left out, which a … says; `?` names all."""
        ours, always = self._told()
        room = self.size.width - sum(_width(*each) for each in always)
        placed, at = [], 0
        for number, each in enumerate(ours):
            more = 0 if number == len(ours) - 1 else _width(*_MORE)
            if at + _width(*each) + more > room:
                if at + _width(*_MORE) <= room:
                    placed.append((at, *_MORE))
                    at += _width(*_MORE)
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
                self.app.simulate_key("f1" if key == _MORE[0] else key.split(",")[0])
                return


def _width(_: str, key: str, does: str) -> int:
    return len(key) + len(does) + 3
