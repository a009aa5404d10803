"""Builds the demo, as a child of `runbook demo`: `python -m wizard.spark.demo ROOT --scenario NAME`.

All three jobs run in one Spark session, so that it takes seconds. One JSON object a line goes to stdout: `{"step": …}`
while it works, then `{"done": …}`, or `{"error": …, "exit_code": …}`. Spark's log goes to stderr.

A directory is ours by its marker, on which the builder holds a lock. What was in it before is stopped and removed; a
build that fails or is interrupted removes what it made, and one that was killed leaves a marker, so the next starts over.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from wizard.counting import Stage, count
from wizard.errors import BadInput, ExitCode, Locked, RunbookError
from wizard.jobs.control.open import open_controller
from wizard.jobs.registry import load_registry
from wizard.spark.config import load_config
from wizard.spark.produce import produce_more
from wizard.spark.scenarios import SCENARIOS, Scenario
from wizard.spark.workspace import Workspace, create_workspace

MARKER = ".runbook-demo"
# The last batch of 400 has room for the records to come: a checkpoint deleted now makes Spark drop them silently.
RECORDS, WAITING = 1900, 100

Progress = Callable[[str], None]


@dataclass(frozen=True)
class DemoResult:
    root: str
    scenario: str
    job: str
    story: str
    truth: str
    path: str | None
    counts: dict[str, Stage]


def build_demo(root: Path, scenario: str, say: Progress, records: int = RECORDS) -> DemoResult:
    chosen = _scenario(scenario)
    _require_libraries()
    # A checkpoint and a sink's log hold absolute paths, so the demo is built where it will be.
    root = root.absolute()
    with _ours(root, say):
        workspace = create_workspace(root)
        say("producing readings")
        produce_more(workspace.log, records)
        _run_and_break(workspace, chosen, say)
        say("counting rows")
        counts = count(root)
        (root / MARKER).write_text(json.dumps({"state": "ready", "scenario": chosen.name}))
    return DemoResult(str(root), chosen.name, chosen.job, chosen.story, chosen.truth.say, chosen.path, counts)


def finish_demo(root: Path, say: Progress) -> DemoResult:
    """After the walk: the jobs that run are stopped, all three catch up, and the rows are counted."""
    from wizard.spark.run import JOBS, run_once
    from wizard.spark.session import build_session

    root = root.absolute()
    if not (root / MARKER).exists():
        raise BadInput(f"{root}: holds no demo; `runbook demo` builds one")
    chosen = _scenario(json.loads((root / MARKER).read_text()).get("scenario", ""))
    workspace = Workspace(root)
    _stop_jobs(root, say)
    say("starting Spark")
    spark = build_session("demo", load_config(str(workspace.conf(chosen.job))))
    try:
        for job in JOBS:
            say(f"catching up {job}")
            run_once(spark, workspace.jobs_file, job)
    finally:
        spark.stop()
    say("counting rows")
    return DemoResult(str(root), chosen.name, chosen.job, chosen.story, chosen.truth.say, None, count(root))


def _scenario(name: str) -> Scenario:
    if name not in SCENARIOS:
        raise BadInput(f"there is no scenario {name!r}; `runbook demo --list` shows the {len(SCENARIOS)} there are")
    return SCENARIOS[name]


def _require_libraries() -> None:
    from wizard.spark.session import require_java

    require_java()
    if missing := [name for name in ("deltalake", "pyarrow") if find_spec(name) is None]:
        raise RunbookError(f"the demo needs {' and '.join(missing)}; install runbook[delta]")


def _run_and_break(workspace: Workspace, scenario: Scenario, say: Progress) -> None:
    from wizard.spark.run import JOBS, run_once
    from wizard.spark.session import build_session

    def run(job: str) -> None:
        say(f"running {job}")
        run_once(spark, workspace.jobs_file, job)

    say("starting Spark")
    spark = build_session("demo", load_config(str(workspace.conf(scenario.job))))
    try:
        for job in JOBS:
            run(job)
        say(f"breaking {scenario.job}: {scenario.story}")
        scenario.inject(workspace, run)
        produce_more(workspace.log, WAITING)
        for job in JOBS:
            if job == scenario.job:
                break
            run(job)
    finally:
        spark.stop()


@contextmanager
def _ours(root: Path, say: Progress) -> Iterator[None]:
    """An empty directory that nobody else builds in; emptied again, or removed, when the build does not succeed."""
    made = [each for each in (root, *root.parents) if not each.exists()]
    if not made and not root.is_dir():
        raise BadInput(f"{root}: is a file; name a directory for the demo")
    if not made and not (root / MARKER).exists() and any(root.iterdir()):
        raise BadInput(f"{root}: is not a demo that runbook made, so it is left alone; name another directory")
    with ExitStack() as if_it_fails:
        if_it_fails.callback(_remove_directories, made)
        root.mkdir(parents=True, exist_ok=True)
        marker = (root / MARKER).open("a+")
        if_it_fails.pop_all()
    with marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(f"{root}: another `runbook demo` is building here; wait for it") from None
        _stop_jobs(root, say)
        _empty(root)
        try:
            os.ftruncate(marker.fileno(), 0)
            os.write(marker.fileno(), json.dumps({"state": "building"}).encode())
            yield
        except BaseException:
            _empty(root)
            (root / MARKER).unlink()
            _remove_directories(made)
            raise


def _remove_directories(made: list[Path]) -> None:
    """What has come into them meanwhile is somebody else's."""
    for directory in made:
        with suppress(OSError):
            directory.rmdir()


def _stop_jobs(root: Path, say: Progress) -> None:
    """A job of the old demo that still runs would write into the new one."""
    if not (root / "jobs.yaml").exists():
        return
    try:
        registry = load_registry(root / "jobs.yaml")
    except BadInput as error:
        if list((root / "runs").rglob("*.pid")):
            raise BadInput(f"{error}; its jobs cannot be stopped without it: stop them, then remove {root}") from None
        return
    for name, job in registry.jobs.items():
        controller = open_controller(registry, job)
        if controller.status().state != "stopped":
            say(f"stopping {name}")
            controller.stop()


def _empty(root: Path) -> None:
    for path in root.iterdir():
        if path.name == MARKER:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wizard.spark.demo", description="Build the demo workspace.")
    parser.add_argument("root", metavar="ROOT", nargs="?")
    parser.add_argument("--scenario", default="checkpoint-deleted")
    parser.add_argument("--list", action="store_true", help="the scenarios, one a line")
    parser.add_argument("--finish", action="store_true", help="let the jobs of a demo catch up, and count")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when stdin does: when the caller is gone")
    given = parser.parse_args(argv)
    if given.list:
        for each in SCENARIOS.values():
            _tell({"name": each.name, "job": each.job, "story": each.story, "signature": each.signature})
        return int(ExitCode.OK)
    if given.root is None:
        parser.error("name the directory")
    signal.signal(signal.SIGTERM, _interrupt)
    if given.end_with_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        result = (
            finish_demo(Path(given.root), _step)
            if given.finish
            else build_demo(Path(given.root), given.scenario, _step)
        )
    except BrokenPipeError:
        return _nobody_there()
    except KeyboardInterrupt:
        try:
            return _failed("interrupted; what was built has been removed", ExitCode.INTERRUPTED)
        except BrokenPipeError:
            return _nobody_there()
    except RunbookError as error:
        return _failed(str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001  Spark's errors come in many classes; all of them become one line
        return _failed(_words(error, given.root), ExitCode.ERROR)
    _tell({"done": asdict(result)})
    return int(ExitCode.OK)


def _step(text: str) -> None:
    _tell({"step": text})


def _nobody_there() -> int:
    """Whoever started this is gone; there is nobody to tell, and what was made has been removed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(ExitCode.ERROR)


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _words(error: Exception, root: str) -> str:
    text = " ".join(str(error).split())
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or "No space left on device" in text:
        return f"{root}: the disk is full; free some space (the demo takes about 20 MB) or name another directory"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or root}: {error.strerror}; name another directory"
    return f"the demo could not be built: {text[:300]}"


def _failed(text: str, code: ExitCode) -> int:
    _tell({"error": text, "exit_code": int(code)})
    return int(code)


def _tell(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
