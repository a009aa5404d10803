"""The last batches as a small chart: how long each took, which are committed, in flight, and where the job began anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wizard.text import span
from wizard.tui.words import lines, says

if TYPE_CHECKING:
    from wizard.tui.looks import Batches

_BARS = "▁▂▃▄▅▆▇█"


def timeline(batches: Batches | None, width: int) -> Any:
    """Four rows; a column for each of the last batches."""
    if batches is None:
        return says("no batch has been planned")
    times = batches.planned_ms
    shown = sorted(times)[-max(10, width - 14) :]
    last = shown[-1]
    took = {batch: _took(times, batch) for batch in shown}
    longest = max((each for each in took.values() if each is not None), default=0)
    bars = "".join(_bar(took[batch], longest) for batch in shown)
    marks = "".join("?" if batch in batches.open else "✓" for batch in shown)
    begun = "".join("↻" if batch in batches.restarts else " " for batch in shown)
    ends = f"{shown[0]}" + f"{last}".rjust(max(1, len(shown) - len(str(shown[0])))) if len(shown) > 1 else f"{last}"
    rows = [
        says(("to the next  ", "dim"), bars, (f"  longest {span(longest / 1000)}" if longest else "", "dim")),
        says(("committed ✓  ", "dim"), marks, ("  ? in flight" if "?" in marks else "", "bold")),
    ]
    if begun.strip():
        rows.append(says(("stood still  ", "dim"), begun, ("  ↻ began anew", "dim")))
    rows.append(says(("batch        ", "dim"), ends))
    return lines(rows)


def _took(times: dict[int, int | None], batch: int) -> int | None:
    now, then = times.get(batch), times.get(batch + 1)
    return None if now is None or then is None else max(0, then - now)


def _bar(took: int | None, longest: int) -> str:
    if took is None:
        return "·"
    return _BARS[min(len(_BARS) - 1, took * len(_BARS) // (longest + 1))]
