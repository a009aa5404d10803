"""What every effect can do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from wizard.errors import ExitCode, RunbookError

if TYPE_CHECKING:
    from wizard.catalogue.world import World


class Irreversible(RunbookError):
    """An effect cannot be taken back any more; said before anything is touched."""

    exit_code = ExitCode.STOPPED


@dataclass(frozen=True)
class Effect:
    kind: ClassVar[str]

    def says(self) -> str:
        """One line for the preview: what is changed, where, how much."""
        raise NotImplementedError

    def do(self, world: World) -> None:
        """Makes the change, or what is left of it: it may have been killed half-way, or be done already."""
        raise NotImplementedError

    def undo(self, world: World) -> None:
        """Takes it back, or what is left of it. What has come since is displaced, never deleted."""
        raise NotImplementedError

    def cannot_undo(self, world: World) -> str | None:
        """Why it can no longer be taken back; None where it can."""
        return None

    def purge(self, world: World) -> tuple[int, int]:
        """Deletes for good what it keeps outside the run's own directory: how many things, how many bytes."""
        return 0, 0

    def as_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in told.items()})
