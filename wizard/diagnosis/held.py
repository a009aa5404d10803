"""What a job's sources still hold, against where its checkpoint stands: asked of the source itself.

Files are compared by the checkpoint's own log of them (wizard/sources/files.py), which needs no registry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wizard.checkpoint.logfile import batch_id
from wizard.checkpoint.offsets import OffsetEntry
from wizard.checkpoint.reader import Checkpoint
from wizard.diagnosis.findings import Finding, finding
from wizard.errors import RunbookError
from wizard.sources.delta import position
from wizard.sources.interface import Dated, Ends, Offsets, OffsetSource, TableSource, as_offsets, lost, renamed
from wizard.sources.open import Described, open_source
from wizard.store import open_store
from wizard.text import some

_LIMIT = 1 << 20


@dataclass(frozen=True)
class Held:
    """One source. `initial` is where the stream began, None where the checkpoint does not say."""

    ends: Ends
    initial: Offsets | None
    made_anew: tuple[str, ...] = ()
    kind: Literal["records"] = "records"

    def lost_after(self, offset: object) -> list[str]:
        """What a stream that stands at `offset` has still to read and no longer can; with none, where it began."""
        start = as_offsets(offset) or self.initial
        return lost(self.ends, start, None) if start else []

    @property
    def lost_at_the_beginning(self) -> list[str]:
        """What a stream that begins again does not find any more; where it began is 0 where that is not known."""
        start = self.initial or {topic: dict.fromkeys(parts, 0) for topic, parts in self.ends.earliest.items()}
        return lost(self.ends, start, None)


@dataclass(frozen=True)
class HeldTable:
    """A table that is read as a stream. `stops` says, by version, why a stream that stands there cannot go on."""

    rows: int | None
    rewritten: str | None
    """What of its history is no longer in it, where a commit took rows out."""
    stops: dict[int, str] = field(default_factory=dict)
    made_anew: tuple[str, ...] = ()
    kind: Literal["table"] = "table"

    def lost_after(self, offset: object) -> list[str]:
        at = position(offset)
        return [self.stops[at.version]] if at is not None and at.version in self.stops else []


Asked = Held | HeldTable | str
"""What a source told; a text where it could not be asked."""


def ask_sources(sources: Sequence[Described], checkpoint: Checkpoint) -> dict[str, Asked]:
    """By the checkpoint's names for them. Sources of files are left out."""
    names = [source.id for source in checkpoint.sources] or [str(number) for number in range(len(sources))]
    if len(names) != len(sources):
        return {name: f"the registry names {len(sources)} sources, the checkpoint has {len(names)}" for name in names}
    if len(names) > 1 and not all(batch_id(name) is not None for name in names):
        why = "the checkpoint knows its sources by name, and the registry does not say which is which"
        return {source.id: why for source in checkpoint.sources if source.kind != "file"}
    found: dict[str, Asked] = {}
    for name, described in zip(names, sources, strict=True):
        try:
            source = open_source(described)
            if isinstance(source, OffsetSource):
                ends = source.ends()
                log = checkpoint.source_logs.get(name)
                initial = as_offsets(log.initial) if log else None
                found[name] = Held(ends, initial, tuple(made_anew(source, ends, checkpoint, name)))
            elif isinstance(source, TableSource):
                found[name] = _table(source, checkpoint, name)
        except RunbookError as error:
            found[name] = str(error)
    return found


def made_anew(source: OffsetSource, ends: Ends, checkpoint: Checkpoint, name: str) -> list[str]:
    """Topics that are not the ones that were read: by their ids, else by where they end and the times of what was read."""
    known = topic_ids(checkpoint, name)
    if known or not isinstance(source, Dated) or checkpoint.committed is None:
        return renamed(ends, known)
    entry = checkpoint.offsets.get(checkpoint.committed)
    if not isinstance(entry, OffsetEntry) or entry.timestamp_ms is None:
        return []
    read = next((as_offsets(each.offset) for each in entry.sources if each.id == name), None)
    shorter = [
        f"{topic} partition {p} was read up to {n} and the source ends at {last}: the topic was created anew"
        for topic, parts in (read or {}).items()
        for p, n in parts.items()
        if (last := ends.latest.get(topic, {}).get(p)) is not None and n > last
    ]
    return shorter or (source.too_new(read, entry.timestamp_ms) if read else [])


def _table(source: TableSource, checkpoint: Checkpoint, name: str) -> HeldTable:
    """A stream that stands further back reads all that a later one reads, so half of the batches need not be asked for."""
    offsets = {
        at.version: each.offset
        for entry in checkpoint.offsets.values()
        if isinstance(entry, OffsetEntry)
        for each in entry.sources
        if each.id == name and (at := position(each.offset)) is not None
    }
    order = sorted(offsets)
    low, high, why = 0, len(order), ""
    while low < high:
        middle = (low + high) // 2
        can, says = source.still_readable(offsets[order[middle]])
        if can:
            high = middle
        else:
            low, why = middle + 1, says
    return HeldTable(source.rows(), source.rewritten(), dict.fromkeys(order[:low], why))


def source_findings(checkpoint: Checkpoint, held: Mapping[str, Asked]) -> Iterator[Finding]:
    done = checkpoint.offsets.get(-1 if checkpoint.committed is None else checkpoint.committed)
    for name, seen in held.items():
        if isinstance(seen, str):
            continue
        if seen.made_anew:
            yield finding("TOPIC_RECREATED", seen.made_anew[0], f"source {name}")
            continue
        at = next((s.offset for s in done.sources if s.id == name), None) if isinstance(done, OffsetEntry) else None
        if isinstance(seen, HeldTable):
            if stops := seen.lost_after(at):
                yield finding("SOURCE_REWRITTEN", f"a stream on source {name} cannot go on: {stops[0]}", str(at)[:200])
            continue
        if gone := seen.lost_after(at):
            yield finding("SOURCE_LOST", f"the source no longer has what comes next: {gone[0]}", some(gone, 3))


def topic_ids(checkpoint: Checkpoint, name: str) -> dict[str, str]:
    """The ids of the topics the checkpoint began with; the embedded log's source keeps them beside its offsets."""
    content = open_store(checkpoint.url).read(f"sources/{name}/topics", _LIMIT)
    try:
        told = json.loads(content.data) if content.readable else {}
    except ValueError:
        return {}
    return {str(topic): str(one) for topic, one in told.items()} if isinstance(told, dict) else {}
