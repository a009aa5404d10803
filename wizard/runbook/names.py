"""Names that are not known, and which ones were probably meant."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

_SHOWN = 80


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'job.stopped'?`, or nothing. A character that only looks right is named."""
    strange = next((character for character in name if not character.isascii()), None)
    said = ""
    if strange is not None:
        said = f"; it has U+{ord(strange):04X} {unicodedata.name(strange, 'UNNAMED')}, which only looks like a letter"
    near = difflib.get_close_matches(name[:_SHOWN], list(known), n=1, cutoff=0.6)
    return f"{said}; did you mean {near[0]!r}?" if near else said


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
