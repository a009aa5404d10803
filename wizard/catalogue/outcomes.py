"""How a walk can end."""

from __future__ import annotations

from wizard.catalogue.declare import Outcome

ENTRIES = (
    # The one claim the tool makes about data: proved, or waived in so many words.
    Outcome("resolved", says="Every source row is in the output exactly once.", requires=("rows.exact",), settles=True),
    Outcome("aborted", says="Stopped by the operator; what was done so far, and the way back, is printed."),
    Outcome("hand_over", says="The tool cannot go on safely; what is known goes to somebody who can."),
    Outcome("chosen", says="One of the four paths is chosen; the evidence and answers go with it."),
)
