"""Text for a terminal: colour where it is wanted, columns that line up, times as people say them."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import IO

_CODES = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "bold": "1", "dim": "2"}

MARKS = {"safe": ("✓", "green"), "risky": ("!", "yellow"), "blocked": ("✗", "red"), "unknown": ("?", "cyan")}
SEVERITIES = {"error": ("✗", "red"), "warning": ("!", "yellow"), "info": ("·", "dim")}


_NARROWEST = 20


class Paint:
    """`Paint(sys.stdout)("text", "red", "bold")`: no colour where it is not a terminal, or NO_COLOR is set."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        stream = stream or sys.stdout
        self.on = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def __call__(self, text: str, *styles: str) -> str:
        if not self.on or not styles:
            return text
        codes = ";".join(_CODES[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"


def can_be_drawn_on() -> bool:
    """Whether somebody sits at a terminal, and one whose cursor can be moved: inside Emacs, or on a serial line, it cannot."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


def printable(text: str) -> str:
    """What comes out of a file may hold a terminal's escapes or line breaks; a screen gets neither."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def some(items: Sequence[int] | Sequence[str], most: int = 5) -> str:
    shown = ", ".join(str(item) for item in items[:most])
    return f"{shown}, … ({len(items)} in all)" if len(items) > most else shown


def plural(count: int, one: str, many: str | None = None) -> str:
    """`plural(1, "file")` is "1 file", `plural(2, "file")` is "2 files"."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def batches(ids: Sequence[int]) -> str:
    """`batch 4`, or `batches 4, 5`."""
    return f"batch{'' if len(ids) == 1 else 'es'} {some(ids)}"


def is_are(count: int) -> str:
    return "is" if count == 1 else "are"


def ago(at_ms: int | None, now_ms: float | None = None) -> str:
    if at_ms is None:
        return "–"
    seconds = ((now_ms if now_ms is not None else time.time() * 1000) - at_ms) / 1000
    if seconds < 0:
        return "in the future"
    return f"{span(seconds)} ago"


def moment(at_ms: int) -> str:
    """A time of the stream, which may lie anywhere: 2024-01-01 00:01:15 UTC."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{at_ms} ms"


def span(seconds: float) -> str:
    for size, unit in ((86_400 * 365, "y"), (86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: int | None) -> str:
    if count is None:
        return "–"
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def fold(text: str, indent: int, width: int | None) -> list[str]:
    """The lines of a text that begins at column `indent`, the later ones indented to it; one line without a width.
    A path or a name is never broken: it is to be copied."""
    room = 0 if width is None else width - indent
    if width is None or len(text) <= room or room < _NARROWEST:
        return [text]
    first, *more = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return [first, *(" " * indent + line for line in more)]


def width_of(stream: IO[str]) -> int | None:
    """How wide a terminal is; None for a pipe or a file, whose lines a script takes whole."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def columns(rows: list[list[str]], gap: str = "  ") -> list[str]:
    """Rows of plain cells, padded; the last column is left as it is."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [
        gap.join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)), row[-1]]) for row in rows
    ]
