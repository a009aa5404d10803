"""What may not change between two starts on one checkpoint, seen as far as it can be and asked where not."""

from __future__ import annotations

from wizard.catalogue.declare import Probe

_AUTHOR = "the new plan cannot be seen before the job starts; who changed the code knows"

ENTRIES = (
    Probe(
        "code.same_sources",
        says="Number, kind and order of the sources, topics and paths are those of the checkpoint.",
        unknown_when="the job's code cannot be observed from outside",
        attestable=_AUTHOR,
    ),
    Probe(
        "code.same_operators",
        says="Stateful operators, their keys and their state schema are those of the checkpoint.",
        unknown_when="the job's code cannot be observed from outside",
        attestable=_AUTHOR,
    ),
    Probe(
        "code.same_confs",
        says="The confs that the checkpoint pins (shuffle partitions, state store, …) are not asked to change.",
        unknown_when="the session's confs are not in the registry",
        attestable=_AUTHOR,
    ),
)
