"""An append-only partitioned log on disk with Kafka's offset semantics.

    log = EmbeddedLog.create("demo/log", "sensor-raw", partitions=2)
    log.append(0, [Record(timestamp_ms=1, key=b"s1", value=b"{}")])     # -> 0, the first offset written
    log.earliest(), log.latest()                                        # -> {0: 0, 1: 0}, {0: 1, 1: 0}
    list(log.read(0, 0, 1))

`<root>/<topic>/<partition>/<base offset>.log` are the segments; `<root>/<topic>/topic.json` holds the id that tells a
topic from another one created later under the same name. A record is written behind its length and checksum, so a
process killed in the middle of an append leaves a torn tail, never a wrong record: readers stop before it and the
next append cuts it off. Retention drops whole segments from the front; there is always a last one, which knows the
next offset even when it is empty.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from wizard.errors import BadInput, RunbookError

SEGMENT_BYTES = 256 * 1024
_HEAD = struct.Struct(">II")  # length of the body, CRC-32 of the body
_BODY = struct.Struct(">qqi")  # offset, timestamp in ms, length of the key or -1 for none


class OffsetOutOfRange(RunbookError):
    """The offsets asked for are not in the log: dropped by retention, or never written."""


class CorruptLog(RunbookError):
    """A record before the tail cannot be read: this is damage, not a torn append."""


@dataclass(frozen=True, slots=True)
class Record:
    timestamp_ms: int
    key: bytes | None
    value: bytes
    offset: int = -1


class EmbeddedLog:
    """One topic. Opening it reads `topic.json` only; every other question is answered from the disk as it is now."""

    def __init__(self, root: str | Path, topic: str) -> None:
        self.topic = topic
        self.path = Path(root) / topic
        try:
            about = json.loads((self.path / "topic.json").read_text())
            self.id = str(about["id"])
            self.partitions = tuple(range(int(about["partitions"])))
            self.segment_bytes = int(about["segment_bytes"])
        except FileNotFoundError:
            raise BadInput(f"{self.path}: there is no topic {topic!r} here; check the path and the name") from None
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{self.path}/topic.json: not a topic's description ({error}); restore it") from None

    @classmethod
    def create(
        cls, root: str | Path, topic: str, partitions: int = 1, segment_bytes: int = SEGMENT_BYTES
    ) -> EmbeddedLog:
        path = Path(root) / topic
        if (path / "topic.json").exists():
            raise BadInput(f"{path}: the topic exists already; delete it first, or open it")
        for partition in range(partitions):
            (path / str(partition)).mkdir(parents=True, exist_ok=True)
            _new_segment(path / str(partition), 0)
        about = {"id": str(uuid.uuid4()), "partitions": partitions, "segment_bytes": segment_bytes}
        # Written last and in one move: a topic either has its id and all its partitions, or is not there.
        draft = path / ".topic.json.tmp"
        draft.write_text(json.dumps(about))
        draft.rename(path / "topic.json")
        _sync_directory(path)
        return cls(root, topic)

    def earliest(self) -> dict[int, int]:
        return {partition: self._segments(partition)[0] for partition in self.partitions}

    def latest(self) -> dict[int, int]:
        """The offset the next record will get, as in Kafka: one past the last one."""
        return {partition: self._end(partition)[0] for partition in self.partitions}

    def read(self, partition: int, start: int, end: int) -> Iterator[Record]:
        """Offsets start to end − 1, every one of them or OffsetOutOfRange."""
        if start >= end:
            return
        bases = self._segments(partition)
        expected = start
        if bases[0] <= start:
            for index, base in enumerate(bases):
                if base >= end or (index + 1 < len(bases) and bases[index + 1] <= expected):
                    continue
                for record in self._scan(partition, base, last=index + 1 == len(bases)):
                    if record.offset == expected < end:
                        expected += 1
                        yield record
        if expected < end:
            raise OffsetOutOfRange(
                f"topic {self.topic} partition {partition}: offsets {expected} to {end - 1} are not in the log any more"
                f" (it holds {self._segments(partition)[0]} to {self._end(partition)[0] - 1})"
            )

    def offsets_for_time(self, timestamp_ms: int) -> dict[int, int | None]:
        """The first offset at or after the time, per partition; None where every record is older, as in Kafka."""
        found: dict[int, int | None] = {}
        for partition in self.partitions:
            start, end = self._segments(partition)[0], self._end(partition)[0]
            records = self.read(partition, start, end)
            found[partition] = next((r.offset for r in records if r.timestamp_ms >= timestamp_ms), None)
        return found

    def append(self, partition: int, records: Iterable[Record]) -> int:
        """Durable when it returns; the offset of the first record written."""
        with self._writer(partition):
            first, base, size = self._end(partition)
            path = self._segment(partition, base)
            os.truncate(path, size)  # what a killed append left behind; nothing readable is ever cut
            offset = first
            file = path.open("ab")
            try:
                for record in records:
                    if size >= self.segment_bytes:
                        _flush(file)
                        file.close()
                        path = _new_segment(path.parent, offset)
                        file, size = path.open("ab"), 0
                    size += file.write(_encode(record, offset))
                    offset += 1
                _flush(file)
            finally:
                file.close()
            return first

    def drop_before(self, partition: int, offset: int) -> int:
        """Retention: drops the segments that end at or before the offset; returns the new earliest offset.

        With an offset at or past the end a new, empty segment is begun first, as Kafka rolls an aged active one.
        """
        with self._writer(partition):
            end, base, _ = self._end(partition)
            directory = self.path / str(partition)
            if offset >= end and base != end:
                _new_segment(directory, end)
            bases = self._segments(partition)
            for current, following in pairwise(bases):
                if following <= offset:
                    # Oldest first: killed in between, the log still has no hole.
                    self._segment(partition, current).unlink()
            _sync_directory(directory)
            return self._segments(partition)[0]

    def _segments(self, partition: int) -> list[int]:
        directory = self.path / str(partition)
        try:
            bases = sorted(int(path.stem) for path in directory.glob("*.log") if path.stem.isdigit())
        except OSError as error:
            raise CorruptLog(f"{directory}: cannot be listed ({error.strerror}); restore the partition") from None
        if not bases:
            raise CorruptLog(f"{directory}: holds no segment, so the next offset is unknown; restore the partition")
        return bases

    def _segment(self, partition: int, base: int) -> Path:
        return self.path / str(partition) / f"{base:020d}.log"

    def _end(self, partition: int) -> tuple[int, int, int]:
        """The next offset, the base of the last segment, and how many of its bytes are whole records."""
        base = self._segments(partition)[-1]
        offset, size = base, 0
        for record in self._scan(partition, base, last=True):
            offset = record.offset + 1
            size += _HEAD.size + _BODY.size + len(record.key or b"") + len(record.value)
        return offset, base, size

    def _scan(self, partition: int, base: int, *, last: bool) -> Iterator[Record]:
        path = self._segment(partition, base)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return  # retention was faster; `read` finds the offsets missing and says so
        at, expected = 0, base
        while at < len(data):
            record, at_next = _decode(data, at)
            if record is None or record.offset != expected:
                if last:
                    return
                raise CorruptLog(f"{path}: byte {at}: no valid record with offset {expected}; restore this segment")
            yield record
            at, expected = at_next, expected + 1

    @contextmanager
    def _writer(self, partition: int) -> Iterator[None]:
        with (self.path / str(partition) / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _encode(record: Record, offset: int) -> bytes:
    key_length = -1 if record.key is None else len(record.key)
    body = _BODY.pack(offset, record.timestamp_ms, key_length) + (record.key or b"") + record.value
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def _decode(data: bytes, at: int) -> tuple[Record | None, int]:
    start = at + _HEAD.size
    if start > len(data):
        return None, at
    length, checksum = _HEAD.unpack_from(data, at)
    body = data[start : start + length]
    if len(body) < max(length, _BODY.size) or zlib.crc32(body) != checksum:
        return None, at
    offset, timestamp, key_length = _BODY.unpack_from(body)
    split = _BODY.size + max(key_length, 0)
    key = None if key_length < 0 else body[_BODY.size : split]
    return Record(timestamp, key, body[split:], offset), start + length


def _new_segment(directory: Path, base: int) -> Path:
    path = directory / f"{base:020d}.log"
    path.touch()
    _sync_directory(directory)
    return path


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    # Without this a power cut can forget the file's name though its bytes were synced.
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
