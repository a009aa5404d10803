"""Starts one process, outlives whoever asked for it, and writes down how the process ended.

Run as a file, isolated and with the standard library alone, so that neither the job's directory nor its PYTHONPATH
can change it: `python -I -S supervise.py < spec.json`. It answers on stdout with one JSON object, `{"job": PID}` or
`{"errno": N}`, and goes on in a session of its own. It keeps the lock it was handed until nothing of the session is
left, so that the number of the session cannot pass to anyone else meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LAST_LINES = 5
_TAIL_BYTES = 16 * 1024
_POLL_SECONDS = 0.2


def main() -> int:
    spec = json.load(sys.stdin)
    if os.fork():
        os._exit(0)  # whoever asked reaps this one; the supervisor belongs to init
    os.setsid()
    try:
        # A group of its own: the supervisor must survive what is sent to the group to see how it ends.
        job = subprocess.Popen(
            spec["argv"],
            cwd=spec["cwd"],
            env=spec["env"],
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            process_group=0,
        )
    except OSError as error:
        _answer({"errno": error.errno})
        return 1
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda got, frame: job.send_signal(got))
    record = {
        **spec["record"],
        "job": {"pid": job.pid, "started": start_mark(job.pid)},
        "supervisor": {"pid": os.getpid(), "started": start_mark(os.getpid())},
        "at": time.time(),
    }
    try:
        write_json(Path(spec["pid_file"]), record)
    except OSError as error:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        _answer({"errno": error.errno, "file": spec["pid_file"]})
        return 1
    _answer({"job": job.pid})
    code = job.wait()
    ended = {
        "token": record["token"],
        "exit_code": code,
        "at": time.time(),
        "last_lines": last_lines(Path(spec["log"])),
    }
    try:
        write_json(Path(spec["exit_file"]), ended)
    except OSError as error:
        print(f"exit code {code} could not be recorded: {error}", file=sys.stderr)
    while _others_in_session():
        time.sleep(_POLL_SECONDS)
    return 0


def _answer(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode())
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)  # the reader waits for the end of the answer
    os.dup2(null, 0)


def start_mark(pid: int) -> str | None:
    """What tells a process from a later one with the same pid; None when there is no such process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # The name, in parentheses, may hold anything; field 22 is the start time in ticks since boot.
        return f"{boot}:{Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[19]}"
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
    done = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        env={**os.environ, **PS_ENV},
        check=False,
    )
    return " ".join(done.stdout.split()) or None


PS_ENV = {"LC_ALL": "C", "TZ": "UTC"}  # times that read the same whoever asks


def _others_in_session() -> bool:
    try:
        pids = [int(place.name) for place in Path("/proc").iterdir() if place.name.isdigit()]
    except OSError:
        return False  # no /proc: a session cannot be listed
    return any(_session(pid) == os.getpid() for pid in pids if pid != os.getpid())


def _session(pid: int) -> int | None:
    try:
        state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return None
    return None if state in "ZX" else int(session)


def write_json(path: Path, data: dict[str, Any]) -> None:
    """All of it or nothing, also when the machine goes down in the middle."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("w", encoding="utf-8") as file:
            json.dump(data, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def last_lines(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-LAST_LINES:]


if __name__ == "__main__":
    sys.exit(main())
