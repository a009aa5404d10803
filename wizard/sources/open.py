"""Which kind of source a registry names, and whether a checkpoint has read all it has."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from wizard.checkpoint.offsets import OffsetEntry, log_offset
from wizard.checkpoint.reader import Checkpoint
from wizard.errors import BadInput, RunbookError
from wizard.secrets import mask
from wizard.sources.delta import DeltaSource
from wizard.sources.embedded_log import EmbeddedLog
from wizard.sources.interface import Ends, FileSource, Offsets, OffsetSource, TableSource, as_offsets
from wizard.sources.kafka import KafkaSource
from wizard.sources.rows import input_paths, plain, visible
from wizard.store import as_stored, exists, local_path, open_store

LOGS = ("log", "runbook-log")
FILES = ("parquet", "orc", "json", "csv", "text", "avro")


class Described(Protocol):
    """A source as the registry has it."""

    @property
    def format(self) -> str: ...
    @property
    def path(self) -> str | None: ...
    @property
    def options(self) -> dict[str, str]: ...


class Reader(Protocol):
    """A job, as far as its sources go."""

    @property
    def sources(self) -> Sequence[Described]: ...


def open_source(source: Described) -> OffsetSource | FileSource | TableSource | None:
    """None for a kind that has no reader yet; BadInput where the registry does not say where it is."""
    kind = source.format.lower()
    if kind == "kafka":
        return KafkaSource(source.options)
    if kind not in (*LOGS, *FILES, "delta"):
        return None
    if not source.path:
        raise BadInput(f"the source of format {source.format} has no path in the registry; add it")
    if kind == "delta":
        return DeltaSource(source.path, source.options)
    return LogSource(source.path, source.options) if kind in LOGS else Files(source.path)


def caught_up(job: Reader, checkpoint: Checkpoint) -> str | None:
    """That the last commit has all the sources have, in words; None where it has not, or where that cannot be seen."""
    entry = checkpoint.offsets.get(-1 if checkpoint.committed is None else checkpoint.committed)
    if not isinstance(entry, OffsetEntry) or len(entry.sources) != len(job.sources):
        return None
    try:
        done = [
            _has_all(checkpoint, open_source(source), at.id, at.offset)
            for source, at in zip(job.sources, entry.sources, strict=True)
        ]
    except RunbookError:
        return None  # not seen is not caught up
    return "the source has nothing newer" if all(done) else None


def _has_all(
    checkpoint: Checkpoint, source: OffsetSource | FileSource | TableSource | None, name: str, offset: object
) -> bool:
    if isinstance(source, OffsetSource):
        return as_offsets(offset) == source.ends().latest
    if isinstance(source, TableSource):
        done, there = source.read_up_to(offset)
        return done == there
    position = log_offset(offset)
    if source is None or position is None or name not in checkpoint.source_logs:
        return False
    read = input_paths(open_store(checkpoint.url), checkpoint.source_logs[name], up_to=position)
    return source.seen() <= {plain(path) for path in read}


class LogSource:
    dense = True

    def __init__(self, path: str, options: Mapping[str, str]) -> None:
        here = local_path(path)
        if here is None:
            raise BadInput(f"{mask(path)}: the embedded log is on a local disk; name a path")
        self.path = here
        self.topics = tuple(name.strip() for name in options.get("subscribe", "").split(",") if name.strip())
        if not self.topics:
            raise BadInput("the source of format log has no option subscribe in the registry; add the topic")

    def ends(self) -> Ends:
        logs = {topic: EmbeddedLog(self.path, topic) for topic in self.topics}
        return Ends(
            {topic: {str(p): n for p, n in log.earliest().items()} for topic, log in logs.items()},
            {topic: {str(p): n for p, n in log.latest().items()} for topic, log in logs.items()},
            {topic: log.id for topic, log in logs.items()},
        )

    def at_time(self, timestamp_ms: int) -> Offsets:
        found: Offsets = {}
        for topic in self.topics:
            log = EmbeddedLog(self.path, topic)
            latest = log.latest()
            found[topic] = {
                str(p): latest[p] if n is None else n for p, n in log.offsets_for_time(timestamp_ms).items()
            }
        return found


class Files:
    def __init__(self, path: str) -> None:
        self.path = path

    def gone(self, paths: Iterable[str]) -> tuple[list[str], list[str]]:
        asked = list(paths)
        store = open_store(self.path)
        there = dict(zip(asked, store.map(exists, map(as_stored, asked)), strict=True))
        if unasked := [path for path, seen in there.items() if seen is None]:
            raise RunbookError(f"{mask(unasked[0])} could not be looked at")
        listed = visible(store)
        hidden = [] if listed is None else [path for path in asked if there[path] and plain(path) not in listed]
        return [path for path in asked if not there[path]], hidden

    def seen(self) -> set[str]:
        store = open_store(self.path)
        listed = visible(store)
        if listed is not None:
            return listed
        found: set[str] = set()
        level = [""]
        while level:
            here = level.pop()
            listing = store.list(here)
            if listing is None or listing.error is not None:
                raise RunbookError(f"{mask(store.url)} cannot be listed: {listing.error if listing else 'not there'}")
            at = posixpath.join(store.url, here) if here else store.url
            # What begins with . or _ Spark does not read.
            found.update(plain(posixpath.join(at, name)) for name in listing.files if name[0] not in "._")
            level += [posixpath.join(here, name) for name in listing.dirs if name[0] not in "._"]
        return found
