"""One Spark for all tests that only read and write with it; those that kill a job start it in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wizard.spark.workspace import Workspace


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from wizard.spark.config import SparkConfig
    from wizard.spark.session import build_session

    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    session = build_session("tests", SparkConfig("local[2]", "1g", shuffle_partitions=2, log_level="OFF", conf=conf))
    yield session
    session.stop()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    from wizard.spark.workspace import create_workspace

    return create_workspace(tmp_path / "demo", segment_bytes=4_000)
