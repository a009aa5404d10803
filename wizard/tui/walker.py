"""The engine in a thread of its own, and the operator it asks: the screen.

The thread belongs to the app, not to a screen, and nobody cancels it. Whoever wants to leave says so with `leave`: the
walk then stops at the next moment at which nothing is in flight, which is at once while it waits for an answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from wizard.errors import ExitCode, RunbookError
from wizard.secrets import mask

if TYPE_CHECKING:
    from wizard.engine.events import Event
    from wizard.engine.operator import Choice, Confirmation, Operator, Question

_LEAVE = object()


class Walker:
    """Runs `work(operator)` and hands what it tells and asks to `post`, which is called in the thread."""

    def __init__(self, work: Callable[[Operator], Any], post: Callable[[str, Any], None]) -> None:
        self._work, self._post = work, post
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="walk", daemon=False)
        self.leaving = False
        self.in_action = ""  # the step whose effects are being carried out
        self.taking_back = False
        self.result: Any = None
        self.error: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    @property
    def over(self) -> bool:
        return self._thread.ident is not None and not self._thread.is_alive()

    @property
    def exit_code(self) -> int:
        if isinstance(self.error, RunbookError):
            return int(self.error.exit_code)
        if self.error is not None:
            return int(ExitCode.ERROR)
        return int(getattr(self.result, "exit_code", ExitCode.OK))

    def answer(self, given: Choice | bool) -> None:
        self._answers.put(given)

    def leave(self) -> None:
        """Ends the walk where nothing is half done."""
        self.leaving = True
        self._answers.put(_LEAVE)

    def join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self.result = self._work(self)
        except KeyboardInterrupt:
            self.error = Left("left before the walk had begun again; nothing was done")
        except RunbookError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001  whatever it is, the operator sees it on the screen and not a dead thread
            words = mask(" ".join(str(error).split())[:300])
            self.error = RunbookError(f"an error of runbook's own: {type(error).__name__}: {words}")
            self.error.__cause__ = error
        self._post("over", self.error or self.result)

    # --- the operator the engine knows

    def tell(self, event: Event) -> None:
        kind = event["event"]
        if kind == "effect":
            self.in_action = event["step"]
        elif kind == "outcome":
            self.in_action = ""
        elif kind == "undo":
            self.taking_back = True
        self._post("told", event)
        if self.leaving and not self.in_action and not self.taking_back and kind in _SAFE:
            raise KeyboardInterrupt

    def choose(self, question: Question) -> Choice:
        self._post("question", question)
        given: Choice = self._wait()
        return given

    def confirm(self, asked: Confirmation) -> bool:
        self._post("confirmation", asked)
        return bool(self._wait())

    def _wait(self) -> Any:
        given = self._answers.get()
        if given is _LEAVE:
            raise KeyboardInterrupt
        return given


class Left(RunbookError):
    exit_code = ExitCode.INTERRUPTED


# Told between two steps or before a look: nothing has been begun that is not finished.
_SAFE = frozenset({"step", "looking", "preview", "progress"})
