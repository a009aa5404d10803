"""A walk: the runbook as a tree, the step with what and why and what it will touch, the evidence, the question."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Static

from wizard.tui.background import Looked, post
from wizard.tui.looks import journal_tail, now_of, read_registry, runbook_of
from wizard.tui.screens.page import Page
from wizard.tui.trail import Trail
from wizard.tui.walker import Walker
from wizard.tui.widgets.banner import Banner
from wizard.tui.widgets.ended import Ended, Next
from wizard.tui.widgets.keys import Keys
from wizard.tui.widgets.outline import Outline
from wizard.tui.widgets.prompt import Answered, Choices, Confirm
from wizard.tui.words import MARKS, clock, lines, says

if TYPE_CHECKING:
    from wizard.engine.operator import Operator

_SPIN = "◐◓◑◒"
_NOW_SECONDS = 3.0
_TAIL = 6


class FromWalk(Message):
    def __init__(self, kind: str, what: Any) -> None:
        super().__init__()
        self.kind, self.what = kind, what


class WalkScreen(Page):
    BINDINGS = [
        Binding("t", "fold('outline')", "Tree", id="walk.tree", tooltip="Show or hide the tree of the runbook"),
        Binding("j", "fold('journal')", "Journal", id="walk.journal", tooltip="Show or hide the end of the journal"),
        Binding("y", "copy", "Copy", id="walk.copy", tooltip="Copy the step, its evidence and the next commands"),
        Binding("escape", "back", "Back", id="walk.back", tooltip="Close this walk, when it is over"),
    ]

    def __init__(self, work: Callable[[Operator], Any], mode: str, job: str, path: str) -> None:
        super().__init__()
        self.trail = Trail(mode=mode, job=job, runbook=path)
        self.walker = Walker(work, lambda kind, what: post(self, FromWalk(kind, what)))
        self.waiting = False  # for the operator
        self.over = False
        self._began = time.monotonic()
        self._spin = 0
        self._now_asked = False

    def compose(self) -> ComposeResult:
        yield Banner()
        with Horizontal(id="body"):
            yield Outline()
            with Vertical(id="main"):
                yield Static(id="step")
                with Horizontal(id="sides"):
                    with VerticalScroll(id="seen"):
                        yield Static(id="seen-text")
                    with VerticalScroll(id="touch"):
                        yield Static(id="touch-text")
                yield Static(id="now")
                yield Static(id="working")
                yield Container(id="asking")
                yield Static(id="journal")
        yield Keys()

    def on_mount(self) -> None:
        self.query_one("#seen").border_title = "seen"
        self.query_one("#touch").border_title = "will touch"
        self.query_one("#journal").border_title = "journal"
        if not self._keeps_journal:
            self.query_one("#journal", Static).update(says(("none: this leaves no trace", "dim")))
        self.query_one("#asking").display = False
        self._draw()
        self.set_interval(0.25, self._tick)
        self.set_interval(_NOW_SECONDS, self._look_now)
        self.call_after_refresh(self.walker.start)

    def on_resize(self) -> None:
        self._draw()

    # --- what comes from the walk

    @on(FromWalk)
    async def _take(self, message: FromWalk) -> None:
        message.stop()
        if message.kind == "told":
            self._told(message.what)
        elif message.kind == "over":
            await self._ended(message.what)
        else:
            self.waiting = True
            await self._ask(Choices(message.what) if message.kind == "question" else Confirm(message.what))

    def _told(self, event: dict[str, Any]) -> None:
        self.trail.take(event)
        if event["event"] == "progress":  # many of them, of a line each
            self._draw_working()
            return
        if event["event"] == "start":
            self.runbook_app.lookout.look(self, "runbook", runbook_of, event["runbook"])
            self._look_now()
        if event["event"] in ("outcome", "undone"):  # an action may have rewritten it, and so does taking one back
            self.runbook_app.lookout.look(self, "registry", read_registry, self.runbook_app.registry_file)
        if event["event"] in ("start", "step", "outcome", "answer", "end", "undone") and self._keeps_journal:
            self._look_journal()
        self._draw()

    async def _ended(self, result: Any) -> None:
        self.over, self.waiting = True, False
        self._draw()
        if self.runbook_app.leaving:
            self.app.exit(self.walker.exit_code)
            return
        await self._ask(Ended(self.trail, result))
        self._look_now()
        if self._keeps_journal:
            self._look_journal()

    async def _ask(self, prompt: Any) -> None:
        asking = self.query_one("#asking")
        await asking.remove_children()
        await asking.mount(prompt)
        asking.display = True
        # On a small screen a confirmation, or the end, has the room to itself; the evidence is above in the question.
        self.add_class("-asking")
        self.set_class(not isinstance(prompt, Choices), "-whole-prompt")
        self.set_class(isinstance(prompt, Confirm), "-confirm")
        self._draw()

    @on(Answered)
    async def _answered(self, message: Answered) -> None:
        message.stop()
        if not self.waiting:
            return
        self.waiting = False
        asking = self.query_one("#asking")
        await asking.remove_children()
        asking.display = False
        self.remove_class("-asking", "-whole-prompt", "-confirm")
        self.walker.answer(message.given)  # type: ignore[arg-type]
        self._draw()

    @on(Looked)
    def _looked(self, message: Looked) -> None:
        message.stop()
        found = message.found
        if message.what == "runbook" and not isinstance(found, Exception):
            outline = self.query_one(Outline)
            outline.draw(found)
            outline.follow(self.trail)
        elif message.what == "journal" and not isinstance(found, Exception):
            self.query_one("#journal", Static).update(lines(_entry(each) for each in found))
        elif message.what == "registry" and not isinstance(found, Exception):
            self.runbook_app.take(found)
        elif message.what == "now":
            self._now_asked = False
            self.query_one("#now", Static).update(says(("now  ", "bold"), str(found)))

    @on(Next)
    def _next(self, message: Next) -> None:
        message.stop()
        app, run = self.runbook_app, self.trail.run
        if message.what == "close":
            app.close_walk()
        elif message.what == "continue":
            self.app.push_screen(app.pick_up_of(run))
        elif message.what == "path":
            self.app.push_screen(app.walk_of(self.trail.job, self.query_one(Ended).leads_to))
        else:
            from wizard.tui.screens.take_back import TakeBackDialog

            self.app.push_screen(TakeBackDialog(run), self._take_back)

    def _take_back(self, sure: bool | None) -> None:
        if sure:
            self.app.push_screen(self.runbook_app.undo_of(self.trail.run))

    # --- looking beside the walk

    @property
    def _keeps_journal(self) -> bool:
        """A dry run has none, and that of a rehearsal goes with its clone."""
        return self.trail.mode in ("live", "undo")

    def _look_journal(self) -> None:
        if self.trail.run:
            self.look("journal", journal_tail, self.trail.run, _TAIL)

    def _look_now(self) -> None:
        if self.trail.job and not self._now_asked:
            self._now_asked = True
            self.look("now", now_of, self.trail.job)

    # --- drawing

    def _tick(self) -> None:
        self._spin += 1
        self._draw_working()

    def _draw(self) -> None:
        trail = self.trail
        self._draw_banner()
        self.query_one("#step", Static).update(self._step_words())
        self._draw_seen()
        touch = self.query_one("#touch")
        touch.display = bool(trail.action and not self.query("Confirm, Ended"))
        touch.border_title = "would touch" if trail.mode == "dry run" else "will touch"
        self.query_one("#touch-text", Static).update(self._touch_words())
        self.query_one(Outline).follow(trail)
        self._draw_working()

    def _draw_banner(self) -> None:
        trail = self.trail
        title = f"{trail.runbook} {trail.job}".strip()
        self.query_one(Banner).show(trail.mode, title, f"run {trail.run}" if self.app.size.width >= 120 else "")

    def _step_words(self) -> Any:
        trail = self.trail
        if not trail.step:
            return says(("beginning …", "dim"))
        would = "would say: " if trail.mode == "dry run" and trail.ended else ""
        rows = [says((trail.step, "bold"), f"  {would}{trail.say}")]
        if trail.why:
            rows.append(says((f"why: {trail.why}", "dim")))
        return lines(rows)

    def _draw_seen(self) -> None:
        rows: list[Any] = []
        for fact in reversed(self.trail.facts):
            mark, style = ("~", "dim") if fact.assumed else MARKS[fact.truth]
            word = "assumed" if fact.assumed else fact.truth
            rows.append(says((f"{mark} ", f"bold {style}"), (fact.name, "bold"), f" {word}"))
            rows += [says((f"  {line}", "")) for line in fact.evidence]
        self.query_one("#seen-text", Static).update(lines(rows) if rows else says(("nothing yet", "dim")))

    def _touch_words(self) -> Any:
        trail = self.trail
        rows: list[Any] = [says((trail.action, "bold"))]
        for number, line in enumerate(trail.effects):
            mark = "·" if trail.at < 0 or number > trail.at else "▶" if number == trail.at else "✓"
            rows.append(says(f"{mark} {line}"))
        rows += [says((note, "dim")) for note in trail.notes]
        rows.append(says((f"way back: {trail.way_back}", "dim")))
        return lines(rows)

    def _draw_working(self) -> None:
        trail, working = self.trail, self.query_one("#working", Static)
        busy = not self.waiting and not self.over
        working.display = busy
        if not busy:
            return
        what = (
            f"doing {trail.at + 1} of {len(trail.effects)}: {trail.effects[trail.at]}"
            if 0 <= trail.at < len(trail.effects) and not trail.looking
            else f"{'verifying' if self.walker.in_action else 'looking at'} {trail.looking}"
            if trail.looking
            else "working"
        )
        elapsed = clock(time.monotonic() - trail.busy_since)
        spin = _SPIN[self._spin % len(_SPIN)]
        leaving = "  leaving when this is done" if self.walker.leaving else ""
        rows = [says((f"{spin} {elapsed} ", "bold"), what, (leaving, "bold $text-warning"))]
        if trail.progress:
            rows.append(says((f"  {trail.progress}", "dim")))
        working.update(lines(rows))

    # --- keys

    def action_fold(self, what: str) -> None:
        widget = self.query_one(f"#{what}")
        self.set_class(not widget.display, f"-with-{what}")
        self.set_class(bool(widget.display), f"-without-{what}")

    def action_copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(self.words()))
        self.notify("Copied: the step, what was seen and what was done.")

    def words(self) -> list[str]:
        """The walk as text, for a ticket."""
        trail = self.trail
        told = [
            f"{trail.mode.upper()} {trail.runbook} {trail.job}",
            f"run {trail.run}",
            f"{trail.step}: {trail.say}",
            "",
        ]
        if trail.run and trail.mode == "live":
            told += [f"runbook continue {trail.run}", f"runbook undo {trail.run}", ""]
        return [*told, *trail.lines]

    async def action_back(self) -> None:  # type: ignore[override]
        if self.over:
            self.runbook_app.close_walk()
        else:
            await self.app.run_action("quit")


def _entry(entry: dict[str, Any]) -> Any:
    """A line of the journal."""
    about = [entry.get("step"), entry.get("action") or entry.get("fact") or entry.get("option"), entry.get("truth")]
    return says(
        (f"{entry['seq']:>3} {entry['at'][11:19]} ", "dim"),
        (entry["kind"], "bold"),
        " ".join(["", *(str(part) for part in about if part)]),
        (f"  {entry['hash'][:8]}", "dim"),
    )
