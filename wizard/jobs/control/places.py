"""Where the pid file of a job is."""

from __future__ import annotations

from pathlib import Path

from wizard.jobs.model import ProcessControl, Registry
from wizard.jobs.paths import local_path


def pid_file(registry: Registry, job: str, control: ProcessControl) -> Path | None:
    """Where the registry says, else in `runs`; None when that is not on this machine, where the pid is."""
    if control.pid_file:
        path = local_path(control.pid_file)
    else:
        runs = local_path(registry.runs)
        path = runs / "control" / f"{job}.pid" if runs else None
    return path.absolute() if path else None
