"""A job stopped, or started, through its controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wizard.catalogue.effects.base import Effect
from wizard.diagnosis.consumers import what_it_read
from wizard.jobs.control.open import open_controller

if TYPE_CHECKING:
    from wizard.catalogue.world import World
    from wizard.jobs.control.interface import Controller


def controller_of(world: World, job: str) -> Controller:
    return open_controller(world.registry, world.registry.jobs[job])


def ahead(world: World, job: str) -> bool:
    """Whether a consumer has read rows that are gone; started, it would read them a second time, or fail."""
    return job != world.job.name and what_it_read(world.registry.jobs[job]).there is False


@dataclass(frozen=True)
class Stop(Effect):
    kind: ClassVar[str] = "stop"
    job: str
    was_running: bool

    def says(self) -> str:
        return f"stop {self.job}" + ("" if self.was_running else ", which does not run")

    def do(self, world: World) -> None:
        controller = controller_of(world, self.job)
        if controller.status().state != "stopped":
            controller.stop(say=world.say)

    def undo(self, world: World) -> None:
        if not self.was_running or ahead(world, self.job):
            return
        controller = controller_of(world, self.job)
        if controller.status().state == "stopped":
            controller.start()


@dataclass(frozen=True)
class Start(Effect):
    kind: ClassVar[str] = "start"
    job: str

    def says(self) -> str:
        return f"start {self.job}"

    def do(self, world: World) -> None:
        controller = controller_of(world, self.job)
        if controller.status().state != "running":
            controller.start()

    def undo(self, world: World) -> None:
        controller = controller_of(world, self.job)
        if controller.status().state != "stopped":
            controller.stop(say=world.say)
