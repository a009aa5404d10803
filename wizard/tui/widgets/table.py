"""A table whose Enter is in the footer, as every key is."""

from __future__ import annotations

from typing import Any

from textual.binding import Binding
from textual.widgets import DataTable


class Table(DataTable[Any]):
    BINDINGS = [Binding("enter", "select_cursor", "Open", id="table.open", tooltip="Open what is under the cursor")]
