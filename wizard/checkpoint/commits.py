"""`commits/<batch>`: written after the sink returned. Version 2 adds the ids of state files, version 3 the sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wizard.checkpoint.logfile import Unreadable, frame, long_of, parse_object
from wizard.store import Content

NEWEST_VERSION = 3

StateIds = dict[int, tuple[tuple[str, ...], ...]]
"""operator → partition → one id for each store"""


@dataclass(frozen=True, slots=True)
class CommitEntry:
    batch: int
    version: int
    next_watermark_ms: int | None
    state_ids: StateIds = field(default_factory=dict)
    sinks: dict[str, Any] = field(default_factory=dict)


def parse_commit(batch: int, path: str, content: Content) -> CommitEntry | Unreadable:
    framed = frame(path, content, NEWEST_VERSION, trim=True)
    if isinstance(framed, Unreadable):
        return framed
    text = framed.lines[0] if framed.lines else ""
    # `v1` alone is accepted by every Spark; 2.2 and 2.3 wrote `{}`.
    meta: dict[str, Any] | Unreadable = {} if not text.strip() else parse_object(path, text, "the commit")
    if isinstance(meta, Unreadable):
        return meta
    ids = _state_ids(path, meta.get("stateUniqueIds"))
    if isinstance(ids, Unreadable):
        return ids
    sinks = meta.get("sinkMetadataMap")
    return CommitEntry(
        batch, framed.version, long_of(meta.get("nextBatchWatermarkMs")), ids, sinks if isinstance(sinks, dict) else {}
    )


def _state_ids(path: str, value: object) -> StateIds | Unreadable:
    if value is None:
        return {}
    try:
        assert isinstance(value, dict)
        return {
            int(operator): tuple(tuple(str(store) for store in partition) for partition in partitions)
            for operator, partitions in value.items()
        }
    except (AssertionError, TypeError, ValueError):
        return Unreadable(path, "shape", "stateUniqueIds is not operator → partition → store ids")
