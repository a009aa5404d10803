"""`sources/<id>/`: what each source remembers beside its offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wizard.checkpoint.filelog import LogNames, read_names
from wizard.checkpoint.logfile import LOG_LIMIT, Unreadable, long_of, parse_json
from wizard.checkpoint.offsets import kind_of
from wizard.store import Content, Listing, Store


@dataclass(frozen=True, slots=True)
class SourceLog:
    """`kind` is told by what the first file holds. `initial` is where Kafka or rate began: it wins over startingOffsets."""

    id: str
    kind: str
    names: LogNames
    initial: Any = None
    problem: Unreadable | None = None


def read_source_log(store: Store, source_id: str, listing: Listing) -> SourceLog:
    names = read_names(listing.files)
    directory = f"sources/{source_id}"
    if listing.error is not None:
        return SourceLog(
            source_id, "unknown", names, problem=Unreadable(directory, "denied", f"cannot be listed: {listing.error}")
        )
    if not names.ids:
        return SourceLog(source_id, "unknown", names)
    if names.compact or len(names.ids) > 1:
        # Only the file source keeps a log that grows.
        return SourceLog(source_id, "file", names)
    only = names.file_name(min(names.ids))
    path = f"{directory}/{only}"
    kind, initial, problem = _first(path, store.read(path, LOG_LIMIT))
    return SourceLog(source_id, kind, names, initial, problem)


def _first(path: str, content: Content) -> tuple[str, Any, Unreadable | None]:
    if not content.readable:
        return "unknown", None, Unreadable(path, "denied", f"cannot be read: {content.error or 'too large or gone'}")
    # Kafka's file begins with a zero byte: Spark 2.1.0 wrote a length there.
    text = content.data.lstrip(b"\0").decode("utf-8", "replace")
    _, _, body = text.partition("\n") if text.startswith("v") else ("", "", text)
    body = body.strip()
    if not body:
        return (
            ("file", None, None)
            if text.startswith("v")
            else ("unknown", None, Unreadable(path, "empty", "is empty: it was cut short"))
        )
    value = parse_json(path, body.split("\n", 1)[0], "the first entry")
    if isinstance(value, Unreadable):
        return "unknown", None, value
    if isinstance(value, dict) and "path" in value:
        return "file", None, None
    if long_of(value) is not None:
        return "rate", value, None
    return kind_of(value), value, None
