"""A log as it was put away: gzip, bzip2 and xz are unpacked on the way; what else a log may be packed with is named."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from wizard.errors import BadInput

_PACKED: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_OTHERS = {b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip", b"\x04\x22\x4d\x18": "lz4"}
_LONGEST = 6


def blocks_of(source: BinaryIO, size: int) -> Iterator[bytes]:
    """What a stream holds, unpacked; it may be a pipe, so it is read once and from its beginning."""
    begins = source.read(_LONGEST)
    for magic, name in _OTHERS.items():
        if begins.startswith(magic):
            raise BadInput(f"the log is packed with {name}, which is not read here; unpack it and give the text")
    stream = cast(BinaryIO, _From(begins, source))
    opened = next((kind for magic, kind in _PACKED.items() if begins.startswith(magic)), None)
    unpacked = opened(stream) if opened is not None else stream
    try:
        while block := unpacked.read(size):
            yield block
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile, EOFError) as error:
        raise BadInput(f"the packed log is damaged ({error}); unpack what is left of it and give the text") from None


class _From(io.RawIOBase):
    """A stream with the bytes in front of it that were read to see what it is."""

    def __init__(self, begins: bytes, source: BinaryIO) -> None:
        self.begins, self.source = begins, source

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self.begins:
            return self.source.read(size)
        taken = self.begins if size < 0 else self.begins[:size]
        self.begins = self.begins[len(taken) :]
        return taken
