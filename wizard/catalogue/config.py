"""The job's own configuration: where it starts to read, and which paths it is registered with."""

from __future__ import annotations

from wizard.catalogue.declare import Action, Probe

# Seen at the old paths; what is looked at after a switch is another checkpoint and another output.
_AT_THE_OLD_PATHS = (
    "checkpoint.readable",
    "checkpoint.consistent",
    "checkpoint.exclusive",
    "checkpoint.unfenced",
    "checkpoint.fenced",
    "checkpoint.absent",
    "checkpoint.at_target",
    "source.has_next_offsets",
    "source.can_rebuild",
    "in_flight.clean",
    "sink.empty",
    "sink.at_target",
    "sink.accepts_replay",
    "target.offsets",
    "target.state",
    "target.source_log",
    "target.source_rows",
    "target.sink_log",
    "range.unprocessed",
    "code.same_sources",
    "code.same_operators",
    "code.same_confs",
    "verdict.resume",
    "verdict.replay",
    "verdict.backfill",
    "verdict.reset",
)

ENTRIES = (
    Probe(
        "offsets.earliest",
        says="The job's configuration starts it from the earliest offsets.",
        unknown_when="the registry does not say where the setting is",
        attestable="the setting may be in the code, where only its author can look",
    ),
    Probe(
        "registry.switched",
        says="Registry and job configuration name the new output and the new checkpoint.",
        unknown_when="the job's configuration cannot be read back",
    ),
    Action(
        "config.earliest",
        says="Set the job's starting offsets to the earliest.",
        # Spark ignores starting offsets while a checkpoint exists: set before the delete, it seems done and is not.
        requires=("job.stopped", "checkpoint.absent"),
        makes="offsets.earliest",
        way_back="`runbook undo RUN` restores the file byte for byte",
    ),
    Action(
        "registry.switch",
        says="Point the registry and the job's configuration at the new output and the new checkpoint.",
        requires=("job.stopped", "consumers.stopped", "beside.built", "beside.exact"),
        makes="registry.switched",
        may_undo=("consumers.consistent", "consumers.safe", "rows.exact", "old.retired", *_AT_THE_OLD_PATHS),
        owes=("consumers.consistent", "old.retired"),
        way_back="`runbook undo RUN` points them back; the old output has not been touched",
    ),
)
