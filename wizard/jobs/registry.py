"""The registry, `jobs.yaml`: found, read, and told what is wrong with it.

    registry = load_registry(find_registry(None))
    job = registry.jobs["sensor-raw-ingest"]

`load_registry` refuses a file it cannot read as meant. What it can read but what is unsafe (a shared checkpoint, a path
that changes) is told by `lint_registry`, and by `check_job` for the one job that is about to be changed: a mistake in
one job must not keep an operator from looking at another at three in the morning.
"""

from __future__ import annotations

from pathlib import Path

from wizard.errors import BadInput
from wizard.jobs.finding import find_registry
from wizard.jobs.form import form_problems
from wizard.jobs.lint import in_file_order, lint
from wizard.jobs.model import (
    Answer,
    CommandControl,
    Config,
    Control,
    Job,
    Problem,
    ProcessControl,
    Registry,
    Sink,
    Source,
    SparkRestControl,
)
from wizard.jobs.reading import build
from wizard.strict_yaml import load_file

__all__ = [
    "Answer",
    "CommandControl",
    "Config",
    "Control",
    "Job",
    "Problem",
    "ProcessControl",
    "Registry",
    "Sink",
    "Source",
    "SparkRestControl",
    "check_job",
    "find_registry",
    "get_job",
    "lint_registry",
    "load_registry",
]


def load_registry(path: str | Path) -> Registry:
    """The registry, or BadInput with the first thing wrong with its form."""
    document = load_file(path)
    for problem in form_problems(document):
        raise BadInput(str(problem))
    return build(document, str(path))


def lint_registry(path: str | Path) -> list[Problem]:
    """Everything wrong with the file, in its order; jobs whose form is wrong are left out of the other rules."""
    try:
        document = load_file(path)
    except BadInput as error:
        where, _, message = str(error).partition(": ")
        return [Problem("J001", "error", message, where)]
    form = form_problems(document)
    data = document.data if isinstance(document.data, dict) else {}
    if not isinstance(data.get("jobs"), dict) or not isinstance(data.get("runs", ""), str):
        return form
    registry = build(document, str(path), frozenset(job for problem in form for job in problem.jobs))
    return in_file_order(form + lint(registry))


def get_job(registry: Registry, name: str) -> Job:
    if name not in registry.jobs:
        raise BadInput(f"{registry.document.name}: no job {name}; write one of {', '.join(registry.jobs)}")
    return registry.jobs[name]


def check_job(registry: Registry, name: str) -> None:
    """Refuse to go on with a job that lint has an error about: BadInput with the first."""
    get_job(registry, name)
    for problem in lint(registry):
        if problem.severity == "error" and name in problem.jobs:
            raise BadInput(str(problem))
