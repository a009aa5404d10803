"""What the README and the docs tell an operator to type is run, and every command is told of."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(console|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """A command as a page shows it, with what it says comes out. `…` stands for anything."""

    page: str
    command: str
    output: str
    exit_code: int = 0

    def __str__(self) -> str:
        return f"{self.page}: {self.command}"


def shown(page: Path) -> list[Shown]:
    found: list[Shown] = []
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        # In a console block a command follows `$ `; a bash block holds nothing but commands.
        starts = r"^\$ " if language == "console" else r"^(?=\S)"
        for part in re.split(starts, block, flags=re.MULTILINE):
            command, _, output = part.partition("\n")
            if command == "echo $?":
                before = found.pop()
                found.append(Shown(before.page, before.command, before.output, int(output)))
            elif command:
                found.append(Shown(page.name, command.partition(" #")[0].strip(), output.strip("\n")))
    return found


ALL = [command for page in PAGES for command in shown(page)]
RUNBOOK = [command for command in ALL if command.command.startswith("runbook")]
MAKE = [command for command in ALL if command.command.startswith("make")]


@pytest.mark.parametrize("told", RUNBOOK, ids=str)
def test_a_command_in_the_docs_does_what_the_page_shows(told: Shown, tmp_path: Path) -> None:
    # A copy: a command of the docs must not be able to change the checkout.
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures")
    done = subprocess.run(
        [Path(sys.executable).with_name("runbook"), *shlex.split(told.command)[1:]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "error", "NO_COLOR": "1", "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (told.exit_code, "")
    if told.output:
        assert re.fullmatch(_pattern(told.output), done.stdout.strip("\n")), done.stdout


def _pattern(output: str) -> str:
    """A line of `…` alone stands for any lines, within a line for any text of that line."""
    lines = (r"(?s:.*)" if line.strip() == "…" else re.escape(line).replace("…", ".*") for line in output.split("\n"))
    return "\n".join(lines)


@pytest.mark.parametrize("told", MAKE, ids=str)
def test_a_make_command_in_the_docs_is_a_target(told: Shown) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert told.command.split()[1] in targets


def test_every_command_is_in_the_readme() -> None:
    import wizard.cli

    group = next(value for value in vars(wizard.cli).values() if isinstance(value, click.Group))
    readme = PAGES[0].read_text("utf-8")
    missing = [name for name in group.list_commands(click.Context(group)) if f"runbook {name}" not in readme]
    assert missing == []


def test_the_pages_hold_commands_to_check() -> None:
    assert RUNBOOK and MAKE
