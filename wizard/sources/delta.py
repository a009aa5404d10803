"""A Delta table as the source of a stream: what the stream has read of it, and whether it can go on.

Spark keeps `{"reservoirId", "reservoirVersion", "index", "isStartingVersion"}`. With index −1 every version before
`reservoirVersion` has been read whole; with another one the stream is in the middle of that version, or, where
`isStartingVersion`, of the table as it was then. A stream reads commits that add, and fails on any other:

    {"reservoirVersion": 7, "index": -1}        # the commits 0 to 6, or the table as of one of them and what came after
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from wizard.checkpoint.logfile import long_of
from wizard.datafiles import DataFile
from wizard.errors import BadInput, RunbookError
from wizard.secrets import mask
from wizard.store import COMMIT_LIMIT, Store, as_stored, exists, open_store
from wizard.tables import delta_table

LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_IGNORES = ("ignoredeletes", "ignorechanges", "skipchangecommits")


@dataclass(frozen=True)
class Position:
    """Where a stream stands: `version` is the first that is not read whole."""

    table: str
    version: int
    index: int
    starting: bool

    @property
    def between(self) -> bool:
        return self.index == -1


def position(offset: Any) -> Position | None:
    """The offset of a Delta source, where it is one."""
    if not isinstance(offset, dict):
        return None
    version, index = long_of(offset.get("reservoirVersion")), long_of(offset.get("index"))
    if version is None or index is None or not isinstance(offset.get("reservoirId"), str):
        return None
    return Position(offset["reservoirId"], version, index, offset.get("isStartingVersion") is True)


class DeltaSource:
    def __init__(self, path: str, options: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.options = {name.lower(): value.lower() for name, value in (options or {}).items()}

    def still_readable(self, offset: Any) -> tuple[bool, str]:
        """Whether a stream at this offset can go on, and why. RunbookError where it cannot be told."""
        at = _known(offset)
        store = open_store(self.path)
        listing = store.list(LOG)
        if listing is None:
            return False, f"there is no Delta table at {mask(self.path)} any more"
        if listing.error is not None:
            raise RunbookError(f"{mask(self.path)}/{LOG} cannot be listed: {listing.error}")
        table = self._open()
        if str(table.metadata().id) != at.table:
            return False, f"the table was created anew: its id was {at.table}, now {table.metadata().id}"
        latest = int(table.version())
        if at.version > latest + 1:
            return False, f"the stream is at version {at.version} and the table ends at {latest}: it was taken back"
        there = {int(found[1]) for name in listing.files if (found := _COMMIT.fullmatch(name))}
        first = at.version + 1 if at.starting else at.version
        if lacking := [version for version in range(first, latest + 1) if version not in there]:
            return False, f"the log of the table no longer has version {lacking[0]}, which is to be read next"
        if at.starting and (lost := self._lost(at.version)):
            return False, lost
        for version in range(first, latest + 1):
            if what := _changes(store, version):
                ignored = [name for name in _IGNORES if self.options.get(name) == "true"]
                why = f"version {version} {what}"
                if ignored:
                    return False, f"{why}; the stream skips that ({', '.join(ignored)}) and keeps the rows it had read"
                return False, f"{why}, and a stream that reads the table fails on that"
        ahead = latest + 1 - at.version
        return (
            True,
            f"at version {at.version}, with {ahead} to come" if ahead > 0 else f"all read up to version {latest}",
        )

    def read_files(self, offset: Any) -> list[DataFile]:
        """The files whose rows a stream that has come this far holds. RunbookError where that is not known."""
        at = _known(offset)
        if ignored := [name for name in _IGNORES if self.options.get(name) == "true"]:
            raise RunbookError(f"with {ignored[0]} what the stream has read of {mask(self.path)} is not in the table")
        if not at.between:
            raise RunbookError(
                f"the stream is in the middle of version {at.version} of {mask(self.path)}; look again when it has read all"
            )
        if at.version == 0:
            return []
        table = self._open()
        if str(table.metadata().id) != at.table:
            raise RunbookError(f"{mask(self.path)} was created anew, so what the stream has read is not there any more")
        # Only what was added is ever read, so the table as it was then has it all, and nothing else.
        return self._files(at.version - 1)

    def files(self) -> list[DataFile]:
        """What a new stream would read."""
        return self._files(None)

    def rows(self) -> int | None:
        """How many rows the table holds now, by the statistics of its files; None where one of them has none."""
        import pyarrow as pa

        counts = pa.table(self._open().get_add_actions(flatten=True)).to_pydict().get("num_records", [])
        return None if None in counts else sum(counts)

    def rewritten(self) -> str | None:
        """The first commit still in the log that took rows out, in words."""
        store = open_store(self.path)
        listing = store.list(LOG)
        versions = sorted(
            int(found[1]) for name in (listing.files if listing else ()) if (found := _COMMIT.fullmatch(name))
        )
        for version, what in zip(versions, store.map(lambda each: _changes(store, each), versions), strict=True):
            if what:
                return f"version {version} of {mask(self.path)} {what}"
        return None

    def read_up_to(self, offset: Any) -> tuple[int, int]:
        """How many versions of the table a stream at this offset has read whole, and how many there are."""
        at = position(offset)
        return 0 if at is None else at.version, int(self._open().version()) + 1

    def _files(self, version: int | None) -> list[DataFile]:
        table = self._open(version)
        try:
            import pyarrow as pa

            features = set(table.protocol().reader_features or ())
            mapped = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
            if used := sorted(
                features & {"deletionVectors", "columnMapping"} | ({"columnMapping"} if mapped else set())
            ):
                raise RunbookError(f"{mask(self.path)} uses {', '.join(used)}, which is not read here")
            adds = pa.table(table.get_add_actions(flatten=True))
            uris = table.file_uris()
        except RunbookError:
            raise
        except Exception as error:  # noqa: BLE001  deltalake raises its own kinds, and panics of Rust code
            raise RunbookError(f"{mask(self.path)} cannot be read: {_one_line(error)}") from None
        if gone := [uri for uri in uris if exists(uri) is False]:
            raise RunbookError(
                f"{len(gone)} data files of version {table.version()} were vacuumed, e.g. {mask(gone[0])}"
            )
        columns = [name for name in adds.column_names if name.startswith("partition.")]
        store = open_store(self.path)
        return [
            DataFile(
                _place(store, str(row["path"])),
                "parquet",
                {name.partition(".")[2]: None if row[name] is None else str(row[name]) for name in columns},
            )
            for row in adds.select(["path", *columns]).to_pylist()
        ]

    def _lost(self, version: int) -> str | None:
        """Why the table as of the version that the stream began with cannot be read to its end."""
        try:
            uris = self._open(version).file_uris()
        except RunbookError as error:
            return str(error)
        gone = [uri for uri in uris if exists(uri) is False]
        return f"{len(gone)} data files of version {version} were vacuumed, e.g. {mask(gone[0])}" if gone else None

    def _open(self, version: int | None = None) -> Any:
        try:
            return delta_table(self.path, version=version)
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001  as above
            which = "the Delta table" if version is None else f"version {version} of the Delta table"
            raise RunbookError(f"{which} {mask(self.path)} cannot be read: {_one_line(error)}") from None


def _known(offset: Any) -> Position:
    at = position(offset)
    if at is None:
        raise RunbookError(f"{str(offset)[:100]} is not an offset of a Delta source")
    return at


def _changes(store: Store, version: int) -> str | None:
    """What of a commit a stream does not take: rows that go, or rows that are replaced."""
    removes = adds = False
    for action in _actions(store, version):
        if isinstance(action.get("remove"), dict) and action["remove"].get("dataChange", True):
            removes = True
        adds = adds or (isinstance(action.get("add"), dict) and action["add"].get("dataChange", True))
    if not removes:
        return None
    return "replaces rows" if adds else "deletes rows"


def _actions(store: Store, version: int) -> Iterator[dict[str, Any]]:
    content = store.read(f"{LOG}/{version:020d}.json", COMMIT_LIMIT)
    if not content.readable:
        raise RunbookError(
            f"version {version} of {mask(store.url)} cannot be read: {content.error or 'too large or gone'}"
        )
    try:
        for line in content.data.splitlines():
            action = json.loads(line) if line.strip() else None
            if isinstance(action, dict):
                yield action
    except (ValueError, RecursionError):
        raise RunbookError(f"version {version} of {mask(store.url)} is not JSON; restore the file") from None


def _place(store: Store, path: str) -> str:
    """The log has URI-encoded paths, relative ones but for a shallow clone's."""
    if "://" in path or path.startswith("/"):
        return as_stored(path)
    return f"{store.url.rstrip('/')}/{unquote(path)}"


def _one_line(error: BaseException) -> str:
    return mask(" ".join(str(error).split()))[:200]
