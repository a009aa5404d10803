"""One job: findings, the four paths as cards, its batches, where it stands in its sources, the evidence."""

from __future__ import annotations

from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Grid, VerticalScroll
from textual.message import Message
from textual.widgets import Static

from wizard.tui.background import Looked
from wizard.tui.looks import JobLook, Kept, Place, look_at_job, look_at_kept
from wizard.tui.screens.page import Page
from wizard.tui.widgets.banner import Banner
from wizard.tui.widgets.keys import Keys
from wizard.tui.widgets.timeline import timeline
from wizard.tui.words import SEVERITIES, VERDICTS, lines, says

_EVERY_SECONDS = 5.0
PATHS = ("resume", "replay", "backfill", "reset")


class Card(Static, can_focus=True):
    """One path: its verdict in a mark, a word and a colour, with the reasons."""

    BINDINGS = [Binding("enter", "choose", "Choose", id="job.choose", tooltip="Dry run, walk or rehearse this path")]

    class Chosen(Message):
        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self, path: str) -> None:
        super().__init__(id=f"card-{path}", classes="card")
        self.path = path
        self.border_title = path

    def show(self, verdict: dict[str, Any]) -> None:
        word = verdict["verdict"]
        mark, style = VERDICTS[word]
        for each in VERDICTS:
            self.set_class(each == word, f"-{each}")
        self.border_title = f"{mark} {self.path}"
        first, *others = verdict["reasons"] or [""]
        more = f" (and {len(others)} more)" if others and self.app.size.width < 110 else ""
        shown = [first + more] if more else [first, *others]
        self.update(lines([says((word, f"bold {style}")), *(says(f"{reason}") for reason in shown)]))

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self.path))

    def on_click(self) -> None:
        self.action_choose()


class JobScreen(Page):
    BINDINGS = [
        Binding("1", "path('resume')", "Resume", id="job.resume", show=False, tooltip="Choose resume"),
        Binding("2", "path('replay')", "Replay", id="job.replay", show=False, tooltip="Choose replay"),
        Binding("3", "path('backfill')", "Backfill", id="job.backfill", show=False, tooltip="Choose backfill"),
        Binding("4", "path('reset')", "Reset", id="job.reset", show=False, tooltip="Choose reset"),
        Binding("t", "triage", "Triage", id="job.triage", tooltip="Be asked what cannot be seen, and led to a path"),
        Binding("x", "explain", "Explain", id="job.explain", tooltip="Paste a stack trace: what it means"),
        Binding(
            "c",
            "waiting",
            "Open the run",
            id="job.waiting",
            tooltip="Open the run that waits: continue it or take it back",
        ),
        Binding("r", "refresh", "Look again", id="job.refresh", show=False, tooltip="Look again now"),
        Binding("a", "audit", "Audit", id="job.audit", tooltip="The runs of this job"),
        Binding("y", "copy", "Copy", id="job.copy", tooltip="Copy the diagnosis as text"),
        Binding("escape", "back", "Back", id="job.back", tooltip="Back to the fleet"),
    ]

    def __init__(self, name: str, seen: JobLook | None = None) -> None:
        super().__init__()
        self.job, self.seen = name, seen
        self.pasted = ""
        self.kept = Kept()
        self._asked = False

    def compose(self) -> ComposeResult:
        yield Banner()
        with VerticalScroll(id="page"):
            yield Static(id="summary")
            with Grid(id="cards"):
                for path in PATHS:
                    yield Card(path)
            with Grid(id="panels"):
                yield Static(id="findings", classes="panel")
                yield Static(id="batches", classes="panel")
                yield Static(id="positions", classes="panel")
                yield Static(id="evidence", classes="panel")
        yield Keys()

    def on_mount(self) -> None:
        for name, title in (("findings", "findings"), ("batches", "batches"), ("positions", "sources"),
                            ("evidence", "evidence: checkpoint, sink, state")):  # fmt: skip
            self.query_one(f"#{name}").border_title = title
        self.query_one(Banner).show("look", f"job {self.job}")
        self._draw()
        self.query_one("#card-resume").focus()
        self.call_after_refresh(self.action_refresh)
        self.set_interval(_EVERY_SECONDS, self.action_refresh)

    def on_resize(self) -> None:
        self._draw()

    def action_refresh(self) -> None:
        if not self._asked:
            self._asked = True
            self.look("job", look_at_job, self.job, self.pasted)
            self.look("kept", look_at_kept)

    @on(Looked)
    def _looked(self, message: Looked) -> None:
        message.stop()
        found = message.found
        if message.what == "kept":
            if isinstance(found, Exception):
                self.kept = Kept(says=f"what runs have left is not known: {found}")
            else:
                self.kept = found.get(self.job, Kept())
            self.refresh_bindings()
            self._draw()
            return
        self._asked = False
        self.seen = JobLook(self.job, error=str(found)) if isinstance(found, Exception) else found
        self._draw()

    # --- drawing

    def _draw(self) -> None:
        seen = self.seen
        summary = self.query_one("#summary", Static)
        waits = [says(("! ", "bold $text-warning"), self.kept.says)] if self.kept.says else []
        # What was seen before says nothing any more: a path that was safe then must not be read as safe now.
        for part in ("#cards", "#panels"):
            self.query_one(part).display = seen is not None and not seen.error
        if seen is None:
            summary.update(lines([says("being looked at …"), *waits]))
            return
        if seen.error:
            summary.update(lines([says(("✗ ", "bold $text-error"), seen.error), *waits]))
            return
        mark, style = ("✗", "bold $text-error") if seen.errors else ("✓", "bold $text-success")
        summary.update(lines([says((f"{mark} ", style), (seen.summary, "bold")), says((f"now  {seen.state}: {seen.state_says}", "dim")), *waits]))  # fmt: skip
        for path in PATHS:
            self.query_one(f"#card-{path}", Card).show(seen.paths[path])
        self.query_one("#findings", Static).update(self._findings(seen))
        width = self.query_one("#batches").content_size.width or 60
        self.query_one("#batches", Static).update(timeline(seen.batches, min(width, 90)))
        self.query_one("#positions", Static).update(self._places(seen))
        self.query_one("#evidence", Static).update(lines(seen.evidence))

    def _findings(self, seen: JobLook) -> Any:
        rows: list[Any] = []
        for found in seen.findings:
            mark, style = SEVERITIES[found.severity]
            rows.append(says((f"{mark} {found.code}", f"bold {style}"), f"  {found.message}"))
            rows.append(says(("  seen  ", "dim"), found.evidence))
            if found.severity != "info":
                rows.append(says(("  do    ", "dim"), found.remedy))
        return lines(rows) if rows else says(("✓ ", "bold $text-success"), "nothing found")

    def _places(self, seen: JobLook) -> Any:
        rows: list[Any] = []
        for each in seen.places:
            if each.latest is None:
                rows.append(says(("? ", "bold $text-warning"), f"{each.name}: {each.why}"))
                continue
            mark = "✓" if not each.lag else "!"
            done = "none" if each.committed is None else each.committed
            unit = "" if each.unit == "record" else " files"
            rows.append(says(f"{mark} ", (each.name, "bold"), f"  {_gauge(each)}  earliest {each.earliest}, committed {done}, latest {each.latest}{unit}; lag {each.lag}"))  # fmt: skip
        return lines(rows) if rows else says("no source is registered")

    # --- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return bool(self.kept.run) if action == "waiting" else super().check_action(action, parameters)

    def action_waiting(self) -> None:
        from wizard.tui.screens.audit import RunScreen

        self.app.push_screen(RunScreen(self.kept.run))

    @on(Card.Chosen)
    def _card(self, event: Card.Chosen) -> None:
        event.stop()
        self.action_path(event.path)

    def action_path(self, path: str) -> None:
        from wizard.tui.screens.path import PathDialog

        verdict = self.seen.paths.get(path) if self.seen else None
        self.app.push_screen(PathDialog(self.job, path, verdict), lambda mode: self._walk(path, mode))

    def _walk(self, path: str, mode: str | None) -> None:
        if mode is not None:
            self.app.push_screen(self.runbook_app.walk_of(self.job, path, mode))

    def action_triage(self) -> None:
        """It changes nothing: there is nothing to dry-run or to rehearse."""
        self.app.push_screen(self.runbook_app.walk_of(self.job, "triage"))

    def action_explain(self) -> None:
        from wizard.tui.screens.explain import ExplainDialog

        self.app.push_screen(ExplainDialog(self.pasted), self._explained)

    def _explained(self, pasted: str | None) -> None:
        """An emptied field takes back what was pasted before."""
        self.pasted = pasted or ""
        self.action_refresh()

    def action_audit(self) -> None:
        from wizard.tui.screens.audit import AuditScreen

        self.app.push_screen(AuditScreen(self.job))

    def action_copy(self) -> None:
        if self.seen and self.seen.report:
            self.app.copy_to_clipboard("\n".join(self.seen.report))
            self.notify("Copied: the diagnosis as text.")


def _gauge(each: Place, width: int = 12) -> str:
    first, last = each.earliest or 0, each.latest or 0
    at = each.committed if each.committed is not None else first
    filled = width if last <= first else round(width * (at - first) / (last - first))
    return "█" * max(0, min(width, filled)) + "░" * (width - max(0, min(width, filled)))
