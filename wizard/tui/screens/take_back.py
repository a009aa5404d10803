"""Before a run is taken back, or gone on with: what that means."""

from __future__ import annotations

from typing import Any

from wizard.tui.screens.sure import Sure
from wizard.tui.words import says


class TakeBackDialog(Sure):
    YES = "Take it back"
    DANGER = True

    def __init__(self, run: str) -> None:
        super().__init__()
        self.run = run

    def words(self) -> list[Any]:
        return [
            says((f"Take back {self.run}?", "bold")),
            says("The job is stopped, and checkpoint, output and configuration are put back as they were."),
            says("What has come since is moved aside, not deleted."),
        ]


class GoOnDialog(Sure):
    YES = "Go on"

    def __init__(self, run: str) -> None:
        super().__init__()
        self.run = run

    def words(self) -> list[Any]:
        return [
            says((f"Go on with {self.run}, live?", "bold")),
            says(
                "Every finished step is verified again. One that was in flight is finished first, without another question."
            ),
            says("From there on it asks as it did."),
        ]
