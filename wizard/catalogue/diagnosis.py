"""What triage reads: the evidence, and the verdict on each path."""

from __future__ import annotations

from wizard.catalogue.declare import Path, Probe

_PATHS = {
    "resume": "start again from the same checkpoint",
    "replay": "take checkpoint and output back to the end of a batch, then run on",
    "backfill": "fill a bounded hole beside the live stream",
    "reset": "empty the output, delete the checkpoint, start from the earliest offsets",
}

ENTRIES = (
    Probe(
        "evidence.complete",
        says="Checkpoint, source, output and controller were all reached, and what they say was read.",
        unknown_when="one of them could not be reached",
    ),
    *(
        Probe(
            f"verdict.{name}",
            says=f"The diagnosis calls it safe to {says}.",
            unknown_when="the diagnosis calls it risky, or could not tell; the reasons are shown",
            waivable="the reasons were read, and the path's own checks are trusted to stop what is not safe",
            waived_unseen=True,  # risky is not blocked
        )
        for name, says in _PATHS.items()
    ),
    *(
        Path(name, says=f"To {says}.", requires=("evidence.complete", f"verdict.{name}"))
        for name, says in _PATHS.items()
    ),
)
