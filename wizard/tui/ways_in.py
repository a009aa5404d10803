"""The ways into the UI, one for each command that opens it, and the way out."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from wizard.errors import ExitCode

if TYPE_CHECKING:
    from wizard.jobs.model import Registry
    from wizard.tui.app import RunbookApp

# The thread of a walk and the screen share one interpreter; handing over often keeps a key press quick.
_SWITCH_SECONDS = 0.001


def walk_in_tui(registry: Registry, job: str, path: str, patience: float, plan_file: str | None) -> int:
    """`runbook reset JOB` at a terminal."""
    from wizard.jobs.registry import get_job

    get_job(registry, job)  # a name mistyped is told at once, on the line
    from wizard.tui.app import RunbookApp

    return _run(lambda: RunbookApp(registry, lambda app: app.walk_of(job, path, "live", plan_file), patience))


def continue_in_tui(registry: Registry, run: str, patience: float) -> int:
    """`runbook continue RUN` at a terminal."""
    from wizard.tui.app import RunbookApp

    return _run(lambda: RunbookApp(registry, lambda app: app.pick_up_of(run), patience))


def open_tui(registry_file: str) -> int:
    """`runbook` at a terminal: the fleet. The process that reads the registry starts while the UI is being loaded."""
    from wizard.tui.eye import Eye

    eye = Eye()
    eye.start()
    from wizard.tui.app import RunbookApp
    from wizard.tui.background import Lookout
    from wizard.tui.screens.fleet import FleetScreen

    return _run(lambda: RunbookApp(registry_file, lambda app: FleetScreen(), lookout=Lookout([eye, Eye()])))


def serve_tui(registry_file: str, host: str, port: int) -> int:
    """`runbook serve`: the same UI in a browser, for whoever has the token."""
    from wizard.tui.serve import serve

    serve(registry_file, host, port)
    return int(ExitCode.OK)


def _hung_up(app: RunbookApp) -> None:
    """The window was closed, or the connection is gone. The UI may stand still for good, for it waits until what it
    draws is taken; the walk does not need it, and ends where nothing is half done."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nothing, each)

    def end() -> None:
        if app.walker is not None:
            app.walker.leave()
            app.walker.join()
        os._exit(int(ExitCode.INTERRUPTED))

    threading.Thread(target=end, name="hung up").start()


def _has_colours() -> bool:
    """Whether the terminal says so; one that nobody has described is taken to have them."""
    try:
        import curses
    except ImportError:
        return True
    try:
        curses.setupterm(fd=1)
    except (curses.error, OSError):
        return True
    return curses.tigetnum("colors") >= 8


def _run(made: Callable[[], RunbookApp]) -> int:
    """Runs the app; how the walk ended is said once more on the terminal, where it stays."""
    plain = os.environ.get("NO_COLOR")
    if not _has_colours():
        os.environ["NO_COLOR"] = "1"
    app = made()  # Textual takes NO_COLOR out of the environment here; a job that is started is to have it
    if plain is not None:
        os.environ["NO_COLOR"] = plain
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda number, frame: _hung_up(app))
    gc.freeze()  # what is loaded stays loaded: a collection that goes through all of it would hold up a key
    try:
        code = app.run()
    finally:
        sys.setswitchinterval(before)
        if app.walker is not None:
            app.walker.leave()  # the app is gone, whatever took it down; the walk stops where nothing is half done
            app.walker.join()
        app.lookout.close()
    if app.failure is not None:
        raise app.failure
    if app.walker is None or app.walk_screen is None:
        return int(code if code is not None else app.return_code or 0)
    if app.walker.error is not None:
        raise app.walker.error
    if app.walk_screen.trail.ended is not None:
        from wizard.line_mode import Narrator

        narrator = Narrator(sys.stderr)
        narrator.mode, narrator.job = app.walk_screen.trail.mode, app.walk_screen.trail.job
        narrator(app.walk_screen.trail.ended)
    return app.walker.exit_code
