"""What leaving in the middle of a walk means, before it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wizard.tui.screens.sure import Sure
from wizard.tui.words import says

if TYPE_CHECKING:
    from wizard.tui.screens.walk import WalkScreen


class LeaveDialog(Sure):
    NO, YES = "Stay", "Leave"

    def __init__(self, walk: WalkScreen) -> None:
        super().__init__()
        self.walk = walk

    def words(self) -> list[Any]:
        walker, trail = self.walk.walker, self.walk.trail
        told: list[Any] = [says(("Leave this walk?", "bold"))]
        if trail.mode == "dry run":
            return [*told, says("Nothing was changed; nothing is left behind.")]
        if walker.taking_back:
            told.append(says("It is being taken back. That is finished first; then this closes."))
        elif walker.in_action:
            told.append(says((f"{trail.action or walker.in_action} is in flight. ", "bold"),
                             "It is not cut in half: this closes as soon as it is done and verified."))  # fmt: skip
        elif not self.walk.waiting:
            told.append(says("It is looking at something; this closes when that look is over."))
        if trail.run:
            changed = bool(trail.done or trail.at >= 0)
            told.append(says("Nothing was changed so far." if not changed else "Go on later, or take it back:"))
            if changed:
                told.append(says((f"  runbook continue {trail.run}", "bold")))
                told.append(says((f"  runbook undo {trail.run}", "bold")))
        return told
