"""The same jobs, the backfill and the large proof on a Spark standalone cluster on loopback: a master and two workers.

Slow (each driver has two executors of its own), so `make gauntlet` runs it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession
from streams import TOPIC, offsets
from test_pipeline import check_all

from wizard.catalogue.live import rows
from wizard.compare import Range, compare, plan_keys
from wizard.datafiles import DataFile
from wizard.spark.produce import produce_more
from wizard.spark.run import JOBS, run_once
from wizard.spark.workspace import Workspace

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.slow,
]

_UP_SECONDS = 240
INGEST = "sensor-raw-ingest"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The url of a master that two workers have registered with, and where their logs are."""
    home = tmp_path_factory.mktemp("cluster")
    started: list[subprocess.Popen[bytes]] = []
    try:
        at = "org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 0 --webui-port 0"
        started.append(daemon(home / "master.log", *at.split()))
        url = wait_for(home / "master.log", r"Starting Spark master at (spark://\S+)")[0]
        for number in (1, 2):
            at = "org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --webui-port 0 --cores 1 --memory 1g"
            started.append(daemon(home / f"worker-{number}.log", *at.split(), "--work-dir", str(home / "work"), url))
        wait_for(home / "master.log", r"Registering worker 127.0.0.1:\d+", times=2)
        yield url, home
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def daemon(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    spark_class = Path(pyspark.__file__).parent / "bin/spark-class"
    with log.open("wb") as out:
        return subprocess.Popen([spark_class, *arguments], stdout=out, stderr=out, start_new_session=True)


def wait_for(log: Path, pattern: str, times: int = 1) -> list[str]:
    deadline = time.monotonic() + _UP_SECONDS
    while len(found := re.findall(pattern, log.read_text())) < times:
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.1)
    return found


def send_to(conf: Path, master: str) -> None:
    settings = f'master: "{master}"'
    conf.write_text(conf.read_text().replace('master: "local[2]"', settings) + "  spark.executor.memory: 512m\n")
    assert settings in conf.read_text()


def launched(home: Path) -> int:
    """How many executors the workers were asked for so far."""
    return sum(log.read_text().count("Asked to launch executor") for log in home.glob("worker-*.log"))


def test_the_jobs_run_unchanged_on_a_cluster_and_every_record_is_in_each_sink_once(
    workspace: Workspace, cluster: tuple[str, Path]
) -> None:
    master, home = cluster
    produce_more(workspace.log, 600)
    before = launched(home)
    for job in JOBS:
        send_to(workspace.conf(job), master)
        command = [sys.executable, "-m", "wizard.spark.run", job, "--jobs", str(workspace.jobs_file), "--once"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=workspace.root, timeout=400, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    check_all(workspace)
    assert launched(home) == before + 2 * len(JOBS)


def test_a_backfill_on_a_cluster_stages_what_the_output_lacks_and_nothing_else(
    spark: SparkSession, workspace: Workspace, cluster: tuple[str, Path], tmp_path: Path
) -> None:
    master, home = cluster
    produce_more(workspace.log, 300)
    run_once(spark, workspace.jobs_file, INGEST)
    log = workspace.raw / "_spark_metadata/0"
    version, lost, *kept = log.read_text().splitlines()
    log.write_text("\n".join([version, *kept]))
    log.with_name(".0.crc").unlink()
    gone = (
        pq.ParquetFile(Path(unquote(urlparse(json.loads(lost)["path"]).path))).read(["partition", "offset"]).to_pylist()
    )
    ends = {str(number): end for number, end in workspace.log.latest().items()}
    (tmp_path / "range.json").write_text(
        json.dumps({"start": {"sensor-raw": dict.fromkeys(ends, 0)}, "end": {"sensor-raw": ends}})
    )
    send_to(workspace.conf(INGEST), master)
    before = launched(home)
    command = [sys.executable, "-m", "wizard.spark.backfill", INGEST, "--jobs", str(workspace.jobs_file)]
    command += ["--range", str(tmp_path / "range.json"), "--to", str(tmp_path / "staged")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=workspace.root, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    staged = [row for path in (tmp_path / "staged").rglob("*.parquet")
              for row in pq.ParquetFile(path).read(["partition", "offset"]).to_pylist()]  # fmt: skip
    assert len(gone) > 50
    assert sorted(map(tuple, map(dict.values, staged))) == sorted(map(tuple, map(dict.values, gone)))
    assert launched(home) == before + 2


def test_a_large_proof_on_a_cluster_gives_the_answer_that_is_found_here(
    cluster: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, home = cluster
    files = [
        DataFile(str(offsets(tmp_path, "a.parquet", 0, *range(0, 50_000)))),
        DataFile(str(offsets(tmp_path, "b.parquet", 0, *(n for n in range(50_000, 100_000) if n != 60_007), 70_000))),
    ]
    planned = plan_keys(
        ["topic", "partition", "offset"], files, ranges=[Range({"topic": TOPIC, "partition": 0}, 0, 100_000)]
    )
    settings = {"spark.executor.memory": "512m", "spark.ui.enabled": False, "spark.driver.host": "127.0.0.1"}
    (tmp_path / "verify.yaml").write_text(json.dumps({"master": master, "shufflePartitions": 2, "conf": settings}))
    monkeypatch.setenv("RUNBOOK_SPARK_CONFIG", str(tmp_path / "verify.yaml"))
    before = launched(home)
    answer = rows.on_spark(planned)
    assert answer == compare(planned)
    assert (answer["expected"], answer["found"]) == (100_000, 100_000)
    assert [each["offset"] for each in answer["missing"]["examples"]] == [60_007]
    assert [each["offset"] for each in answer["doubled"]["examples"]] == [70_000]
    assert launched(home) == before + 2


@pytest.fixture(scope="module")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("grpc", reason="the connect extra is not installed")
    log, port = tmp_path_factory.mktemp("connect") / "server.log", free_port()
    at = "org.apache.spark.deploy.SparkSubmit --class org.apache.spark.sql.connect.service.SparkConnectServer"
    local = ("spark.ui.enabled=false", "spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1")
    conf = [word for each in (*local, f"spark.connect.grpc.binding.port={port}") for word in ("--conf", each)]
    server = daemon(log, *at.split(), "--master", "local[2]", *conf, "spark-internal")
    try:
        wait_for(log, r"Spark Connect server started at: ")
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(30)


def test_a_large_proof_on_spark_connect_gives_the_same_answer_and_needs_no_java_here(
    connect_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [DataFile(str(offsets(tmp_path, "a.parquet", 0, *(n for n in range(20_000) if n != 5), 7)))]
    ranges = [Range({"topic": TOPIC, "partition": 0}, 0, 20_000)]
    planned = plan_keys(["topic", "partition", "offset"], found, ranges=ranges)
    (tmp_path / "verify.yaml").write_text(json.dumps({"master": connect_server}))
    monkeypatch.setenv("RUNBOOK_SPARK_CONFIG", str(tmp_path / "verify.yaml"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = rows.on_spark(planned)
    assert answer == compare(planned)
    assert [each["offset"] for each in answer["missing"]["examples"]] == [5]
    assert [each["offset"] for each in answer["doubled"]["examples"]] == [7]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
