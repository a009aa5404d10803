"""The command itself at a terminal: what it leaves there when it fails, and what a kill in mid-step leaves to pick up."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from keyboard import at
from stand import ANSWERS, JOB, Stand

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from terminal import Terminal

RUNBOOK = str(Path(sys.executable).with_name("runbook"))


@pytest.mark.parametrize(
    ("text", "says"),
    [("version: 1\njobs:\n  one: {chekpoint: ./c}\n", "one"), ("version: 1\njobs: {}\n", "jobs"), ("a: [", "YAML")],
    ids=["misspelt", "no jobs", "no YAML"],
)
def test_a_registry_that_cannot_be_read_is_told_in_one_line(text: str, says: str, tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text(text)
    terminal = Terminal([RUNBOOK, "--jobs", str(jobs)])
    assert terminal.ended() == 2
    (line,) = terminal.left().splitlines()
    assert line.startswith(f"runbook: {jobs}:") and says in line, line


def test_an_error_of_the_ui_shows_neither_a_traceback_nor_a_secret(stand: Stand) -> None:
    """Textual would print every variable, and the registry is one of them."""
    jobs = Path(stand.jobs)
    jobs.write_text(jobs.read_text().replace("subscribe: t", "subscribe: t, kafka.sasl.password: hunter2"))
    broken = (
        "import sys; from wizard.cli import main; from wizard.tui.screens.fleet import FleetScreen\n"
        "FleetScreen._draw_fresh = lambda self: self.ready and [][self.runbook_app.registry]\n"
        f"sys.argv = ['runbook', '--jobs', {stand.jobs!r}]; main()"
    )
    terminal = Terminal([sys.executable, "-c", broken])
    assert terminal.ended() == 1
    (line,) = terminal.left().splitlines()
    assert line.startswith("runbook: an error of runbook's own: TypeError: ")
    assert b"hunter2" not in terminal.held and b"Traceback" not in terminal.held


def in_flight(stand: Stand) -> list[str]:
    entries = [entry for run in stand.run_ids() for entry in stand.journal(run)]
    done = [entry["step"] for entry in entries if entry["kind"] == "outcome"]
    return [entry["step"] for entry in entries if entry["kind"] == "intent" and entry["step"] not in done]


def confirmed(stand: Stand) -> list[str]:
    return [entry["action"] for entry in stand.journal(stand.only_run()) if entry["kind"] == "confirm"]


def test_killed_in_the_middle_of_an_action_it_is_picked_up_and_ends_row_exact(stand: Stand) -> None:
    terminal = Terminal([RUNBOOK, "reset", JOB, "--jobs", stand.jobs, "--wait", "20"])
    terminal.until("in_place")
    terminal.quiet(1.0)  # a prompt takes no key for its first moment
    os.write(terminal.fd, b"1\r")
    for action in ("sink.truncate", "checkpoint.delete"):
        terminal.until(f"{action} changes")
        terminal.quiet(1.0)
        for keys in ("\x1b[Z", JOB, "\r"):  # to the field, the name, on to the button
            os.write(terminal.fd, keys.encode())
            terminal.quiet(0.5)
        asked = time.monotonic()
        while action not in confirmed(stand):  # it takes no key at once
            assert time.monotonic() < asked + 30
            os.write(terminal.fd, b"\r")
            terminal.quiet(1.0)
    deadline = time.monotonic() + 30
    while in_flight(stand) != ["start"]:  # watched for two seconds, and in flight until then
        assert time.monotonic() < deadline, in_flight(stand)
        terminal.quiet(0.05)
    children = [
        pid for each in Path(f"/proc/{terminal.pid}/task").glob("*/children") for pid in each.read_text().split()
    ]
    beside = [
        Path("/proc", pid) for pid in children if b"wizard.tui.looking" in Path("/proc", pid, "cmdline").read_bytes()
    ]
    assert beside
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.ended() == -signal.SIGKILL
    while any(path.exists() for path in beside):  # they end with the UI, whatever ended it
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert in_flight(stand) == ["start"]
    run = stand.only_run()

    async def go() -> None:
        async with at(stand.jobs, lambda app: app.pick_up_of(run)) as hands:
            await hands.to_the_end({"wait_commit": "again", "wait_moving": "again", **ANSWERS["reset"]})
            assert hands.walk.trail.continued
            assert hands.walk.trail.ended is not None and hands.walk.trail.ended["outcome"] == "resolved", hands.seen()

    asyncio.run(go())
    assert in_flight(stand) == []
    stand.finish()
    assert stand.found() == stand.expected()


@pytest.mark.parametrize("size", [(40, 10), (20, 5), (300, 100)])
def test_any_size_of_terminal_will_do(size: tuple[int, int], stand: Stand) -> None:
    terminal = Terminal([RUNBOOK, "--jobs", stand.jobs], size)
    terminal.until("LOOKING")
    terminal.quiet(1.0)
    os.write(terminal.fd, b"\x11")  # Ctrl+Q
    assert terminal.ended() == 0


def test_a_terminal_that_cannot_be_drawn_on_gets_lines(stand: Stand) -> None:
    terminal = Terminal(["/usr/bin/env", "TERM=dumb", RUNBOOK, "reset", JOB, "--jobs", stand.jobs])
    terminal.until("number or name>")
    assert b"\x1b" not in terminal.held and b"LIVE" in terminal.held
    os.write(terminal.fd, b"leave\n")
    assert terminal.ended() == 3


def test_a_terminal_without_colours_inverts_what_is_under_the_cursor(stand: Stand) -> None:
    terminal = Terminal(["/usr/bin/env", "TERM=vt100", "COLORTERM=", RUNBOOK, "--jobs", stand.jobs])
    terminal.until("stopped")
    terminal.quiet(0.5)
    assert re.search(rb"\x1b\[(?:\d+;)*7(?:;\d+)*mingest ", terminal.held), terminal.held[-2000:]
    os.write(terminal.fd, b"\x11")
    assert terminal.ended() == 0


@pytest.mark.parametrize("closed", [False, True], ids=["told to end", "window closed"])
def test_a_walk_whose_window_goes_ends_where_nothing_is_half_done(closed: bool, stand: Stand) -> None:
    """Left alone, a UI that nobody reads from stands still, and holds the lock of the job for ever."""
    terminal = Terminal([RUNBOOK, "reset", JOB, "--jobs", stand.jobs])
    terminal.until("in_place")
    if closed:
        os.close(terminal.fd)
        deadline = time.monotonic() + 30
        while (ended := os.waitpid(terminal.pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert os.waitstatus_to_exitcode(ended[1]) == 130
    else:
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.ended() == 130
        assert "interrupted before any change; nothing was done" in terminal.left()
    assert in_flight(stand) == [] and not (stand.runs / f"locks/{JOB}.json").exists()
