"""The stand-in workspace of the engine's tests, and an operator with a keyboard."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))

from stand import Stand, impatient, without_spark

from wizard.catalogue.effects import build, program
from wizard.catalogue.live import job
from wizard.jobs.control.process import ProcessController
from wizard.tui.widgets import prompt


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ProcessController.__init__, "__defaults__", ProcessController.__init__.__defaults__)
    for module, name in ((job, "_POLL_SECONDS"), (build, "_POLL_SECONDS"), (program, "resolve_argv")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back when the test is over
    impatient()
    monkeypatch.setattr(prompt, "DEAF_SECONDS", 0.15)
    without_spark()
    made = Stand.build(tmp_path / "w")
    yield made
    made.stop()
