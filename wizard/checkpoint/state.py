"""`state/<operator>/<partition>[/<store>]/`: which versions of which store can be loaded, told by the names of files.

Batch b loads version b and writes version b + 1. A version is whole when its snapshot is there (`.snapshot`, `.zip`),
or its delta (`.delta`, `.changelog`) is and the version before it is whole. Version 0 is nothing, and always whole.
Format 2 adds the id that the commit of the batch recorded to each name: `5_<uuid>.changelog`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from wizard.checkpoint.commits import CommitEntry
from wizard.checkpoint.logfile import LOG_LIMIT, batch_id
from wizard.store import Listing, Store

_ZIP_LIMIT = 64 * 1024 * 1024
KINDS = {kind: kind for kind in ("delta", "snapshot", "zip", "changelog")}
_FULL = ("snapshot", "zip")

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class StoreFiles:
    """One store of one partition. `files` maps a kind of file to its versions and, in format 2, their ids.

    `torn` are the versions whose zip names table files that are gone: Spark takes the newest zip, and fails on it.
    """

    operator: int
    partition: int
    store: str
    files: Mapping[str, Mapping[int, frozenset[str]]]
    ssts: frozenset[str] = frozenset()
    foreign: tuple[str, ...] = ()
    ids: Mapping[int, str] = field(default_factory=dict)
    torn: frozenset[int] = frozenset()
    error: str | None = None

    @property
    def directory(self) -> str:
        base = f"state/{self.operator}/{self.partition}"
        return base if self.store == "default" else f"{base}/{self.store}"

    @property
    def provider(self) -> str | None:
        if any(self.files.get(kind) for kind in ("zip", "changelog")) or self.ssts:
            return "rocksdb"
        return "hdfs" if any(self.files.get(kind) for kind in ("delta", "snapshot")) else None

    @property
    def format(self) -> int:
        return 2 if any(uid for versions in self.files.values() for uids in versions.values() for uid in uids) else 1

    def has(self, kind: str, version: int) -> bool:
        uids = self.files.get(kind, {}).get(version)
        if uids is None:
            return False
        wanted = self.ids.get(version)
        return True if self.format == 1 or wanted is None else wanted in uids

    @cached_property
    def whole(self) -> frozenset[int]:
        versions = sorted({version for kind in self.files.values() for version in kind})
        whole: set[int] = set()
        for version in versions:
            full = any(self.has(kind, version) for kind in _FULL)
            step = any(self.has(kind, version) for kind in ("delta", "changelog"))
            if version in self.torn:
                continue
            if full or (step and (version == 1 or version - 1 in whole)):
                whole.add(version)
        return frozenset(whole)

    def base_of(self, version: int) -> tuple[str, int] | None:
        """The snapshot that loading `version` starts from."""
        for candidate in range(version, 0, -1):
            for kind in _FULL:
                if self.has(kind, candidate):
                    return kind, candidate
            if not any(self.has(kind, candidate) for kind in ("delta", "changelog")):
                return None
        return None

    def break_before(self, version: int, provider: str | None) -> str:
        """The name of the file whose absence keeps `version` from being loaded, as Spark's error would name it.

        `provider` is that of the other stores: one that has lost all its files does not show its own.
        """
        kind = self.provider or provider
        suffix = "delta" if kind == "hdfs" else "changelog" if self.files.get("changelog") else "zip"
        candidate = version
        while candidate > 1 and any(self.has(kind, candidate) for kind in KINDS):
            candidate -= 1
        uid = self.ids.get(candidate)
        return f"{self.directory}/{candidate}{'_' + uid if uid and self.format == 2 else ''}.{suffix}"


@dataclass(frozen=True)
class State:
    stores: tuple[StoreFiles, ...] = ()

    @property
    def provider(self) -> str | None:
        kinds = {store.provider for store in self.stores} - {None}
        return kinds.pop() if len(kinds) == 1 else ("mixed" if kinds else None)

    @property
    def format(self) -> int | None:
        return max((store.format for store in self.stores), default=None)

    @cached_property
    def whole(self) -> frozenset[int]:
        """The versions that every store of every partition can load."""
        if not self.stores:
            return frozenset()
        return frozenset.intersection(*(store.whole for store in self.stores))

    def lacking(self, version: int) -> tuple[StoreFiles, ...]:
        return tuple(store for store in self.stores if version and version not in store.whole)


def ranges(numbers: Iterable[int]) -> Ranges:
    """(1, 2, 3, 7) → ((1, 3), (7, 7))"""
    out: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if out and number == out[-1][1] + 1:
            out[-1] = (out[-1][0], number)
        else:
            out.append((number, number))
    return tuple(out)


def read_store_files(operator: int, partition: int, store: str, listing: Listing, ssts: Listing | None) -> StoreFiles:
    files: dict[str, dict[int, set[str]]] = {}
    foreign: list[str] = []
    for name in listing.files:
        if name[0] == ".":
            continue
        stem, _, suffix = name.partition(".")
        number, _, uid = stem.partition("_")
        kind = KINDS.get(suffix.removesuffix(".crc"))
        version = batch_id(number)
        if kind is None or version is None:
            foreign.append(name)
        elif suffix in KINDS:
            files.setdefault(kind, {}).setdefault(version, set()).add(uid)
    return StoreFiles(
        operator,
        partition,
        store,
        {kind: {version: frozenset(uids) for version, uids in versions.items()} for kind, versions in files.items()},
        frozenset(name for name in ssts.files if name[0] != ".") if ssts else frozenset(),
        tuple(sorted(foreign)),
        error=listing.error,
    )


def ids_from_commits(commits: Iterable[CommitEntry], operator: int, partition: int, index: int) -> dict[int, str]:
    """Format 2: the commit of batch b names the files of version b + 1. After one that does not, Spark looks for names
    without an id."""
    ids: dict[int, str] = {}
    for commit in commits:
        partitions = commit.state_ids.get(operator, ())
        named = partition < len(partitions) and index < len(partitions[partition])
        ids[commit.batch + 1] = partitions[partition][index] if named else ""
    return ids


def missing_ssts(store: Store, files: StoreFiles, version: int) -> tuple[str, ...] | str:
    """The table files that the zip under `version` names and that are gone; a text where the zip cannot be read."""
    base = files.base_of(version)
    if base is None or base[0] != "zip":
        return ()
    # The commit that named it may be purged; where there is but one, it is that.
    uids = {files.ids[base[1]]} if base[1] in files.ids else files.files["zip"][base[1]]
    if files.format == 2 and len(uids) != 1:
        return ()
    uid = next(iter(uids)) if files.format == 2 else ""
    path = f"{files.directory}/{base[1]}{'_' + uid if uid else ''}.zip"
    content = store.read(path, _ZIP_LIMIT)
    if not content.readable:
        return f"{path} cannot be read: {content.error or 'it is gone'}"
    try:
        with zipfile.ZipFile(io.BytesIO(content.data)) as archive, archive.open("metadata") as member:
            text = member.read(LOG_LIMIT).decode("utf-8")
        wanted = json.loads(text.partition("\n")[2]).get("sstFiles") or []
        names = [str(entry["dfsSstFileName"]) for entry in wanted]
    except Exception as error:  # noqa: BLE001  zipfile lets the errors of every codec through: zlib, lzma, struct, …
        return f"{path} is damaged: {str(error)[:100] or type(error).__name__}"
    return tuple(f"{files.directory}/SSTs/{name}" for name in names if name not in files.ssts)
