"""Whether a job's output was seen to take a batch twice, when that was last tried on a copy: `<runs>/tried/<job>.json`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from wizard import durable
from wizard.jobs.model import Job, Registry


@dataclass(frozen=True)
class Tried:
    """`once`: the batch was there once after it had been written twice."""

    once: bool
    says: str
    at: str
    of: str  # what was tried; another command or another output was not

    @property
    def told(self) -> str:
        return f"{self.says} (tried at {self.at})"


def note(registry: Registry, job: Job, once: bool, says: str) -> None:
    tried = Tried(once, says, datetime.now(UTC).isoformat(timespec="seconds"), _of(job))
    durable.write(_place(registry, job), json.dumps(asdict(tried), sort_keys=True).encode())


def tried(registry: Registry, job: Job) -> Tried | None:
    """None where it was never tried, or only with another command or output than the registry names now."""
    data = durable.read(_place(registry, job))
    try:
        found = Tried(**json.loads(data)) if data is not None else None
    except (ValueError, TypeError):
        return None
    return found if found is not None and found.of == _of(job) else None


def _of(job: Job) -> str:
    start = list(job.control.start) if job.control else []
    what = [job.sink.format, job.sink.path, job.sink.options.get("url"), job.sink.options.get("dbtable"), start]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _place(registry: Registry, job: Job) -> str:
    return durable.join(registry.runs, "tried", f"{job.name}.json")
