"""Text for the widgets. Whatever comes from outside goes through here: no markup in it is believed, no escape shown."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content

from wizard.text import printable

MARKS = {"holds": ("✓", "$text-success"), "fails": ("✗", "$text-error"), "unknown": ("?", "$text-warning")}
VERDICTS = {
    "safe": ("✓", "$text-success"),
    "risky": ("!", "$text-warning"),
    "blocked": ("✗", "$text-error"),
    "unknown": ("?", "$text-accent"),
}
SEVERITIES = {"error": ("✗", "$text-error"), "warning": ("!", "$text-warning"), "info": ("·", "dim")}

Part = str | tuple[str, str] | Content


def says(*parts: Part) -> Content:
    """Parts next to each other; a part with a style is a pair."""
    return Content.assemble(*(part if isinstance(part, Content) else _clean(part) for part in parts))


def lines(rows: Iterable[Content | str]) -> Content:
    return Content("\n").join(row if isinstance(row, Content) else Content(_whole(row)) for row in rows)


def _clean(part: str | tuple[str, str]) -> str | tuple[str, str]:
    return _whole(part) if isinstance(part, str) else (_whole(part[0]), part[1])


def _whole(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
