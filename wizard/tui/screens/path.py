"""A path was chosen: how to walk it. Changing nothing comes first and has the focus."""

from __future__ import annotations

import importlib.util
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from wizard.tui.words import VERDICTS, lines, says

_WAYS = (
    ("dry run", "Dry run: look and plan, change nothing"),
    ("rehearsal", "Rehearse: walk it for real on a clone, touch nothing live"),
    ("live", "Walk it: every destructive step still asks for the job's name"),
)


class PathDialog(ModalScreen[str]):
    BINDINGS = [Binding("escape", "leave", "Back", id="path.back", tooltip="Choose nothing")]

    def __init__(self, job: str, path: str, verdict: dict[str, Any] | None) -> None:
        super().__init__()
        self.job, self.path, self.verdict = job, path, verdict
        can_rehearse = importlib.util.find_spec("wizard.engine.rehearse") is not None
        self.ways = [way for way in _WAYS if way[0] != "rehearsal" or can_rehearse]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            rows = [says((f"{self.path} {self.job}", "bold"))]
            if self.verdict is not None:
                mark, style = VERDICTS[self.verdict["verdict"]]
                rows.append(says((f"{mark} {self.verdict['verdict']}", f"bold {style}")))
                rows += [says(f"  {reason}") for reason in self.verdict["reasons"]]
            yield Static(lines(rows), classes="reasons")
            yield OptionList(*(Option(says(words), id=name.replace(" ", "-")) for name, words in self.ways))

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = 0
        self.query_one(OptionList).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self.ways[event.option_index][0])

    def action_leave(self) -> None:
        self.dismiss(None)
