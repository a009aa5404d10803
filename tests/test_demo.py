"""`runbook demo` from the outside: what it builds, what it leaves alone, what it says when it cannot."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wizard.counting import Stage, count
from wizard.demo import list_scenarios, run_demo, show_counts
from wizard.errors import BadInput, Locked, RunbookError
from wizard.jobs.control.open import open_controller
from wizard.jobs.registry import load_registry
from wizard.progress import Progress
from wizard.spark.workspace import create_workspace

MARKER = ".runbook-demo"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a build that was killed leaves behind."""
    root = tmp_path_factory.mktemp("work") / "demo"
    root.mkdir()
    (root / MARKER).write_text('{"state": "building"}')
    (root / "lake").mkdir()
    (root / "lake/stale").write_text("from the build that was killed")
    return root


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_is_built_over_a_killed_build_and_says_what_to_type_next(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_demo(demo) == 0
    shown = capsys.readouterr()
    assert f"runbook reset sensor-raw-ingest --jobs {demo}/jobs.yaml" in shown.out
    assert "running sensor-merge-gold …\n" in shown.err
    assert not (demo / "lake/stale").exists()
    assert not (demo / "checkpoints/sensor-raw-ingest").exists()
    # 1900 records were read before the checkpoint was deleted; 100 came afterwards.
    found = count(demo)
    assert (found["source"], found["raw"], found["typed"]) == (Stage(2000), Stage(1900, 100), Stage(1900, 100))
    assert found["gold"].missing > 0 and found["gold"].extra == 0
    assert show_counts(demo) == 4
    assert "raw     1900  100      0      0" in capsys.readouterr().out
    assert json.loads((demo / MARKER).read_text()) == {"state": "ready", "scenario": "checkpoint-deleted"}
    assert Path("/proc").exists() and not working_in(demo)


def test_a_directory_that_is_not_a_demo_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(BadInput, match="is not a demo that runbook made"):
        run_demo(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    with pytest.raises(BadInput, match="is a file; name a directory"):
        run_demo(tmp_path / "precious")


def test_an_unknown_scenario_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no scenario 'nope'; `runbook demo --list`"):
        run_demo(tmp_path / "demo", "nope")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_a_name_is_not_the_one_we_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="--to names no directory"):
        run_demo("")
    assert list(tmp_path.iterdir()) == []


def test_without_java_there_is_one_line_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(RunbookError, match="Spark needs Java 17 and there is no java in JAVA_HOME=/nowhere"):
        run_demo(tmp_path / "demo")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.slow
def test_a_demo_that_is_being_built_is_not_built_by_another_and_ctrl_c_removes_it(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    program = f"from wizard.demo import run_demo; run_demo({str(root)!r})"
    building = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    try:
        assert building.stderr is not None
        while "starting Spark" not in (line := building.stderr.readline()):
            assert line, "it ended before it began"
        with pytest.raises(Locked, match="another `runbook demo` is building here"):
            run_demo(root)
        time.sleep(1)
        building.send_signal(signal.SIGINT)
        building.communicate(timeout=60)
    finally:
        if building.poll() is None:
            building.kill()
            building.communicate()
    assert building.returncode != 0
    assert list(tmp_path.iterdir()) == []
    assert not working_in(root)


# The readings go to a device that is full, before Spark is started.
FULL = """
import sys
from wizard.spark import demo
def full(log, count):
    with open("/dev/full", "w") as file:
        file.write("x")
demo.produce_more = full
sys.exit(demo.main([sys.argv[1]]))
"""


# Spark's start takes for ever; nobody is told anything meanwhile.
SLOW = """
import sys, time
from wizard.spark import demo
demo._run_and_break = lambda workspace, chosen, say: time.sleep(600)
sys.exit(demo.main(sys.argv[1:]))
"""


@pytest.mark.spark
def test_a_build_ends_and_is_removed_when_the_one_who_started_it_is_killed(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    command = [sys.executable, "-c", SLOW, str(root), "--end-with-stdin"]
    building = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert building.stdin is not None and building.stdout is not None
    try:
        assert "producing readings" in building.stdout.readline()
        building.stdout.close()
        building.stdin.close()
        assert building.wait(30) == 1
    finally:
        building.kill()
    assert list(tmp_path.iterdir()) == []


def build_on_a_full_disk(root: Path) -> dict[str, object]:
    done = subprocess.run([sys.executable, "-c", FULL, root], capture_output=True, text=True, check=False)
    last: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == last["exit_code"] == 1
    return {"error": last["error"], "steps": [json.loads(line).get("step") for line in done.stdout.splitlines()]}


@pytest.mark.spark
def test_a_full_disk_is_one_line_and_what_was_made_is_removed(tmp_path: Path) -> None:
    assert "the disk is full; free some space" in str(build_on_a_full_disk(tmp_path / "new/demo")["error"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_a_job_of_the_old_demo_that_still_runs_is_stopped_before_the_demo_is_removed(tmp_path: Path) -> None:
    old = create_workspace(tmp_path / "demo")
    (old.root / MARKER).write_text('{"state": "ready"}')
    asleep = [sys.executable, "-c", "import time; time.sleep(600)", str(old.root)]
    text = re.sub(
        r"(?m)^      start: .*sensor-deserialize.*$", f"      start: {json.dumps(asleep)}", old.jobs_file.read_text()
    )
    old.jobs_file.write_text(text)
    registry = load_registry(old.jobs_file)
    controller = open_controller(registry, registry.jobs["sensor-deserialize"])
    controller.start()
    try:
        assert len(working_in(old.root)) == 1
        steps = build_on_a_full_disk(old.root)["steps"]
        assert "stopping sensor-deserialize" in steps  # type: ignore[operator]
        assert working_in(old.root) == []
        assert list(old.root.iterdir()) == []
    finally:
        if old.jobs_file.exists():
            controller.stop()


def test_the_scenarios_are_listed_as_a_table_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_scenarios() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["SCENARIO", "JOB", "WHAT", "HAPPENED"]
    assert len(lines) > 15
    assert list_scenarios(as_json=True) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == [line.split()[0] for line in lines[1:]]


def test_counting_where_there_is_no_demo_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds no demo"):
        show_counts(tmp_path)


def test_the_command_line_process_never_imports_pyspark() -> None:
    program = "import sys, wizard.demo; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_moves_on_a_terminal_is_lines_elsewhere_and_nothing_when_quiet() -> None:
    terminal, plain, quiet = Terminal(), io.StringIO(), Terminal()
    for stream in (terminal, plain, quiet):
        with Progress(stream, quiet=stream is quiet) as progress:
            progress.step("one")
            time.sleep(0.25)
            progress.step("two")
    assert plain.getvalue() == "one …\ntwo …\n"
    assert quiet.getvalue() == ""
    assert "✓ one  0 s\n" in terminal.getvalue() and terminal.getvalue().endswith("✓ two  0 s\n")
    assert terminal.getvalue().count("\r") >= 3


def working_in(root: Path) -> list[int]:
    """Processes whose command line names the directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if str(root).encode() in command:
                found.append(int(entry.name))
    return found
