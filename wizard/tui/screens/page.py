"""What the screens share: the app they belong to, and a list with a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import DataTable, Input, Static

from wizard.tui.widgets.banner import Banner
from wizard.tui.widgets.keys import Keys
from wizard.tui.widgets.table import Table

if TYPE_CHECKING:
    from wizard.tui.app import RunbookApp


class Page(Screen[None]):
    @property
    def runbook_app(self) -> RunbookApp:
        from wizard.tui.app import RunbookApp

        assert isinstance(self.app, RunbookApp)
        return self.app

    def look(self, what: str, function: Callable[..., Any], *args: Any, later: bool = False) -> None:
        """`function(registry, *args)` in another process; a `Looked` comes back."""
        self.runbook_app.lookout.look(self, what, function, self.runbook_app.registry, *args, later=later)

    def action_back(self) -> None:
        self.runbook_app.go_back()


class ListPage(Page):
    """A table whose rows have a name as key, about the one under the cursor below it, and above it a field `#filter`
    that hides itself when it is not needed."""

    BINDINGS = [
        Binding(
            "slash",
            "filter",
            "Filter",
            id="list.filter",
            priority=True,
            key_display="/",
            tooltip="Show only what matches",
        )
    ]
    COLUMNS: tuple[tuple[str, int], ...] = ()
    HINT = ""
    wanted = ""
    _spare = 0

    def compose(self) -> ComposeResult:
        yield Banner()
        field = Input(self.wanted, placeholder=self.HINT, id="filter")
        field.display = bool(self.wanted)
        yield field
        yield Table(cursor_type="row", zebra_stripes=True, cell_padding=0)
        yield Static(id="about")
        yield Keys()

    def set_up(self) -> None:
        self.fit(())
        self.query_one(DataTable).focus()

    def fit(self, names: Iterable[str]) -> None:
        """Empties the table. A name longer than its column gets of the room what the other columns leave."""
        table = self.query_one(DataTable)
        width = dict(self.COLUMNS)
        left = self.app.size.width - sum(width.values()) - 3  # the scrollbar and a space
        spare = max(0, min(left, max(map(len, names), default=0) + 3 - width["job"]))
        table.clear(columns=spare != self._spare)
        if not table.columns:
            self._spare = spare
            for name in width:
                table.add_column(name.upper(), key=name, width=width[name] + (spare if name == "job" else 0))

    def on_resize(self) -> None:
        table = self.query_one(DataTable)
        if not table.columns:
            return
        under = self.under_cursor
        self.fill()
        if under in table.rows:
            table.move_cursor(row=table.get_row_index(under), animate=False)

    def fill(self) -> None:
        raise NotImplementedError

    @property
    def under_cursor(self) -> str:
        """The key of the row, or nothing in an empty table."""
        table = self.query_one(DataTable)
        return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value) if table.row_count else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In the field a slash is a letter."""
        return not (action == "filter" and isinstance(self.focused, Input))

    def action_filter(self) -> None:
        """At once (its key is a priority one), not at the next idle moment: the letters that follow are for the field."""
        field = self.query_one("#filter", Input)
        field.display = True
        self.set_focus(field)

    @on(Input.Changed, "#filter")
    def _filtered(self, event: Input.Changed) -> None:
        if event.value != self.wanted:
            self.wanted = event.value
            self.fill()

    @on(Input.Submitted, "#filter")
    def _filter_done(self) -> None:
        self.query_one(DataTable).focus()

    def drop_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.set_focus(self.query_one(DataTable))
