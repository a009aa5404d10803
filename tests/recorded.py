"""Recorded checkpoints for tests: copied, with the paths in their text logs rewritten to the place of the copy."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from wizard.diagnosis.diagnose import Diagnosis, Subject, diagnose

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures/checkpoints"
NAMES = sorted(path.parent.name for path in FIXTURES.glob("*/facts.json"))
SHARED = ROOT.parent / "shared/checkpoints"

WORDS = {"safe", "risky", "blocked", "unknown"}
CONTRACT = {
    "checkpoint", "query_id", "batches", "sources", "operators", "state", "confs", "sink", "restarts", "findings", "paths",
}  # fmt: skip
"""What `diagnose --json` always has."""


def facts(name: str) -> dict[str, Any]:
    """What Spark itself said of the run."""
    read: dict[str, Any] = json.loads((FIXTURES / name / "facts.json").read_text())
    return read


def as_recorded(name: str, to: Path) -> Path:
    """The fixture as it is: its logs name files under /tmp/runbook-fixture, which are not there."""
    return shutil.copytree(FIXTURES / name, to / name)


def at_home(name: str, to: Path) -> Path:
    """The fixture as if it had been recorded here: the file logs name the files of the copy, which are as old as they say.

    A checkout makes every file new, and Spark reads a file anew whose time has moved once the log's entry is a week old.
    """
    root = as_recorded(name, to)
    for entry in re.finditer(
        rb'/input/([^"]+)","timestamp":(\d+)', b"".join(log.read_bytes() for log in root.glob("checkpoint/sources/*/*"))
    ):
        file, seconds = root / "input" / entry[1].decode(), int(entry[2]) / 1000
        if file.exists():
            os.utime(file, (seconds, seconds))
    logs = [*root.glob("sink/_spark_metadata/*"), *root.glob("checkpoint/sources/*/*")]
    logs += root.glob("checkpoint/state/*/_metadata/v2/*")
    for log in logs:
        if not log.name.startswith("."):
            log.write_bytes(log.read_bytes().replace(f"/tmp/runbook-fixture/{name}".encode(), str(root).encode()))
    return root


def look(root: Path, *, sink: bool = True, **more: Any) -> Diagnosis:
    """A diagnosis of a copy, with its sink where it has one."""
    there = str(root / "sink") if sink and (root / "sink").exists() else None
    return diagnose(Subject(str(root / "checkpoint"), there, **more))


def codes(seen: Diagnosis) -> set[str]:
    return {found.code for found in seen.findings}


def remove(checkpoint: Path, *paths: str) -> None:
    """Deletes log files the way one must: each with its checksum."""
    for path in paths:
        target = checkpoint / path
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink()
            (target.parent / f".{target.name}.crc").unlink(missing_ok=True)
