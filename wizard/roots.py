"""The places a walk may change, and no others: links, `..` and names that merely begin alike are seen through."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable

from wizard.errors import RunbookError
from wizard.store import local_path


class OutsideRoots(RunbookError):
    """Something would have been changed that the registry does not declare."""


class Roots:
    """`real` are the places that roots which are links themselves led to when the walk began; see `behind_links`."""

    def __init__(self, urls: Iterable[str], real: Iterable[str] = ()) -> None:
        self.urls = tuple(urls)
        self.places = (*(_place(url) for url in self.urls), *real)

    def check(self, url: str) -> None:
        """Raises unless `url` is one of the roots or below one, where it really is and not where it is spelt."""
        place = _place(url)
        if not any(place == root or place.startswith(root + "/") for root in self.places):
            raise OutsideRoots(
                f"{url} is outside what this walk may change ({', '.join(self.urls)}); nothing was done to it"
            )


def behind_links(urls: Iterable[str]) -> list[str]:
    """Where declared places that are links lead to now. Kept from the start: one that is re-pointed leads outside."""
    paths = [path for url in urls if (path := local_path(url)) is not None]
    return sorted({os.path.realpath(path) for path in paths if os.path.islink(path.rstrip("/"))})


def _place(url: str) -> str:
    path = local_path(url)
    if path is None:
        scheme, _, rest = url.partition("://")
        if ".." in rest.split("/"):
            raise OutsideRoots(f"{url} has `..` in it; write the path out")
        return f"{scheme}://{posixpath.normpath(rest)}"
    # The last part itself may be a link that is to be moved; what it lies in must not lead elsewhere.
    name = os.path.basename(path.rstrip("/"))
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(os.path.dirname(path.rstrip("/")) or "."), name)
