"""One cell of the gauntlet: a scenario and a path, through the real command line, and what has become of the rows."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml
from answers import answers, fix
from stage import JOBS, OUTPUT, Stage

from wizard.counting import Stage as Rows
from wizard.spark.scenarios import Scenario
from wizard.spark.scenarios.model import Rows as Sets

RUNBOOK = str(Path(sys.executable).with_name("runbook"))
PATHS = ("resume", "replay", "backfill", "reset")
_PROMISED = ("safe", "risky")
_REFUSED = (2, 3)
_WALK_SECONDS = 400


@dataclass
class Cell:
    scenario: str
    job: str
    path: str
    verdict: str = ""
    result: str = ""
    right: bool = False
    source: int = 0
    rows: int = 0  # in the job's own output
    missing: int = 0  # in it and in everything behind it
    doubled: int = 0
    wrong: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def diagnose(stage: Stage, job: str) -> dict[str, Any]:
    command = [RUNBOOK, "diagnose", job, "--jobs", str(stage.workspace.jobs_file), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"diagnose {job}: {done.stderr.strip()}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def play(stage: Stage, scenario: Scenario, path: str) -> Cell:
    """`path` is one of the four, or `reset beside`."""
    cell = Cell(scenario.name, scenario.job, path)
    verb = path.split()[0]
    stage.set(scenario)
    told = diagnose(stage, scenario.job)
    cell.verdict = told["paths"][verb]["verdict"]
    hole = None
    if verb == "backfill" and cell.verdict in _PROMISED:
        hole = stage.set(scenario, holed=True)
        told = diagnose(stage, scenario.job)
        cell.verdict = told["paths"][verb]["verdict"]
        cell.notes.append(f"a hole of {hole.rows} rows" if hole else "")
    begun = time.monotonic()
    try:
        if cell.verdict in _PROMISED:
            _walk_to_the_end(stage, scenario, cell, verb, answers(path, told, hole))
        else:
            _be_refused(stage, cell, verb, answers(path, told, hole))
    finally:
        cell.seconds = round(time.monotonic() - begun, 1)
        _keep_logs(stage, cell)
        stage.stop_all()
    return cell


def by_hand(stage: Stage, scenario: Scenario) -> Cell:
    """The naive order: the checkpoint is deleted first and the job started again; nothing else is touched."""
    cell = Cell(scenario.name, scenario.job, "by hand", right=True)
    stage.set(scenario)
    begun = time.monotonic()
    shutil.rmtree(stage.workspace.checkpoint(scenario.job), ignore_errors=True)
    for job in JOBS[JOBS.index(scenario.job) :]:
        try:
            stage.run(job)
        except Exception as error:  # noqa: BLE001  whatever Spark raises is what the operator is left with
            cell.notes.append(f"{job} fails: {_line(str(error))}")
            break
    _count(stage, cell)
    exact = cell.missing == cell.doubled == cell.wrong == 0 and not cell.notes
    cell.result = "exact" if exact else "not exact"
    cell.seconds = round(time.monotonic() - begun, 1)
    return cell


def _walk_to_the_end(stage: Stage, scenario: Scenario, cell: Cell, verb: str, given: dict[str, Any]) -> None:
    if said := fix(scenario, verb, stage.workspace):
        cell.notes.append(said)
    code, end, last = _walk(stage, cell.job, verb, given)
    if code == 0 and end.get("path"):
        cell.notes.append(f"then {end['path']}")
        code, end, last = _walk(stage, cell.job, end["path"], answers(end["path"], {}, None))
    if code != 0 or end.get("outcome") != "resolved":
        cell.result = f"exit {code}: {last}"
        if stage.running():
            stage.stop_all()
        _count(stage, cell)
        return
    if not stage.wait_until_caught_up(cell.job):
        cell.result = "resolved, and then the job did not catch up"
        return
    stage.stop_all()
    try:
        for job in JOBS:
            stage.run(job)
    except Exception as error:  # noqa: BLE001  a job that cannot run after a resolved walk is a wrong cell, whatever it says
        cell.result = f"resolved, and then {job} fails: {_line(str(error))}"
        return
    stages = _count(stage, cell)
    exact = cell.missing == cell.doubled == cell.wrong == 0
    if not exact and scenario.truth.wrong is not Sets.NONE and verb in ("resume", "backfill"):
        # Neither path rewrites a row. That a release wrote them wrongly, only the operator knows; by keys they are there.
        own = stages[OUTPUT[cell.job]]
        exact = own.missing == own.extra == 0
        cell.missing, cell.doubled, cell.wrong = own.missing, own.extra, own.wrong
    cell.right = exact
    cell.result = "resolved, not row-exact"
    if exact:
        cell.result = "every row once" if cell.wrong else "row-exact"


def _be_refused(stage: Stage, cell: Cell, verb: str, given: dict[str, Any]) -> None:
    before = _tree(stage.workspace.root)
    code, _, last = _walk(stage, cell.job, verb, given)
    after = _tree(stage.workspace.root)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    _count(stage, cell)
    started = stage.running()
    if code not in _REFUSED:
        cell.result = f"not refused: exit {code}: {last}"
    elif changed or started:
        cell.result = f"refused after a change: {', '.join(changed[:3] or started)}"
    else:
        cell.right, cell.result = True, f"refused, untouched (exit {code})"
        cell.notes.append(last)


def _walk(stage: Stage, job: str, verb: str, given: dict[str, Any]) -> tuple[int, dict[str, Any], str]:
    """Exit code, the last event where it is an end, and the last words."""
    file = stage.base / "answers.yaml"
    file.write_text(yaml.safe_dump(given))
    command = [RUNBOOK, verb, job, "--jobs", str(stage.workspace.jobs_file), "--no-input", "--answers", str(file)]
    command += ["--confirm", job, "--json", "--wait", "90"]
    with (stage.base / "walk.json").open("w") as out, (stage.base / "walk.log").open("w") as narration:
        done = subprocess.run(command, stdout=out, stderr=narration, timeout=_WALK_SECONDS, check=False)
    events = [json.loads(line) for line in (stage.base / "walk.json").read_text().splitlines()]
    end = events[-1] if events and events[-1].get("event") == "end" else {}
    looks = [event for event in events if event.get("event") in ("seen", "outcome")]
    failed = next((e for e in reversed(looks) if e.get("truth", "holds") != "holds" or e.get("ok") is False), None)
    if failed:
        what = failed.get("fact") or failed.get("action")
        last = f"{what}: {'; '.join(failed.get('evidence', ())[:1])}"
    else:
        last = ((stage.base / "walk.log").read_text().strip().splitlines() or [""])[-1]
    return done.returncode, end, last[:200]


def _count(stage: Stage, cell: Cell) -> dict[str, Rows]:
    stages = stage.rows()
    behind = [stages[OUTPUT[job]] for job in JOBS[JOBS.index(cell.job) :]]
    if Sets.DURING in stage.scenarios[cell.scenario].truth.missing:
        behind = behind[:1]  # the log is not what gold was made of any more, so only keys can be compared
    cell.source, cell.rows = stages["source"].rows, behind[0].rows
    cell.missing, cell.doubled, cell.wrong = (
        sum(getattr(each, name) for each in behind) for name in ("missing", "extra", "wrong")
    )
    return stages


def _tree(root: Path) -> dict[str, str]:
    """Every file and directory but the journals, with its bytes."""
    found: dict[str, str] = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if not name.startswith("runs"):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
    return found


def _keep_logs(stage: Stage, cell: Cell) -> None:
    """The narration of a walk that went wrong, to find out why."""
    if not cell.right:
        kept = stage.base / "wrong" / f"{cell.scenario}-{cell.path.replace(' ', '-')}"
        kept.mkdir(parents=True, exist_ok=True)
        for name in ("walk.json", "walk.log", "answers.yaml"):
            if (stage.base / name).exists():
                shutil.copy(stage.base / name, kept / name)
        runs = stage.workspace.root / "runs"
        if runs.exists():
            shutil.copytree(runs, kept / "runs", dirs_exist_ok=True)


def _line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no words")[:120]
