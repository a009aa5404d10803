"""Every probe and action a runbook may name. To add one, add it to a family's file, or add a file and list it here."""

from __future__ import annotations

from wizard.catalogue import (
    backfill,
    beside,
    checkpoint,
    code,
    config,
    consumers,
    diagnosis,
    job,
    outcomes,
    sink,
    source,
    target,
)
from wizard.catalogue.declare import Action, Answer, Entry, Outcome, Path, Probe
from wizard.catalogue.registry import Catalogue, collect

FAMILIES = (diagnosis, job, checkpoint, source, sink, code, config, consumers, target, backfill, beside, outcomes)
CATALOGUE = collect(entry for family in FAMILIES for entry in family.ENTRIES)

__all__ = ["CATALOGUE", "FAMILIES", "Action", "Answer", "Catalogue", "Entry", "Outcome", "Path", "Probe", "collect"]
