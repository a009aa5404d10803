"""What `durable` does, on a store that has no rename, no append and no directories: any fsspec URL.

An object is there whole or not at all, so nothing here needs a draft or a sync. S3 is asked for many objects at once;
any other store one file after the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wizard.store import RemoteStore, open_store

if TYPE_CHECKING:
    from wizard.s3 import S3

_FEW = 8  # entries of a directory that are looked for one by one, and not by listing all of it


def read(url: str) -> bytes:
    fs, at = _remote(url)
    return bytes(fs.cat_file(at))


def exists(url: str) -> bool:
    fs, at = _remote(url)
    return bool(fs.exists(at))


def is_directory(url: str) -> bool:
    fs, at = _remote(url)
    try:
        return bool(fs.info(at)["type"] == "directory")
    except FileNotFoundError:
        return False


def files(url: str) -> list[tuple[str, int]]:
    """Every file below, as (path below, size), sorted; ("", size) where it is a file itself."""
    if on_s3(url) is not None:
        return sorted((rest[1:], size_of(mark)) for rest, mark in tree(url).items() if not rest.endswith("/"))
    fs, at = _remote(url)
    return sorted(
        (name[len(at) :].lstrip("/"), int(about.get("size") or 0))
        for name, about in fs.find(at, detail=True).items()
    )  # fmt: skip


def write(url: str, data: bytes) -> None:
    fs, at = _remote(url)
    fs.pipe_file(at, data)


def create(url: str, data: bytes) -> bool:
    fs, at = _remote(url)
    if (s3 := on_s3(url)) is not None:
        return s3.create(at, data)
    try:
        fs.pipe_file(at, data, mode="create")
    except FileExistsError:
        return False
    return True


def replace(url: str, old: bytes, new: bytes) -> bool:
    fs, at = _remote(url)
    if (s3 := on_s3(url)) is not None:
        return s3.replace(at, old, new)
    if not fs.exists(at) or fs.cat_file(at) != old:
        return False
    fs.pipe_file(at, new)
    return True


def remove(url: str) -> None:
    fs, at = _remote(url)
    fs.rm_file(at)


def remove_tree(url: str) -> None:
    if (s3 := on_s3(url)) is not None:
        s3.delete([_at(url) + rest for rest in tree(url)])
        return
    fs, at = _remote(url)
    if fs.exists(at):
        fs.rm(at, recursive=True)


def copy(source: str, target: str) -> None:
    """Inside one store, without the bytes passing through here."""
    fs, at = _remote(source)
    fs.cp_file(at, _at(target))


def mark(url: str) -> str | None:
    """What changes when the bytes do: ETag and size on S3, else SHA-256. None where there is no such file."""
    if on_s3(url) is not None:
        return tree(url).get("")
    fs, at = _remote(url)
    try:
        return hashlib.sha256(fs.cat_file(at)).hexdigest()
    except FileNotFoundError:
        return None


def directories(url: str) -> list[str]:
    """The markers that Hadoop leaves for directories on S3, as paths below, each before those in it. Elsewhere none."""
    return sorted(rest.strip("/") for rest in tree(url) if rest.endswith("/")) if on_s3(url) is not None else []


def remove_marker(url: str) -> None:
    """The marker of a directory that holds nothing else."""
    if (s3 := on_s3(url)) is not None and tree(url).keys() - {""} == {"/"}:
        s3.delete([_at(url) + "/"])


# --- many at once, on S3


def on_s3(*urls: str) -> S3 | None:
    """The client, where all of them are on S3."""
    if not all(url.partition("://")[0] in ("s3", "s3a", "s3n") for url in urls):
        return None
    client: S3 = _remote(urls[0])[0]
    return client


def tree(url: str) -> dict[str, str]:
    """The objects that a path stands for, with their marks: itself (""), what is below ("/a/b"), its marker ("/")."""
    return _trees([_at(url)])[0]


def entries(url: str, names: Sequence[str]) -> dict[str, str]:
    """The objects of these entries of a directory, with their marks, by their names below it."""
    if len(names) > _FEW:
        (found,) = _client(url).listed([_at(url) + "/"])
        wanted = set(names)
        return {name: told for name, told in found.items() if name.partition("/")[0] in wanted}
    trees = _trees([f"{_at(url)}/{name}" for name in names])
    return {name + rest: told for name, found in zip(names, trees, strict=True) for rest, told in found.items()}


def copy_entries(source: str, target: str, wanted: Mapping[str, str], none_there: bool = False) -> None:
    _client(source).copy_all(_at(source) + "/", _at(target) + "/", wanted, none_there)


def copy_tree(source: str, target: str, wanted: Mapping[str, str]) -> None:
    _client(source).copy_all(_at(source), _at(target), wanted)


def remove_from_tree(url: str, rests: Iterable[str]) -> None:
    _client(url).delete([_at(url) + rest for rest in rests])


def remove_entries(url: str, names: Iterable[str]) -> None:
    _client(url).delete([f"{_at(url)}/{name}" for name in names])


def size_of(mark: str) -> int:
    return int(mark.rpartition(":")[2])


def _trees(paths: Sequence[str]) -> list[dict[str, str]]:
    # `offsets` is the beginning of `offsets.old` too.
    return [
        {rest: told for rest, told in found.items() if not rest or rest[0] == "/"}
        for found in _client("s3://").listed(paths)
    ]


def _client(url: str) -> S3:
    client = on_s3(url)
    assert client is not None
    return client


def _at(url: str) -> str:
    return _remote(url)[1]


def _remote(url: str) -> tuple[Any, str]:
    store = open_store(url)
    assert isinstance(store, RemoteStore)
    return store.fs, store.root
