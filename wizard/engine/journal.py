"""The journal of a run: append-only, hash-chained, on disk before anything is done. It is the only state.

Each entry is one line of JSON: `seq`, `at`, `kind`, what it says, `prev` (the hash of the entry before) and `hash`
(SHA-256 over the canonical JSON of all the rest). Locally it is one file, synced after each line; on an object store,
which cannot append, each entry is an object of its own. A torn last line, from a kill in the middle of a write, was
never acknowledged: it is cut off, and said.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from wizard import durable
from wizard.errors import InDoubt, JournalUnwritable
from wizard.store import local_path, open_store

FIRST = "0" * 64
Entry = dict[str, Any]


@dataclass(frozen=True)
class Chain:
    """What a journal holds. `bad` is the first entry that does not fit, with what is wrong with it."""

    entries: tuple[Entry, ...]
    torn: str | None = None
    bad: tuple[int, str] | None = None

    @property
    def head(self) -> str:
        return str(self.entries[-1]["hash"]) if self.entries else FIRST


class Journal:
    """Open for writing. `append` returns when the entry is on disk, and never before."""

    def __init__(self, url: str, entries: tuple[Entry, ...] = ()) -> None:
        self.url = url
        self.entries = list(entries)
        self.size = sum(len(_line(entry)) for entry in entries)

    @classmethod
    def create(cls, url: str) -> Journal:
        if durable.exists(url) or durable.names(_objects(url)):
            raise InDoubt(f"{url}: the journal exists already; this run was begun before")
        return cls(url)

    @classmethod
    def reopen(cls, url: str) -> Journal:
        """To go on writing. A torn tail is cut off; a chain that does not hold is refused."""
        chain = read_chain(url)
        if chain.bad is not None:
            seq, why = chain.bad
            raise InDoubt(f"{url}: entry {seq}: {why}; this journal cannot be trusted, look at `runbook audit verify`")
        if chain.torn is not None:
            _cut(url, chain)
        return cls(url, chain.entries)

    @property
    def head(self) -> str:
        return str(self.entries[-1]["hash"]) if self.entries else FIRST

    def append(self, kind: str, **says: Any) -> Entry:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        told = {"seq": len(self.entries), "at": now, "kind": kind, **says, "prev": self.head}
        entry: Entry = json.loads(json.dumps(told))  # hashed as it will be read: a number as a key becomes text
        entry["hash"] = hash_of(entry)
        try:
            self._write(entry)
        except OSError as error:
            raise JournalUnwritable(
                f"{self.url}: the journal cannot be written ({error.strerror or error}); {self._what_now()}"
            ) from None
        self.entries.append(entry)
        return entry

    def _what_now(self) -> str:
        kinds = [entry["kind"] for entry in self.entries]
        if "intent" not in kinds:
            return "nothing was done"
        doubt = "what it was doing is in doubt; " if kinds[-1] in ("intent", "did", "undo", "undid") else ""
        command = "undo" if "undo" in kinds else "continue"
        return f"{doubt}make room or fix it, then `runbook {command} {self.entries[0]['run']}`"

    def _write(self, entry: Entry) -> None:
        line = _line(entry)
        path = local_path(self.url)
        if path is None:
            if not durable.create(_object(self.url, int(entry["seq"])), line):
                raise OSError(f"entry {entry['seq']} was written by somebody else")
            return
        new = not os.path.exists(path)
        if new and self.size:
            raise OSError("it was there, and is gone")
        if new:
            durable.make_directory(os.path.dirname(path))
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            before = os.fstat(handle).st_size
            if before != self.size:
                # Picked up elsewhere: from another machine a live lock cannot be told from a stale one.
                raise OSError(f"somebody else wrote to it: it holds {before} bytes, and was left at {self.size}")
            try:
                if os.write(handle, line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(handle)
            except OSError:
                os.ftruncate(handle, before)  # half a line is nobody's entry
                raise
        finally:
            os.close(handle)
        self.size += len(line)
        if new:
            durable.sync_directory(os.path.dirname(path))


def read_chain(url: str) -> Chain:
    """What can be read, and the first thing that is wrong. Never raises for what the file holds."""
    entries: list[Entry] = []
    prev = FIRST
    try:
        lines = list(_lines(url))
    except NotADirectoryError:
        return Chain(())  # somebody's file that is named like a run
    except OSError as error:
        return Chain((), bad=(0, f"cannot be read ({error.strerror or error})"))
    for number, line in enumerate(lines):
        if not line.endswith(b"\n"):
            if number + 1 < len(lines):
                return Chain(tuple(entries), bad=(number, "is cut short, and others follow it"))
            # The write was killed before it was acknowledged.
            return Chain(tuple(entries), torn=f"the last line, entry {number}, was never finished")
        entry = _parsed(line)
        if entry is None:
            return Chain(tuple(entries), bad=(number, "is not JSON"))
        wrong = _wrong(entry, line, number, prev)
        if wrong is not None:
            return Chain(tuple(entries), bad=(number, wrong))
        entries.append(entry)
        prev = str(entry["hash"])
    return Chain(tuple(entries))


def first_entry(url: str) -> Entry | None:
    """What a run was begun as, without reading the rest; None where that cannot be told. Its hash is not looked at."""
    path = local_path(url)
    try:
        if path is not None and os.path.exists(path):
            with open(path, "rb") as file:
                line = file.readline()
        else:
            line = durable.read(_object(url, 0)) or b""
    except OSError:
        return None
    entry = _parsed(line)
    whole = entry is not None and entry.get("kind") == "start" and {"at", "job"} <= entry.keys()
    return entry if whole else None


def hash_of(entry: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in entry.items() if key != "hash"}
    canonical = json.dumps(rest, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _wrong(entry: Entry, line: bytes, number: int, prev: str) -> str | None:
    if entry.get("seq") != number:
        return f"calls itself {entry.get('seq')}: an entry was removed, added or moved"
    if entry.get("prev") != prev:
        return "does not follow the entry before it: one of the two was changed or removed"
    if entry.get("hash") != hash_of(entry):
        return "was changed after it was written: its hash does not fit"
    if line != _line(entry):  # a key given twice, a blank: JSON reads over it, and so does the hash
        return "was changed after it was written: its bytes are not the ones this tool writes"
    return None


def _line(entry: Entry) -> bytes:
    return json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _parsed(line: bytes) -> Entry | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _lines(url: str) -> Iterator[bytes]:
    data = durable.read(url)
    if data is not None:
        yield from data.splitlines(keepends=True)
        return
    place = _objects(url)
    if names := durable.names(place):  # an entry an object: asked for one by one they would take as many answers' time
        yield from open_store(place).map(lambda name: durable.read(durable.join(place, name)) or b"", names)


def _cut(url: str, chain: Chain) -> None:
    path = local_path(url)
    data = durable.read(url)
    if path is None or data is None:
        return  # an object is there whole or not at all
    whole = sum(len(line) for line in data.splitlines(keepends=True)[: len(chain.entries)])
    try:
        os.truncate(path, whole)
    except OSError as error:
        raise JournalUnwritable(f"{url}: cannot be written ({error.strerror}); nothing was done") from None


def _objects(url: str) -> str:
    return f"{url}.d"


def _object(url: str, seq: int) -> str:
    return durable.join(_objects(url), f"{seq:08d}.json")
