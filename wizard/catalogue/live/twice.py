"""Is this output idempotent in fact? One batch written twice, by the job's own code, on a copy; then the rows are counted.

The newest batch is committed and in the output. On a copy its commit is taken away, which is what a kill between the
write and the commit leaves, and the job is started: Spark runs that batch again with the same id and the same offsets.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wizard.catalogue.live.rows import exact
from wizard.catalogue.world import Seen, fails, holds, unknown
from wizard.checkpoint.reader import read_checkpoint
from wizard.errors import RunbookError
from wizard.jobs.control.open import open_controller
from wizard.jobs.model import Job, Registry
from wizard.sinks.open import open_sink
from wizard.store import open_store

_POLL_SECONDS = 0.2


def known_by_kind(job: Job) -> bool:
    """Whether the output itself keeps a batch from being there twice; then nothing has to be tried."""
    sink = open_sink(job.sink.path, job.sink.format, job.sink.options, job.sink.key)
    if sink is None:
        return False
    return sink.report(read_checkpoint(open_store(job.checkpoint)).query_id).idempotent is True


def write_again(copy: Registry, job_name: str, patience: float) -> Seen:
    """`copy` is a registry whose job is a copy, checkpoint and output: it is changed."""
    job = copy.jobs[job_name]
    checkpoint = read_checkpoint(open_store(job.checkpoint))
    batch = checkpoint.committed
    if batch is None or checkpoint.in_flight:
        why = "no batch is committed yet" if batch is None else f"batch {checkpoint.in_flight[0]} is in flight"
        return unknown(
            f"a batch could not be written twice on a copy: {why}; try it on a job that has committed its last"
        )
    before = _count(job)
    commits = Path(job.checkpoint) / "commits"
    for name in (f"{batch}", f".{batch}.crc"):
        (commits / name).unlink(missing_ok=True)
    controller = open_controller(copy, job)
    controller.start()
    deadline = time.monotonic() + patience
    while not (commits / f"{batch}").exists():
        status = controller.status()
        if status.state == "stopped" or time.monotonic() > deadline:
            last = (status.evidence.get("last_lines") or [status.says])[-1]
            return unknown(f"batch {batch} was not committed again on a copy, so nothing was seen: {last}")
        time.sleep(_POLL_SECONDS)
    controller.stop(timeout=30)
    after = _count(job)
    if after.surplus > before.surplus:
        return fails(
            f"batch {batch} written twice on a copy left {after.surplus - before.surplus} rows too many",
            *after.seen.evidence,
            **after.seen.data,
        )
    if after.missing > before.missing:
        return fails(
            f"batch {batch} written twice on a copy lost {after.missing - before.missing} rows",
            *after.seen.evidence,
            **after.seen.data,
        )
    return holds(f"batch {batch} written twice on a copy was there once", *after.seen.evidence, **after.seen.data)


@dataclass(frozen=True)
class _Counted:
    seen: Seen
    surplus: int
    missing: int


def _count(job: Job) -> _Counted:
    seen = exact(job)
    data: dict[str, Any] = seen.data
    if "doubled" not in data:
        raise RunbookError(f"rows cannot be counted: {seen.evidence[0]}")
    return _Counted(seen, data["doubled"]["rows"] + data["foreign"]["rows"], data["missing"]["rows"])
