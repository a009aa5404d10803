"""Files: moved to quarantine, written, kept in view. Nothing is deleted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from wizard import durable, objects
from wizard.catalogue.effects.base import Effect
from wizard.errors import WorldMoved
from wizard.store import local_path
from wizard.text import size

if TYPE_CHECKING:
    from wizard.catalogue.world import World

_BACK = ".runbook-back"  # as durable.MOVED, for the way back: it too lies beside the copy in quarantine


@dataclass(frozen=True)
class Move(Effect):
    """Entries of one directory into another, in this order; each is a file or a whole directory."""

    kind: ClassVar[str] = "move"
    source: str
    target: str
    names: tuple[str, ...]
    files: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, source: str, target: str, names: tuple[str, ...]) -> Move:
        """With what it comes to, for the preview."""
        if durable.together(source, target):
            weights = [objects.size_of(mark) for mark in objects.entries(source, names).values()]
            return cls(source, target, names, len(weights), sum(weights))
        sizes = [durable.size(durable.join(source, name)) for name in names]
        return cls(source, target, names, sum(files for files, _ in sizes), sum(each for _, each in sizes))

    def says(self) -> str:
        return f"move {self.files} files ({size(self.bytes)}) from {self.source} to {self.target}"

    def do(self, world: World) -> None:
        roots = world.roots()
        if durable.together(self.source, self.target):
            roots.check(self.source)
            roots.check(self.target)
            self._do_together()
            return
        for here, there in self._pairs():
            roots.check(here)
            roots.check(there)
            gone = not durable.exists(here)
            if gone and not durable.exists(there):
                raise WorldMoved(f"{here} is gone, and not by this walk; find out who took it")
            half = durable.exists(there + durable.MOVED)
            if not gone and not half and durable.exists(there):
                raise WorldMoved(f"{here} was moved to {there} and is there again; find out who writes to it")
            if not gone:
                durable.move(here, there)

    def undo(self, world: World) -> None:
        roots = world.roots()
        if durable.together(self.source, self.target):
            roots.check(self.source)
            self._undo_together(world)
            return
        for here, there in reversed(self._pairs()):
            half, back = there + durable.MOVED, there + _BACK
            roots.check(here)
            if durable.exists(half) and durable.moved(half) is None:
                # Killed while it still copied: the original is whole, the copy is not.
                durable.remove_tree(there)
                durable.remove(half)
            elif durable.exists(there):
                if not durable.exists(back):
                    _make_way(world, here, durable.moved(half) or {})
                durable.move(there, here, back)

    def _do_together(self) -> None:
        found = None
        if not durable.exists(self._record()):
            found = objects.entries(self.source, self.names)
            here, there = _first_parts(found), _first_parts(objects.entries(self.target, self.names))
            if gone := sorted(set(self.names) - here - there):
                raise WorldMoved(f"{self.source}/{gone[0]} is gone, and not by this walk; find out who took it")
            if there:
                raise WorldMoved(
                    f"{self.target}/{min(there)} is there already, and not by this walk; find out who put it there"
                )
        durable.move_entries(self.source, self.target, self.names, self._record(), found)

    def _undo_together(self, world: World) -> None:
        half, back = self._record(), self._record() + _BACK
        there = objects.entries(self.target, self.names)
        if durable.exists(half) and durable.moved(half) is None:
            objects.remove_entries(self.target, there)
            durable.remove(half)
        elif there:
            if not durable.exists(back):
                here, copied = objects.entries(self.source, self.names), durable.moved(half) or {}
                known = [name for name, mark in here.items() if copied.get(name) == mark]
                objects.remove_entries(self.source, known)
                for name in sorted(here.keys() - set(known)):
                    displace(world, durable.join(self.source, name))
            durable.move_entries(self.target, self.source, self.names, back)

    def _record(self) -> str:
        """Beside the copies, and another one for other names: two moves may go to one place."""
        mark = hashlib.sha256("\0".join((self.source, *self.names)).encode()).hexdigest()[:16]
        return durable.join(self.target, f".{mark}{durable.MOVED}")

    def cannot_undo(self, world: World) -> str | None:
        if durable.together(self.source, self.target):
            kept = {**objects.entries(self.source, self.names), **objects.entries(self.target, self.names)}
            gone = sorted(set(self.names) - _first_parts(kept))
            return f"{self.target}/{gone[0]} is gone from quarantine" if gone else None
        for here, there in self._pairs():
            if not durable.exists(there) and not durable.exists(here):
                return f"{there} is gone from quarantine"
        return None

    def _pairs(self) -> list[tuple[str, str]]:
        return [(durable.join(self.source, name), durable.join(self.target, name)) for name in self.names]


def _first_parts(names: Iterable[str]) -> set[str]:
    return {name.partition("/")[0] for name in names}


def _make_way(world: World, path: str, copied: dict[str, str]) -> None:
    """Displaces what has come to `path` since; what a killed move had copied and not yet deleted is no news."""
    if not durable.is_directory(path) or not copied:
        if not durable.is_directory(path) and durable.exists(path) and durable.mark(path) == copied.get(""):
            durable.remove(path)
        displace(world, path)
        return
    for below, _ in list(durable.files(path)):
        each = durable.join(path, below)
        if durable.mark(each) == copied.get(below):
            durable.remove(each)
        else:
            displace(world, each)
    durable.remove_empty_tree(path)


@dataclass(frozen=True)
class Write(Effect):
    """The bytes of one file, or its absence (`text` None). The old bytes are saved first."""

    kind: ClassVar[str] = "write"
    path: str
    text: str | None
    saved: str
    before: str | None  # SHA-256 of what is there now; None where there is no file
    about: str = ""
    ours: bool = True  # a file that Spark may rewrite: what has come since is displaced by an undo, not in its way
    until: str | None = None  # a file that a later effect of the same plan makes: once it is there, this was done

    @classmethod
    def of(cls, world: World, path: str, text: str | None, about: str, *, ours: bool = True) -> Write:
        before = durable.digest(path)
        name = f"{hashlib.sha256(path.encode()).hexdigest()[:8]}-{(before or 'none')[:8]}-{path.rsplit('/', 1)[-1]}"
        return cls(path, text, durable.join(world.quarantine, "written", name), before, about, ours)

    def says(self) -> str:
        return f"{'remove' if self.text is None else 'write'} {self.path}: {self.about}"

    def do(self, world: World) -> None:
        world.roots().check(self.path)
        now = durable.digest(self.path)
        if now == self._after() or (self.until is not None and durable.exists(self.until)):
            return
        if now != self.before:
            raise WorldMoved(f"{self.path} was changed by somebody else since it was looked at; look again")
        if self.before is not None and durable.digest(self.saved) != self.before:
            durable.copy(self.path, self.saved)
        durable.remove_drafts(self.path)
        if self.text is None:
            durable.remove(self.path)
        else:
            durable.write(self.path, self.text.encode())

    def undo(self, world: World) -> None:
        world.roots().check(self.path)
        durable.remove_drafts(self.path)
        if durable.digest(self.path) == self.before:
            return
        if durable.digest(self.path) != self._after():
            displace(world, self.path)
        if self.before is None:
            durable.remove(self.path)
        else:
            durable.copy(self.saved, self.path)

    def cannot_undo(self, world: World) -> str | None:
        now = durable.digest(self.path)
        if now == self.before:
            return None
        if self.before is not None and durable.digest(self.saved) != self.before:
            return f"{self.saved}, the copy of {self.path}, is gone or changed"
        if not self.ours and now != self._after():
            return f"{self.path} was changed since by somebody else; the old one is {self.saved}"
        return None

    def _after(self) -> str | None:
        return None if self.text is None else hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True)
class MakeDirectory(Effect):
    kind: ClassVar[str] = "make_directory"
    path: str
    there: bool = False  # whether it was there before: then it is none of ours

    @classmethod
    def of(cls, path: str) -> MakeDirectory:
        return cls(path, durable.is_directory(path))

    def says(self) -> str:
        return f"make the directory {self.path}"

    def do(self, world: World) -> None:
        world.roots().check(self.path)
        durable.make_directory(self.path)

    def undo(self, world: World) -> None:
        world.roots().check(self.path)
        if self.there:
            return
        if durable.names(self.path):
            displace(world, self.path)
        durable.remove_empty(self.path)


@dataclass(frozen=True)
class Keep(Effect):
    """Changes nothing. Notes every file below a directory, so that an undo can set aside what has come since."""

    kind: ClassVar[str] = "keep"
    root: str
    files: tuple[str, ...]
    there: bool = True  # whether the directory was there at all
    empty: tuple[str, ...] = ()  # directories without a file

    @classmethod
    def of(cls, root: str) -> Keep:
        files = tuple(below for below, _ in durable.files(root))
        return cls(root, files, durable.is_directory(durable.followed(root)), durable.empty_directories(root))

    def says(self) -> str:
        return f"note the {len(self.files)} files below {self.root}, for the way back"

    def do(self, world: World) -> None:
        world.roots().check(self.root)

    def undo(self, world: World) -> None:
        # Once: an undo that was killed begins again, and by then effects before this one may have put files back.
        mark = hashlib.sha256("\0".join((self.root, *self.files)).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        done = durable.join(world.place, "set-aside", mark)
        if durable.exists(done):
            return
        known = set(self.files)
        for below, _ in list(durable.files(self.root)):
            if below not in known:
                displace(world, durable.join(self.root, below))
        self._remove_new_directories()
        durable.write(done, self.root.encode("utf-8", "surrogateescape"))

    def _remove_new_directories(self) -> None:
        """Directories that came with the files now displaced. An empty one in a checkpoint stops Spark's start."""
        wanted = {os.path.dirname(name) for name in self.files} | set(self.empty)
        for below in reversed(durable.directories(durable.followed(self.root))):
            if below and not any(each == below or each.startswith(f"{below}/") for each in wanted):
                durable.remove_empty(durable.join(self.root, below))
        if not self.there:
            durable.remove_empty(self.root)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        return cls(str(told["root"]), tuple(told["files"]), bool(told["there"]), tuple(told.get("empty", ())))


def displace(world: World, path: str) -> None:
    """Out of the way, into the run's own directory, under the name it had. Never over what was displaced before."""
    if not durable.exists(path):
        return
    world.roots().check(path)
    below = (local_path(path) or path.partition("://")[2]).lstrip("/")
    target = durable.join(world.displaced, below)
    number = 1
    while durable.exists(target):
        number += 1
        target = durable.join(world.displaced, f"{below}.{number}")
    durable.move(path, target)
