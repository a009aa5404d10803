"""All jobs, live: state, last batch, age, lag, findings, quarantine. Enter opens one."""

from __future__ import annotations

import time
from typing import Any

from textual import on
from textual.binding import Binding
from textual.content import Content
from textual.widgets import DataTable, Static

from wizard.text import ago
from wizard.tui.background import Looked
from wizard.tui.looks import JobLook, Kept, look_at_job, look_at_kept, read_registry
from wizard.tui.screens.page import ListPage
from wizard.tui.widgets.banner import Banner
from wizard.tui.words import lines, says

_COLUMNS = (("job", 23), ("state", 11), ("batch", 7), ("last", 8), ("lag", 8), ("findings", 10), ("kept", 10))
_SORTS = ("trouble", "job", "last", "lag")
_EVERY_SECONDS = 5.0
_DRAW_SECONDS = 0.2
_MARKS = {"running": "▶", "stopped": "■", "unknown": "?"}


class FleetScreen(ListPage):
    COLUMNS, HINT = _COLUMNS, "part of a name, a state or a finding"
    BINDINGS = [
        Binding("s", "sort", "Sort", id="fleet.sort", tooltip="Sort by trouble, name, age, lag"),
        Binding("r", "refresh", "Look again", id="fleet.refresh", show=False, tooltip="Look at every job again now"),
        Binding("a", "audit", "Audit", id="fleet.audit", tooltip="All runs and their journals"),
        Binding("escape", "clear", "Clear", id="fleet.clear", show=False, tooltip="Drop the filter"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, JobLook] = {}
        self.kept: dict[str, Kept] | None = None  # None as long as the runs could not be read
        self.unread_runs = ""
        self.sort_by = _SORTS[0]
        self.unreadable = ""  # what is wrong with the registry since it was last read
        self._fresh: set[str] = set()
        self._pending = 0  # looks that are not back
        self._pass_began = 0.0

    def on_mount(self) -> None:
        self.set_up()
        self._draw_banner()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        """After the first picture: the registry, then every job."""
        self.set_interval(_DRAW_SECONDS, self._draw_fresh)
        if self.ready:
            self.fill()
        self.action_refresh()

    @property
    def ready(self) -> bool:
        return self.runbook_app.known is not None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("audit", "filter", "sort", "refresh") and not self.ready:
            return False
        return super().check_action(action, parameters)

    # --- looking

    def action_refresh(self) -> None:
        """The registry again, then every job that it names now."""
        if self._pending:
            return
        self._pass_began = time.monotonic()
        self._pending = 1
        self.runbook_app.lookout.look(self, "registry", read_registry, self.runbook_app.registry_file)

    def _look_at_all(self) -> None:
        self._pending = len(self.runbook_app.jobs)
        self.look("kept", look_at_kept)
        for name in self.runbook_app.jobs:
            self.look(f"job {name}", look_at_job, name, later=True)

    @on(Looked)
    def _looked(self, message: Looked) -> None:
        message.stop()
        kind, _, name = message.what.partition(" ")
        if kind == "registry":
            self._read(message.found)
            return
        if kind == "kept":
            self.kept = message.found if isinstance(message.found, dict) else None
            self.unread_runs = str(message.found) if self.kept is None else ""
            self._fresh |= set(self.jobs)
            return
        found = message.found
        self.jobs[name] = JobLook(name, error=str(found)) if isinstance(found, Exception) else found
        self._fresh.add(name)
        self._pending -= 1
        if not self._pending:
            took = time.monotonic() - self._pass_began
            # A fleet that takes long to look at is looked at less often: two thirds of the time are left to others.
            self.set_timer(max(_EVERY_SECONDS, 2 * took), self.action_refresh)

    def _read(self, found: Any) -> None:
        """One that cannot be read at the start ends the app: the command says why. Later, what it said last is shown."""
        app = self.runbook_app
        if isinstance(found, Exception):
            if not self.ready:
                app.fail(found)
                return
            self.unreadable = str(found)
        else:
            self.unreadable = ""
            if app.take(found):
                self.jobs = {name: look for name, look in self.jobs.items() if name in app.jobs}
                self.refresh_bindings()
                self.fill()
        self._draw_about()
        self._draw_banner()
        self._look_at_all()

    # --- drawing

    def _rows(self) -> list[str]:
        names = [name for name in self.runbook_app.jobs if self._matches(name)]
        return sorted(names, key=self._rank)

    def _matches(self, name: str) -> bool:
        if not self.wanted:
            return True
        look = self.jobs.get(name)
        found = [each.code for each in look.findings] if look else []
        told = " ".join([name, look.state if look else "", look.error if look else "", *found]).lower()
        return all(word in told for word in self.wanted.lower().split())

    def _rank(self, name: str) -> tuple[Any, ...]:
        look = self.jobs.get(name)
        if self.sort_by == "job" or look is None:
            return (1, 0, 0, name)
        if self.sort_by == "last":
            return (0, look.planned_at_ms or 0, 0, name)
        if self.sort_by == "lag":
            return (0, -(look.lag if look.lag is not None else -1), 0, name)
        errors, warnings = look.counts
        waits = bool(self._kept(name).run)
        return (0, -errors - 100 * waits, -warnings - (look.state != "running"), name)

    def fill(self) -> None:
        table = self.query_one(DataTable)
        kept_at = self.under_cursor if table.cursor_row else ""  # at the top it stays at the top
        self.fit(self.runbook_app.jobs)
        rows = self._rows()
        for name in rows:
            table.add_row(*self._cells(name), key=name)
        if kept_at in rows:
            table.move_cursor(row=rows.index(kept_at), animate=False)
        self._draw_about()

    def _draw_fresh(self) -> None:
        """What came since the last time, at once: a thousand jobs must not draw a thousand times."""
        if not self._fresh:
            return
        table = self.query_one(DataTable)
        fresh, self._fresh = self._fresh, set()
        with self.app.batch_update():
            for name in fresh:
                if name in table.rows:
                    for (column, _), cell in zip(_COLUMNS, self._cells(name), strict=True):
                        if table.get_cell(name, column) != cell:
                            table.update_cell(name, column, cell)
        if not self._pending and self._rows() != [str(key.value) for key in _keys(table)]:
            self.fill()
        self._draw_about()
        self._draw_banner()

    def _kept(self, name: str) -> Kept:
        return (self.kept or {}).get(name, Kept())

    def _cells(self, name: str) -> list[Any]:
        look, kept = self.jobs.get(name), self._kept(name)
        if look is None:
            return [name, "…", "", "", "", "", kept.held]
        errors, warnings = look.counts
        state = f"{_MARKS[look.state]} {look.state}"
        parts = [f"✗ {errors}"] * bool(errors) + [f"! {warnings}"] * bool(warnings)
        batch = "–" if look.last_batch is None else str(look.last_batch)
        return [
            f"{'! ' if kept.run else ''}{name}",
            state,
            batch,
            ago(look.planned_at_ms).removesuffix(" ago"),
            "–" if look.lag is None else f"{look.lag}",
            " ".join(parts) or "✓",
            kept.held or ("–" if self.kept is not None else "?"),
        ]

    @on(DataTable.RowHighlighted)
    def _moved(self) -> None:
        self._draw_about()

    def _draw_about(self) -> None:
        name = self.under_cursor
        told = self._about(name) if name else [says("no job matches")]
        if self.unreadable:
            told.insert(0, says(("✗ ", "bold $text-error"), f"{self.unreadable}; below is what it said before"))
        self.query_one("#about", Static).update(lines(told))

    def _about(self, name: str) -> list[Content]:
        look = self.jobs.get(name)
        if look is None:
            return [says((name, "bold"), "  being looked at …")]
        told = [says((name, "bold"), f"  {look.line()}")]
        if says_kept := self._kept(name).says:
            told.append(says(("! ", "bold"), says_kept))
        if self.unread_runs:
            told.append(says(("? ", "bold $text-warning"), f"what runs have left is not known: {self.unread_runs}"))
        told += [says(("✗ ", "bold $text-error"), each.message) for each in look.errors[:2]]
        return told

    def _draw_banner(self) -> None:
        troubled = sum(bool(look.counts[0] or self._kept(look.name).run) for look in self.jobs.values())
        told = f"{len(self.jobs)} of {len(self.runbook_app.jobs)} jobs looked at, {troubled} with problems"
        reading = f"reading {self.runbook_app.registry_file} …"
        self.query_one(Banner).show("look", "fleet", f"{told}; by {self.sort_by}" if self.ready else reading)

    # --- keys

    def action_clear(self) -> None:
        self.drop_filter()

    def action_sort(self) -> None:
        self.sort_by = _SORTS[(_SORTS.index(self.sort_by) + 1) % len(_SORTS)]
        self.fill()
        self._draw_banner()

    @on(DataTable.RowSelected)
    def _open(self) -> None:
        from wizard.tui.screens.job import JobScreen

        name = self.under_cursor
        if name:
            self.app.push_screen(JobScreen(name, self.jobs.get(name)))

    def action_audit(self) -> None:
        from wizard.tui.screens.audit import AuditScreen

        self.app.push_screen(AuditScreen())


def _keys(table: DataTable[Any]) -> list[Any]:
    return [row.key for row in table.ordered_rows]
