"""Skips the Spark tests, and says why, where Spark could not start; tells what tests counted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from server import Server

ROOT = Path(__file__).parent.parent


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook, and would come first
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    spark_tests = [item for item in items if item.get_closest_marker("spark")]
    if not spark_tests:
        return
    # First, and a file at a time: each has Sparks of its own, but for tests/spark, which share one.
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
    for item in spark_tests:
        shared = item.path.parent.name == "spark"
        item.add_marker(pytest.mark.xdist_group("the pipeline on Spark" if shared else str(item.path)))
        if item.get_closest_marker("slow") and not os.environ.get("RUNBOOK_ALL_SCENARIOS"):
            item.add_marker(pytest.mark.skip(reason="takes minutes; `make gauntlet` runs it (RUNBOOK_ALL_SCENARIOS=1)"))
    java = subprocess.run([ROOT / "scripts/need-java"], capture_output=True, text=True, check=False)
    if java.returncode:
        for item in spark_tests:
            item.add_marker(pytest.mark.skip(reason=java.stderr.strip()))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A copy of a recorded checkpoint, so that nothing can change the recording."""
    recorded = next(iter(sorted((ROOT / "fixtures/checkpoints").glob("*/checkpoint"))))
    return shutil.copytree(recorded, tmp_path / "checkpoint")


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A figure that a test worked out, told below the dots whatever the verbosity."""
    return lambda line: request.node.user_properties.append(("told", line))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for some in terminalreporter.stats.values() for report in some]
    told = [
        str(value)
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "told"
    ]
    if told:
        terminalreporter.section("counted")
        for line in sorted(set(told)):
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def database() -> Iterator[Server]:
    """One PostgreSQL server for all tests of this process."""
    import server

    bin = server.binaries()
    if bin is None:
        server.cannot("PostgreSQL is not installed (no initdb); on Debian: apt install postgresql")
    if find_spec("psycopg") is None:
        server.cannot("psycopg is not installed; pip install 'runbook[sql]'")
    assert bin is not None
    started = server.Server(bin)
    try:
        yield started.start()
    finally:
        started.remove()
