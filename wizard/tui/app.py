"""The app: what owns the walk, the looks and the way out.

    RunbookApp(registry, lambda app: app.walk_of("sensor-raw-ingest", "reset")).run()

The engine runs in a thread that the app owns (walker.py). Quitting never cuts it: the app waits until what is in flight
is done, and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.screen import Screen

from wizard.errors import ExitCode
from wizard.tui.background import Lookout
from wizard.tui.looks import read_registry
from wizard.tui.themes import THEMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wizard.engine.operator import Operator
    from wizard.jobs.model import Job, Registry
    from wizard.tui.screens.walk import WalkScreen
    from wizard.tui.walker import Walker


class RunbookApp(App[int]):
    CSS_PATH = "style.tcss"
    TITLE = "runbook"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (20, "-short"), (34, "-tall")]
    BINDINGS = [
        Binding("question_mark,f1", "help", "Help", id="app.help", key_display="?", tooltip="Every key of this screen"),
        Binding("ctrl+q", "quit", "Quit", id="app.quit", priority=True, tooltip="Leave; what is in flight is finished"),
        Binding("ctrl+t", "next_theme", "Theme", id="app.theme", show=False, tooltip="Dark, light, high contrast"),
    ]

    def __init__(
        self,
        registry: Registry | str,
        first: Callable[[RunbookApp], Screen[Any]],
        patience: float = 120.0,
        lookout: Lookout | None = None,
    ) -> None:
        """A registry that is only named is read by the first screen, after the first picture."""
        super().__init__()
        self.known = None if isinstance(registry, str) else registry
        self.registry_file = registry if isinstance(registry, str) else registry.path
        self.patience = patience
        self.lookout = lookout or Lookout()
        self.failure: Exception | None = None
        self.walker: Walker | None = None
        self.walk_screen: WalkScreen | None = None
        self.leaving = False
        self._first = first
        for theme in THEMES:
            self.register_theme(theme)
        # Not by setting it: that would read every style a second time before the first picture.
        self.set_reactive(App.theme, THEMES[0].name)
        self.stylesheet.set_variables(self.get_css_variables())

    def get_default_screen(self) -> Screen[Any]:
        return self._first(self)

    @property
    def registry(self) -> Registry:
        assert self.known is not None, "asked for before it was read"
        return self.known

    @property
    def jobs(self) -> dict[str, Job]:
        return self.known.jobs if self.known else {}

    def fail(self, error: Exception) -> None:
        """Ends the app; the command tells the error in one line."""
        self.failure = error
        self.exit()

    def _handle_exception(self, error: Exception) -> None:
        """Textual shows a traceback with the value of every variable, passwords among them. One line will do."""
        if os.environ.get("RUNBOOK_DEBUG"):
            super()._handle_exception(error)
            return
        self.failure = self.failure or error
        self._exception = self._exception or error
        self._exception_event.set()
        self._close_messages_no_wait()

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            loop.add_signal_handler(signal.SIGTERM, self._told_to_end)

    def _told_to_end(self) -> None:
        """As Ctrl+Q and Leave, for nobody is there to be asked."""
        if self.walking:
            self._left(True)
        else:
            self.exit(int(ExitCode.INTERRUPTED))

    def on_unmount(self) -> None:
        """Whatever closes the app, a walk that waits for an answer must not wait for ever."""
        if self.walking and self.walker is not None:
            self.walker.leave()

    # --- walks

    def take(self, found: Registry) -> bool:
        """What the registry says now; whether that is something new."""
        new = self.known != found
        if new:
            self.known = found
        return new

    def walk_of(self, job: str, path: str, mode: str = "live", plan_file: str | None = None) -> WalkScreen:
        """The screen of a new walk; the engine is loaded in its thread, after the first picture.

        It goes by what the registry says when it begins, and not by what it said when the app did: a walk before it,
        or a hand with an editor, may have given the job another checkpoint.
        """
        file, patience = self.registry_file, self.patience

        def work(operator: Operator) -> Any:
            registry = read_registry(file)
            if mode == "dry run":
                from wizard.engine.dry_run import dry_run

                return dry_run(registry, job, path, operator, patience=patience).ending
            if mode == "rehearsal":
                from wizard.engine.rehearse import rehearse

                return rehearse(registry, job, path, operator, patience=patience)
            from wizard.engine.start import begin

            return begin(registry, job, path, operator, patience=patience, plan_file=plan_file)

        return self._screen(work, mode, job, path)

    def pick_up_of(self, run: str) -> WalkScreen:
        file, patience = self.registry_file, self.patience

        def work(operator: Operator) -> Any:
            from wizard.engine.start import pick_up

            return pick_up(read_registry(file), run, operator, patience=patience)

        return self._screen(work, "live", "", f"continue {run}")

    def undo_of(self, run: str) -> WalkScreen:
        file = self.registry_file

        def work(operator: Operator) -> Any:
            from wizard.engine.undo import undo

            return undo(read_registry(file), run, operator)

        return self._screen(work, "undo", "", run)

    def _screen(self, work: Callable[[Operator], Any], mode: str, job: str, path: str) -> WalkScreen:
        from wizard.tui.screens.walk import WalkScreen

        screen = WalkScreen(work, mode, job, path)
        self.walker, self.walk_screen = screen.walker, screen
        return screen

    @property
    def walking(self) -> bool:
        return self.walker is not None and not self.walker.over

    def close_walk(self) -> None:
        """Back to where the walk was begun, past those that it followed on; out, where it was the command itself."""
        from wizard.tui.screens.walk import WalkScreen

        while self.go_back():
            if not isinstance(self.screen, WalkScreen):
                return
        self.exit(self.walker.exit_code if self.walker else None)

    def go_back(self) -> bool:
        """To the screen before; False on the first one."""
        if len(self.screen_stack) < 2:
            return False
        self.pop_screen()
        return True

    # --- keys

    async def action_quit(self) -> None:
        if not self.walking:
            self.exit(self.walker.exit_code if self.walker else int(ExitCode.OK))
            return
        from wizard.tui.screens.leave import LeaveDialog

        if isinstance(self.screen, LeaveDialog) or self.walk_screen is None:
            return
        self.push_screen(LeaveDialog(self.walk_screen), self._left)

    def _left(self, leave: bool | None) -> None:
        if not leave or self.walker is None:
            return
        if self.walker.over:
            self.exit(self.walker.exit_code)
            return
        self.leaving = True
        self.walker.leave()

    def action_help(self) -> None:
        from wizard.tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def action_next_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]
        self.notify(f"theme: {self.theme.removeprefix('runbook-')}")

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        from wizard.tui.screens.help import readable

        yield from super().get_system_commands(screen)
        told: set[str] = set()  # an action with two keys is one command
        for active in screen.active_bindings.values():
            name, binding = active.binding.action, active.binding
            if binding.id and binding.description and active.enabled and name not in told:
                told.add(name)
                yield SystemCommand(f"{binding.description} ({readable(binding)})", binding.tooltip, self._runs(name))

    def _runs(self, action: str) -> Callable[[], Any]:
        async def run() -> None:
            await self.run_action(action, self.screen)

        return run
