"""What the screens look at, gathered by the rooms that know: runs in the process that looks (looking.py).

What comes back is plain data, and little of it: of a checkpoint of 50,000 files the UI gets a page.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from wizard.errors import RunbookError
from wizard.secrets import mask
from wizard.text import ago, size

if TYPE_CHECKING:
    from wizard.audit.listing import Summary
    from wizard.audit.telling import Part
    from wizard.diagnosis.diagnose import Diagnosis
    from wizard.diagnosis.findings import Finding
    from wizard.diagnosis.positions import Position
    from wizard.jobs.model import Job, Registry
    from wizard.runbook.model import Runbook

BATCHES = 100  # the last ones; a screen has no room for more


@dataclass(frozen=True)
class Batches:
    """The last batches: when each was planned, which are not committed, which followed a standstill."""

    planned_ms: dict[int, int | None]
    open: frozenset[int]
    restarts: frozenset[int]


@dataclass(frozen=True)
class Place:
    """Where a job stands in one partition of a topic, or in one source of files. None where it is not known."""

    name: str
    unit: str
    earliest: int | None
    committed: int | None
    latest: int | None
    lag: int | None
    why: str


@dataclass(frozen=True)
class JobLook:
    """A job as it was a moment ago. Where something could not be looked at, `error` says why."""

    name: str
    state: str = "unknown"  # running, stopped, unknown
    state_says: str = ""
    error: str = ""
    summary: str = ""
    report: tuple[str, ...] = ()  # as `runbook diagnose` prints it
    findings: tuple[Finding, ...] = ()
    paths: dict[str, dict[str, Any]] = field(default_factory=dict)
    batches: Batches | None = None
    planned_at_ms: int | None = None
    last_batch: int | None = None
    in_flight: int | None = None
    places: tuple[Place, ...] = ()
    lag: int | None = None

    @property
    def errors(self) -> list[Finding]:
        return [each for each in self.findings if each.severity == "error"]

    @property
    def counts(self) -> tuple[int, int]:
        """Errors and warnings."""
        return len(self.errors) + bool(self.error), sum(each.severity == "warning" for each in self.findings)

    @property
    def evidence(self) -> list[str]:
        """The last part of the report."""
        return [line.strip() for line in self.report[self.report.index("Evidence") + 1 :]] if self.report else []

    def line(self) -> str:
        if self.error:
            return f"{self.state}; {self.error}"
        batch = "no batch" if self.last_batch is None else f"batch {self.last_batch} committed"
        in_flight = "" if self.in_flight is None else f", {self.in_flight} in flight"
        behind = "" if self.lag is None else f"; lag {self.lag}"
        return f"{self.state}; {batch}{in_flight}, last planned {ago(self.planned_at_ms)}{behind}"


def read_registry(path: str) -> Registry:
    from wizard.jobs.registry import load_registry

    return load_registry(path)


def look_at_job(registry: Registry, name: str, pasted: str = "") -> JobLook:
    """`pasted` is a log or a stack trace that goes into the verdicts."""
    from wizard.diagnosis.diagnose import diagnose
    from wizard.diagnosis.explain import explain
    from wizard.diagnosis.positions import lag, positions
    from wizard.diagnosis.subject import subject_of
    from wizard.jobs.control.open import open_controller
    from wizard.jobs.registry import get_job
    from wizard.jobs.tried import tried

    job = get_job(registry, name)
    state, state_says = "unknown", ""
    try:
        status = open_controller(registry, job).status()
        state, state_says = status.state, status.says
    except (RunbookError, OSError) as error:
        state_says = mask(str(error))
    try:
        subject = subject_of(job, _consumers(registry)[name], tried(registry, job))
        seen = diagnose(subject, explain(pasted) if pasted else None)
    except (RunbookError, OSError) as error:
        return JobLook(name, state, state_says, error=mask(str(error)))
    found = positions(job, seen.checkpoint)
    return _look(name, state, state_says, seen, found, lag(found))


_graph: tuple[Registry, dict[str, list[Job]]] | None = None


def _consumers(registry: Registry) -> dict[str, list[Job]]:
    """Worked out once for a registry: a fleet is looked at again and again."""
    from wizard.diagnosis.subject import direct_consumers

    global _graph
    if _graph is None or _graph[0] is not registry:
        _graph = registry, direct_consumers(registry)
    return _graph[1]


def _look(name: str, state: str, state_says: str, seen: Diagnosis, found: list[Position], lag: int | None) -> JobLook:
    from wizard.diagnosis.report import lines, summary
    from wizard.text import Paint

    checkpoint = seen.checkpoint
    latest = checkpoint.latest_offsets
    return JobLook(
        name, state, state_says,
        summary=summary(seen),
        report=tuple(lines(seen, Paint(io.StringIO()))),
        findings=seen.findings,
        paths=seen.paths,
        batches=_batches(seen),
        planned_at_ms=latest.timestamp_ms if latest else None,
        last_batch=checkpoint.committed,
        in_flight=checkpoint.in_flight[-1] if checkpoint.in_flight else None,
        places=tuple(
            Place(each.name, each.unit, each.earliest, each.committed, each.latest, each.lag, each.why) for each in found
        ),
        lag=lag,
    )  # fmt: skip


def _batches(seen: Diagnosis) -> Batches | None:
    checkpoint = seen.checkpoint
    if checkpoint.planned is None:
        return None
    last, done = checkpoint.planned, -1 if checkpoint.committed is None else checkpoint.committed
    shown = range(max(checkpoint.first or 0, last - BATCHES + 1), last + 1)
    return Batches(
        {batch: getattr(checkpoint.offsets.get(batch), "timestamp_ms", None) for batch in shown},
        frozenset(batch for batch in shown if batch > done or batch in checkpoint.in_flight),
        frozenset(stop["before_batch"] for stop in seen.restarts),
    )


@dataclass(frozen=True)
class Told:
    """A run as the audit tells it."""

    facts: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    sound: bool
    text: tuple[str, ...]
    waits: bool  # to be picked up


def look_at_runs(registry: Registry) -> list[Summary]:
    """Newest first."""
    from wizard.audit.listing import Wanted, summaries

    return summaries(registry.runs, Wanted())


def told(registry: Registry, run: str) -> Told:
    from wizard.audit.listing import summary_of
    from wizard.audit.telling import facts, lines, story
    from wizard.audit.verifying import verify
    from wizard.engine.runs import find_run
    from wizard.engine.state import fold
    from wizard.text import Paint

    found = find_run(registry.runs, run)
    summary, result = summary_of(registry.runs, found), verify(found)
    text = tuple(lines(found, summary, result, Paint(io.StringIO())))
    state = fold(found.chain.entries)
    waits = result.sound and state.open and not state.undoing and summary.verdict != "under way"
    return Told(tuple(facts(found, summary, result)), tuple(story(found)), result.sound, text, waits)


def exported(registry: Registry, run: str, directory: str) -> str:
    """The page of a run, written to a directory; returns its path."""
    from pathlib import Path

    from wizard import durable
    from wizard.audit.exporting import export
    from wizard.engine.runs import find_run

    found = find_run(registry.runs, run)
    path = Path(directory, f"{found.id}.html")
    durable.write(str(path), export(registry.runs, found, "html").encode())
    return str(path)


@dataclass(frozen=True)
class Kept:
    """What the runs of a job have left: the size of its quarantine, and a run that is not at its end."""

    held: str = ""
    run: str = ""
    says: str = ""


def look_at_kept(registry: Registry) -> dict[str, Kept]:
    """For each job with runs."""
    from wizard.audit.listing import summary_of
    from wizard.engine import runs
    from wizard.engine.start import state_of
    from wizard.engine.undo import NOTHING_KEPT, kept_of_all

    amounts = kept_of_all(registry)
    found: dict[str, Kept] = {}
    for run in runs.all_runs(registry.runs):
        if not run.chain.entries or run.chain.bad is not None:
            continue
        state = state_of(run)
        amount = amounts.get(state.job, NOTHING_KEPT)
        held = (size(int(amount["bytes"])) if amount["files"] else "–") if state.intents else ""
        before = found.get(state.job, Kept())
        found[state.job] = replace(before, held=before.held or held)
        if state.mode == "live" and state.open and (state.changed or state.undoing):
            says = f"a run waits: runbook {'undo' if state.undoing else 'continue'} {run.id}"
            if summary_of(registry.runs, run).verdict == "under way":
                says = f"{run.id} is under way"
            found[state.job] = replace(found[state.job], run=run.id, says=says)
    return found


def explained(text: str) -> list[str]:
    """What a stack trace or a log means, as `runbook explain` prints it."""
    from wizard.diagnosis.explain import explain
    from wizard.diagnosis.explain_report import explanation_lines
    from wizard.text import Paint

    return explanation_lines(explain(text), Paint(io.StringIO()))


def runbook_of(name: str) -> Runbook:
    from wizard.runbook.lint import proved
    from wizard.runbook.search import find

    return proved(find(name))


def journal_tail(registry: Registry, run: str, entries: int) -> list[dict[str, Any]]:
    """The last entries, as far as one line shows them."""
    from wizard.engine.runs import open_run

    shown = ("seq", "at", "kind", "step", "action", "fact", "option", "truth", "hash")
    tail = open_run(registry.runs, run).chain.entries[-entries:]
    return [{name: entry[name] for name in shown if name in entry} for entry in tail]


def now_of(registry: Registry, job: str) -> str:
    return look_at_job(registry, job).line()
