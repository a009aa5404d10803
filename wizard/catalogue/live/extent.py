"""What a start will have to read, and about how long that takes, for the preview."""

from __future__ import annotations

from wizard.checkpoint.offsets import OffsetEntry
from wizard.checkpoint.reader import Checkpoint
from wizard.errors import RunbookError
from wizard.jobs.model import Job
from wizard.sources.interface import Offsets, OffsetSource, as_offsets
from wizard.sources.open import open_source
from wizard.text import span


def reading(job: Job, checkpoint: Checkpoint, start: Offsets | None) -> list[str]:
    """A line for each source with offsets: from where to where, how many records, and how long at the pace of before.

    `start` is where it goes on; None for the earliest there is.
    """
    lines = []
    for number, source in enumerate(job.sources):
        try:
            view = open_source(source)
            ends = view.ends() if isinstance(view, OffsetSource) else None
        except RunbookError as error:
            lines.append(f"source {number} could not be asked what there is to read: {error}")
            continue
        if ends is None:
            continue
        begin = start or ends.earliest
        count = sum(
            max(0, last - begin.get(topic, {}).get(partition, ends.earliest[topic][partition]))
            for topic, parts in ends.latest.items()
            for partition, last in parts.items()
        )
        pace = _records_per_second(checkpoint, number)
        how_long = f", about {span(count / pace)} at the pace of its last batches" if pace else ""
        lines.append(
            f"offsets {_now(checkpoint, number)} → {_told(begin)}; {count} records up to {_told(ends.latest)}{how_long}"
        )
    return lines


def _now(checkpoint: Checkpoint, number: int) -> str:
    latest = checkpoint.latest_offsets
    if latest is None or number >= len(latest.sources):
        return "(none)"
    offsets = as_offsets(latest.sources[number].offset)
    return _told(offsets) if offsets else "(none)"


def _told(offsets: Offsets) -> str:
    return ", ".join(f"{topic}/{p}:{n}" for topic, parts in offsets.items() for p, n in sorted(parts.items()))


def _records_per_second(checkpoint: Checkpoint, number: int) -> float | None:
    """From the oldest to the newest batch whose offsets were read: standstills count, so it is on the slow side."""
    entries = [each for _, each in sorted(checkpoint.offsets.items()) if isinstance(each, OffsetEntry)]
    if len(entries) < 2 or any(number >= len(each.sources) for each in (entries[0], entries[-1])):
        return None
    first, last = (as_offsets(each.sources[number].offset) for each in (entries[0], entries[-1]))
    if not first or not last or not entries[0].timestamp_ms or not entries[-1].timestamp_ms:
        return None
    seconds = (entries[-1].timestamp_ms - entries[0].timestamp_ms) / 1000
    records = sum(n - first.get(t, {}).get(p, 0) for t, parts in last.items() for p, n in parts.items())
    return records / seconds if seconds > 0 and records > 0 else None
