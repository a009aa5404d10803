"""A Delta table emptied, or taken back: each a commit of its own, with the version before it as the way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wizard.catalogue.effects.base import Effect
from wizard.errors import WorldMoved
from wizard.sinks.delta import lost_files
from wizard.sinks.rollback import MARK
from wizard.tables import delta_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from wizard.catalogue.world import World


@dataclass(frozen=True)
class DeltaEmpty(Effect):
    kind: ClassVar[str] = "delta_empty"
    path: str
    version: int
    rows: int | None = None

    def says(self) -> str:
        return f"delete all {'' if self.rows is None else f'{self.rows} '}rows of {self.path}; version {self.version} is kept"

    def do(self, world: World) -> None:
        world.roots().check(self.path)
        table = _table(self.path)
        if _done(table, self.version, world.run, self.kind):
            return
        _unmoved(table, self.version)
        _commit(table, lambda marked: table.delete(commit_properties=marked), world.run, self.kind)

    def undo(self, world: World) -> None:
        _restore(world, self.path, self.version, self.kind)

    def cannot_undo(self, world: World) -> str | None:
        return _files_gone(self.path, self.version)


@dataclass(frozen=True)
class DeltaRestore(Effect):
    """Back to an older version; `version` is the one it is at now."""

    kind: ClassVar[str] = "delta_restore"
    path: str
    version: int
    to: int

    def says(self) -> str:
        return f"restore {self.path} from version {self.version} to version {self.to}"

    def do(self, world: World) -> None:
        world.roots().check(self.path)
        table = _table(self.path)
        if _done(table, self.version, world.run, self.kind):
            return
        _unmoved(table, self.version)
        _commit(table, lambda marked: table.restore(self.to, commit_properties=marked), world.run, self.kind)

    def undo(self, world: World) -> None:
        _restore(world, self.path, self.version, self.kind)

    def cannot_undo(self, world: World) -> str | None:
        return _files_gone(self.path, self.version)


def _table(path: str) -> DeltaTable:
    return delta_table(path)


def _commit(table: DeltaTable, act: Callable[[Any], Any], run: str, kind: str) -> None:
    """As the very next version or not at all.

    Left to itself deltalake tries again after what somebody else has committed meanwhile: a table emptied that way holds
    their rows, and our commit is not where `_done` looks for it.
    """
    from deltalake import CommitProperties
    from deltalake.exceptions import CommitFailedError

    version = table.version()
    try:
        act(CommitProperties(custom_metadata={MARK: f"{run}/{kind}"}, max_commit_retries=0))
    except CommitFailedError:
        raise _moved(version) from None


def _done(table: DeltaTable, version: int, run: str, kind: str) -> bool:
    """Whether the commit after `version` is ours: the table itself says what a killed walk cannot."""
    if table.version() == version:
        return False
    marks = {entry.get("version"): entry.get(MARK) for entry in table.history(table.version() - version)}
    return marks.get(version + 1) == f"{run}/{kind}"


def _unmoved(table: DeltaTable, version: int) -> None:
    if table.version() != version:
        raise _moved(version, f" and is at {table.version()} now")


def _moved(version: int, now: str = "") -> WorldMoved:
    return WorldMoved(
        f"the table was at version {version}{now or ' and somebody has committed since'}; look who writes to it"
    )


def _restore(world: World, path: str, version: int, kind: str) -> None:
    world.roots().check(path)
    table = _table(path)
    if not _done(table, version, world.run, kind):
        return  # it was never done; what others have committed since stays
    if not _done(table, table.version() - 1, world.run, f"undo-{version}"):
        _commit(table, lambda marked: table.restore(version, commit_properties=marked), world.run, f"undo-{version}")
        for name, job in world.registry.jobs.items():
            if any(source.format == "delta" and source.path == path for source in job.sources):
                world.say(f"{name} reads {path} as a stream and fails on its history from here on: reset {name} too")


def _files_gone(path: str, version: int) -> str | None:
    lost = lost_files(path, version)
    if isinstance(lost, str):
        return lost
    return f"{len(lost)} data files of version {version} of {path} were vacuumed, e.g. {lost[0]}" if lost else None
