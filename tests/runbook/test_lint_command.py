"""`runbook lint` on runbooks, as it is typed: a line for each thing wrong, drawings on request."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shipped import FILES, NAMES, ROOT

LINE = re.compile(r"(?P<file>\S+):(?P<line>\d+):(?P<column>\d+): (?:error|warning) (?P<code>RB\d{3}) (?P<what>.+)")


def lint(*args: str, cwd: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wizard.cli", "lint", *args],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "error", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def one(body: str) -> str:
    return f"runbook: 1\nid: x\nstart: a\nsteps:\n  a: {body}\n  e: {{end: hand_over}}\n"


BAD = {
    "not YAML": ("runbook: [1\n", "2:1", "RB001", "check indentation, quotes and brackets"),
    "a tab": ("runbook: 1\nsteps:\n\ta: 1\n", "3:1", "RB001", "indent with spaces"),
    "a key twice": ("runbook: 1\nid: x\nid: y\n", "3:1", "RB001", "take one out"),
    "yes for true": ("runbook: 1\nid: yes\n", "2:5", "RB001", "quote it"),
    "an anchor": ("runbook: &a 1\n", "1:10", "RB001", "write the value out"),
    "no steps": ("runbook: 1\nid: x\n", "1:1", "RB002", "start and steps"),
    "a case left out": (one("{check: job.stopped, cases: {holds: e, fails: e}}"), "5:27", "RB002", "unknown missing"),
    "an unknown key": (one("{end: hand_over, sya: Well.}"), "5:3", "RB002", "did you mean 'say'?"),
    "an unknown probe": (one("{check: job.stoppd, cases: {holds: e, fails: e, unknown: e}}"), "5:3", "RB003", "'job.stopped'?"),
    "an unknown step": (one("{check: job.stopped, cases: {holds: f, fails: e, unknown: e}}"), "5:3", "RB101", "add it, or"),
    "the wrong verification": (one("{do: job.stop, verify: job.running, goto: e, on_fail: e}"), "5:3", "RB004", "write `verify"),
    "a claim without proof": (one("{end: resolved}").replace("  e: {end: hand_over}\n", ""), "5:3", "RB204", "`check: rows.exact`"),
    "a step nobody comes to": (one("{end: hand_over}"), "6:3", "RB102", "lead to it, or take it out"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_bad_runbook_is_told_in_one_line_with_place_code_and_fix(what: str, tmp_path: Path) -> None:
    text, place, code, fix = BAD[what]
    (tmp_path / "x.yaml").write_text(text)
    done = lint("x.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    told, *more, last = done.stdout.splitlines()
    assert last == "1 file checked, 1 error, 0 warnings"
    # Under it only the path that breaks it, a line a step, each with its own place.
    assert all(re.fullmatch(r"  x\.yaml:\d+:\d+: \w+( → \w+)?", line) for line in more), more
    found = LINE.fullmatch(told)
    assert found, told
    assert (found["file"], found["code"]) == ("x.yaml", code)
    assert f"{found['line']}:{found['column']}".startswith(place)
    assert fix in found["what"]


def test_a_runbook_can_be_named_by_its_id(tmp_path: Path) -> None:
    assert lint("reset", cwd=tmp_path).stdout == "1 file checked, 0 errors, 0 warnings\n"
    missing = lint("rest", cwd=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr.startswith("runbook: no runbook named 'rest'; did you mean 'reset'?")
    assert missing.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "first"),
    [
        (("--graph", "reset"), "reset: Empty the output"),
        (("reset", "--graph"), "reset: Empty the output"),
        (("--graph", "text", "reset"), "reset: Empty the output"),
        (("--graph", "mermaid", "reset"), "flowchart TD"),
        (("reset", "--graph=mermaid"), "flowchart TD"),
        (("--graph", str(FILES["reset"])), "reset: Empty the output"),
    ],
)
def test_a_drawing_is_alone_on_stdout(args: tuple[str, ...], first: str, tmp_path: Path) -> None:
    done = lint(*args, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(first)
    assert "checked" not in done.stdout


def test_all_runbooks_are_drawn_when_none_is_named(tmp_path: Path) -> None:
    done = lint("--graph", cwd=tmp_path)
    assert done.returncode == 0
    assert [name for name in NAMES if not re.search(rf"^{name}: ", done.stdout, re.MULTILINE)] == []
    told = json.loads(lint("--graph=mermaid", "--json", cwd=tmp_path).stdout)
    assert len(told["graphs"]) == len(told["checked"]) == len(NAMES)


def test_a_runbook_that_does_not_prove_is_drawn_and_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(one("{do: checkpoint.fence, verify: checkpoint.fenced, goto: e, on_fail: e}"))
    done = lint("--graph", "x.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "do checkpoint.fence" in done.stdout
    assert "RB201" in done.stderr and "RB201" not in done.stdout


def test_a_teams_directory_is_named_in_the_environment_and_must_be_there(tmp_path: Path) -> None:
    team = tmp_path / "team"
    team.mkdir()
    (team / "x.yaml").write_text(one("{end: nowhere}"))
    assert "x.yaml:5:" in lint(cwd=tmp_path, RUNBOOK_PATH=str(team)).stdout
    missing = lint(cwd=tmp_path, RUNBOOK_PATH=f"{team}{os.pathsep}{tmp_path / 'taem'}")
    assert missing.returncode == 2
    assert "taem, which is no directory; correct it, or unset it" in missing.stderr


def test_the_how_tos_example_is_linted_and_drawn_by_its_id(tmp_path: Path) -> None:
    here = {"cwd": str(tmp_path), "RUNBOOK_PATH": str(ROOT / "docs" / "examples")}
    assert lint("reset-with-ticket", **here).stdout == "1 file checked, 0 errors, 0 warnings\n"
    drawn = lint("--graph", "reset-with-ticket", **here).stdout
    assert re.search(r"^fence  .*\n  ├ done +→ still_alone$", drawn, re.MULTILINE)
    assert re.search(r"^still_alone  .*\n  ├ holds +→ ticket$", drawn, re.MULTILINE)
    assert re.search(r"^ticket  .*\n  ├ approved +→ truncate$", drawn, re.MULTILINE)
