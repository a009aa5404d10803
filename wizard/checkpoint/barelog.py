"""A directory that is one log and not a whole checkpoint: `offsets/`, `commits/`, `sources/0/` or `_spark_metadata/` itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wizard.checkpoint.commits import CommitEntry, parse_commit
from wizard.checkpoint.filelog import LogNames, read_entries
from wizard.checkpoint.logfile import LOG_LIMIT, Unreadable
from wizard.checkpoint.offsets import OffsetEntry, parse_offsets
from wizard.store import Store

LogKind = Literal["offsets", "commits", "file source", "file sink"]


@dataclass(frozen=True, slots=True)
class BareLog:
    kind: LogKind
    files: tuple[str, ...]
    entries: int
    """Files listed by a file log; entries of any other."""


def recognise(store: Store, names: LogNames) -> BareLog | None:
    """Told by what its newest file holds; a single file of any name counts, as in a test's resources."""
    if names.latest is not None:
        newest = names.file_name(names.latest)
        files = tuple(names.file_name(k) for k in sorted(names.ids))
    elif len(names.foreign) == 1:
        newest, files = names.foreign[0], names.foreign
    else:
        return None
    content = store.read(newest, LOG_LIMIT)
    if names.latest is not None and (listed := _file_log(store, names)) is not None:
        return listed
    commit = parse_commit(0, newest, content)
    if isinstance(commit, CommitEntry) and (commit.next_watermark_ms is not None or commit.state_ids):
        return BareLog("commits", files, len(files))
    offsets = parse_offsets(0, newest, content)
    if isinstance(offsets, OffsetEntry) and offsets.timestamp_ms is not None:
        return BareLog("offsets", files, len(files))
    return None


def _file_log(store: Store, names: LogNames) -> BareLog | None:
    assert names.latest is not None
    read = read_entries(store, "", names, names.files_up_to(names.latest))
    good = [entry for entries in read.values() if not isinstance(entries, Unreadable) for entry in entries]
    if not good:
        return None
    kind: LogKind = "file sink" if "action" in good[-1] else "file source"
    return BareLog(kind, tuple(names.file_name(k) for k in sorted(names.ids)), len(good))
