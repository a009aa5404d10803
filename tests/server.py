"""A throw-away PostgreSQL server on loopback, in a directory of its own, with a database, a user and a password."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "hunter2-database"


def binaries() -> Path | None:
    """Where initdb and postgres are: on PATH, or where Debian has them, the newest."""
    if (found := shutil.which("initdb")) and shutil.which("postgres"):
        return Path(found).parent
    there = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    return there[-1].parent if there else None


def cannot(why: str) -> None:
    """Skips; fails in CI, where it could have been installed."""
    if os.environ.get("CI") == "true" and shutil.which("apt-get"):
        pytest.fail(f"skipped in CI, where nothing may be: {why}", pytrace=False)
    pytest.skip(why)


class Server:
    """Started by `start`; `stop` and `start` again is a database that was down for a while."""

    def __init__(self, bin: Path) -> None:
        self.bin = bin
        self.place = Path(tempfile.mkdtemp(prefix="runbook-postgres-"))
        self.port = _free_port()
        # PostgreSQL refuses to be run by root.
        self.user = _other_user() if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(self.place, pwd.getpwnam(self.user).pw_uid, -1)
        secret = self.place / "secret"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run(
            "initdb", "-D", str(self.data), "-U", "etl", "-A", "scram-sha-256", f"--pwfile={secret}", "-N",
            "-E", "UTF8", "--locale=C",
        )  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def options(self, table: str, **more: str) -> dict[str, str]:
        """As a registry has them."""
        return {"url": self.url, "dbtable": table, "user": "etl", "password": PASSWORD, **more}

    def start(self) -> Server:
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": 40,
            "autovacuum": "off",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data, *words], stdout=log, stderr=log, **self._as()
            )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.rows("SELECT 1")
                return self
            except Exception:  # noqa: BLE001  it comes up
                time.sleep(0.05)
        raise RuntimeError(f"postgres did not start: {(self.place / 'log').read_text()[-2000:]}")

    def stop(self, how: int = signal.SIGQUIT) -> None:
        """SIGQUIT ends every session at once, as a machine that fails does."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def pause(self, paused: bool = True) -> None:
        """A server that takes connections no longer, and answers none."""
        assert self._process is not None
        pids = [self._process.pid, *_children(self._process.pid)]
        for pid in pids:
            with suppress(ProcessLookupError):  # a worker that has ended meanwhile
                os.kill(pid, signal.SIGSTOP if paused else signal.SIGCONT)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.place, ignore_errors=True)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """By a client that knows nothing of this project."""
        import psycopg

        known = {"host": "127.0.0.1", "port": self.port, "user": "etl", "password": PASSWORD, "dbname": "postgres"}
        with psycopg.connect(**known, connect_timeout=5) as connection:  # type: ignore[arg-type]
            done = connection.execute(query, values or None)  # type: ignore[arg-type]
            return done.fetchall() if done.description else []

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            [self.bin / command[0], *command[1:]], capture_output=True, text=True, check=False, **self._as()
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _as(self) -> dict[str, Any]:
        known = {"cwd": self.place, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}}
        return (
            known if self.user is None else {**known, "user": self.user, "group": _group(self.user), "extra_groups": []}
        )


def _other_user() -> str:
    known = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


def _group(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
