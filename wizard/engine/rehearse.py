"""The same runbook, walked for real, Spark included, on a clone. Nothing live is touched; the clone is removed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wizard import durable
from wizard.catalogue.live.job import wait_until_caught_up
from wizard.catalogue.live.rows import exact
from wizard.catalogue.live.twice import known_by_kind
from wizard.catalogue.world import Seen, World
from wizard.diagnosis.explain import explain
from wizard.engine import runs
from wizard.engine.clone import Clone, clone
from wizard.engine.operator import Choice, Confirmation, Operator, Question
from wizard.engine.start import begin
from wizard.engine.twice import remove_clone, try_twice
from wizard.engine.walk import Interrupted
from wizard.errors import ExitCode, RunbookError
from wizard.jobs.control.places import pid_file
from wizard.jobs.graph import consumers
from wizard.jobs.model import ProcessControl, Registry
from wizard.jobs.registry import check_job, get_job
from wizard.store import local_path
from wizard.text import plural, size


@dataclass(frozen=True)
class Report:
    """What came out."""

    path: str
    job: str
    outcome: str
    exit_code: ExitCode
    seconds: float
    before: Seen
    after: Seen
    cloned: tuple[int, int]
    error: str = ""  # why the walk stopped, or what Spark raised
    left_out: tuple[str, ...] = field(default=())
    twice: Seen | None = None  # whether a batch written twice is there once; None where the kind of output says so

    def as_dict(self) -> dict[str, Any]:
        def told(seen: Seen) -> dict[str, Any]:
            return {"truth": seen.truth, "evidence": list(seen.evidence), **seen.data}

        return {
            "path": self.path,
            "job": self.job,
            "outcome": self.outcome,
            "seconds": round(self.seconds, 1),
            "rows_before": told(self.before),
            "rows_after": told(self.after),
            "cloned": {"files": self.cloned[0], "bytes": self.cloned[1]},
            "error": self.error or None,
            "left_out": list(self.left_out),
            "twice": told(self.twice) if self.twice is not None else None,
        }

    def lines(self) -> list[str]:
        found = [
            "",
            f"rehearsal of {self.path} on a clone of {self.job}: {self.outcome}, {self.seconds:.0f} s",
            f"  cloned: {plural(self.cloned[0], 'file')}, {size(self.cloned[1])}; removed again",
            f"  rows before: {self.before.truth}",
            *(f"      {line}" for line in self.before.evidence),
            f"  rows after: {self.after.truth}",
            *(f"      {line}" for line in self.after.evidence),
        ]
        if self.twice is not None:
            found += [f"  a batch twice: {self.twice.truth}", *(f"      {line}" for line in self.twice.evidence)]
        found += [f"  stopped by: {self.error}"] if self.error else []
        found += [f"  not rehearsed: its consumers ({', '.join(self.left_out)})"] if self.left_out else []
        return found


class OnAClone:
    """Nothing that is confirmed here can be missed by anybody; questions are asked all the same."""

    def __init__(self, behind: Operator) -> None:
        self.behind = behind

    def tell(self, event: dict[str, Any]) -> None:
        self.behind.tell(event)

    def choose(self, question: Question) -> Choice:
        return self.behind.choose(question)

    def confirm(self, asked: Confirmation) -> bool:
        return True


def rehearse(registry: Registry, job_name: str, path: str, operator: Operator, *, patience: float = 120.0) -> Report:
    job = get_job(registry, job_name)
    check_job(registry, job_name)
    run = runs.new_run("rehearse", job_name)
    scratch = durable.join(local_path(registry.runs) or str(Path.cwd() / "runs"), "rehearsals", run)
    world = World(registry, job, run, scratch)
    began = time.monotonic()
    before = exact(job)
    outcome, code, error = "refused", ExitCode.STOPPED, ""
    copied: Clone | None = None
    behind = tuple(consumers(registry, job_name))
    twice = None if known_by_kind(job) else try_twice(registry, job_name, patience=patience)
    if twice is not None and twice.truth == "fails" and job.sink.idempotent:
        error = (
            f"the output of {job_name} is declared idempotent, and is not: {twice.evidence[0]}; write idempotent: false"
        )
        spent = time.monotonic() - began
        return Report(path, job_name, "blocked", code, spent, before, before, (0, 0), error, behind, twice)
    try:
        copied = clone(world)
        try:
            ending = begin(copied.registry, job_name, path, OnAClone(operator), patience=patience, mode="rehearsal")
            outcome, code = ending.outcome, ending.exit_code
            if code == ExitCode.OK:
                cloned = get_job(copied.registry, job_name)
                wait_until_caught_up(World(copied.registry, cloned, run, scratch, patience=patience))
        except Interrupted:
            raise Interrupted("the rehearsal was interrupted; its clone is removed, nothing live was touched") from None
        except RunbookError as problem:
            error, code = str(problem), problem.exit_code
        if code != ExitCode.OK:
            error = error or _spark_said(copied)
        after = exact(get_job(copied.registry, job_name))
    finally:
        remove_clone(copied, job_name, scratch)
    weight = (copied.files, copied.bytes)
    spent = time.monotonic() - began
    return Report(path, job_name, outcome, code, spent, before, after, weight, error, behind, twice)


def _spark_said(copied: Clone) -> str:
    """The cause in the job's own log, where it wrote one."""
    job = next(iter(copied.registry.jobs.values()))
    if not isinstance(job.control, ProcessControl):
        return ""
    pid = pid_file(copied.registry, job.name, job.control)
    log = pid.with_suffix(".log") if pid else None
    if log is None or not log.is_file():
        return ""
    with log.open("rb") as stream:
        cause = explain(stream).cause
    return f"{cause.signature.code}: {cause.text}" if cause else ""
