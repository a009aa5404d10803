"""The checkpoint: what state it is in, the fence, and the two ways of changing it."""

from __future__ import annotations

from wizard.catalogue.declare import Action, Probe

ENTRIES = (
    Probe(
        "checkpoint.readable",
        says="Metadata, offsets, commits, source log and state of the last batches can all be read.",
        unknown_when="the storage cannot be reached, or a file is of a version this tool does not know",
    ),
    Probe(
        "checkpoint.consistent",
        says="Offsets and commits end together or one batch apart, the last two offsets are there, "
        "and checkpoint and output agree on the last batch.",
        unknown_when="the output does not say which batch it holds",
        waivable="the output keeps no batch number, and the operator accepts that the two cannot be compared",
        waived_unseen=True,
    ),
    Probe(
        "checkpoint.exclusive",
        says="No other job in the registry uses this checkpoint or this output, and nobody writes to it now.",
        unknown_when="the checkpoint still moves, and the controller does not say that the job is stopped",
    ),
    Probe(
        "checkpoint.unfenced",
        # A damaged checkpoint is what a reset is for: metadata that is missing or cut short does not stand in its way.
        says="No walk has left its fence in this checkpoint; missing or damaged metadata is no fence.",
        unknown_when="the storage cannot be reached",
    ),
    Probe(
        "checkpoint.fenced",
        says="This walk's fence is in place: a job that is started now fails before its first batch.",
        unknown_when="the metadata file cannot be read",
    ),
    Probe(
        "checkpoint.absent",
        says="Nothing is left of the old checkpoint: no offsets, commits, sources or state, no empty directories.",
        unknown_when="the directory cannot be listed past every cache",
    ),
    Probe(
        "checkpoint.at_target",
        says="The checkpoint ends with the chosen batch: last offset and last commit are that batch, "
        "and no state is newer.",
        unknown_when="the directory cannot be listed past every cache",
        takes=("target",),
    ),
    Action(
        "checkpoint.fence",
        says="Replace the checkpoint's metadata by one without an id, so that no scheduler can start the job now.",
        # It does not stop a query that already runs, and over another walk's fence the real metadata would be lost.
        requires=("job.stopped", "checkpoint.unfenced"),
        makes="checkpoint.fenced",
        # A diagnosis that meets a fence calls no path safe, and a Delta table's last batch is found by the query's id.
        may_undo=(
            "checkpoint.unfenced",
            "checkpoint.consistent",
            "verdict.resume",
            "verdict.replay",
            "verdict.backfill",
            "verdict.reset",
        ),
        way_back="`runbook undo RUN` puts the metadata back byte for byte",
    ),
    Action(
        "checkpoint.delete",
        says="Move the whole checkpoint to quarantine, and leave only the fence.",
        # A checkpoint deleted over a full output starts at batch 0 again, and the output drops or doubles what comes.
        requires=("job.stopped", "consumers.stopped", "checkpoint.exclusive", "checkpoint.fenced", "sink.empty"),
        makes="checkpoint.absent",
        may_undo=(
            "checkpoint.readable",
            "checkpoint.consistent",
            "checkpoint.at_target",
            "source.has_next_offsets",
            "in_flight.clean",
            "rows.exact",
            "code.same_sources",
            "code.same_operators",
            "code.same_confs",
            "target.offsets",
            "target.state",
            "target.source_log",
            "target.source_rows",
            "range.unprocessed",
        ),
        destroys=True,
        way_back="`runbook undo RUN` moves it back from quarantine",
    ),
    Action(
        "checkpoint.rollback",
        says="Take the checkpoint back to the end of the chosen batch: state, source log, offsets, then commits.",
        # The output goes back first: the fence holds in between, and offsets are the last thing Spark needs.
        requires=(
            "job.stopped",
            "consumers.stopped",
            "checkpoint.exclusive",
            "checkpoint.fenced",
            "target.offsets",
            "target.state",
            "target.source_log",
            "target.source_rows",
            "sink.at_target",
        ),
        makes="checkpoint.at_target",
        may_undo=("checkpoint.readable", "checkpoint.consistent", "in_flight.clean", "rows.exact"),
        takes=("target",),
        destroys=True,
        way_back="`runbook undo RUN` moves the removed batches back from quarantine",
    ),
    Action(
        "checkpoint.new_identity",
        says="Give the query a new id, written when the fence is lifted, so that the output takes the batches again.",
        requires=("job.stopped", "checkpoint.fenced", "checkpoint.at_target"),
        makes="sink.accepts_replay",
        takes=("target",),
        way_back="`runbook undo RUN` restores the old id",
    ),
)
