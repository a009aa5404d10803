"""The streaming job itself: stopping it, the four ways of starting it, and the proof that it works again."""

from __future__ import annotations

from wizard.catalogue.declare import Action, Probe

# A start proves nothing by itself: a running process that commits no batch looks healthy to every scheduler.
_PROOF_OF_EFFECT = ("job.running", "batch.committed", "offsets.moving", "rows.exact")
# Facts about the job before it ran; none of them is certain once it may have run a batch.
_RAN = (
    "job.stopped",
    "checkpoint.readable",
    "checkpoint.consistent",
    "checkpoint.exclusive",
    "source.has_next_offsets",
    "batch.committed",
    "offsets.moving",
    "rows.exact",
    "in_flight.clean",
    "sink.empty",
    "sink.at_target",
    "sink.accepts_replay",
    "sink.admits_backfill",
    "checkpoint.absent",
    "checkpoint.at_target",
    "checkpoint.fenced",
    # A running query purges what is older than its last hundred batches.
    "target.offsets",
    "target.state",
    "target.source_log",
    "target.source_rows",
    "target.sink_log",
    "verdict.resume",
    "verdict.replay",
    "verdict.backfill",
    "verdict.reset",
)

ENTRIES = (
    Probe(
        "job.stopped",
        says="Nothing runs this query: the controller says so, and the checkpoint has stopped moving.",
        unknown_when="the controller cannot be reached, or the job is not under its control",
    ),
    Probe(
        "job.running",
        says="The controller says that the job runs.",
        unknown_when="the controller cannot be reached",
    ),
    Probe(
        "batch.committed",
        # A source with nothing new gives no batch to commit; to wait for one would be to wait for ever.
        says="Every planned batch is committed, the one in flight first, and one was since the start, "
        "unless the source had nothing left to read.",
        unknown_when="the commit log cannot be read",
    ),
    Probe(
        "offsets.moving",
        says="The job still runs, and the committed offsets go on from where they should: they have advanced since the "
        "start, or already stand at the source's latest, with nothing left to read.",
        unknown_when="the source's latest offsets cannot be read, and none were committed since the start",
    ),
    Probe(
        "rows.exact",
        says="Every source row up to the last committed offset is in the output exactly once.",
        unknown_when="the output has no key that identifies a row, or the source no longer has the rows to compare",
        waivable="the rows cannot be compared, and the loss of proof is accepted",
        waived_unseen=True,
    ),
    Action(
        "job.stop",
        says="Stop the job, and wait until nothing of it is left.",
        makes="job.stopped",
        # What does not stop in time is killed in the middle of a batch, whose rows may be there already.
        may_undo=("job.running", "batch.committed", "offsets.moving", "rows.exact"),
        way_back="start it with `runbook resume`",
    ),
    Action(
        "job.resume",
        says="Start the job on the checkpoint it has.",
        requires=(
            "job.stopped",
            "checkpoint.readable",
            "checkpoint.consistent",
            "checkpoint.exclusive",
            "checkpoint.unfenced",
            "source.has_next_offsets",
            "code.same_sources",
            "code.same_operators",
            "code.same_confs",
            "in_flight.clean",
            # The batch in flight is written once more, and a consumer may have its rows already.
            "consumers.safe",
        ),
        makes="job.running",
        may_undo=_RAN,
        owes=_PROOF_OF_EFFECT,
        way_back="stop it; what it committed stays committed",
    ),
    Action(
        "job.start_fresh",
        says="Lift the fence and start the job with an empty output and no checkpoint.",
        requires=("job.stopped", "checkpoint.fenced", "sink.empty", "checkpoint.absent", "offsets.earliest"),
        makes="job.running",
        may_undo=_RAN,
        owes=_PROOF_OF_EFFECT,
        way_back="stop it, then `runbook undo RUN`, until its first good commit",
    ),
    Action(
        "job.start_replayed",
        says="Lift the fence and start the job from the end of the batch it was taken back to.",
        requires=(
            "job.stopped",
            "checkpoint.fenced",
            "checkpoint.at_target",
            "sink.at_target",
            "sink.accepts_replay",
            "target.source_rows",
            # A replay often follows a change of code, and what an old checkpoint cannot take it cannot take either.
            "code.same_sources",
            "code.same_operators",
            "code.same_confs",
        ),
        makes="job.running",
        may_undo=_RAN,
        owes=_PROOF_OF_EFFECT,
        takes=("target",),
        way_back="stop it, then `runbook undo RUN`, until its first good commit",
    ),
    Action(
        "job.start_beside",
        says="Start the job on the new output and the new checkpoint.",
        requires=("job.stopped", "registry.switched", "beside.exact"),
        makes="job.running",
        may_undo=_RAN,
        owes=_PROOF_OF_EFFECT,
        way_back="stop it, then `runbook undo RUN`: the registry goes back to the old output, which is still there",
    ),
)
