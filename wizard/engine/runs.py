"""Where runs are kept: a directory each, below the registry's `runs`, with the journal and all that was moved away.

<runs>/<run>/journal.jsonl      what was asked, seen and done
<runs>/<run>/manifests/N.json   the effects of the intent in entry N
<runs>/<run>/quarantine/        what was moved out of the way; `undo` puts it back, `purge` deletes it
<runs>/<run>/displaced/         what an undo found in its way
<runs>/locks/<job>.json         who walks this job now
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from wizard import durable
from wizard.engine.journal import Chain, read_chain
from wizard.errors import BadInput

JOURNAL = "journal.jsonl"
_ENOUGH = 4
_RUN = re.compile(r"[a-z][a-z0-9_-]*-.+-\d{8}T\d{6}-[0-9a-f]{4}")


def new_run(path: str, job: str) -> str:
    """`reset-sensor-raw-ingest-20261118T031500-9f2c`: sorts by what, then by when."""
    return f"{path}-{job}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:4]}"


@dataclass(frozen=True)
class Run:
    id: str
    place: str
    chain: Chain

    @property
    def journal(self) -> str:
        return durable.join(self.place, JOURNAL)


def place_of(runs: str, run: str) -> str:
    return durable.join(runs, run)


def find_run(runs: str, name: str) -> Run:
    """By its id, or by the beginning or the end of one that only one run has."""
    known = run_ids(runs)
    if len(name) < _ENOUGH:  # an unset variable in a script would name the only run there is
        raise BadInput(f"{name!r} is too short to name a run; `runbook audit list` shows them")
    fitting = [name] if name in known else [run for run in known if run.startswith(name) or run.endswith(name)]
    if len(fitting) == 1:
        return open_run(runs, fitting[0])
    if fitting:
        raise BadInput(f"{name} may be any of {', '.join(fitting)}; write the id out")
    raise BadInput(f"there is no run {name!r} in {runs}; `runbook audit list` shows them")


def open_run(runs: str, run: str) -> Run:
    place = place_of(runs, run)
    return Run(run, place, read_chain(durable.join(place, JOURNAL)))


def run_ids(runs: str) -> list[str]:
    return [name for name in durable.names(runs) if _RUN.fullmatch(name)]


def all_runs(runs: str) -> Iterator[Run]:
    """Oldest first, by when they began."""
    found = [open_run(runs, run) for run in run_ids(runs)]
    yield from sorted(
        found, key=lambda run: (str(run.chain.entries[0].get("at", "")) if run.chain.entries else "", run.id)
    )
