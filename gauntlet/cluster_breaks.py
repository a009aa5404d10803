"""Ways to break the jobs of the cluster profile: on the broker, in a Delta table, in a checkpoint, or by a kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stage import GOLD, INGEST, SECOND, TYPED

from wizard.errors import RunbookError
from wizard.spark.produce import TOPIC, Mix, records
from wizard.spark.scenarios import Rows as Sets
from wizard.spark.scenarios import Run, Scenario, Truth
from wizard.spark.scenarios.breaks import metadata_lost, state_file_lost
from wizard.spark.scenarios.model import batches, edit, lose, newest
from wizard.spark.workspace import Workspace

if TYPE_CHECKING:
    from broker import Topics

PARTITIONS = 2
_HOUR_MS = 3_600_000
_KILL_SECONDS = 120
_WHOLE = Truth("every row once")


@dataclass(frozen=True)
class ClusterWorkspace(Workspace):
    topics: Topics


@dataclass(frozen=True)
class ClusterScenario(Scenario):
    topic: Callable[[Topics], None] = lambda topics: None
    """What happens to the topic itself; done anew before each case, and before `inject`."""


def fill(topics: Topics, count: int, seed: int = 0, later_ms: int = 0) -> None:
    """The topic, made anew with the first records of a sequence."""
    if TOPIC in topics.names():
        topics.delete(TOPIC)
    # By the records' own times they are old enough to go; those of a topic made anew are of the future.
    topics.create(TOPIC, PARTITIONS, retention_ms="-1", message_timestamp_after_max_ms=str(2**63 - 1))
    send_more(topics, count, seed, later_ms=later_ms)


def send_more(topics: Topics, count: int, seed: int = 0, mix: Mix | None = None, later_ms: int = 0) -> None:
    """The next records of the sequence: where it stands is what was ever written."""
    first = sum(topics.ends(TOPIC).values())
    topics.send(
        TOPIC,
        [
            (int(sensor.removeprefix("s-")) % PARTITIONS, record.key, record.value, record.timestamp_ms + later_ms)
            for sensor, record in records(count, seed, first, mix)
        ],
    )


def _nothing(workspace: Workspace, run: Run) -> None:
    """The topic is all that is broken."""


def killed_mid_batch(workspace: Workspace, run: Run) -> None:
    """The job's process and its JVM are killed while a batch is planned and not in the table; tried until it is so."""
    from deltalake import DeltaTable

    checkpoint = workspace.checkpoint(INGEST)
    command = [sys.executable, "-m", "wizard.spark.run", INGEST, "--jobs", str(workspace.jobs_file)]
    with (workspace.root / "killed.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, cwd=workspace.root)
    before, deadline = batches(checkpoint / "offsets")[-1], time.monotonic() + _KILL_SECONDS
    try:
        while batches(checkpoint / "offsets")[-1] == before:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RunbookError(f"the job planned no batch: {(workspace.root / 'killed.log').read_text()[-500:]}")
            time.sleep(0.002)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
    if batches(checkpoint / "commits")[-1] != before:
        raise RunbookError("the batch was committed before the kill; run this again")
    held = max(DeltaTable(workspace.raw).transaction_version(query) or 0 for query in _queries(checkpoint))
    if held > before:
        raise RunbookError("the table had the batch before the kill; run this again")


def killed_after_sink_write(workspace: Workspace, run: Run) -> None:
    lose(newest(workspace.checkpoint(INGEST) / "commits"))


def checkpoint_deleted(workspace: Workspace, run: Run) -> None:
    shutil.rmtree(workspace.checkpoint(INGEST))


def duplicates_in_sink(workspace: Workspace, run: Run) -> None:
    """Deleted over a full table and started: a new query id, and every row a second time."""
    checkpoint_deleted(workspace, run)
    run(INGEST)


def rolled_back(workspace: Workspace, run: Run) -> None:
    """Offsets and commits of the last two batches removed by hand; the table remembers them under the same query id."""
    for log in ("offsets", "commits"):
        directory = workspace.checkpoint(INGEST) / log
        for number in batches(directory)[-2:]:
            lose(directory / str(number))


def table_emptied(workspace: Workspace, run: Run) -> None:
    from deltalake import DeltaTable

    DeltaTable(workspace.raw).delete()


def upstream_repaired(workspace: Workspace, run: Run) -> None:
    """Somebody deletes rows of the table that the job reads, and puts the very same rows back."""
    from deltalake import DeltaTable, write_deltalake

    table = DeltaTable(workspace.raw)
    rows = table.to_pyarrow_table().filter(_of_partition_one())
    table.delete("partition = 1 AND offset < 50")
    write_deltalake(DeltaTable(workspace.raw), rows, mode="append")


def upstream_anew(workspace: Workspace, run: Run) -> None:
    """The table that the job reads is removed and made again, with its checkpoint: another table under the same path."""
    shutil.rmtree(workspace.raw)
    shutil.rmtree(workspace.checkpoint(INGEST))
    run(INGEST)


def _of_partition_one() -> object:
    import pyarrow.compute as pc

    return (pc.field("partition") == 1) & (pc.field("offset") < 50)


def shuffle_partitions_changed(workspace: Workspace, run: Run) -> None:
    edit(workspace.conf(GOLD), "shufflePartitions: 2", "shufflePartitions: 5")


def _aged(topics: Topics) -> None:
    """Records came, and were dropped before the job was started again."""
    send_more(topics, SECOND)
    for partition, end in topics.ends(TOPIC).items():
        topics.drop_before(TOPIC, partition, end)


def _bad(topics: Topics) -> None:
    """Half of what comes is no reading, in every way there is."""
    send_more(topics, SECOND, mix=Mix(bad=50))


def _anew(topics: Topics, count: int) -> None:
    fill(topics, count, seed=1, later_ms=_later())


def _later() -> int:
    """So that the new records' times are an hour after now, as of a topic that was made anew some time ago."""
    _, record = next(records(1))
    return int(time.time() * 1000) + _HOUR_MS - record.timestamp_ms


def _queries(checkpoint: Path) -> list[str]:
    import json

    return [str(json.loads((checkpoint / "metadata").read_text())["id"])]


_ALL = (
    ClusterScenario("killed-mid-batch", INGEST, "killed -9 with a batch planned and not in the table", killed_mid_batch,
                    None, _WHOLE, topic=lambda topics: send_more(topics, SECOND)),
    ClusterScenario("killed-after-sink-write", INGEST, "killed after the table had the batch, before the checkpoint's commit",
                    killed_after_sink_write, None, _WHOLE),
    ClusterScenario("checkpoint-deleted", INGEST, "the checkpoint was deleted over a full table", checkpoint_deleted,
                    None, Truth("every old row twice", twice=Sets.OLD)),
    ClusterScenario("rolled-back-same-id", INGEST, "the checkpoint was taken back two batches under the same query id",
                    rolled_back, None, Truth("batches the table remembers are skipped", missing=Sets.NEW)),
    ClusterScenario("table-emptied", INGEST, "the table was emptied under a live checkpoint", table_emptied,
                    None, Truth("the old rows are gone", missing=Sets.OLD)),
    ClusterScenario("duplicates-in-sink", INGEST, "the checkpoint was deleted and the job ran on over the full table",
                    duplicates_in_sink, None, Truth("every old row twice", twice=Sets.OLD)),
    ClusterScenario("metadata-lost", INGEST, "the checkpoint's metadata file is gone", metadata_lost,
                    "STREAMING_CHECKPOINT_MISSING_METADATA_FILE", _WHOLE),
    ClusterScenario("bad-records", INGEST, "half of what came while the job was down is no reading", _nothing,
                    None, _WHOLE, topic=_bad),
    ClusterScenario("retention", INGEST, "the broker dropped records that the job had not read", _nothing,
                    "Some data may have been lost", Truth("they are gone", missing=Sets.DURING), topic=_aged),
    ClusterScenario("topic-recreated-shorter", INGEST, "the topic was created anew and is shorter", _nothing,
                    "offset was changed", Truth("other records", missing=Sets.DURING), topic=lambda topics: _anew(topics, 200)),
    ClusterScenario("topic-recreated-longer", INGEST, "the topic was created anew and is longer than what was read", _nothing,
                    None, Truth("other records", missing=Sets.DURING), topic=lambda topics: _anew(topics, 1200)),
    ClusterScenario("upstream-repaired", TYPED, "rows of the table that it reads were deleted and put back", upstream_repaired,
                    "DELTA_SOURCE_TABLE_IGNORE_CHANGES", _WHOLE),
    ClusterScenario("upstream-anew", TYPED, "the table that it reads was made again", upstream_anew,
                    "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", _WHOLE),
    ClusterScenario("state-file-lost", GOLD, "a state file of the newest batch is gone", state_file_lost,
                    "CANNOT_READ_DELTA_FILE_NOT_EXISTS", _WHOLE),
)  # fmt: skip
SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _ALL}
