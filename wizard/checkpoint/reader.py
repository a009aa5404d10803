"""Reads a checkpoint as a whole: `read_checkpoint(open_store(url))`.

Each directory is listed once. The newest batches are read in full, and the oldest that a replay could go back to;
those between are known by name. What cannot be read is kept as `Unreadable`, and is for the diagnosis to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from wizard.checkpoint.barelog import BareLog, recognise
from wizard.checkpoint.commits import CommitEntry, parse_commit
from wizard.checkpoint.filelog import LogNames, read_names
from wizard.checkpoint.logfile import LOG_LIMIT, Unreadable, batch_id, parse_object
from wizard.checkpoint.offsets import OffsetEntry, SourceOffset, parse_offsets
from wizard.checkpoint.operators import StateSchema, parse_schema
from wizard.checkpoint.sourcelog import SourceLog, read_source_log
from wizard.checkpoint.state import State, missing_ssts
from wizard.checkpoint.stateful import Operator, read_operators, read_state
from wizard.checkpoint.tree import LOGS, scan
from wizard.store import Content, Listing, LocalStore, Store, exists, local_path

PARTITIONS = "spark.sql.shuffle.partitions"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PROVIDERS = ("HDFSBackedStateStoreProvider", "RocksDBStateStoreProvider")
RECENT = 24
OLDEST = 3
_KNOWN_AT_ROOT = {"metadata", ".metadata.crc"}

E = TypeVar("E")


@dataclass(frozen=True)
class Checkpoint:
    url: str
    exists: bool
    query_id: str | None = None
    metadata: Unreadable | None = None
    fence: str | None = None
    offset_names: LogNames = field(default_factory=lambda: read_names(()))
    commit_names: LogNames = field(default_factory=lambda: read_names(()))
    has_commits_dir: bool = False
    offsets: Mapping[int, OffsetEntry | Unreadable] = field(default_factory=dict)
    commits: Mapping[int, CommitEntry | Unreadable] = field(default_factory=dict)
    source_logs: Mapping[str, SourceLog] = field(default_factory=dict)
    operators: tuple[Operator, ...] = ()
    run_starts: tuple[int, ...] = ()
    schemas: tuple[StateSchema, ...] = ()
    state: State = field(default_factory=State)
    state_entries: bool = False
    lost_ssts: Mapping[str, tuple[str, ...] | str] = field(default_factory=dict)
    lost_schemas: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    state_checksums: bool = False
    damaged: tuple[Unreadable, ...] = ()
    foreign: tuple[str, ...] = ()
    unlisted: Mapping[str, str] = field(default_factory=dict)
    bare: BareLog | None = None

    @property
    def planned(self) -> int | None:
        return self.offset_names.latest

    @property
    def committed(self) -> int | None:
        return self.commit_names.latest

    @property
    def first(self) -> int | None:
        return min(self.offset_names.ids, default=None)

    @cached_property
    def in_flight(self) -> tuple[int, ...]:
        """Planned and not recorded as done. Spark 2.1 kept no commits: planning M proved M - 1 done."""
        if self.planned is None:
            return ()
        if self.committed is None and not self.has_commits_dir and self.spark_2_1:
            return (self.planned,)
        done = -1 if self.committed is None else self.committed
        return tuple(sorted(batch for batch in self.offset_names.ids if batch > done))

    @property
    def spark_2_1(self) -> bool:
        """2.1 wrote neither commits nor a `conf` into the offsets."""
        latest = self.latest_offsets
        return latest is not None and not latest.confs and latest.version == 1

    @property
    def latest_offsets(self) -> OffsetEntry | None:
        """The newest offsets that can be read."""
        return max(
            (e for e in self.offsets.values() if isinstance(e, OffsetEntry)), key=lambda e: e.batch, default=None
        )

    @property
    def state_missed(self) -> bool:
        """No state/ at all, though the watermark has moved: a query without state has hardly a use for one."""
        latest = self.latest_offsets
        return not self.state_entries and latest is not None and bool(latest.watermark_ms)

    @property
    def latest_commit(self) -> CommitEntry | None:
        return max(
            (e for e in self.commits.values() if isinstance(e, CommitEntry)), key=lambda e: e.batch, default=None
        )

    @property
    def confs(self) -> dict[str, str]:
        latest = self.latest_offsets
        return latest.confs if latest else {}

    @property
    def foreign_provider(self) -> str | None:
        """The class that keeps the state, where its files are of a form that is not known here."""
        name = self.confs.get(_PROVIDER, "").rpartition(".")[2]
        return name if name and name not in _PROVIDERS and self.operators else None

    @cached_property
    def sources(self) -> tuple[SourceOffset, ...]:
        """The newest offsets, a bare integer named after the source log beside it."""
        latest = self.latest_offsets
        return tuple(self._named(source) for source in latest.sources) if latest else ()

    def _named(self, source: SourceOffset) -> SourceOffset:
        log = self.source_logs.get(source.id)
        if source.kind in ("unknown", "none") and log and log.kind != "unknown":
            return replace(source, kind=log.kind)
        return source

    @property
    def async_progress(self) -> bool:
        """Async progress tracking leaves the same holes in offsets and commits; a lost file leaves one in one of them.
        Commits may end earlier: the last run was killed before it had written one."""
        holes = self.offset_names.holes
        done = -1 if self.committed is None else self.committed
        return len(holes) > 1 and {batch for batch in holes if batch < done} <= set(self.commit_names.holes)

    @property
    def continuous(self) -> bool:
        latest = self.latest_offsets
        return latest is not None and latest.continuous


def read_checkpoint(store: Store, recent: int = RECENT) -> Checkpoint:
    tree = scan(store)
    if tree is None:
        return Checkpoint(store.url, exists=False)
    root = tree[""]
    if (
        not root.dirs
        and "metadata" not in root.files
        and (bare := recognise(store, read_names(root.files))) is not None
    ):
        return _bare(store, root, bare, recent)
    query_id, metadata, fence = _metadata(store, root)
    names = {log: read_names(tree[log].files if log in tree else (), compacted=False) for log in LOGS}
    offsets = _entries(store, "offsets", names["offsets"], parse_offsets, recent)
    commits = _entries(store, "commits", names["commits"], parse_commit, recent)
    named: list[CommitEntry] = []
    if any(isinstance(commit, CommitEntry) and commit.state_ids for commit in commits.values()):
        # Format 2 names state files by the ids in the commits: all of them are needed.
        commits = _entries(store, "commits", names["commits"], parse_commit, len(names["commits"].ids))
        named = [commit for commit in commits.values() if isinstance(commit, CommitEntry)]
    schemas = _schemas(store, tree)
    operators, run_starts, damaged = read_operators(store, tree, _pinned_partitions(offsets), schemas)
    state = read_state(tree, operators, named)
    wanted = _versions_to_check(names["offsets"], names["commits"])
    lost_ssts = _lost_ssts(store, state, wanted)
    return Checkpoint(
        url=store.url,
        exists=True,
        query_id=query_id,
        metadata=metadata,
        fence=fence,
        offset_names=names["offsets"],
        commit_names=names["commits"],
        has_commits_dir="commits" in tree,
        offsets=offsets,
        commits=commits,
        source_logs=_source_logs(store, tree, offsets),
        operators=operators,
        run_starts=run_starts,
        schemas=schemas,
        state=_without_torn(store, state, lost_ssts),
        state_entries=bool("state" in tree and (tree["state"].dirs or tree["state"].files)),
        lost_ssts=lost_ssts,
        lost_schemas=_lost_schemas(store, operators),
        state_checksums=_visible_checksums(tree),
        damaged=damaged,
        foreign=_foreign(root),
        unlisted={path or ".": listing.error for path, listing in tree.items() if listing.error is not None},
    )


def _bare(store: Store, root: Listing, bare: BareLog, recent: int) -> Checkpoint:
    """What a single log says of the stream; nothing else is known."""
    names = read_names(root.files)
    seen = Checkpoint(
        store.url, exists=True, metadata=Unreadable("metadata", "missing", "the file is not there"), bare=bare
    )
    if bare.kind == "offsets":
        return replace(seen, offset_names=names, offsets=_entries(store, "", names, parse_offsets, recent))
    if bare.kind == "commits":
        return replace(
            seen, commit_names=names, has_commits_dir=True, commits=_entries(store, "", names, parse_commit, recent)
        )
    return seen


def _metadata(store: Store, root: Listing) -> tuple[str | None, Unreadable | None, str | None]:
    """The query id; or why there is none; and the note of a fence, where a walk put one."""
    if "metadata" not in root.files:
        return None, Unreadable("metadata", "missing", "the file is not there"), None
    content = store.read("metadata", LOG_LIMIT)
    if not content.readable:
        return None, Unreadable("metadata", "denied", f"cannot be read: {content.error or 'too large'}"), None
    if not content.data.strip():
        return None, Unreadable("metadata", "empty", "is empty: it was cut short"), None
    try:
        text = content.data.decode("utf-8")
    except UnicodeDecodeError as error:
        return None, Unreadable("metadata", "not-text", f"is not UTF-8 text (byte {error.start})"), None
    body = parse_object("metadata", text, "it")
    if isinstance(body, Unreadable):
        return None, body, None
    query_id = body.get("id")
    if isinstance(query_id, str) and query_id:
        return query_id, None, None
    fence = body.get("runbook_lock")
    return None, Unreadable("metadata", "shape", "holds no id"), str(fence) if fence is not None else None


def _entries(
    store: Store, log: str, names: LogNames, parse: Callable[[int, str, Content], E], recent: int
) -> dict[int, E]:
    ordered = sorted(names.plain)
    chosen = sorted({*ordered[:OLDEST], *(ordered[-recent:] if recent else ())})

    def one(batch: int) -> E:
        path = f"{log}/{batch}" if log else str(batch)
        return parse(batch, path, store.read(path, LOG_LIMIT))

    return dict(zip(chosen, store.map(one, chosen), strict=True))


def _source_logs(
    store: Store, tree: Mapping[str, Listing], offsets: Mapping[int, OffsetEntry | Unreadable]
) -> dict[str, SourceLog]:
    """By source. A file source always keeps a log: where its directory is gone, it is an empty one, not none at all."""
    file_sources = {
        source.id
        for entry in offsets.values()
        if isinstance(entry, OffsetEntry)
        for source in entry.sources
        if source.kind == "file"
    }
    logs = {source: SourceLog(source, "file", read_names(())) for source in sorted(file_sources)}
    for path, listing in tree.items():
        if path.startswith("sources/"):
            source = path.split("/")[1]
            logs[source] = read_source_log(store, source, listing)
    return logs


def _schemas(store: Store, tree: Mapping[str, Listing]) -> tuple[StateSchema, ...]:
    paths: list[str] = []
    for path, listing in tree.items():
        if path.endswith("/_metadata") and path.count("/") >= 3 and "schema" in listing.files:
            paths.append(f"{path}/schema")
        elif "/_stateSchema/" in path:
            paths.extend(f"{path}/{name}" for name in listing.files if name[0] != ".")
    parsed = store.map(lambda path: parse_schema(path, store.read(path, LOG_LIMIT)), sorted(paths)[:64])
    return tuple(schema for schema in parsed if isinstance(schema, StateSchema))


def _versions_to_check(offsets: LogNames, commits: LogNames) -> int | None:
    """The state version the next batch loads: M when batch M runs again, else M + 1."""
    if offsets.latest is None:
        return None
    return offsets.latest + 1 if commits.latest == offsets.latest else offsets.latest


def _lost_ssts(store: Store, state: State, version: int | None) -> dict[str, tuple[str, ...] | str]:
    if version is None or state.provider != "rocksdb":
        return {}
    todo = [files for files in state.stores if version in files.whole]
    found = store.map(lambda files: missing_ssts(store, files, version), todo)
    return {files.directory: lost for files, lost in zip(todo, found, strict=True) if lost}


def _without_torn(store: Store, state: State, lost: Mapping[str, tuple[str, ...] | str]) -> State:
    """Where the newest zip lacks its tables, older ones may lack the same: each of those stores is read to the end."""
    stores = [
        replace(files, torn=frozenset(v for v in files.files.get("zip", ()) if missing_ssts(store, files, v)))
        if files.directory in lost
        else files
        for files in state.stores
    ]
    return State(tuple(stores)) if lost else state


def _lost_schemas(store: Store, operators: tuple[Operator, ...]) -> dict[int, tuple[str, ...]]:
    """By operator, the schema files that its metadata names and that are not there. Of another kind of store than the
    checkpoint's own nothing is asked."""
    local = isinstance(store, LocalStore)
    todo = [(op.id, path) for op in operators for path in op.schema_files if (local_path(path) is not None) == local]
    there = store.map(exists, (path for _, path in todo))
    lost: dict[int, tuple[str, ...]] = {}
    for (op, path), seen in zip(todo, there, strict=True):
        if seen is False:
            lost[op] = (*lost.get(op, ()), path)
    return lost


def _pinned_partitions(offsets: Mapping[int, OffsetEntry | Unreadable]) -> int | None:
    """The number of state partitions that the newest offsets pin."""
    newest = max((e for e in offsets.values() if isinstance(e, OffsetEntry)), key=lambda e: e.batch, default=None)
    return batch_id(newest.confs.get(PARTITIONS, "")) if newest else None


def _visible_checksums(tree: Mapping[str, Listing]) -> bool:
    """Spark 4.1 wrote `N.delta.crc` beside every state file, visible; 4.2 only in format 2."""
    return any(
        name.endswith(".crc") and name[0] != "."
        for path, listing in tree.items()
        if path.startswith("state/")
        for name in listing.files[:50]
    )


def _foreign(root: Listing) -> tuple[str, ...]:
    known = {"offsets", "commits", "sources", "state"}
    strangers = [f"{name}/" for name in root.dirs if name not in known and not name.startswith(".")]
    strangers += [name for name in root.files if name not in _KNOWN_AT_ROOT and not name.startswith(".")]
    return tuple(sorted(strangers))
