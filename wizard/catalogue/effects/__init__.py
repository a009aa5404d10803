"""The few kinds of change there are. Each is data first: shown, journalled, done, done again after a kill, taken back."""

from __future__ import annotations

from typing import Any

from wizard.catalogue.effects.base import Effect, Irreversible
from wizard.catalogue.effects.build import Build
from wizard.catalogue.effects.control import Start, Stop
from wizard.catalogue.effects.delta import DeltaEmpty, DeltaRestore
from wizard.catalogue.effects.files import Keep, MakeDirectory, Move, Write
from wizard.catalogue.effects.program import Program
from wizard.catalogue.effects.publish import DeltaAppend, PublishFiles
from wizard.catalogue.effects.record import Record
from wizard.catalogue.effects.sql import RowsAside, TableEmpty

KINDS: dict[str, type[Effect]] = {
    each.kind: each
    for each in (
        Keep,
        MakeDirectory,
        Move,
        Write,
        Stop,
        Start,
        DeltaEmpty,
        DeltaRestore,
        Program,
        Record,
        PublishFiles,
        DeltaAppend,
        Build,
        TableEmpty,
        RowsAside,
    )
}

__all__ = [
    "KINDS",
    "Build",
    "DeltaAppend",
    "DeltaEmpty",
    "DeltaRestore",
    "Effect",
    "Irreversible",
    "Keep",
    "MakeDirectory",
    "Move",
    "Program",
    "PublishFiles",
    "Record",
    "RowsAside",
    "Start",
    "Stop",
    "TableEmpty",
    "Write",
    "load",
]


def load(told: dict[str, Any]) -> Effect:
    """An effect from the journal."""
    said = dict(told)
    return KINDS[said.pop("kind")].from_dict(said)
