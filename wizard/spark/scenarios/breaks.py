"""What each scenario does to a workspace. None of them imports pyspark: those that need a job to run are given it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

from wizard.errors import RunbookError
from wizard.sources.embedded_log import EmbeddedLog
from wizard.spark.produce import produce_more
from wizard.spark.scenarios.model import Run, batches, cut, edit, lose, newest
from wizard.spark.workspace import Workspace

INGEST, TYPED, GOLD = "sensor-raw-ingest", "sensor-deserialize", "sensor-merge-gold"
_COLLISION_SECONDS = 120
_ONE_SOURCE = "    source: {format: log, path: ./log, options: {subscribe: sensor-raw}}\n"
_TWO_SOURCES = """    sources:
      - {format: log, path: ./log, options: {subscribe: sensor-raw}}
      - {format: log, path: ./log, options: {subscribe: sensor-raw-south}}
"""


def killed_while_planning(workspace: Workspace, run: Run) -> None:
    planned = newest(workspace.checkpoint(INGEST) / "offsets")
    draft = planned.with_name(f".{int(planned.name) + 1}.bdc0abb6-5d1c-4b8e-9f43-0d2a6a1f7e11.tmp")
    draft.write_bytes(planned.read_bytes()[:60])


def killed_mid_batch(workspace: Workspace, run: Run) -> None:
    for path in _logged_files(newest(workspace.raw / "_spark_metadata")):
        lose(path)
    killed_during_sink_write(workspace, run)


def killed_during_sink_write(workspace: Workspace, run: Run) -> None:
    killed_after_sink_write(workspace, run)
    lose(newest(workspace.raw / "_spark_metadata"))


def killed_after_sink_write(workspace: Workspace, run: Run) -> None:
    lose(newest(workspace.checkpoint(INGEST) / "commits"))


def killed_after_merge(workspace: Workspace, run: Run) -> None:
    lose(newest(workspace.checkpoint(GOLD) / "commits"))


def checkpoint_deleted(workspace: Workspace, run: Run) -> None:
    shutil.rmtree(workspace.checkpoint(INGEST))


def sink_log_deleted(workspace: Workspace, run: Run) -> None:
    checkpoint_deleted(workspace, run)
    shutil.rmtree(workspace.raw / "_spark_metadata")


def sink_emptied(workspace: Workspace, run: Run) -> None:
    shutil.rmtree(workspace.raw)


def duplicates_in_sink(workspace: Workspace, run: Run) -> None:
    """More and smaller batches than before: those with ids past the newest in the sink's log are written again."""
    checkpoint_deleted(workspace, run)
    conf = workspace.conf(INGEST)
    before = edit(conf, "maxOffsetsPerTrigger: 400", "maxOffsetsPerTrigger: 100")
    run(INGEST)
    conf.write_text(before)


def offsets_cut(workspace: Workspace, run: Run) -> None:
    cut(newest(workspace.checkpoint(INGEST) / "offsets"), keep=40)


def offsets_empty(workspace: Workspace, run: Run) -> None:
    cut(newest(workspace.checkpoint(INGEST) / "offsets"), keep=0)


def offsets_lost(workspace: Workspace, run: Run) -> None:
    lose(newest(workspace.checkpoint(INGEST) / "offsets"))


def commit_empty(workspace: Workspace, run: Run) -> None:
    cut(newest(workspace.checkpoint(INGEST) / "commits"), keep=0)


def metadata_lost(workspace: Workspace, run: Run) -> None:
    lose(workspace.checkpoint(INGEST) / "metadata")


def state_file_lost(workspace: Workspace, run: Run) -> None:
    partition = workspace.checkpoint(GOLD) / "state/0/0"
    lose(partition / f"{batches(partition)[-1]}.delta")


def state_lost(workspace: Workspace, run: Run) -> None:
    shutil.rmtree(workspace.checkpoint(GOLD) / "state")


def retention(workspace: Workspace, run: Run) -> None:
    # Whole segments are dropped, so the job has to be behind by more than one of them.
    for _ in range(20):
        produce_more(workspace.log, 400)
        ends = workspace.log.latest()
        dropped = [workspace.log.drop_before(partition, end) for partition, end in ends.items()]
        if dropped == list(ends.values()):
            return
    raise RunbookError(f"{workspace.log.path}: retention dropped nothing; the segments are too large")


def topic_recreated(workspace: Workspace, run: Run) -> None:
    log = workspace.log
    written = sum(log.latest().values())
    shutil.rmtree(log.path)
    again = EmbeddedLog.create(log.path.parent, log.topic, len(log.partitions), log.segment_bytes)
    produce_more(again, written + 200, seed=1)


def source_removed(workspace: Workspace, run: Run) -> None:
    """The job has run with two topics from a clean start; the release takes the second one away."""
    produce_more(EmbeddedLog.create(workspace.root / "log", "sensor-raw-south", 2), 50, seed=2)
    shutil.rmtree(workspace.checkpoint(INGEST))
    shutil.rmtree(workspace.raw)
    before = edit(workspace.jobs_file, _ONE_SOURCE, _TWO_SOURCES)
    run(INGEST)
    workspace.jobs_file.write_text(before)


def shuffle_partitions_changed(workspace: Workspace, run: Run) -> None:
    edit(workspace.conf(GOLD), "shufflePartitions: 2", "shufflePartitions: 5")


def state_schema_changed(workspace: Workspace, run: Run) -> None:
    edit(workspace.conf(GOLD), "parameters: {", 'parameters: {unique: "reading_id, sensor", ')


def faulty_release(workspace: Workspace, run: Run) -> None:
    """A release that takes every reading for too hot; it is rolled back after one batch has landed."""
    conf = workspace.conf(TYPED)
    before = conf.read_text()
    conf.write_text(before + "parameters: {highest: -100}\n")
    produce_more(workspace.log, 100)
    run(INGEST)
    run(TYPED)
    conf.write_text(before)


def two_runs(workspace: Workspace, run: Run) -> None:
    """The job is started twice, in two processes, as a scheduler does that lost sight of the first one."""
    conf = workspace.conf(INGEST)
    before = edit(conf, "maxOffsetsPerTrigger: 400", "maxOffsetsPerTrigger: 20")
    edit(conf, "trigger: 2 seconds", "trigger: 0 seconds")
    command = [sys.executable, "-m", "wizard.spark.run", INGEST, "--jobs", str(workspace.jobs_file)]
    logs = workspace.root / "logs"
    logs.mkdir(exist_ok=True)
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number in (1, 2):
            with (logs / f"{INGEST}-{number}.log").open("wb") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
                started.append(process)
        deadline = time.monotonic() + _COLLISION_SECONDS
        while all(process.poll() is None for process in started):
            if time.monotonic() > deadline:
                raise RunbookError(f"two runs of {INGEST} did not collide in {_COLLISION_SECONDS} seconds")
            produce_more(workspace.log, 20)
            time.sleep(0.2)
    finally:
        for process in started:
            _end(process)
        conf.write_text(before)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.terminate()
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _logged_files(log: Path) -> list[Path]:
    entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
    return [Path(unquote(urlparse(entry["path"]).path)) for entry in entries]
