"""Draws every screen of the TUI: the pictures of the documents, and the snapshots that the tests compare with them.

The workspace is built on the spot with the stand-in job of the engine's tests; the pictures are of real screens over
real files, and the walk in them is a real one.
"""

from __future__ import annotations

import asyncio
import html
import os
import random
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from keyboard import Hands, at
from stand import ANSWERS, JOB, Stand, impatient
from textual.widgets import TextArea

from wizard.jobs.control.process import ProcessController
from wizard.tui.screens.audit import AuditScreen, RunScreen
from wizard.tui.screens.fleet import FleetScreen
from wizard.tui.screens.job import JobScreen

SCRATCH = Path("/tmp/runbook-pictures")
WATCH_SECONDS = 3.0
SIZES = ((80, 24), (140, 45))
TRACE = """org.apache.spark.sql.streaming.StreamingQueryException: Query terminated with exception: Job aborted
Caused by: java.lang.OutOfMemoryError: Java heap space
\tat org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider.loadMap
"""
Shoot = Callable[[Hands, str], Any]


def pictures(out: Path, theme: str = "runbook-dark", sizes: tuple[tuple[int, int], ...] = SIZES) -> list[Path]:
    """A start is watched for longer than in the tests: what came of it is the same then on a slow machine."""
    out.mkdir(parents=True, exist_ok=True)
    impatient()
    ProcessController.__init__.__defaults__ = (WATCH_SECONDS,)
    drawn: list[Path] = []
    for size in sizes:

        async def shoot(hands: Hands, name: str, size: tuple[int, int] = size) -> None:
            await hands.pilot.pause(0.3)  # until it is drawn
            drawn.append(out / f"{name}-{size[0]}x{size[1]}.svg")
            drawn[-1].write_text(without_fonts(hands.app.export_screenshot(title="runbook")))

        # A place and a name that say nothing about who drew them.
        os.environ["RUNBOOK_OPERATOR"] = "operator"
        shutil.rmtree(SCRATCH, ignore_errors=True)
        with patch("uuid.uuid4", _numbers(random.Random(0))):  # the names of part files, the id of the query
            stand = Stand.build(SCRATCH)
        try:
            asyncio.run(draw(stand, shoot, size, theme))
            asyncio.run(draw_failure(stand, shoot, size, theme))
        finally:
            stand.stop()
            shutil.rmtree(SCRATCH, ignore_errors=True)
            del os.environ["RUNBOOK_OPERATOR"]
    return drawn


async def draw(stand: Stand, shoot: Shoot, size: tuple[int, int], theme: str) -> None:
    async with at(stand.jobs, _in(theme, lambda app: FleetScreen()), size) as hands:
        app, pilot = hands.app, hands.pilot

        async def on(kind: type, ready: Callable[[Any], Any]) -> None:
            await hands.until(lambda: isinstance(app.screen, kind) and ready(app.screen))

        await on(FleetScreen, lambda screen: screen.jobs and screen.kept is not None and not screen._fresh)
        await shoot(hands, "fleet")
        await pilot.press("enter")
        await on(JobScreen, lambda screen: screen.seen)
        await shoot(hands, "job")
        await pilot.press("question_mark")
        await shoot(hands, "help")
        await pilot.press("escape", "x")
        await hands.until(lambda: app.screen.query("TextArea"))
        pasted = app.screen.query_one(TextArea)
        pasted.cursor_blink, pasted.text = False, TRACE
        await hands.until(lambda: "OUT_OF_MEMORY" in hands.seen())
        await shoot(hands, "explain")
        await pilot.press("escape")
        await on(JobScreen, lambda screen: any(each.code == "LOG_SIGNATURE" for each in screen.seen.findings))
        await pilot.press("4")
        await shoot(hands, "path")
        await pilot.press("end", "enter")
        answers = {"wait_commit": "again", "wait_moving": "again", **ANSWERS["reset"]}
        await hands.until(lambda: app.walk_screen is not None)
        await hands.asked()
        await hands.until(lambda: "now  " in hands.seen())
        await shoot(hands, "question")
        await hands.to_confirmation(answers, "truncate")
        await shoot(hands, "confirm")
        now = hands.walk.query_one("#now")
        now.visible = False  # the dialog hides half of that line, and which half changes with the seconds in it
        await pilot.press("ctrl+q")
        await shoot(hands, "leave")
        await pilot.press("escape")
        now.visible = True
        await hands.confirm()
        await hands.to_confirmation(answers, "delete")
        await hands.confirm()
        await hands.until(lambda: hands.walk.walker.in_action == "start" and hands.walk.trail.at == 1)
        await shoot(hands, "working")
        await hands.to_the_end(answers)
        await shoot(hands, "resolved")
        await pilot.press("enter")
        await on(JobScreen, lambda screen: True)
        await pilot.press("a")
        await on(AuditScreen, lambda screen: screen.runs)
        await shoot(hands, "audit")
        await pilot.press("enter")
        await on(RunScreen, lambda screen: screen.told)
        await pilot.press(*["down"] * 6)
        await shoot(hands, "run")


async def draw_failure(stand: Stand, shoot: Shoot, size: tuple[int, int], theme: str) -> None:
    """A job that cannot start, seen in the walk; and a dry run."""
    stand.stop()
    config = stand.root / "conf.yaml"
    config.write_text(config.read_text().replace("maxOffsetsPerTrigger: 8", "maxOffsetsPerTrigger: eight"))
    for name, mode in (("dry-run", "dry run"), ("failed", "live")):
        first = _in(theme, lambda app, mode=mode: app.walk_of(JOB, "reset", mode))
        async with at(stand.jobs, first, size) as hands:
            await hands.to_the_end({"who": "stop", **ANSWERS["reset"]})
            await shoot(hands, name)


def _numbers(source: random.Random) -> Callable[[], uuid.UUID]:
    return lambda: uuid.UUID(int=source.getrandbits(128), version=4)


def _in(theme: str, first: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def themed(app: Any) -> Any:
        app.theme = theme
        return first(app)

    return themed


def without_fonts(svg: str) -> str:
    """A picture in a page fetches nothing; the reader's own fixed-width font will do."""
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)


# What a second drawing cannot have in common with the first: times, names made of them, ids, hashes, sizes of journals.
_DIFFERS = (
    (re.compile(r"\d{8}T\d*(-[0-9a-f]{4})?|\b\d{1,6}-[0-9a-f]{4}\b"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?|\b\d?\d:\d\d(:\d\d)?\b"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b[0-9a-f]{16,64}…?|\b(?=[0-9a-f]*\d)[0-9a-f]{8}\b"), "HASH"),
    (re.compile(r"\b\d+(\.\d+)? (s|min|h|KB|B)\b"), "SOME"),
    (re.compile(r"pid \d+"), "pid"),
    (re.compile("[◐◓◑◒▁▂▃▄▅▆▇█]+"), "#"),
)


def told(svg: str) -> list[str]:
    """Every line of a picture: its words with their colours, and marks for what differs from one drawing to the next."""
    prefix = re.search(r"\.(terminal-\d+)-r\d+ ", svg)
    assert prefix is not None
    style = dict(re.findall(rf"\.{prefix[1]}-(r\d+) {{ ([^}}]*) }}", svg))
    rows: dict[float, list[tuple[float, str, str]]] = {}
    for kind, x, y, text in re.findall(
        rf'<text class="{prefix[1]}-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', svg
    ):
        rows.setdefault(float(y), []).append((float(x), style[kind].strip(), html.unescape(text)))
    # What the live job is doing at that moment, in the colour of its line.
    now = next(
        (style.partition(";")[0] for row in rows.values() for _, style, text in row if text.strip("\xa0 ") == "now"),
        "-",
    )
    lines = []
    for y in sorted(rows):
        parts = [(s, " ".join(_alike(text).split())) for _, s, text in sorted(rows[y]) if not s.startswith(now)]
        lines.append(" ".join(f"{text}⟨{style}⟩" for style, text in parts if text.strip("# ")))
    return lines


def _alike(text: str) -> str:
    text = text.replace("\xa0", " ")
    for pattern, word in _DIFFERS:
        text = pattern.sub(word, text)
    return text
