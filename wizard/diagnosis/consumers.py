"""The jobs that read an output: whether what each has read of it is still there, for it and for a new reader.

Rows that are written anew come in other files, or in other commits. A consumer that has read the old ones takes them a
second time; one that stands on commits which are gone fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from wizard.checkpoint.offsets import log_offset
from wizard.checkpoint.reader import Checkpoint, read_checkpoint
from wizard.diagnosis.findings import Finding, finding
from wizard.errors import RunbookError
from wizard.jobs.paths import canonical, is_glob, is_inside
from wizard.sources.files import look_at_inputs
from wizard.sources.interface import TableSource
from wizard.sources.open import open_source
from wizard.sources.rows import input_paths, plain, visible
from wizard.store import as_stored, open_store
from wizard.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wizard.jobs.model import Job


class Read(NamedTuple):
    """`there` is None where it cannot be told."""

    there: bool | None
    says: str


def consumer_findings(jobs: Iterable[Job]) -> Iterator[Finding]:
    for job in jobs:
        read = what_it_read(job)
        if read.there is False:
            yield finding("CONSUMER_AHEAD", f"{job.name} has read rows that this output no longer shows", read.says)


def what_it_read(job: Job) -> Read:
    """Whether everything a job has read is still there to be read."""
    try:
        return _read(job)
    except RunbookError as error:
        return Read(None, f"{job.name}: {error}")


def _read(job: Job) -> Read:
    ck = read_checkpoint(open_store(job.checkpoint))
    if ck.unlisted:
        return Read(None, f"{job.name}: {', '.join(ck.unlisted)} could not be listed")
    if ck.planned is None:
        return Read(True, f"{job.name}: has no offsets; it reads from the beginning")
    for source in ck.sources:
        if source.kind == "file" and source.id in ck.source_logs:
            read = _files_read(job, ck, source.id, log_offset(source.offset))
        elif source.kind == "delta" and len(ck.sources) == len(job.sources):
            read = _table_read(job, ck, source.id)
        else:
            read = Read(None, f"{job.name}: source {source.id} is of kind {source.kind}, which cannot be compared")
        if not read.there:
            return read
    return Read(True, f"{job.name}: everything it has read is still there")


def _files_read(job: Job, ck: Checkpoint, source_id: str, up_to: int | None) -> Read:
    store, log = open_store(ck.url), ck.source_logs[source_id]
    up_to = -1 if up_to is None else up_to
    if gone := look_at_inputs(store, log).missing_between(-1, up_to):
        return Read(False, f"{job.name}: has read {plural(len(gone), 'file')} no longer there, e.g. {gone[0]}")
    paths = [each.path for each in job.sources if each.path and not is_glob(each.path)]
    read = input_paths(store, log, up_to=up_to)
    places = [canonical(path) for path in paths]
    elsewhere = [path for path in read if places and not any(is_inside(canonical(as_stored(path)), p) for p in places)]
    if elsewhere:
        # Switched to another output, it would read all of it on top of what it has.
        return Read(
            False, f"{job.name}: has read {plural(len(elsewhere), 'file')} outside {places[0]}, e.g. {elsewhere[0]}"
        )
    for path, place in zip(paths, places, strict=True):
        listed = visible(open_store(path))
        below = [each for each in read if is_inside(canonical(as_stored(each)), place)]
        # The batch that wrote them is run again, into other files.
        if listed is not None and (unlisted := [each for each in below if plain(each) not in listed]):
            files = plural(len(unlisted), "file")
            return Read(False, f"{job.name}: has read {files} that the log of {path} does not list, e.g. {unlisted[0]}")
    return Read(True, "")


def _table_read(job: Job, ck: Checkpoint, source_id: str) -> Read:
    """A stream on a table goes on from its last commit; what it reads there must only add."""
    entry = ck.offsets.get(ck.planned or 0 if ck.committed is None else ck.committed)
    at = next((each for each in getattr(entry, "sources", ()) if each.id == source_id), None)
    opened = open_source(job.sources[[each.id for each in ck.sources].index(source_id)])
    if at is None or not isinstance(opened, TableSource):
        return Read(None, f"{job.name}: how far it has read source {source_id} is not in the checkpoint")
    can, why = opened.still_readable(at.offset)
    return Read(can, f"{job.name}: {why}")
