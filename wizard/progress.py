"""What is being done now, on stderr: one line that moves on a terminal, plain lines elsewhere, nothing for --json.

with Progress() as progress:
    progress.step("producing readings")
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from types import TracebackType
from typing import IO

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAME_SECONDS = 0.1


class Progress:
    def __init__(self, stream: IO[str] | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._moving = not quiet and self._stream.isatty()
        self._quiet = quiet
        self._text: str | None = None
        self._since = 0.0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._move, daemon=True) if self._moving else None

    def __enter__(self) -> Progress:
        if self._thread:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()
        self._finish(failed=kind is not None)

    def step(self, text: str) -> None:
        """Ends the step before it, which is told with the time it took."""
        self._finish(failed=False)
        with self._lock:
            self._text, self._since = text, time.monotonic()
        if not self._quiet and not self._moving:
            self._write(f"{text} …\n")

    def _finish(self, *, failed: bool) -> None:
        with self._lock:
            text, self._text = self._text, None
            if text and self._moving:
                self._write(f"\r\x1b[K{'✗' if failed else '✓'} {text}  {time.monotonic() - self._since:.0f} s\n")

    def _move(self) -> None:
        for frame in itertools.cycle(_FRAMES):
            with self._lock:
                if self._text:
                    self._write(f"\r\x1b[K{frame} {self._text}  {time.monotonic() - self._since:.0f} s")
            if self._over.wait(_FRAME_SECONDS):
                return

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
