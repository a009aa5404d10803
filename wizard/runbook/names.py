"""Names that are not known, and which ones were probably meant."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from itertools import islice

_SHOWN = 80
_COMPARED = 120  # all names of a kind in the catalogue; among the steps of a file made to hurt it would take minutes


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'job.stopped'?`, or nothing. A character that only looks right is named."""
    strange = next((character for character in name if not character.isascii()), None)
    said = ""
    if strange is not None:
        said = f"; it has U+{ord(strange):04X} {unicodedata.name(strange, 'UNNAMED')}, which only looks like a letter"
    among = list(islice(known, _COMPARED + 1))
    near = difflib.get_close_matches(name[:_SHOWN], among, n=1, cutoff=0.6) if len(among) <= _COMPARED else []
    return f"{said}; did you mean {near[0]!r}?" if near else said


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
