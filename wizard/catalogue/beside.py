"""A reset without an outage: a second output built beside the first, proved, and switched to."""

from __future__ import annotations

from wizard.catalogue.declare import Action, Probe

ENTRIES = (
    Probe(
        "beside.ready",
        says="A new output path and a new checkpoint path are set aside, empty, and inside nothing that is in use.",
        unknown_when="the storage cannot be listed",
    ),
    Probe(
        "beside.built",
        says="The new output has caught up with the source as it was when the build began.",
        unknown_when="the new checkpoint cannot be read",
    ),
    Probe(
        "beside.exact",
        says="Every source row up to the new checkpoint's last commit is in the new output exactly once.",
        unknown_when="the output has no key that identifies a row",
        waivable="the new output is switched to without a comparison row by row",
        waived_unseen=True,
    ),
    Probe(
        "old.retired",
        says="The old output and the old checkpoint are in quarantine, and nothing reads them.",
        unknown_when="the storage cannot be listed",
        waivable="the old output and checkpoint are kept for now, and somebody retires them later",
    ),
    Action(
        "beside.prepare",
        says="Set aside a new output path and a new checkpoint path.",
        makes="beside.ready",
        may_undo=("beside.built", "beside.exact"),
        way_back="remove the two empty directories",
    ),
    Action(
        "beside.build",
        says="Run the job's code from the earliest offsets into the new output until it has caught up, then stop it.",
        requires=("beside.ready", "source.can_rebuild"),
        makes="beside.built",
        may_undo=("beside.ready", "beside.exact"),
        way_back="stop the build and remove the new output; the live one has not been touched",
    ),
    Action(
        "old.retire",
        says="Move the old output and the old checkpoint to quarantine.",
        requires=("registry.switched", "job.running", "batch.committed", "rows.exact", "consumers.consistent"),
        makes="old.retired",
        destroys=True,
        way_back="`runbook undo RUN` moves them back",
    ),
)
