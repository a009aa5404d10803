"""Where files live: a local disk or any fsspec URL, always seen as it is now.

A store answers three questions about paths below one root: what is in this directory, what are the bytes of
this file, how large is it. Local disks are read with `os` directly: a checkpoint of 50,000 files is listed in
the time fsspec needs to be imported. Nothing is cached between calls: a live checkpoint moves under the reader.
"""

from __future__ import annotations

import itertools
import os
import posixpath
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from wizard.errors import BadInput, RunbookError
from wizard.secrets import mask

T = TypeVar("T")
R = TypeVar("R")

# Hadoop's names for stores that fsspec knows under another one.
_ALIASES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "abfs", "dbfs": "dbfs", "gs": "gs"}
_REMOTE_THREADS = 32

COMMIT_LIMIT = 64 * 1024 * 1024
"""One commit of a Delta table."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One directory, listed once. `error` is set instead of names when it could not be."""

    dirs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    sizes: dict[str, int] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of one file, or why there are none: `missing`, or `error` in the store's own words."""

    data: bytes = b""
    missing: bool = False
    error: str | None = None
    too_large: int | None = None

    @property
    def readable(self) -> bool:
        return not self.missing and self.error is None and self.too_large is None


class Store:
    """Paths are relative to the root, with `/` between their parts; "" is the root itself."""

    url: str
    threads: int = 1

    def list(self, path: str = "") -> Listing | None:
        """None where there is no such directory."""
        raise NotImplementedError

    def read(self, path: str, limit: int) -> Content:
        raise NotImplementedError

    def size(self, path: str) -> int | None:
        raise NotImplementedError

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Sequence[R]:
        """Independent reads: one after the other on a disk, side by side on a remote store."""
        todo = list(items)
        if self.threads == 1 or len(todo) < 2:
            return [function(item) for item in todo]
        with ThreadPoolExecutor(min(self.threads, len(todo))) as pool:
            return list(pool.map(function, todo))


class LocalStore(Store):
    def __init__(self, root: str) -> None:
        # normpath would fold `a/../b`, which is another directory when `a` is a link.
        self.root = os.path.abspath(root) if ".." not in Path(root).parts else str(Path.cwd() / root)
        self.url = self.root

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def list(self, path: str = "") -> Listing | None:
        dirs: list[str] = []
        files: list[str] = []
        here = self._at(path)
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    # `is_dir` follows links, as Hadoop's local file system does, and needs no stat for the rest.
                    if entry.is_dir():
                        if entry.is_symlink() and _leads_back(entry.path, self.root, path):
                            continue
                        dirs.append(entry.name)
                    else:
                        files.append(entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return Listing(error=error.strerror or str(error))
        return Listing(tuple(dirs), tuple(files))

    def read(self, path: str, limit: int) -> Content:
        at = self._at(path)
        try:
            if not os.path.isfile(at):
                # A pipe or a device would block the reader for ever.
                return Content(missing=True) if not os.path.lexists(at) else Content(error="not a regular file")
            with open(at, "rb") as file:
                data = file.read(limit + 1)
            if len(data) > limit:
                return Content(too_large=os.path.getsize(at))
            return Content(data)
        except FileNotFoundError:
            return Content(missing=True)
        except OSError as error:
            return Content(error=error.strerror or str(error))

    def size(self, path: str) -> int | None:
        try:
            return os.stat(self._at(path)).st_size
        except OSError:
            return None


class RemoteStore(Store):
    """Any fsspec file system, opened without its listing cache and without its instance cache."""

    threads = _REMOTE_THREADS

    def __init__(self, url: str) -> None:
        import fsspec

        scheme, _, rest = url.partition("://")
        scheme = _ALIASES.get(scheme, scheme)
        try:
            if scheme == "s3":
                self.fs, self.root = _s3(), rest.lstrip("/")
            else:
                self.fs, self.root = fsspec.core.url_to_fs(f"{scheme}://{rest}", **_AS_IT_IS_NOW)
        except ImportError as error:
            raise BadInput(
                f"{mask(url)}: {error}; install the extra for this store, e.g. pip install 'runbook[s3]'"
            ) from None
        except ValueError as error:
            raise BadInput(f"{mask(url)}: {error}; use a path or a URL such as s3://bucket/path") from None
        self.root = self.root.rstrip("/")
        self.url = url

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}" if path else self.root

    def list(self, path: str = "") -> Listing | None:
        here = self._at(path)
        try:
            found: list[dict[str, Any]] = self.fs.ls(here, detail=True, refresh=True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Exception as error:  # noqa: BLE001  every store has exceptions of its own; each means "not listed"
            return Listing(error=_words(error))
        dirs: list[str] = []
        files: list[str] = []
        sizes: dict[str, int] = {}
        for info in found:
            full = str(info["name"]).rstrip("/")
            if full == here.rstrip("/") or full.strip("/") == here.strip("/"):
                # Object stores list the marker of a directory inside it; `ls` of a file lists the file itself.
                if info["type"] != "directory" and len(found) == 1 and not str(info["name"]).endswith("/"):
                    return None
                continue
            name = posixpath.basename(full)
            if info["type"] == "directory":
                dirs.append(name)
            else:
                files.append(name)
                sizes[name] = int(info.get("size") or 0)
        return Listing(tuple(dirs), tuple(files), sizes)

    def read(self, path: str, limit: int) -> Content:
        try:
            data: bytes = self.fs.cat_file(self._at(path), start=0, end=limit + 1)
            if len(data) > limit:
                return Content(too_large=int(self.fs.size(self._at(path)) or len(data)))
            return Content(data)
        except (FileNotFoundError, IsADirectoryError):
            return Content(missing=True)
        except Exception as error:  # noqa: BLE001  as in `list`
            return self._empty_or(path, error)

    def _empty_or(self, path: str, error: Exception) -> Content:
        """S3 answers a range request on an object of no bytes with an error (416)."""
        return Content(b"") if self.size(path) == 0 else Content(error=_words(error))

    def size(self, path: str) -> int | None:
        try:
            return int(self.fs.size(self._at(path)))
        except Exception:  # noqa: BLE001  as in `list`
            return None


_AS_IT_IS_NOW: dict[str, Any] = {"use_listings_cache": False, "skip_instance_cache": True}
_clients: dict[tuple[Any, ...], Any] = {}


def _s3() -> Any:
    """One client for all of a process: each has connections of its own, and takes a tenth of a second to make.

    A fork must not use its parent's, and other keys or another endpoint in the environment mean another client.
    """
    try:
        from wizard.s3 import S3
    except ImportError:
        raise ImportError("s3fs is not installed") from None
    told = sorted((name, value) for name, value in os.environ.items() if name.startswith(("AWS_", "RUNBOOK_STORE_")))
    who = (os.getpid(), *told)
    if who not in _clients:
        _clients[who] = S3(**_AS_IT_IS_NOW)
    return _clients[who]


def open_store(url: str) -> Store:
    """A path, `file:` in any of its spellings, or an fsspec URL."""
    if not url or "\0" in url:
        raise BadInput(f"{url!r} is not a path; give a directory or a URL such as s3://bucket/path")
    scheme, separator, _ = url.partition("://")
    if separator and scheme not in ("file", "local"):
        try:
            return RemoteStore(url)
        except RunbookError:
            raise
        except Exception as error:  # noqa: BLE001  credentials, DNS, options: each store raises its own
            raise BadInput(f"{mask(url)}: {_words(error)}; check the address and the credentials") from None
    return LocalStore(local_path(url) or url)


def exists(url: str) -> bool | None:
    """Whether a file is there; None where that could not be asked."""
    path = local_path(url)
    if path is not None:
        return os.path.exists(path)
    try:
        store = open_store(url)
        return bool(store.fs.exists(store.root)) if isinstance(store, RemoteStore) else None
    except Exception:  # noqa: BLE001  as in `list`
        return None


def changed_at(url: str) -> float | bool | None:
    """When a file was last changed, in seconds. True where its store keeps no time, False and None as `exists` has it."""
    path = local_path(url)
    try:
        if path is not None:
            return os.stat(path).st_mtime
        store = open_store(url)
        return float(store.fs.modified(store.root).timestamp()) if isinstance(store, RemoteStore) else None
    except (FileNotFoundError, NotADirectoryError):
        return False
    except Exception:  # noqa: BLE001  as in `list`
        return exists(url)


def local_path(url: str) -> str | None:
    """The local path behind `url`, or None for a remote one. Hadoop writes `file:/a`, Java `file:///a`, both URI-encoded."""
    if url.startswith(("file:", "local:")):
        rest = url.split(":", 1)[1]
        return unquote("/" + rest.lstrip("/")) if rest.startswith("/") else unquote(rest)
    return None if "://" in url else url


def as_stored(path: str) -> str:
    """A file as the logs of Spark and Delta name it, which is URI-encoded, under the name that its store knows."""
    if (local := local_path(path)) is not None:
        return local
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{unquote(rest)}"


def _leads_back(link: str, root: str, path: str) -> bool:
    """True for a link to a directory that was passed on the way to it, be it through other links: it would never end."""
    target = os.path.realpath(link).rstrip("/") + "/"
    way = itertools.accumulate(path.split("/") if path else (), posixpath.join, initial=root)
    return any((os.path.realpath(place) + "/").startswith(target) for place in way)


def _words(error: Exception) -> str:
    text = mask(" ".join(str(error).split()))
    return text[:300] or type(error).__name__
