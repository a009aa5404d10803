"""`state/<op>/_metadata/` and the schemas of state: which stateful operators the query had (Spark 4.0 and later say so)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from wizard.checkpoint.logfile import LOG_LIMIT, Unreadable, frame, long_of, parse_object
from wizard.store import Content, Store

NEWEST_METADATA = 2
NEWEST_SCHEMA = 3


@dataclass(frozen=True, slots=True)
class StoreInfo:
    name: str
    partitions: int | None
    schema_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    path: str
    operator: int
    name: str
    stores: tuple[StoreInfo, ...]


def read_operator_metadata(store: Store, path: str) -> OperatorMetadata | Unreadable:
    framed = frame(path, store.read(path, LOG_LIMIT), NEWEST_METADATA)
    if isinstance(framed, Unreadable):
        return framed
    if not framed.lines:
        return Unreadable(path, "cut", "ends after its version line: cut short")
    body = parse_object(path, framed.lines[0], "the operator's metadata")
    if isinstance(body, Unreadable):
        return body
    info, stores = body.get("operatorInfo"), body.get("stateStoreInfo")
    if not isinstance(info, dict) or not isinstance(stores, list) or long_of(info.get("operatorId")) is None:
        return Unreadable(path, "shape", "has no operatorInfo with an operatorId")
    return OperatorMetadata(
        path,
        info["operatorId"],
        str(info.get("operatorName")),
        tuple(_store_info(entry) for entry in stores if isinstance(entry, dict)),
    )


def _store_info(entry: dict[str, Any]) -> StoreInfo:
    # 4.0.0 wrote one path, later releases a list.
    paths = entry.get("stateSchemaFilePaths") or [entry.get("stateSchemaFilePath")]
    return StoreInfo(
        str(entry.get("storeName")),
        long_of(entry.get("numPartitions")),
        tuple(path for path in paths if isinstance(path, str)) if isinstance(paths, list) else (),
    )


@dataclass(frozen=True, slots=True)
class StateSchema:
    path: str
    version: int
    columns: tuple[tuple[str, str, str], ...]
    """(column family, key schema, value schema), the schemas as Spark's JSON"""


def parse_schema(path: str, content: Content) -> StateSchema | Unreadable:
    """Java's `writeUTF` strings in chunks: v1 and v2 hold one key and value, v3 one of each for every column family."""
    if not content.readable:
        return Unreadable(path, "denied", f"cannot be read: {content.error or 'it is gone or too large'}")
    reader = _Utf(content.data)
    try:
        text = reader.utf()
        if not text.startswith("v") or not text[1:].isdigit():
            return Unreadable(path, "version", f"does not start with a version but with {text[:20]!r}")
        version = int(text[1:6])
        if version > NEWEST_SCHEMA:
            return Unreadable(path, "newer", f"is version v{version}; versions up to v{NEWEST_SCHEMA} are known")
        if version < 3:
            one = reader.chunks if version == 2 else reader.utf
            return StateSchema(path, version, (("default", one(), one()),))
        families = []
        for _ in range(reader.count()):
            families.append((reader.utf(), reader.schema(), reader.schema()))
            reader.chunks()  # how the key is encoded
            reader.chunks()  # the user's key encoder
        return StateSchema(path, version, tuple(families))
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        return Unreadable(path, "cut", f"ends in the middle of a schema ({error})")


class _Utf:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def utf(self) -> str:
        (length,) = struct.unpack_from(">H", self.data, self.at)
        start, self.at = self.at + 2, self.at + 2 + length
        if self.at > len(self.data):
            raise ValueError("a string runs past the end")
        return self.data[start : self.at].decode("utf-8")

    def count(self) -> int:
        (number,) = struct.unpack_from(">i", self.data, self.at)
        self.at += 4
        if not 0 <= number <= len(self.data):
            raise ValueError(f"a count of {number}")
        return int(number)

    def chunks(self) -> str:
        return "".join(self.utf() for _ in range(self.count()))

    def schema(self) -> str:
        """Later releases put the id of the schema, two bytes, before its chunks; 4.0.0 did not.
        A count of chunks is small and never 0, so the first four bytes tell which it is."""
        (ahead,) = struct.unpack_from(">i", self.data, self.at)
        if not 0 < ahead <= 0xFFFF:
            self.at += 2
        return self.chunks()
