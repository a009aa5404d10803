"""The batch to go back to, and whether everything reaches back that far."""

from __future__ import annotations

from wizard.catalogue.declare import Answer, Probe

_ABOUT_TARGET = (
    "target.offsets",
    "target.state",
    "target.source_log",
    "target.source_rows",
    "target.sink_log",
    "checkpoint.at_target",
    "sink.at_target",
    "sink.accepts_replay",
)


def _by(name: str, says: str) -> Answer:
    return Answer(name, gives="target", says=says, may_undo=_ABOUT_TARGET)


ENTRIES = (
    _by("target.by_batch", "The number of the last batch to keep."),
    _by("target.by_time", "A point in time; the last batch planned before it is kept."),
    _by("target.by_offset", "A source offset; the last batch that ends at or before it is kept."),
    Probe(
        "target.offsets",
        says="Offsets and commits reach back to the batch before the chosen one, without a hole or a repartition.",
        unknown_when="the checkpoint's mode (continuous, real-time, asynchronous) keeps no batch by batch log",
        takes=("target",),
    ),
    Probe(
        "target.state",
        says="Every partition of every state store can be loaded as it was after the chosen batch.",
        unknown_when="the state store provider is not one this tool can read",
        takes=("target",),
    ),
    Probe(
        "target.source_log",
        says="The source's log in the checkpoint reaches back to the chosen batch.",
        unknown_when="the source keeps a log this tool cannot read",
        takes=("target",),
    ),
    Probe(
        "target.source_rows",
        says="The source still has every row after the chosen batch.",
        unknown_when="the source cannot be reached",
        takes=("target",),
    ),
    Probe(
        "target.sink_log",
        says="The output can be taken back to the chosen batch: its log or its versions reach that far.",
        unknown_when="the output does not say which batch a row came from",
        takes=("target",),
    ),
)
