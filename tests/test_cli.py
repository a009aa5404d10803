"""The commands as an operator or a script meets them: exit codes, one line an error, JSON that parses, no secret shown."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import ROOT, at_home

RUNBOOK = str(Path(sys.executable).with_name("runbook"))
LOG = ROOT / "fixtures/logs/4.2/state_delta_missing.log"
KILLED = "spark-4.2-stateless-killed"
SECRET = "hunter2"

JOBS = """\
version: 1
runs: ./runs
jobs:
  clicks:
    checkpoint: ./spark-4.2-stateless-killed/checkpoint
    source: {{format: json, path: ./spark-4.2-stateless-killed/input}}
    sink: {{format: parquet, path: ./spark-4.2-stateless-killed/sink, key: [id]}}
    output_mode: append
    spark_version: "4.2.0"
  orders:
    checkpoint: ./orders
    source: {{format: kafka, options: {{subscribe: orders, kafka.sasl.jaas.config: 'x required password="{secret}";'}}}}
    sink: {{format: jdbc, path: "jdbc:postgresql://etl:{secret}@db/x", key: [id], options: {{password: {secret}}}}}
    output_mode: append
    spark_version: "4.2.0"
"""


def run(*args: str | bytes | Path, cwd: Path | None = None, stdin: bytes = b"", **env: str) -> tuple[int, str, str]:
    clean = {name: value for name, value in os.environ.items() if name not in ("RUNBOOK_JOBS", "RUNBOOK_DEBUG")}
    done = subprocess.run(
        [RUNBOOK, *args],
        cwd=cwd,
        input=stdin,
        env={**clean, "PYTHONWARNINGS": "error", **env},
        capture_output=True,
        check=False,
    )
    out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert "Traceback" not in out + err
    assert SECRET not in out + err
    return done.returncode, out, err


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A registry of two jobs: one was killed in a batch, the other has no checkpoint yet."""
    at_home(KILLED, tmp_path)
    (tmp_path / "jobs.yaml").write_text(JOBS.format(secret=SECRET))
    return tmp_path


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["reset", "clicks", "--wait", "nan"], "--wait nan: give a number of seconds"),
        (["diagnose"], "name a job of the registry, or give --checkpoint URL"),
        (["diagnose", "clicks", "--checkpoint", "x"], "one of the two"),
        (["diagnose", "click"], "no job click; write one of clicks, orders"),
        (["diagnose", "--checkpoint", "gone"], "gone: there is no such directory"),
        (["diagnose", "--checkpoint", "jobs.yaml"], "jobs.yaml: there is no such directory"),
        (["diagnose", "--checkpoint", ""], "'' is not a path"),
        (["diagnose", "--checkpoint", "nosuch://a/b"], "nosuch://a/b: Protocol not known: nosuch"),
        (["diagnose", "--checkpoint", f"nosuch://u:{SECRET}@a/b"], "nosuch://u:***@a/b: Protocol not known"),
        (["diagnose", "clicks", "--log", "gone.log"], "gone.log: No such file or directory"),
        (["diagnose", "clicks", "--log", "."], ".: Is a directory"),
        (["diagnose", "--checkpoint", f"{KILLED}/checkpoint", "--spark-version", "four"], "not a Spark version"),
        (["diagnose", "clicks", "--sink", "x"], "--spark-version go with --checkpoint; clicks's are in the registry"),
        (["diagnose", "clicks", "--bogus"], "No such option '--bogus'"),
        (["diagnose", "clicks", "--jobs", "gone.yaml"], "gone.yaml: no such file, named by --jobs"),
        (["status", "--jobs", "."], ".: no such file, named by --jobs"),
        (["status", "clicks", "order"], "no job order; write one of clicks, orders"),
        (["explain"], "Missing argument"),
        (["explain", "gone.log"], "gone.log: No such file or directory; give a driver log"),
        (["explain", "."], ".: Is a directory"),
        (["bogus"], "No such command 'bogus'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(args: list[str], says: str, place: Path) -> None:
    code, out, err = run(*args, cwd=place)
    assert (code, out) == (2, "")
    assert err.startswith("runbook: ") and err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize("command", [["status"], ["diagnose", "clicks"]])
def test_without_a_registry_the_line_says_how_to_name_one(command: list[str], tmp_path: Path) -> None:
    code, out, err = run(*command, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "no jobs.yaml here" in err and "--jobs FILE" in err and err.count("\n") == 1


def test_a_registry_that_is_not_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text("version: 1\njobs: {a: [}\n")
    code, _, err = run("status", cwd=tmp_path)
    assert code == 2
    assert re.match(r"runbook: jobs\.yaml:2:\d+: ", err) and err.count("\n") == 1


def test_diagnose_prints_a_summary_first_and_one_json_object(place: Path) -> None:
    code, out, err = run("diagnose", "clicks", cwd=place)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "clicks: stopped in the middle of batch 2; the checkpoint is whole"
    code, out, err = run("diagnose", "clicks", "--json", cwd=place)
    assert (code, err) == (0, "")
    told = json.loads(out)
    # From the design, every key it fixes.
    assert {"checkpoint", "query_id", "batches", "sources", "operators", "state", "confs", "sink", "restarts", "findings",
            "paths"} <= set(told)  # fmt: skip
    assert told["batches"] == {"first": 0, "planned": 2, "committed": 1, "in_flight": [2]}
    assert set(told["paths"]) == {"resume", "replay", "backfill", "reset"}
    assert told["paths"]["replay"]["earliest_batch"] == 0
    assert {tuple(found) for found in told["findings"]} == {
        ("code", "severity", "message", "evidence", "meaning", "remedy")
    }


def test_diagnose_takes_a_driver_log_along(place: Path) -> None:
    code, out, _ = run("diagnose", "clicks", "--log", LOG, "--json", cwd=place)
    told = json.loads(out)
    assert code == 0
    assert told["log"]["cause"]["code"] == "STATE_FILE_MISSING"
    assert "LOG_OF_ANOTHER_QUERY" in {found["code"] for found in told["findings"]}


def test_status_is_one_line_a_job_and_one_bad_job_does_not_hide_the_others(place: Path) -> None:
    code, out, _ = run("status", cwd=place)
    assert code == 0
    header, clicks, orders = out.splitlines()
    assert header.split()[:2] == ["JOB", "COMMITTED"]
    assert clicks.split()[:4] == ["✓", "clicks", "1", "2"]
    assert "there is no checkpoint" in orders
    code, out, _ = run("status", "--json", cwd=place)
    assert [one["job"] for one in json.loads(out)] == ["clicks", "orders"]


def test_explain_reads_a_file_or_standard_input_alike() -> None:
    code, out, _ = run("explain", "--json", LOG)
    assert code == 0
    assert json.loads(out)["cause"]["code"] == "STATE_FILE_MISSING"
    assert run("explain", "--json", "-", stdin=LOG.read_bytes()) == (0, out, "")
    assert run("explain", LOG)[1].startswith("STATE_FILE_MISSING: ")
    assert run("explain", "-")[1].splitlines()[0] == "no known failure in this log"


def test_lint_ends_with_0_or_2_and_names_the_line(place: Path) -> None:
    code, out, _ = run("lint", "--json", cwd=place)
    assert (code, [p for p in json.loads(out)["problems"] if p["severity"] == "error"]) == (0, []), out
    bad = ROOT / "fixtures/registry/bad-paths.yaml"
    code, out, _ = run("lint", "--jobs", bad, cwd=place)
    assert code == 2
    assert re.search(r"bad-paths\.yaml:\d+:\d+: error J\d+ ", out)


def test_secrets_of_registry_url_and_log_are_never_shown(place: Path) -> None:
    (place / "orders").mkdir()
    shutil.copy(place / KILLED / "checkpoint/metadata", place / "orders/metadata")
    trace = f'ERROR x: y\njava.io.IOException: jdbc:postgresql://etl:{SECRET}@db/x, {{"password":"{SECRET}"}}\n'
    (place / "driver.log").write_text(trace)
    for args in (
        ["diagnose", "orders"],
        ["status"],
        ["explain", "driver.log"],
        ["diagnose", "orders", "--log", "driver.log"],
        ["lint"],
        ["diagnose", "--checkpoint", "orders", "--sink", f"memory://u:{SECRET}@x/y"],
        ["diagnose", "--checkpoint", "orders", "--sink", f"s3://u:{SECRET}@x/y", "--sink-format", "jdbc"],
    ):
        for more in ([], ["--json"]):
            code, out, err = run(*args, *more, cwd=place)  # asserts that the secret is not in what is shown
            assert out or (code, err.count("\n")) == (2, 1)


def test_names_that_are_not_utf8_are_shown_escaped(place: Path) -> None:
    checkpoint = os.fsencode(place / KILLED / "checkpoint")
    Path(os.fsdecode(checkpoint + b"/caf\xe9\x1b[31m")).write_bytes(b"")
    renamed = os.fsencode(place) + b"/caf\xe9"
    os.rename(checkpoint, renamed)  # noqa: PTH104  the name is bytes
    code, out, err = run("diagnose", "--checkpoint", renamed)
    assert (code, err) == (0, "")
    assert "\\udce9" in out and "\x1b" not in out
    code, out, _ = run("diagnose", "--json", "--checkpoint", renamed)
    assert code == 0
    assert "FOREIGN_FILES" in {found["code"] for found in json.loads(out)["findings"]}
    code, _, err = run("explain", b"no-such-caf\xe9")
    assert code == 2 and err.count("\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", [["diagnose", "clicks", "--json"], ["status"]])
def test_a_reader_that_goes_away_is_no_error(command: list[str], unbuffered: str, place: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run([RUNBOOK, *command], cwd=place, stdout=write, stderr=subprocess.PIPE, env=env, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def at_a_terminal(*args: str, cwd: Path, **env: str) -> str:
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM", "COLUMNS")}
    done = subprocess.run(
        [RUNBOOK, *args], cwd=cwd, stdout=theirs, stderr=theirs, env={**clean, "TERM": "xterm", **env}, check=False
    )
    os.close(theirs)
    shown = os.read(ours, 65536)
    os.close(ours)
    assert done.returncode == 0
    return shown.decode()


@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_a_terminal_gets_colour_unless_it_says_no(env: dict[str, str], coloured: bool, place: Path) -> None:
    assert ("\x1b[" in at_a_terminal("status", cwd=place, **env)) == coloured


@pytest.mark.parametrize("command", [["diagnose", "orders"], ["explain", str(LOG)]])
def test_a_terminal_gets_lines_folded_at_its_width_and_a_pipe_gets_them_whole(command: list[str], place: Path) -> None:
    shown = at_a_terminal(*command, cwd=place, COLUMNS="80", NO_COLOR="1").splitlines()
    # A path or an error's name is not broken, so that it can be copied.
    assert [line for line in shown if len(line) > 80 and len(line.split()[-1]) < 40] == []
    whole = run(*command, cwd=place)[1].splitlines()
    assert max(map(len, whole)) > 80
    assert " ".join(" ".join(shown).split()) == " ".join(" ".join(whole).split())


def test_a_pipe_gets_no_colour(place: Path) -> None:
    assert "\x1b" not in run("diagnose", "clicks", cwd=place)[1]


@pytest.mark.parametrize("command", [["diagnose", "clicks", "--json"], ["explain", str(LOG)], ["status"]])
def test_looking_changes_nothing(command: list[str], place: Path) -> None:
    def everything() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}

    before = everything()
    assert run(*command, cwd=place)[0] == 0
    assert everything() == before
