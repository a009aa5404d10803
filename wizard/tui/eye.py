"""One process that looks; started when first needed, and again when it was lost."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wizard.errors import RunbookError
from wizard.secrets import mask

if TYPE_CHECKING:
    from wizard.jobs.model import Registry


class Eye:
    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._known: Registry | None = None  # a thousand looks do not send it a thousand times
        self._over = False

    def start(self) -> subprocess.Popen[bytes]:
        """Also before the first look, so that it has loaded what it needs by then."""
        if self._process is None:
            # A session of its own: what is typed at the terminal is for the UI alone.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "wizard.tui.looking"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        return self._process

    def look(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """What the function returned, or an error with one line. On the way its class stands for a registry that was sent."""
        try:
            return self._ask(function, args)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.end()  # killed, or out of memory; a look changes nothing, so it can be taken again
        if self._over:
            return RunbookError("the app is closing")
        try:
            return self._ask(function, args)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self.end()
            return RunbookError(mask(f"the process that looks was lost twice ({error}); is there memory left?"))

    def _ask(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        from wizard.jobs.model import Registry

        new = next((each for each in args if isinstance(each, Registry) and each is not self._known), None)
        plain = tuple(Registry if isinstance(each, Registry) else each for each in args)
        process = self.start()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(pickle.dumps((new, function, plain)))
        process.stdin.flush()
        found = pickle.load(process.stdout)
        self._known = new or self._known
        return found

    def kill(self) -> None:
        """For good, and from any thread; whoever waits for an answer is told that it is lost."""
        self._over = True
        process = self._process
        if process is not None:
            process.kill()

    def end(self) -> None:
        process, self._process, self._known = self._process, None, None
        if process is not None:
            process.kill()
            with contextlib.suppress(BrokenPipeError):
                process.communicate()
