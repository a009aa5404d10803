"""A bounded hole filled beside the live stream."""

from __future__ import annotations

from wizard.catalogue.declare import Action, Answer, Probe

_ABOUT_RANGE = ("range.pinned", "range.unprocessed", "source.has_range", "backfill.written", "backfill.visible")

ENTRIES = (
    Answer(
        "range.by_batches",
        gives="range",
        says="The first and last batch of the hole, inclusive.",
        may_undo=_ABOUT_RANGE,
    ),
    Answer("range.by_time", gives="range", says="The start and end of the hole, in time.", may_undo=_ABOUT_RANGE),
    Answer("range.by_offsets", gives="range", says="The first and last source offsets.", may_undo=_ABOUT_RANGE),
    Probe(
        "range.pinned",
        says="Both ends of the range are fixed source offsets, taken down in the journal.",
        unknown_when="the journal cannot be read back",
        takes=("range",),
    ),
    Probe(
        "range.unprocessed",
        says="The range ends where the live stream has already passed, so that no row comes from both.",
        unknown_when="the live checkpoint's offsets cannot be compared with the range",
        takes=("range",),
    ),
    Probe(
        "backfill.apart",
        says="The backfill has its own checkpoint and application id, outside the live checkpoint and the output.",
        unknown_when="the place for it cannot be listed",
        takes=("range",),
    ),
    Probe(
        "backfill.repeatable",
        says="The output takes a row by its key, or a range only once: a second run of this backfill adds nothing.",
        unknown_when="the output has no key in the registry",
        takes=("range",),
    ),
    Probe(
        "sink.admits_backfill",
        says="The output takes a second writer, or its live writer is stopped.",
        unknown_when="it cannot be seen whether the live job writes",
    ),
    Probe(
        "live.recorded",
        says="The live checkpoint's fingerprint is in the journal, to be compared with afterwards.",
        unknown_when="the journal cannot be read back",
    ),
    Probe(
        "live.unchanged",
        says="The backfill has changed no byte of the live checkpoint; whatever is new, the live job wrote.",
        unknown_when="the live checkpoint cannot be read",
    ),
    Probe(
        "backfill.written",
        says="Every row of the range is in the output exactly once.",
        unknown_when="the source or the output cannot be read",
        takes=("range",),
    ),
    Probe(
        "backfill.visible",
        says="A reader of the output sees the rows of the range, the output's own log included.",
        unknown_when="the output cannot be read the way its readers do",
        takes=("range",),
    ),
    Action(
        "range.pin",
        says="Turn the range into fixed source offsets and write them down.",
        requires=("verdict.backfill",),
        makes="range.pinned",
        takes=("range",),
        may_undo=("backfill.written",),
        way_back="nothing to take back",
    ),
    Action(
        "live.record",
        says="Take the live checkpoint's fingerprint.",
        makes="live.recorded",
        way_back="nothing to take back",
    ),
    Action(
        "backfill.run",
        says="Read the pinned range and write it into the output, on a checkpoint of its own.",
        requires=(
            "range.pinned",
            "range.unprocessed",
            "source.has_range",
            "backfill.apart",
            "backfill.repeatable",
            "sink.admits_backfill",
            "live.recorded",
            # They may have read the rows before they were lost, and would read them again.
            "consumers.safe",
        ),
        makes="backfill.written",
        may_undo=(
            "rows.exact",
            "backfill.visible",
            "live.unchanged",
            "consumers.consistent",
            "consumers.safe",
            "target.sink_log",
        ),
        owes=("backfill.written", "backfill.visible", "live.unchanged", "rows.exact", "consumers.consistent"),
        takes=("range",),
        way_back="`runbook undo RUN` takes the rows of the range out again",
    ),
)
