"""A program run to its end in a process of its own. It is done when the file it writes last is there."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from wizard import durable
from wizard.catalogue.effects.base import Effect
from wizard.errors import RunbookError
from wizard.jobs.control.interface import one_line, resolve_argv
from wizard.text import span

if TYPE_CHECKING:
    from wizard.catalogue.world import World

_END_SECONDS = 10


@dataclass(frozen=True)
class Program(Effect):
    """`argv` must put `done` there in one rename, and end when its stdin does: when this process is killed, so is it."""

    kind: ClassVar[str] = "program"
    argv: tuple[str, ...]
    done: str
    log: str
    about: str
    seconds: float | None = None  # estimated

    def says(self) -> str:
        return self.about + (f", about {span(self.seconds)}" if self.seconds is not None else "")

    def do(self, world: World) -> None:
        world.roots().check(self.done)
        world.roots().check(self.log)
        if durable.exists(self.done):
            return
        durable.make_directory(durable.parent(self.log))
        with Path(self.log).open("ab") as log:
            # A session of its own: Ctrl-C is for us, and what is in flight is ended here.
            child = subprocess.Popen(
                resolve_argv(self.argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
            try:
                assert child.stdout is not None
                for line in child.stdout:
                    world.say(one_line(line))
                code = child.wait()
            finally:
                _end(child)
        if code or not durable.exists(self.done):
            raise RunbookError(
                f"{self.argv[2]} ended with {code}: {self._last_line()}; nothing was changed; see {self.log}"
            )

    def undo(self, world: World) -> None:
        """What it made is in the run's own directory, and stays there until the run is purged."""

    def _last_line(self) -> str:
        lines = [line for line in Path(self.log).read_text(errors="replace").splitlines() if line.strip()]
        return one_line(lines[-1]) if lines else "it wrote nothing"


def _end(child: subprocess.Popen[str]) -> None:
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
