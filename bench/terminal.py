"""A program at a pseudo-terminal, typed at and watched from outside."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class Terminal:
    def __init__(self, command: list[str], size: tuple[int, int] = (80, 24)) -> None:
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its bytecode
            os.execv(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.held = b""

    def until(self, text: str, seconds: float = 30.0) -> float:
        """When the text came, as seconds since the start."""
        deadline = time.perf_counter() + seconds
        while text.encode() not in self.held:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"no {text!r} within {seconds} s; the end of what came: {self.held[-400:]!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                self.held += os.read(self.fd, 65536)
        return time.perf_counter() - self.began

    def press(self, key: str, text: str) -> tuple[float, float]:
        """Seconds from a key to a text that it brings, and how many of them were spent in the queue for a core."""
        self.quiet(0.05)
        self.held = b""
        queued, began = self._queued(), time.perf_counter()
        os.write(self.fd, key.encode())
        self.until(text)
        return time.perf_counter() - began, self._queued() - queued

    def _queued(self) -> float:
        """Of the thread that draws, and of this program, which reads what is drawn."""
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) for pid in (self.pid, "self")) / 1e9

    def cpu(self) -> float:
        """Processor seconds of all its threads so far."""
        return (
            sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{self.pid}/task").glob("*/schedstat")) / 1e9
        )

    def quiet(self, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                self.held += os.read(self.fd, 65536)

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def ended(self, seconds: float = 30.0) -> int:
        """Waits for it; the exit code, or minus the signal."""
        with contextlib.suppress(OSError):  # the terminal is gone with its last process
            while select.select([self.fd], [], [], seconds)[0] and (more := os.read(self.fd, 65536)):
                self.held += more
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)

    def left(self) -> str:
        """What stays on the terminal once the UI has given it back."""
        return _ESCAPE.sub("", self.held.decode(errors="replace").rpartition("\x1b[?1049l")[2]).strip()
