"""`kind: command` with real commands, and the examples of the docs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from wizard.errors import BadInput
from wizard.jobs.control.command import CommandController
from wizard.jobs.control.interface import AlreadyRunning, NotStarted, NotSupported, StillRunning
from wizard.jobs.control.open import open_controller
from wizard.jobs.control.processes import command_of, processes
from wizard.jobs.model import DEFAULT_RUNNING, DEFAULT_STOPPED, Answer, CommandControl
from wizard.jobs.registry import lint_registry, load_registry

ROOT = Path(__file__).parent.parent.parent.parent
# A service manager of one unit: its state is a file. `stop` takes a moment, as it does in life.
CTL = """
import os, subprocess, sys
verb, *rest = sys.argv[1:]
state = open("state").read() if os.path.exists("state") else "inactive"
if verb == "start":
    open("state", "w").write("active")
elif verb == "stop":
    open("state", "w").write("deactivating")
    code = "import time; time.sleep(0.3); open('state', 'w').write('inactive')"
    subprocess.Popen([sys.executable, "-c", code])  # keeps our stdout, as a careless script would
elif verb == "status":
    print(state)
    sys.exit({"active": 0}.get(state, 3))
elif verb == "args":
    print(rest); sys.exit(int(rest[0]))
"""


@pytest.fixture(autouse=True)
def ctl(tmp_path: Path) -> Path:
    (tmp_path / "ctl.py").write_text(CTL)
    return tmp_path


def controller(cwd: Path, **changes: Any) -> CommandController:
    verbs: dict[str, Any] = {verb: ("python", "ctl.py", verb) for verb in ("start", "stop", "status")}
    given: dict[str, Any] = {**verbs, "running": DEFAULT_RUNNING, "stopped": DEFAULT_STOPPED, **changes}
    return CommandController("clean", CommandControl(**given), cwd, poll=0.05)


def answers(cwd: Path, code: int, *words: str, **changes: Any) -> CommandController:
    return controller(cwd, status=("python", "ctl.py", "args", str(code), *words), **changes)


def test_a_job_is_started_and_stopped_and_stopped_means_that_status_says_so(ctl: Path) -> None:
    clean = controller(ctl)
    assert clean.status().state == "stopped"
    clean.start()
    assert clean.status().state == "running"
    with pytest.raises(AlreadyRunning, match=r"clean is running already .*; nothing was started"):
        clean.start()
    told: list[str] = []
    clean.stop(say=told.append)
    assert told == ["python ctl.py stop; it has 60 s"]
    assert (ctl / "state").read_text() == "inactive"
    assert clean.status().evidence == {"command": "python ctl.py status", "exit_code": 3, "output": "inactive"}
    clean.stop()


@pytest.mark.parametrize("between", ["activating", "deactivating", "reloading"])
def test_a_unit_between_two_runs_is_not_stopped_though_systemd_ends_with_3(ctl: Path, between: str) -> None:
    (ctl / "state").write_text(between)
    assert controller(ctl).status().state == "unknown"


def test_arguments_reach_the_program_as_they_are(ctl: Path) -> None:
    told = answers(ctl, 0, "$HOME", "a b", "; touch x", "*").status()
    assert told.evidence["output"] == "['0', '$HOME', 'a b', '; touch x', '*']"
    assert not (ctl / "x").exists()


@pytest.mark.parametrize(
    ("code", "word", "running", "stopped", "state"),
    [
        (0, "", Answer((0,)), Answer((3,)), "running"),
        (3, "", Answer((0,)), Answer((3,)), "stopped"),
        (4, "", Answer((0,)), Answer((3,)), "unknown"),
        (0, "RUNNING", Answer(output="RUNNING"), Answer(output="TERMINATED"), "running"),
        (0, "TERMINATED", Answer(output="RUNNING"), Answer(output="TERMINATED"), "stopped"),
        (0, "PENDING", Answer(output="RUNNING"), Answer(output="TERMINATED"), "unknown"),
        (0, "RUNNING TERMINATED", Answer(output="RUNNING"), Answer(output="TERMINATED"), "unknown"),
        (1, "TERMINATED", Answer(output="RUNNING"), Answer((0,), "TERMINATED"), "unknown"),
    ],
)
def test_an_answer_that_fits_neither_or_both_is_unknown(
    ctl: Path, code: int, word: str, running: Answer, stopped: Answer, state: str
) -> None:
    assert answers(ctl, code, word, running=running, stopped=stopped).status().state == state


def test_a_command_that_hangs_is_ended_and_unknown(ctl: Path) -> None:
    clean = controller(ctl, status=("sleep", "61"), timeout=0.3)
    status = clean.status()
    assert (status.state, status.says) == ("unknown", "sleep 61 gave no answer in 0.3 s")
    seen = [command_of(process.pid) for process in processes()]
    assert (("sleep", "61"), str(ctl)) not in seen
    for act in (clean.start, clean.stop):
        with pytest.raises(NotSupported, match=r"cannot tell whether clean runs: .*; nothing was"):
            act()


def test_a_program_that_is_not_there_makes_the_status_unknown_and_a_start_refused(ctl: Path) -> None:
    status = controller(ctl, status=("no-such-ctl", "is-active")).status()
    says = "control.status of job clean: no such program no-such-ctl; install it, or correct control.status"
    assert (status.state, status.says) == ("unknown", says)
    with pytest.raises(BadInput, match=r"control.start of job clean: no such program no-such-ctl"):
        controller(ctl, start=("no-such-ctl",)).start()


def test_commands_that_fail_are_told_with_what_they_said(ctl: Path) -> None:
    fails = ("python", "ctl.py", "args", "5", "--token", "hunter2")
    with pytest.raises(NotStarted) as refused:
        controller(ctl, start=fails).start()
    assert str(refused.value).startswith(
        "clean was not started: python ctl.py args 5 --token *** ended with exit code 5"
    )
    (ctl / "state").write_text("active")
    with pytest.raises(StillRunning, match=r"ended with exit code 5: .*; stop clean by hand"):
        controller(ctl, stop=fails).stop()
    with pytest.raises(StillRunning, match=r"clean has not stopped in 0.3 s: .*active; look at it by hand"):
        controller(ctl, stop=("python", "ctl.py", "nothing")).stop(timeout=0.3)


def test_the_examples_of_the_docs_are_good_registries_and_each_has_its_controller(tmp_path: Path) -> None:
    page = (ROOT / "docs/control.md").read_text("utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    told = []
    for number, block in enumerate(blocks):
        path = tmp_path / f"jobs-{number}.yaml"
        indented = "".join(f"    {line}\n" for line in block.splitlines())
        path.write_text(
            "version: 1\njobs:\n  clean:\n    checkpoint: ./cp\n    source: {format: json, path: ./in}\n"
            f"    sink: {{format: delta, path: ./out, key: [id]}}\n{indented}"
        )
        assert lint_registry(path) == []
        registry = load_registry(path)
        told.append(type(open_controller(registry, registry.jobs["clean"])).__name__)
    assert told == ["ProcessController", *["CommandController"] * 4, "SparkRestController"]
    for program in ("systemctl", "kubectl", "databricks", "yarn"):
        assert f"start: [{program}" in page or f"status: [{program}" in page


# What each tool is expected to print: none of them is here to be asked, so only our reading of it is tested.
@pytest.mark.parametrize(
    ("example", "code", "output", "state"),
    [
        ("systemctl", 0, "LoadState=loaded\nActiveState=active", "running"),
        ("systemctl", 0, "LoadState=loaded\nActiveState=inactive", "stopped"),
        ("systemctl", 0, "ActiveState=failed\nLoadState=loaded", "stopped"),
        ("systemctl", 0, "LoadState=loaded\nActiveState=activating", "unknown"),
        ("systemctl", 0, "LoadState=loaded\nActiveState=deactivating", "unknown"),
        ("systemctl", 0, "LoadState=not-found\nActiveState=inactive", "unknown"),
        ("systemctl", 1, "Failed to connect to bus: No such file or directory", "unknown"),
        ("kubectl", 0, "pod/sensor-clean-7d4b9", "running"),
        ("kubectl", 0, "", "stopped"),
        ("kubectl", 0, "No resources found in etl namespace.", "stopped"),
        ("kubectl", 1, "Unable to connect to the server", "unknown"),
        ("databricks", 0, '[{"run_id":1,"state":{"life_cycle_state":"RUNNING"}}]', "running"),
        ("databricks", 0, "[]", "stopped"),
        ("databricks", 1, "Error: cannot configure default credentials", "unknown"),
        ("yarn", 0, "application_1700000000000_0001\t        sensor-clean\t  SPARK\t  etl\t  RUNNING", "running"),
        ("yarn", 0, "Total number of applications (application-types: [] and states: [RUNNING]):0", "stopped"),
        ("yarn", 0, "Total number of applications:1\napplication_1_0001\tsensor-clean-2\tSPARK", "stopped"),
        ("yarn", 1, "Connection refused", "unknown"),
    ],
)
def test_an_example_reads_what_its_tool_prints(
    tmp_path: Path, example: str, code: int, output: str, state: str
) -> None:
    page = (ROOT / "docs/control.md").read_text("utf-8")
    block = next(b for b in re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S) if f"status: [{example}" in b)
    text = "".join(f"    {line}\n" for line in block.splitlines())
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "version: 1\njobs:\n  clean:\n    checkpoint: ./cp\n    source: {format: json, path: ./in}\n"
        f"    sink: {{format: delta, path: ./out, key: [id]}}\n{text}"
    )
    control = load_registry(path).jobs["clean"].control
    assert isinstance(control, CommandControl)
    says = (sys.executable, "-c", f"import sys; print({output!r}); sys.exit({code})")
    clean = controller(tmp_path, status=says, running=control.running, stopped=control.stopped)
    assert clean.status().state == state
