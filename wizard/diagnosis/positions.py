"""Where a job stands in its sources: what it has committed, against the earliest and the latest they hold.

Asked only where somebody looks at one job or the fleet. What a verdict needs of a source is in held.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from wizard.checkpoint.offsets import OffsetEntry, log_offset
from wizard.checkpoint.reader import Checkpoint
from wizard.errors import RunbookError
from wizard.jobs.model import Job
from wizard.secrets import mask
from wizard.sources.interface import OffsetSource, TableSource, as_offsets
from wizard.sources.open import open_source
from wizard.sources.rows import input_paths, plain
from wizard.store import open_store


@dataclass(frozen=True)
class Position:
    """One partition of a topic in records, or one source of files in files. None where it is not known."""

    name: str
    unit: str  # record or file
    earliest: int | None
    committed: int | None
    latest: int | None
    why: str = ""  # why something is not known

    @property
    def lag(self) -> int | None:
        if self.latest is None:
            return None
        return max(0, self.latest - (self.committed if self.committed is not None else self.earliest or 0))


def positions(job: Job, checkpoint: Checkpoint) -> list[Position]:
    """One for each partition; a source that cannot be asked is one position with the reason."""
    entry = checkpoint.offsets.get(-1 if checkpoint.committed is None else checkpoint.committed)
    at = entry.sources if isinstance(entry, OffsetEntry) and len(entry.sources) == len(job.sources) else ()
    found: list[Position] = []
    for index, described in enumerate(job.sources):
        reached = at[index] if at else None
        name = described.path or described.format
        try:
            source = open_source(described)
            if source is None:
                found.append(Position(name, "record", None, None, None, f"no reader for {described.format}"))
            elif isinstance(source, OffsetSource):
                ends = source.ends()
                committed = as_offsets(reached.offset) if reached else None
                found += [
                    Position(f"{topic} {p}", "record", ends.earliest[topic].get(p),
                             (committed or {}).get(topic, {}).get(p), last)
                    for topic, parts in sorted(ends.latest.items())
                    for p, last in sorted(parts.items(), key=lambda part: int(part[0]))
                ]  # fmt: skip
            elif isinstance(source, TableSource):
                done, last = source.read_up_to(reached.offset if reached else None)
                found.append(Position(name, "version", 0, done if reached else None, last))
            else:
                there = source.seen()
                position = log_offset(reached.offset) if reached else None
                log = checkpoint.source_logs.get(reached.id) if reached else None
                read = (
                    input_paths(open_store(checkpoint.url), log, up_to=position) if log and position is not None else []
                )
                taken = {plain(path) for path in read}
                done = len(there & taken)
                found.append(Position(name, "file", 0, done, len(there)))
        except (RunbookError, OSError) as error:
            found.append(Position(name, "record", None, None, None, mask(str(error))))
    return found


def lag(found: list[Position]) -> int | None:
    """Records or files not yet committed, over all sources; None where one of them is not known."""
    each = [position.lag for position in found]
    return None if not each or None in each else sum(one for one in each if one is not None)
