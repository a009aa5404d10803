"""The source: whether it still has what is about to be read from it."""

from __future__ import annotations

from wizard.catalogue.declare import Probe

ENTRIES = (
    Probe(
        "source.has_next_offsets",
        says="The source still has everything from the next offset on, and is the same source as before.",
        unknown_when="the source cannot be reached",
        waivable="rows that the source no longer has are accepted as lost (what failOnDataLoss=false hides)",
    ),
    Probe(
        "source.can_rebuild",
        says="The source still has every row that the output holds.",
        unknown_when="the source cannot be reached, or the output does not say which rows it holds",
        waivable="rows that are in the output and no longer in the source are accepted as lost",
    ),
    Probe(
        "source.has_range",
        says="The source still has every row between the two pinned ends.",
        unknown_when="the source cannot be reached",
        takes=("range",),
    ),
)
