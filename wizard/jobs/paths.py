"""One place, one name: what two paths or URLs have to do with each other, without touching anything remote.

    canonical("s3a://b/x/")   == canonical("s3://b/x")
    canonical("file:///a/./b") == canonical("/a/b")

Symlinks are followed for local paths, since two jobs that share a checkpoint through one share it all the same.
"""

from __future__ import annotations

import os.path
import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

_CHAIN = re.compile(r"^(?:[A-Za-z0-9]+::)+")  # fsspec's simplecache::s3://
_URL = re.compile(r"(?:[A-Za-z0-9]+::)*[A-Za-z][A-Za-z0-9+.\-]*:/")
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb", "local": "file"}
_GLOB = re.compile(r"[*?\[{]")


def is_url(location: str) -> bool:
    return _URL.match(location) is not None


def resolve(location: str, base: Path) -> str:
    """Against the registry's directory; a URL is left as it is."""
    return location if is_url(location) else str(base / location)


def local_path(location: str) -> Path | None:
    """The path on this machine, or None for what is elsewhere."""
    if not is_url(location):
        return Path(location)
    scheme, rest = _split(location)
    return Path(rest) if scheme == "file" else None


def canonical(location: str) -> str:
    """`scheme:/authority/path` with aliases of one store, `.`, `..`, doubled and trailing slashes and symlinks gone."""
    path = local_path(location)
    if path is not None:
        return "file:/" + os.path.realpath(path).lstrip("/")  # POSIX lets //a stay //a
    scheme, rest = _split(location)
    return f"{scheme}:{posixpath.normpath('/' + rest.lstrip('/'))}"


def _split(location: str) -> tuple[str, str]:
    location = _CHAIN.sub("", location)
    scheme, _, rest = location.partition(":")
    scheme = _SAME_STORE.get(scheme.lower(), scheme.lower())
    if scheme == "file":
        # Hadoop's file:/a, and file://host/a whose host can only be this one.
        return scheme, "/" + rest[2:].partition("/")[2] if rest.startswith("//") else rest
    if rest.startswith("//") and scheme not in ("abfs", "wasb"):  # there, what is before the @ is the container
        authority, slash, path = rest[2:].partition("/")
        rest = authority.rpartition("@")[2] + slash + path
    return scheme, rest


def above(place: str) -> Iterator[str]:
    """The canonical places that contain this one, nearest first, itself not included."""
    scheme, _, path = place.partition(":")
    while (parent := posixpath.dirname(path)) != path:
        path = parent
        yield f"{scheme}:{path}"


def is_inside(inner: str, outer: str) -> bool:
    """Both canonical; a place is inside itself. /a/bc is not inside /a/b."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def is_glob(location: str) -> bool:
    return _GLOB.search(location) is not None


def overlaps(pattern: str, place: str) -> bool:
    """Whether what a source reads (perhaps a glob) and a directory have files in common, as far as names tell."""
    for wanted, found in zip(pattern.split("/"), place.split("/"), strict=False):
        # Hadoop's {a,b} is taken for anything: a consumer too many is a question, one too few is lost data.
        if wanted != found and "{" not in wanted and not fnmatchcase(found, wanted):
            return False
    return True


_CHANGES = (
    (re.compile(r"\$\(|\$\{|\$[A-Za-z_]|`"), "is expanded by nobody here and differs from run to run"),
    (re.compile(r"%\([a-z]+\)|%[YymdHMSjFTsU](?![0-9A-Fa-f])|[yY]{4}"), "is a date format"),
    (re.compile(r"\{[^{}]*\}|<[A-Za-z_ ]+>"), "is a placeholder"),
    (re.compile(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"), "is a random id"),
    (
        re.compile(r"(?<!\d)(?:19|20)\d\d([-_/.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?(?!\d)"),
        "is a date",
    ),
    (re.compile(r"(?<!\d)(?:0[1-9]|[12]\d|3[01])([-_/.])(?:0[1-9]|1[0-2])\1(?:19|20)\d\d(?!\d)"), "is a date"),
    (re.compile(r"(?<!\d)20\d\d[-_/](?:0[1-9]|1[0-2])(?!\d)"), "is a month"),
    (re.compile(r"(?i)(?<![a-z])(?:year|month|day|date|dt|ds|hour)=\w+"), "is one day's partition"),
    (re.compile(r"(?<![\d.])1\d{9}(?:\d{3})?(?!\d)"), "is a time stamp"),
    # mkdtemp, mktemp and their like, as a whole directory name: lake/temperature_raw is none.
    (
        re.compile(r"(?i)(?<![^/])(?:tmp[a-z0-9_]{8}|tmp\.[a-z0-9]{6,}|te?mp[-_](?=[a-z]*\d)[a-z0-9]{6,})(?![^/])"),
        "is a temporary name",
    ),
)


def changing_part(location: str, base: Path) -> tuple[str, str] | None:
    """What in a path differs from day to day, and why we think so; None for a path that stays.

    What a local path has in common with the registry's own directory is as stable as the registry, and not looked at.
    """
    shown = location
    local = local_path(location)
    if local is not None and local.is_absolute():
        shared = os.path.commonpath((base, local))
        shown = os.path.relpath(local, shared) if len(shared) > 1 else str(local)
    for pattern, why in _CHANGES:
        if found := pattern.search(shown):
            return found[0], why
    return None
