"""Which file is the registry. Nothing of it is read: the TUI draws its first picture before that."""

from __future__ import annotations

import os
from pathlib import Path

from wizard.errors import BadInput


def find_registry(explicit: str | None) -> Path:
    """`--jobs FILE`, else $RUNBOOK_JOBS, else ./jobs.yaml, else ./demo/jobs.yaml."""
    named = ((explicit, "--jobs"), (os.environ.get("RUNBOOK_JOBS") or None, "$RUNBOOK_JOBS"))
    for name, given_by in named:
        if name is not None:
            if not Path(name).is_file():
                raise BadInput(f"{name}: no such file, named by {given_by}; correct the path")
            return Path(name)
    for candidate in (Path("jobs.yaml"), Path("demo/jobs.yaml")):
        if candidate.is_file():
            return candidate
    raise BadInput("no jobs.yaml here; write one (docs/registry.md), or name one with --jobs FILE or $RUNBOOK_JOBS")
