"""A demo workspace: the registry and config files copied from the fixtures, a log to read from, nothing else yet."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from wizard.errors import BadInput
from wizard.sources.embedded_log import EmbeddedLog
from wizard.spark.produce import TOPIC

_PACKAGED = Path(__file__).parents[1] / "_demo"  # in a wheel, which has no fixtures/
TEMPLATES = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[2] / "fixtures" / "demo"


@dataclass(frozen=True)
class Workspace:
    root: Path

    @property
    def jobs_file(self) -> Path:
        return self.root / "jobs.yaml"

    @property
    def log(self) -> EmbeddedLog:
        return EmbeddedLog(self.root / "log", TOPIC)

    def checkpoint(self, job: str) -> Path:
        return self.root / "checkpoints" / job

    def conf(self, job: str) -> Path:
        return self.root / "conf" / f"{job}.yaml"

    @property
    def raw(self) -> Path:
        return self.root / "lake/raw/sensor_readings"

    @property
    def typed(self) -> Path:
        return self.root / "lake/typed/sensor_readings"

    @property
    def gold(self) -> Path:
        return self.root / "lake/gold/sensor_windows"


def create_workspace(root: Path, partitions: int = 2, segment_bytes: int = 64 * 1024) -> Workspace:
    if (root / "jobs.yaml").exists():
        raise BadInput(f"{root}: holds a workspace already; name another directory or remove this one")
    (root / "conf").mkdir(parents=True, exist_ok=True)
    for template in sorted((TEMPLATES / "conf").glob("*.yaml")):
        (root / "conf" / template.name).write_text(template.read_text())
    (root / "answers").mkdir(exist_ok=True)
    for template in sorted((TEMPLATES / "answers").glob("*.yaml")):
        (root / "answers" / template.name).write_text(template.read_text())
    EmbeddedLog.create(root / "log", TOPIC, partitions, segment_bytes)
    # A quoted JSON string is a YAML one: a path with a quote or a colon in it must not break the file.
    python = json.dumps(sys.executable)
    # The registry comes last: with it the workspace is complete.
    (root / "jobs.yaml").write_text((TEMPLATES / "jobs.yaml").read_text().replace('"{python}"', python))
    return Workspace(root)
