"""Small damages to a tree of files, held in memory as path → bytes: what disks, scripts and tired people do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Tree = dict[str, bytes]

HUGE = (b"9223372036854775807", b"9223372036854775808", b"1" + b"0" * 400, b"-1", b"1e999", b"NaN", b"9" * 5000)
GARBAGE = (
    b"\xff\xfe\x00\x80",
    b"v3\n",
    b"v0\n{}",
    b"{}",
    b"null",
    b"-",
    b"[" * 5000,
    b'{"a":' * 500 + b"1" + b"}" * 500,
)
NAMES = (
    "9223372036854775807",
    "99999999999999999999",
    "007",
    "-3",
    "notes.txt",
    ".5.crc",
    ".7.abc.tmp",
    "6.compact",
    "é\n",
)


def tree_of(root: Path) -> Tree:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def write_difference(root: Path, before: Tree, after: Tree) -> None:
    """Makes the tree under `root`, which is `before`, into `after`."""
    for path in before.keys() - after.keys():
        (root / path).unlink()
    for path, data in after.items():
        if before.get(path) != data:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)


@dataclass(frozen=True)
class Mutation:
    """One damage; `file`, `at` and `pick` are taken modulo what there is, so any numbers will do."""

    kind: str
    file: int
    at: int
    pick: int

    def on(self, tree: Tree) -> None:
        if not tree:
            return
        paths = sorted(tree)
        # The logs are few among many state and data files, and are what the reader parses: they get most of the damage.
        logs = [p for p in paths if "/state/" not in p and not p.endswith((".crc", ".parquet", ".json"))] or paths
        path = (logs if self.file % 4 else paths)[(self.file // 4) % len(logs if self.file % 4 else paths)]
        KINDS[self.kind](tree, path, self.at, self.pick)


def flip(tree: Tree, path: str, at: int, pick: int) -> None:
    data = bytearray(tree[path])
    if data:
        data[at % len(data)] ^= 1 << pick % 8
    tree[path] = bytes(data)


def overwrite(tree: Tree, path: str, at: int, pick: int) -> None:
    data = tree[path]
    start = at % (len(data) + 1)
    tree[path] = data[:start] + GARBAGE[pick % len(GARBAGE)] + data[start + pick % 7 :]


def truncate(tree: Tree, path: str, at: int, pick: int) -> None:
    tree[path] = tree[path][: at % (len(tree[path]) + 1)]


def empty(tree: Tree, path: str, at: int, pick: int) -> None:
    tree[path] = b""


def delete(tree: Tree, path: str, at: int, pick: int) -> None:
    del tree[path]


def delete_directory(tree: Tree, path: str, at: int, pick: int) -> None:
    parts = path.split("/")
    stem = "/".join(parts[: 1 + at % max(1, len(parts) - 1)]) + "/"
    for inside in [other for other in tree if other.startswith(stem)]:
        del tree[inside]


def rename(tree: Tree, path: str, at: int, pick: int) -> None:
    tree[path.rpartition("/")[0] + "/" + NAMES[pick % len(NAMES)]] = tree.pop(path)


def duplicate(tree: Tree, path: str, at: int, pick: int) -> None:
    tree[path.rpartition("/")[0] + "/" + NAMES[pick % len(NAMES)]] = tree[path]


def swap(tree: Tree, path: str, at: int, pick: int) -> None:
    other = sorted(tree)[at % len(tree)]
    tree[path], tree[other] = tree[other], tree[path]


def huge_number(tree: Tree, path: str, at: int, pick: int) -> None:
    numbers = list(re.finditer(rb"\d+", tree[path]))
    if numbers:
        found = numbers[at % len(numbers)]
        tree[path] = tree[path][: found.start()] + HUGE[pick % len(HUGE)] + tree[path][found.end() :]


def repeat_line(tree: Tree, path: str, at: int, pick: int) -> None:
    lines = tree[path].split(b"\n")
    tree[path] = b"\n".join([*lines, lines[at % len(lines)]])


def drop_line(tree: Tree, path: str, at: int, pick: int) -> None:
    lines = tree[path].split(b"\n")
    del lines[at % len(lines)]
    tree[path] = b"\n".join(lines)


KINDS: dict[str, Callable[[Tree, str, int, int], None]] = {
    function.__name__: function
    for function in (
        flip, overwrite, truncate, empty, delete, delete_directory, rename, duplicate, swap, huge_number,
        repeat_line, drop_line,
    )
}  # fmt: skip
