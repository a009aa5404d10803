"""What `runbook lint` looks at: the files named, else the registry and the shipped and local runbooks.

A runbook may be named by its file or by its id: `runbook lint reset`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wizard.errors import BadInput
from wizard.jobs.registry import find_registry, lint_registry
from wizard.problems import Problem


def lint_all(files: Sequence[str], jobs_file: str | None) -> tuple[list[Problem], list[str]]:
    from wizard.runbook.lint import lint_files
    from wizard.runbook.search import known

    registries = [Path(file) for file in files if _is_registry(file)]
    runbooks = [_runbook(file) for file in files if not _is_registry(file)]
    if not files:
        runbooks = list(known().values())
        registries = _registry_if_any(jobs_file)
    elif jobs_file:
        registries.append(Path(jobs_file))
    problems: list[Problem] = []
    for registry in registries:
        problems += lint_registry(registry)
    problems += lint_files(runbooks)
    return problems, [str(path) for path in (*registries, *runbooks)]


def drawn(files: Sequence[str], how: str) -> list[str]:
    """Each runbook as text or Mermaid, whether it proves or not; one that cannot be read is left to `lint_all` to tell."""
    from wizard.runbook.draw import draw_mermaid, draw_text
    from wizard.runbook.load import read_file
    from wizard.runbook.search import known, library

    paths = [_runbook(file) for file in files if not _is_registry(file)] if files else list(known().values())
    found = [reading.runbook for path in paths if (reading := read_file(path, library())).runbook]
    return [draw_mermaid(runbook) if how == "mermaid" else draw_text(runbook) for runbook in found if runbook]


def _runbook(name: str) -> Path:
    """The file of that name; failing one, a name without a suffix or a slash is an id on the search path."""
    from wizard.runbook.search import find

    path = Path(name)
    return path if path.exists() or path.suffix or path.name != name else find(name)


def _registry_if_any(jobs_file: str | None) -> list[Path]:
    """Without a registry to be found, the runbooks alone are looked at; one that was asked for must be there."""
    try:
        return [find_registry(jobs_file)]
    except BadInput:
        if jobs_file:
            raise
        return []


def _is_registry(file: str) -> bool:
    """A runbook says `runbook: 1` in its first lines; a registry has `jobs:`."""
    try:
        head = Path(file).read_bytes()[:200_000]
    except OSError:
        return False
    lines = head.splitlines()
    return any(line.startswith(b"jobs:") for line in lines) and not any(line.startswith(b"runbook:") for line in lines)
