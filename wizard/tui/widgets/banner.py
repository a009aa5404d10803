"""What every screen begins with: what this is, and whether it is real."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

_WORDS = {
    "live": ("LIVE", "changes are real"),
    "dry run": ("DRY RUN", "nothing is changed"),
    "rehearsal": ("REHEARSAL", "on a clone, nothing live is touched"),
    "undo": ("TAKING BACK", "changes are real"),
    "look": ("LOOKING", "nothing is changed"),
}


class Banner(Static):
    """One line, in the colour of the mode and with its name: the word says it where there is no colour."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = ("look", "", "")

    def show(self, mode: str, title: str, more: str = "") -> None:
        self._shown = (mode, title, more)
        for each in _WORDS:
            self.set_class(each == mode, f"-{each.replace(' ', '-')}")
        self._draw()

    def on_resize(self) -> None:
        if self._shown[1]:
            self._draw()

    def _draw(self) -> None:
        mode, title, more = self._shown
        word, means = _WORDS[mode]
        wide = self.app.size.width >= 100
        parts: list[str | tuple[str, str]] = [(f" {'▐▌' if mode == 'live' else '▌'} {word} ", "bold reverse")]
        parts.append(f" {title}")
        if wide:
            parts.append(f"  ({means})")
        if more:
            parts.append(f"  {more}")
        self.update(Content.assemble(*parts))
