"""Where connectors come from: one file has their coordinates, and what cannot be had is said."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from had import ROOT, connectors, have


def test_every_connector_has_coordinates_with_a_version() -> None:
    for name in (*connectors.CONNECTORS, "broker"):
        for each in connectors.coordinates(name):
            assert re.fullmatch(r"[\w.\-]+:[\w.\-]+:\d[\w.\-]*", each), each


def test_the_kafka_source_is_that_of_the_spark_we_run() -> None:
    from importlib.metadata import version

    assert connectors.coordinates("kafka")[0].rpartition(":")[2] == version("pyspark")


def test_coordinates_are_in_one_place() -> None:
    """A version written down twice is one day two versions."""
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if tracked.returncode:
        pytest.skip("not a git checkout")
    groups = [each.partition(":")[0] for name in connectors.CONNECTORS for each in connectors.coordinates(name)]
    named = re.compile("|".join(re.escape(group) + r":[\w.\-]+:\d" for group in set(groups)))
    files = [ROOT / name for name in tracked.stdout.splitlines() if name.endswith((".py", ".yaml", ".toml", ".xml"))]
    assert [str(path) for path in files if path.exists() and named.search(path.read_text("utf-8", "replace"))] == []


def test_without_mvn_spark_is_told_to_fetch_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(connectors, "CACHE", tmp_path)
    wanted = ",".join(connectors.coordinates(name)[0] for name in ("kafka", "delta"))
    assert connectors.spark_conf("kafka", "delta") == {"spark.jars.packages": wanted}
    with pytest.raises(connectors.CannotHave, match="there is no mvn on PATH; apt install maven"):
        connectors.jars("broker")


def test_a_skip_in_ci_where_mvn_is_there_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def none(name: str) -> list[Path]:
        raise connectors.CannotHave("nothing to be had")

    monkeypatch.setattr(connectors, "jars", none)
    (tmp_path / "mvn").write_text("#!/bin/sh\n")
    (tmp_path / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="nothing to be had"):
        have("kafka")
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match="nothing to be had"):
        have("kafka")
