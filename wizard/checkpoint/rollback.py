"""What of a checkpoint goes so that it ends with batch N: state, source log, offsets, commits, in this order.

A rollback that is cut off must be loud, never silent: offsets go before commits and newest first, because commits
without offsets make Spark fail where offsets without commits make it skip batches. State newer than N + 1 goes
because an old snapshot is trusted at load (HDFS, and RocksDB with changelogs). A `.crc` goes before its file: left
behind it blocks Spark's next write of that name. SST files, schemas and operator metadata stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from wizard.checkpoint.logfile import LOG_LIMIT, Unreadable, batch_id
from wizard.checkpoint.offsets import OffsetEntry, log_offset, parse_offsets
from wizard.checkpoint.reader import Checkpoint
from wizard.checkpoint.tree import LOGS, scan
from wizard.store import Listing, Store

_STATE_KINDS = ("delta", "snapshot", "zip", "changelog")


@dataclass(frozen=True, slots=True)
class Cut:
    """Files of one directory that go, in this order; `directory` is below the checkpoint."""

    directory: str
    names: tuple[str, ...]


def read_offsets(store: Store, batch: int) -> OffsetEntry | Unreadable:
    path = f"offsets/{batch}"
    return parse_offsets(batch, path, store.read(path, LOG_LIMIT))


def cuts(store: Store, checkpoint: Checkpoint, target: int, offsets: OffsetEntry) -> list[Cut]:
    """`offsets` are those of the target batch: a file source's log is cut by its offset, not by the batch's number."""
    tree = scan(store) or {}
    found = [
        *_state(tree, target),
        *_source_logs(tree, checkpoint, offsets),
        *(_log(tree, log, target) for log in LOGS),
    ]
    found += [Cut(path, _temporary(tree[path])) for path in sorted(tree) if path.startswith(("state/", "sources/"))]
    return [cut for cut in found if cut.names]


def newest_first(names: Iterable[str], after: int, *, compacted: bool = False) -> tuple[str, ...]:
    """The files of a log past `after`, each behind its checksum; and what writers that were killed have left."""
    numbered = [
        (number, not name.startswith("."), name)
        for name in names
        if (number := _number(name, compacted)) is not None and number > after
    ]
    ordered = [name for number, main, name in sorted(numbered, key=lambda each: (-each[0], each[1], each[2]))]
    return (*ordered, *sorted(name for name in names if _is_temporary(name)))


def _log(tree: Mapping[str, Listing], log: str, target: int) -> Cut:
    return Cut(log, newest_first(tree[log].files, target) if log in tree else ())


def _source_logs(tree: Mapping[str, Listing], checkpoint: Checkpoint, offsets: OffsetEntry) -> Iterator[Cut]:
    for source in offsets.sources:
        log = checkpoint.source_logs.get(source.id)
        path = f"sources/{source.id}"
        if log is None or log.kind != "file" or path not in tree:
            continue
        at = log_offset(source.offset)
        names = newest_first(tree[path].files, -1 if at is None else at, compacted=True)
        yield Cut(path, tuple(name for name in names if not _is_temporary(name)))


def _state(tree: Mapping[str, Listing], target: int) -> Iterator[Cut]:
    for path in sorted(tree):
        parts = path.split("/")
        if parts[0] != "state" or len(parts) < 3:
            continue
        if parts[2:] == ["_metadata", "v2"]:
            # One for each start of the query; a stale one is never written again.
            names = newest_first(tree[path].files, target)
            yield Cut(path, tuple(name for name in names if not _is_temporary(name)))
        elif batch_id(parts[2]) is not None and parts[-1] not in ("SSTs", "logs", "_metadata"):
            stale = [(v, name) for name in tree[path].files if (v := _version(name)) is not None and v > target + 1]
            yield Cut(path, tuple(name for _, name in sorted(stale, key=lambda each: (-each[0], each[1]))))


def _version(name: str) -> int | None:
    """`5.delta`, `5_<uuid>.zip`, their visible `.crc` (Spark's) and hidden one (Hadoop's): all are of version 5."""
    if _is_temporary(name):
        return None
    stem, _, suffix = name.removeprefix(".").partition(".")
    while suffix.endswith(".crc"):
        suffix = suffix.removesuffix(".crc")
    return batch_id(stem.partition("_")[0]) if suffix in _STATE_KINDS else None


def _number(name: str, compacted: bool) -> int | None:
    if name.startswith(".") and name.endswith(".crc"):
        name = name[1:-4]
    return batch_id(name.removesuffix(".compact") if compacted else name)


def _temporary(listing: Listing) -> tuple[str, ...]:
    return tuple(sorted(name for name in listing.files if _is_temporary(name)))


def _is_temporary(name: str) -> bool:
    """`.<name>.<uuid>.tmp`, and the checksum Hadoop keeps of it."""
    return name.startswith(".") and name.removesuffix(".crc").endswith(".tmp")
