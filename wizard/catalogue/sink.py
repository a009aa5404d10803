"""The output: emptied, taken back, or cleaned of what the batch in flight had already written."""

from __future__ import annotations

from wizard.catalogue.declare import Action, Probe

_ROWS = ("rows.exact", "consumers.consistent")

ENTRIES = (
    Probe(
        "in_flight.clean",
        # Files outside a file output's log are no rows of it: whoever reads by the log, as Spark does, never sees them.
        says="Running the batch in flight again doubles nothing: there is none, or the output takes a batch only once "
        "(and no job of the registry reads files past its log), or it holds none of that batch's rows.",
        unknown_when="the output is written by code of your own (foreachBatch) that this tool cannot look into",
        attestable="only the author of a foreachBatch knows whether it writes a batch twice",
    ),
    Probe(
        "sink.empty",
        says="The output holds no rows, and its own log (_spark_metadata, txn) is gone with them.",
        unknown_when="the output cannot be listed past every cache",
    ),
    Probe(
        "sink.at_target",
        says="The output holds exactly the batches up to the chosen one, its own log included.",
        unknown_when="the output does not say which batch a row came from",
        takes=("target",),
    ),
    Probe(
        "sink.accepts_replay",
        says="The output will not skip the batches that are run again: its log or txn ends at the chosen batch.",
        unknown_when="the output is written by code of your own that may remember batch numbers",
        takes=("target",),
    ),
    Action(
        "sink.clear_in_flight",
        says="Take out of the output what the batch in flight had already written.",
        # Somebody else's batch in flight looks like ours.
        requires=("job.stopped", "checkpoint.exclusive", "checkpoint.readable"),
        makes="in_flight.clean",
        may_undo=(*_ROWS, "consumers.safe"),
        owes=("rows.exact",),
        destroys=True,
        way_back="`runbook undo RUN` puts the rows back",
    ),
    Action(
        "sink.truncate",
        says="Empty the output and its own log; the rows are kept in quarantine or as a version to go back to.",
        # Output deleted under a live checkpoint goes on at the next batch, with the old rows gone for ever.
        requires=(
            "job.stopped",
            "consumers.stopped",
            "checkpoint.exclusive",
            "checkpoint.fenced",
            "source.can_rebuild",
        ),
        makes="sink.empty",
        may_undo=(
            *_ROWS,
            "consumers.safe",
            "sink.at_target",
            "target.sink_log",
            "in_flight.clean",
            "checkpoint.consistent",
        ),
        owes=_ROWS,
        destroys=True,
        way_back="`runbook undo RUN` restores the rows and the log",
    ),
    Action(
        "sink.rollback",
        says="Take the output back to the end of the chosen batch, rows and log together.",
        requires=(
            "job.stopped",
            "consumers.stopped",
            "checkpoint.exclusive",
            "checkpoint.fenced",
            "target.offsets",
            "target.state",
            "target.source_log",
            "target.source_rows",
            "target.sink_log",
        ),
        makes="sink.at_target",
        may_undo=(*_ROWS, "consumers.safe", "sink.empty", "in_flight.clean", "checkpoint.consistent"),
        owes=_ROWS,
        takes=("target",),
        destroys=True,
        way_back="`runbook undo RUN` restores the rows and the log",
    ),
)
