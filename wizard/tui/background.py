"""Looks at the world beside the UI, in processes of their own.

A checkpoint of 50,000 files keeps an interpreter busy, and a thread would share the UI's: a key would wait for it. What
a library writes to stderr would land in the middle of the picture. A look changes nothing, so nobody waits for one when
the app closes.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from itertools import count
from queue import Empty, PriorityQueue
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump

from wizard.tui.eye import Eye

_NEXT, _LATER = 0, 1


class Looked(Message):
    """A look is over: `what` is the name it was asked under, `found` what it found, or an error with one line."""

    def __init__(self, what: str, found: Any) -> None:
        super().__init__()
        self.what, self.found = what, found


class Lookout:
    """A few processes that take one look after the other; a thread waits for each."""

    def __init__(self, eyes: Sequence[Eye] = ()) -> None:
        self._wanted: PriorityQueue[
            tuple[int, int, tuple[MessagePump, str, Callable[..., Any], tuple[Any, ...]] | None]
        ]
        self._wanted = PriorityQueue()
        self._turn = count()
        self._eyes = list(eyes) or [Eye(), Eye()]
        self._threads: list[threading.Thread] = []

    def look(
        self, for_whom: MessagePump, what: str, function: Callable[..., Any], *args: Any, later: bool = False
    ) -> None:
        """`function(*args)` runs elsewhere; a `Looked` comes to `for_whom`.

        What may come `later` lets others go first: who opens one job does not wait for a thousand.
        """
        if len(self._threads) < len(self._eyes):  # the first look goes to the first, which may have been started before
            eye = self._eyes[len(self._threads)]
            self._threads.append(threading.Thread(target=self._run, args=(eye,), name="look", daemon=True))
            self._threads[-1].start()
        self._wanted.put((_LATER if later else _NEXT, next(self._turn), (for_whom, what, function, args)))

    def close(self) -> None:
        """Ends what is under way: a look that hangs on a dead network keeps nobody."""
        with contextlib.suppress(Empty):  # a thread may take the last one first
            while True:
                self._wanted.get_nowait()
        for _ in self._threads:
            self._wanted.put((_NEXT, next(self._turn), None))
        for eye in self._eyes:
            eye.kill()
        for thread in self._threads:
            thread.join(1.0)

    def _run(self, eye: Eye) -> None:
        while (wanted := self._wanted.get()[2]) is not None:
            for_whom, what, function, args = wanted
            post(for_whom, Looked(what, eye.look(function, args)))
        eye.end()


def post(to: MessagePump, message: Message) -> None:
    """From any thread; to an app that is gone nobody needs to be told."""
    try:
        to.post_message(message)
    except RuntimeError:
        return
