"""What lint says of `control:`, and what it means when little is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from wizard.errors import BadInput
from wizard.jobs.control.open import open_controller
from wizard.jobs.model import Answer, CommandControl
from wizard.jobs.registry import lint_registry, load_registry


def registry(tmp_path: Path, *controls: str, runs: str = "./runs") -> Path:
    lines = ["version: 1", f"runs: {runs}", "jobs:"]
    for number, control in enumerate(controls):
        lines.append(f"  j{number}: {{checkpoint: ./cp/{number}, source: {{format: json, path: ./in}},")
        lines.append(f"    sink: {{format: delta, path: ./out/{number}, key: [id]}}, control: {control}}}")
    path = tmp_path / "jobs.yaml"
    path.write_text("\n".join(lines))
    return path


def codes(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    return [(problem.code, problem.jobs) for problem in lint_registry(path)]


def test_two_jobs_with_one_pid_file_are_told_also_through_another_spelling(tmp_path: Path) -> None:
    one, other = (f"{{kind: process, start: [a], pid_file: {name}}}" for name in ("./a.pid", "./x/../a.pid"))
    default = "{kind: process, start: [a]}"
    assert codes(registry(tmp_path, one, other, default, default)) == [("J404", ("j1", "j0"))]


def test_a_pid_file_that_is_not_on_this_machine_is_told(tmp_path: Path) -> None:
    remote = "{kind: process, start: [a], pid_file: 's3://b/a.pid'}"
    assert codes(registry(tmp_path, remote)) == [("J403", ("j0",))]
    local = "{kind: process, start: [a], pid_file: ./a.pid}"
    path = registry(tmp_path, "{kind: process, start: [a]}", local, runs="s3://b/runs")
    assert codes(path) == [("J403", ("j0",))]
    loaded = load_registry(path)
    with pytest.raises(
        BadInput, match=r"jobs.yaml: the pid file of job j0 is not on this machine; set control.pid_file"
    ):
        open_controller(loaded, loaded.jobs["j0"])


def test_a_command_may_leave_the_answers_to_the_default(tmp_path: Path) -> None:
    path = registry(tmp_path, "{kind: command, start: [a], stop: [b], status: [c]}")
    control = load_registry(path).jobs["j0"].control
    assert isinstance(control, CommandControl)
    assert (control.running, control.stopped.exit_codes, control.timeout) == (Answer((0,)), (3,), 30)
    clash = registry(tmp_path, "{kind: command, start: [a], stop: [b], status: [c], stopped: {exit_codes: [0]}}")
    with pytest.raises(BadInput, match=r"control.stopped of job j0 is the same answer as running"):
        load_registry(clash)
