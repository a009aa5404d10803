"""The directories of a checkpoint, each listed once."""

from __future__ import annotations

from collections.abc import Iterator

from wizard.store import Listing, Store

LOGS = ("offsets", "commits")
_DEPTH = 7


def scan(store: Store) -> dict[str, Listing] | None:
    """Every directory Spark uses, by its path; None where the root is not a directory. Foreign ones are not entered."""
    root = store.list()
    if root is None:
        return None
    tree = {"": root}
    level = [name for name in root.dirs if name in (*LOGS, "sources", "state")]
    for _ in range(_DEPTH):
        if not level:
            break
        found = dict(zip(level, store.map(store.list, level), strict=True))
        tree.update({path: listing for path, listing in found.items() if listing is not None})
        level = [child for path in level if (listing := found[path]) is not None for child in _inside(path, listing)]
    return tree


def _inside(path: str, listing: Listing) -> Iterator[str]:
    if path in LOGS:
        return
    if path.startswith("sources/"):
        return
    for name in listing.dirs:
        yield f"{path}/{name}"
