"""The stand-in workspace, a new one for each test; whatever runs in it is ended with the test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stand import WATCH_SECONDS, Stand

from wizard.jobs.control.process import ProcessController


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.setattr(ProcessController.__init__, "__defaults__", (WATCH_SECONDS,))  # time alone: see `impatient`
    made = Stand.build(tmp_path / "w")
    yield made
    made.stop()
