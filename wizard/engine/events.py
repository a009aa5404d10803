"""What a walk tells whoever watches: the line mode, the TUI, a script that reads `--json`. One event, one object.

The kinds and their fields are published in `events.schema.json`, beside this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Event = dict[str, Any]
Tell = Callable[[Event], None]


def event(kind: str, **says: Any) -> Event:
    return {"event": kind, **says}


def undone_in_words(told: Mapping[str, Any]) -> str:
    """What an undo came to: everything as it was, or what is not."""
    stays, left, ahead = (", ".join(told.get(name, ())) for name in ("stays", "left_stopped", "ahead"))
    rest = [f"what {stays} committed since its start stays in its checkpoint and output"] if stays else []
    rest += [f"{left} ran and was stopped for this; start it again"] if left else []
    rest += [f"{ahead} has read rows that its source no longer shows: reset it before it is started"] if ahead else []
    return "; ".join(["what can be taken back is", *rest]) if rest else "everything is as it was"
