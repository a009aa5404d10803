"""`offsets/<batch>`: what a batch was planned to read, written before it runs.

Version 1 has one line per source in plan order; version 2 (Spark 4.2+) has `<id>:<offset>` lines in any order.
Continuous mode writes an empty metadata line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wizard.checkpoint.logfile import Unreadable, batch_id, frame, long_of, parse_json, parse_object
from wizard.store import Content

NEWEST_VERSION = 2


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """`id` is the position in the plan, or the source's name where source evolution is on."""

    id: str
    kind: str
    offset: Any


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    batch: int
    version: int
    watermark_ms: int | None
    timestamp_ms: int | None
    confs: dict[str, str] = field(default_factory=dict)
    sources: tuple[SourceOffset, ...] = ()
    continuous: bool = False


def parse_offsets(batch: int, path: str, content: Content) -> OffsetEntry | Unreadable:
    framed = frame(path, content, NEWEST_VERSION)
    if isinstance(framed, Unreadable):
        return framed
    if not framed.lines:
        return Unreadable(path, "cut", "ends after its version line: cut short")
    head, rest = framed.lines[0], framed.lines[1:]
    continuous = head.strip() == ""
    meta: dict[str, Any] | Unreadable = {} if continuous else parse_object(path, head, "the metadata line")
    if isinstance(meta, Unreadable):
        return meta
    sources: list[SourceOffset] = []
    for number, line in enumerate(rest):
        source_id, text = str(number), line
        if framed.version == 2:
            source_id, colon, text = line.partition(":")
            if not colon:
                return Unreadable(path, "cut", f"line {number + 3} is not <source>:<offset>")
        parsed = _source(path, source_id, text, number)
        if isinstance(parsed, Unreadable):
            return parsed
        sources.append(parsed)
    if not sources:
        return Unreadable(path, "cut", "names no source: cut short")
    confs = meta.get("conf")
    return OffsetEntry(
        batch=batch,
        version=framed.version,
        watermark_ms=long_of(meta.get("batchWatermarkMs")),
        timestamp_ms=long_of(meta.get("batchTimestampMs")),
        confs={str(key): str(value) for key, value in confs.items()} if isinstance(confs, dict) else {},
        sources=_in_plan_order(sources),
        continuous=continuous,
    )


def _in_plan_order(sources: list[SourceOffset]) -> tuple[SourceOffset, ...]:
    """Version 2 writes numbered sources in any order; the order of named ones is not told."""
    numbered = all(batch_id(source.id) is not None for source in sources)
    return tuple(sorted(sources, key=lambda source: int(source.id)) if numbered else sources)


def _source(path: str, source_id: str, text: str, number: int) -> SourceOffset | Unreadable:
    text = text.strip()
    if text in ("-", ""):
        return SourceOffset(source_id, "none", None)
    value = parse_json(path, text, f"the offset of source {source_id}")
    if isinstance(value, Unreadable):
        # A source may write anything it can read back; only JSON that was begun and not ended is damage.
        return value if text[0] in "{[" else SourceOffset(source_id, "unknown", text[:2000])
    return SourceOffset(source_id, kind_of(value), value)


def kind_of(offset: Any) -> str:
    """The kind of source that writes offsets of this shape. A bare integer says nothing: rate, memory and others write one."""
    if not isinstance(offset, dict) or not offset:
        return "unknown"
    keys = set(offset)
    if keys == {"logOffset"}:
        return "file"
    if "reservoirId" in keys or "reservoirVersion" in keys:
        return "delta"
    if keys == {"offset", "timestamp"}:
        return "rate-micro-batch"
    values = list(offset.values())
    if all(isinstance(value, dict) and set(value) == {"value", "runTimeMs"} for value in values):
        return "rate"
    if all(isinstance(value, dict) and _partitions(value) for value in values):
        return "kafka"
    return "unknown"


def _partitions(value: dict[str, Any]) -> bool:
    return all(key.isascii() and key.isdigit() and long_of(at) is not None for key, at in value.items())


def log_offset(offset: Any) -> int | None:
    """The file source's position; Spark also takes a bare integer."""
    return long_of(offset.get("logOffset")) if isinstance(offset, dict) else long_of(offset)
