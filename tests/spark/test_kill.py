"""The jobs as processes: killed with -9 at random moments, told to stop, started with something wrong."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from test_pipeline import check_all

from wizard.spark.produce import produce
from wizard.spark.run import JOBS, run_once
from wizard.spark.workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]

# How often each of the three jobs is killed; with RUNBOOK_KILLS=7 there are 21 random moments.
KILLS = int(os.environ.get("RUNBOOK_KILLS", "1"))


def launch(workspace: Workspace, job: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "wizard.spark.run", job, "--jobs", str(workspace.jobs_file), *arguments]
    with (workspace.root / f"{job}.out").open("ab") as out, (workspace.root / f"{job}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=out, stderr=log, cwd=workspace.root, start_new_session=True)


def wait_for(workspace: Workspace, job: str, text: str, process: subprocess.Popen[bytes], after: int = 0) -> None:
    out = workspace.root / f"{job}.out"
    deadline = time.monotonic() + 90
    while text not in out.read_text()[after:]:
        assert process.poll() is None, (workspace.root / f"{job}.log").read_text()[-3000:]
        assert time.monotonic() < deadline, f"{job} did not say {text!r}"
        time.sleep(0.05)


def many_small_batches(workspace: Workspace) -> None:
    for path in (workspace.root / "conf").glob("*.yaml"):
        text = path.read_text().replace("trigger: 2 seconds", "trigger: 0 seconds")
        text = text.replace("maxOffsetsPerTrigger: 400", "maxOffsetsPerTrigger: 40")
        files = 4 if "gold" in path.name else 2
        path.write_text(text.replace("maxFilesPerTrigger: 20", f"maxFilesPerTrigger: {files}"))


@pytest.mark.slow
def test_jobs_killed_at_random_moments_and_plainly_restarted_stay_row_exact(
    spark: SparkSession, workspace: Workspace
) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")  # shown when the test fails
    chance = random.Random(seed)
    many_small_batches(workspace)
    produce(workspace.log, 80 + 160 * KILLS)
    for job in JOBS:
        for _ in range(KILLS):
            kill_while_it_works(workspace, job, chance)
        run_once(spark, workspace.jobs_file, job)
    check_all(workspace)


def kill_while_it_works(workspace: Workspace, job: str, chance: random.Random) -> None:
    said = _size(workspace.root / f"{job}.out")
    process = launch(workspace, job)
    try:
        wait_for(workspace, job, '{"batch": ', process, after=said)
        time.sleep(chance.random())
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
    finally:
        end(process)
    planned, committed = newest(workspace, job)
    print(f"{job} killed: batch {planned} planned, {committed} committed", flush=True)
    assert committed >= 0, "killed before it had done anything, which proves nothing"


def test_a_job_told_to_stop_ends_between_two_batches_with_exit_code_0(workspace: Workspace) -> None:
    many_small_batches(workspace)
    produce(workspace.log, 2000)
    process = launch(workspace, "sensor-raw-ingest")
    try:
        wait_for(workspace, "sensor-raw-ingest", '"batch": 1', process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        end(process)
    planned, committed = newest(workspace, "sensor-raw-ingest")
    # The plan of the next batch can win the race with stop(); then the job has to say so.
    said = f"stopped after batch {committed}" if planned == committed else f"stopped inside batch {planned};"
    assert said in (workspace.root / "sensor-raw-ingest.out").read_text()


@pytest.mark.parametrize(
    ("breakage", "code", "said"),
    [
        ("registry", 2, "jobs.yaml"),
        ("config", 2, "unknown setting 'startingOffset'"),
        ("java", 1, "Spark needs Java 17 and there is no java in JAVA_HOME=/nowhere"),
        ("topic", 1, "there is no topic 'sensor-raw' here"),
        ("port", 1, "which conf gives to sparkDriver, is taken; free it or give another"),
    ],
)
def test_what_is_wrong_before_the_start_is_one_line_and_the_right_exit_code(
    workspace: Workspace, breakage: str, code: int, said: str
) -> None:
    environment = dict(os.environ)
    conf = workspace.conf("sensor-raw-ingest")
    taken = socket.create_server(("127.0.0.1", 0))
    if breakage == "registry":
        workspace.jobs_file.write_text("version: 1\njobs: {sensor-raw-ingest: {}}\n")
    elif breakage == "config":
        conf.write_text(conf.read_text().replace("startingOffsets: e", "startingOffset: e"))
    elif breakage == "java":
        environment["JAVA_HOME"] = "/nowhere"
    elif breakage == "port":
        port = taken.getsockname()[1]
        conf.write_text(conf.read_text() + f"  spark.driver.port: {port}\n  spark.port.maxRetries: 0\n")
    else:
        (workspace.root / "log/sensor-raw/topic.json").unlink()
    command = [sys.executable, "-m", "wizard.spark.run", "sensor-raw-ingest", "--once"]
    done = subprocess.run(
        [*command, "--jobs", str(workspace.jobs_file)], capture_output=True, text=True, env=environment, check=False
    )
    taken.close()
    assert done.returncode == code
    assert said in done.stderr.splitlines()[-1]


def newest(workspace: Workspace, job: str) -> tuple[int, int]:
    """The newest batch planned and the newest committed; −1 for none."""
    logs = (workspace.checkpoint(job) / name for name in ("offsets", "commits"))
    planned, committed = (max((int(p.name) for p in log.glob("[0-9]*")), default=-1) for log in logs)
    return planned, committed


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
