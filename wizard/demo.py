"""`runbook demo`: has the demo built by a child process, shows how far it is, says what to type next.

The child is `python -m wizard.spark.demo`; this side imports neither pyspark nor the pipeline.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from wizard.counting import Stage, count
from wizard.errors import BadInput, ExitCode, Locked, RunbookError
from wizard.progress import Progress
from wizard.text import columns, printable

DEFAULT_ROOT = "demo"
DEFAULT_SCENARIO = "checkpoint-deleted"
_END_SECONDS = 20


def run_demo(root: str | Path = DEFAULT_ROOT, scenario: str = DEFAULT_SCENARIO, as_json: bool = False) -> int:
    """Builds the demo, or raises RunbookError with the line to show."""
    if not str(root).strip():
        raise BadInput("--to names no directory; leave it out for ./demo")
    with Progress(quiet=as_json) as progress:
        done = _from_child(progress, str(Path(root).absolute()), "--scenario", scenario)
    if as_json:
        print(json.dumps(done))
        return int(ExitCode.OK)
    counts = {name: Stage(**stage) for name, stage in done["counts"].items()}
    print("\n".join([f"{done['job']} is broken: {done['story']}.", *count_lines(counts), "", *_next(Path(root), done)]))
    return int(ExitCode.OK)


def finish_demo(root: str | Path = DEFAULT_ROOT, as_json: bool = False) -> int:
    """Lets the demo's jobs catch up, stops them, and says whether every output is row-exact."""
    with Progress(quiet=as_json) as progress:
        done = _from_child(progress, str(Path(root).absolute()), "--finish")
    counts = {name: Stage(**stage) for name, stage in done["counts"].items()}
    print(json.dumps(done) if as_json else "\n".join(count_lines(counts)))
    return int(ExitCode.OK if all(stage.exact for stage in counts.values()) else ExitCode.VERIFICATION_FAILED)


def list_scenarios(as_json: bool = False) -> int:
    found = list(_child("--list"))
    if as_json:
        print(json.dumps(found))
        return int(ExitCode.OK)
    rows = [[each["name"], each["job"], each["story"]] for each in found]
    print("\n".join(columns([["SCENARIO", "JOB", "WHAT HAPPENED"], *rows])))
    return int(ExitCode.OK)


def show_counts(root: str | Path = DEFAULT_ROOT, as_json: bool = False) -> int:
    """Source and output rows as they are now; exit code 4 when an output is not row-exact."""
    if not (Path(root) / "log").is_dir():
        raise BadInput(f"{root}: holds no demo; `runbook demo` builds one")
    counts = count(Path(root).absolute())
    if as_json:
        print(json.dumps({name: asdict(stage) for name, stage in counts.items()}))
    else:
        print("\n".join(count_lines(counts)))
    return int(ExitCode.OK if all(stage.exact for stage in counts.values()) else ExitCode.VERIFICATION_FAILED)


def count_lines(counts: dict[str, Stage]) -> list[str]:
    rows = [["", "ROWS", "MISSING", "EXTRA", "WRONG"]]
    for name, stage in counts.items():
        compared = [str(number) for number in (stage.missing, stage.extra, stage.wrong)]
        compared = ["", "", ""] if name == "source" else compared
        rows.append([name, str(stage.rows), *compared])
    return [line.rstrip() for line in columns(rows)]


def _next(root: Path, done: dict[str, Any]) -> list[str]:
    # Without --jobs the registry is looked for here and in ./demo.
    found = root.absolute() in (Path.cwd(), Path.cwd() / DEFAULT_ROOT)
    jobs = "" if found else f" --jobs {root / 'jobs.yaml'}"
    commands = [f"runbook diagnose {done['job']}{jobs}"]
    if done["path"]:
        commands.append(f"runbook {done['path']} {done['job']}{jobs}")
    return ["Type next:", *(f"  {command}" for command in commands)]


def _from_child(progress: Progress, *arguments: str) -> dict[str, Any]:
    done: dict[str, Any] = {}
    for event in _child(*arguments):
        if "step" in event:
            progress.step(event["step"])
        elif "error" in event:
            raise _error(event["error"], event["exit_code"])
        else:
            done = event["done"]
    return done


def _child(*arguments: str) -> Iterator[dict[str, Any]]:
    """What the child says, line by line. It is ended, and has cleaned up, when the caller goes away."""
    command = [sys.executable, "-m", "wizard.spark.demo", "--end-with-stdin", *arguments]
    with tempfile.TemporaryFile() as log:
        # A session of its own: Ctrl-C reaches this process only, which then ends the child in order.
        # It holds the other end of a pipe to it, and so notices even a kill -9 of this one.
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        assert child.stdin is not None and child.stdout is not None
        told = False
        try:
            for line in child.stdout:
                event: dict[str, Any] = json.loads(line)
                told = told or "step" not in event
                yield event
        finally:
            _end(child)
        if not told:
            raise RunbookError(f"the demo's builder died with exit code {child.returncode}: {_last_line(log)}")


def _end(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        child.terminate()
    try:
        child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = [line for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return printable(lines[-1].strip())[:300] if lines else "it wrote nothing"


def _error(text: str, code: int) -> RunbookError:
    kinds: dict[int, type[RunbookError]] = {2: BadInput, 6: Locked}
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return kinds.get(code, RunbookError)(text)
