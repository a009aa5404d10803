"""The jobs that read this job's output: a reset or replay is a fact about them too."""

from __future__ import annotations

from wizard.catalogue.declare import Action, Probe

ENTRIES = (
    Probe(
        "consumers.stopped",
        says="Nothing in the registry that reads this output runs (or nothing reads it).",
        unknown_when="a consumer's controller cannot be reached",
        waivable="consumers are left running: they may read half an output, or fail on rows taken away",
    ),
    Probe(
        "consumers.consistent",
        says="No consumer holds offsets of the output as it was: each was reset or taken back, or reads by listing.",
        unknown_when="a consumer's checkpoint cannot be read",
        waivable="consumers keep what they made of the old output, right or wrong",
    ),
    Probe(
        "consumers.safe",
        says="No consumer would read a row a second time: each has read only what the output still shows, or stands still.",
        unknown_when="a consumer's checkpoint cannot be read, and it was not seen to be stopped",
        waivable="consumers that run may read rows a second time",
    ),
    Probe(
        # `consumers.stopped` can be waived, and a waiver must not stand for this where their own checkpoints go.
        "consumers.down",
        says="Every job that reads this output was seen to be stopped; nobody's word stands for it.",
        unknown_when="a consumer's controller cannot be reached, or a consumer is not under its control",
    ),
    Probe(
        "consumers.rebuildable",
        says="Whatever a consumer reads besides this output, its source still has every row of.",
        unknown_when="one of those sources cannot be reached, or a consumer's output does not say which rows it holds",
        waivable="rows that a consumer's output holds and its other sources no longer have are accepted as lost",
    ),
    Probe(
        "consumers.running",
        says="Every consumer that was running before runs again.",
        unknown_when="a consumer's controller cannot be reached",
        waivable="consumers stay stopped, and somebody else starts them",
    ),
    Action(
        "consumers.stop",
        says="Stop every job that reads this output, the farthest downstream first.",
        makes="consumers.stopped",
        may_undo=("consumers.running",),
        owes=("consumers.running",),
        way_back="start them with `runbook resume` each",
    ),
    Action(
        "consumers.reset",
        says="Reset each consumer too, the nearest first: its output and its checkpoint to quarantine, earliest offsets.",
        # Rebuilt from an output that is not exact they would be wrong again; while one runs, nothing of it is emptied.
        requires=("consumers.down", "consumers.rebuildable", "rows.exact"),
        makes="consumers.consistent",
        may_undo=("consumers.running", "consumers.rebuildable"),
        owes=("consumers.running",),
        destroys=True,
        way_back="`runbook undo RUN` moves their outputs and checkpoints back",
    ),
    Action(
        "consumers.start",
        says="Start the consumers again, the nearest first.",
        requires=("consumers.consistent", "rows.exact"),
        makes="consumers.running",
        may_undo=("consumers.stopped", "consumers.down", "consumers.safe"),
        way_back="stop them",
    ),
)
