"""The Spark session of a job process, built from its config file. Nothing here assumes local mode."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wizard.errors import BadInput, RunbookError
from wizard.secrets import mask
from wizard.spark.config import SparkConfig
from wizard.spark.log_source import LogDataSource

CONNECT = "sc://"


def build_session(app_name: str, config: SparkConfig) -> SparkSession:
    if config.master and config.master.startswith(CONNECT):
        raise BadInput(
            f"master is {CONNECT}…, a Spark Connect server, which only the proof can use (RUNBOOK_SPARK_CONFIG); "
            "for jobs and backfills give the cluster's own master: spark://, yarn, k8s://, local[*]"
        )
    require_java()
    # Spark's Python workers take whatever `python3` is on PATH unless told; it must be the one that has wizard.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings: dict[str, str] = {
        # Windows and event times must not depend on where the job runs.
        "spark.sql.session.timeZone": "UTC",
        # Progress bars overwrite the log lines that an operator, and `runbook explain`, read.
        "spark.ui.showConsoleProgress": "false",
    }
    if config.master:
        settings["spark.master"] = config.master
    if config.driver_memory:
        settings["spark.driver.memory"] = config.driver_memory
    if config.packages:
        settings["spark.jars.packages"] = ",".join(config.packages)
    if config.shuffle_partitions:
        settings["spark.sql.shuffle.partitions"] = str(config.shuffle_partitions)
    builder = SparkSession.Builder().appName(app_name).config(map={**settings, **config.conf})
    try:
        spark: SparkSession = builder.getOrCreate()
    except PySparkException as error:
        raise RunbookError(f"Spark did not start: {' '.join(str(error).split())[:300]}; see the log above") from None
    except Exception as error:  # noqa: BLE001  py4j passes on whatever the JVM threw: master unreachable, port taken
        raise RunbookError(f"Spark did not start: {_why(str(error))}") from None
    spark.sparkContext.setLogLevel(config.log_level)
    LogDataSource.register(spark)
    return spark


def connect(url: str) -> SparkSession:
    """A session on a Spark Connect server: neither a JVM nor a Java on this machine."""
    try:
        spark: SparkSession = SparkSession.builder.remote(url).getOrCreate()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        return spark
    except ImportError as error:
        raise BadInput(f"Spark Connect needs more packages ({error}); pip install 'runbook[connect]'") from None
    except Exception as error:  # noqa: BLE001  gRPC has its own kinds
        raise RunbookError(f"{mask(url)} does not answer: {' '.join(mask(str(error)).split())[:300]}") from None


def _why(text: str) -> str:
    if taken := re.search(r"Service '(\w+)' failed after .*?\(starting from (\d+)\)", text):
        return f"port {taken[2]}, which conf gives to {taken[1]}, is taken; free it or give another"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("\tat ")]
    # py4j's own first line only names the constructor that was called.
    words = " ".join(lines[1:] if len(lines) > 1 and lines[0].startswith("An error occurred while calling") else lines)
    return f"{words.removeprefix(': ')[:300]}; check master and conf"


def require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = (Path(home) / "bin/java").exists() if home else shutil.which("java") is not None
    if not found:
        where = f"in JAVA_HOME={home}" if home else "on PATH"
        raise RunbookError(f"Spark needs Java 17 and there is no java {where}; install it or set JAVA_HOME")
