"""Whether the source still has what is about to be read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from wizard.catalogue.live.binding import probe
from wizard.catalogue.live.rows import beyond, first_offsets, last_commit, output_of, smallest_and_largest
from wizard.catalogue.world import Seen, World, fails, holds, unknown
from wizard.checkpoint.offsets import OffsetEntry, SourceOffset, log_offset
from wizard.checkpoint.reader import Checkpoint, read_checkpoint
from wizard.diagnosis.held import made_anew, topic_ids
from wizard.errors import RunbookError
from wizard.jobs.model import Job, Source
from wizard.secrets import mask
from wizard.sources.interface import (
    Ends,
    FileSource,
    Offsets,
    OffsetSource,
    TableSource,
    as_offsets,
    lost,
)
from wizard.sources.open import open_source
from wizard.sources.rows import input_file, input_paths
from wizard.store import open_store
from wizard.text import plural, some

Found = tuple[list[str], list[str]]
"""What is lost, and what was looked at."""


@probe("source.has_next_offsets")
def has_next_offsets(world: World) -> Seen:
    return _told(lambda: _every_source(world.job, _next))


@probe("source.can_rebuild")
def can_rebuild(world: World) -> Seen:
    emptied = world.memory.get("held", {}).get(world.job.name)
    held = {(topic, partition): (first, last) for topic, partition, first, last in emptied or ()}
    return _told(lambda: _every_source(world.job, partial(_all, held=held if emptied is not None else None)))


@probe("source.has_range")
def has_range(world: World) -> Seen:
    return _told(lambda: _range(world))


def _told(look: Callable[[], Found]) -> Seen:
    try:
        missing, seen = look()
    except RunbookError as error:
        return unknown(str(error))
    return fails(*missing, *seen) if missing else holds(*seen)


Opened = OffsetSource | FileSource | TableSource
Look = Callable[[Job, Checkpoint, Opened, str], Found]


def _every_source(job: Job, look: Look) -> Found:
    checkpoint = read_checkpoint(open_store(job.checkpoint))
    missing: list[str] = []
    seen: list[str] = []
    for source, name in _named(job, checkpoint):
        lacking, looked_at = look(job, checkpoint, _opened(source), name)
        missing += lacking
        seen += looked_at
    return missing, seen


def _named(job: Job, checkpoint: Checkpoint) -> Iterator[tuple[Source, str]]:
    """The sources of the registry under the checkpoint's names for them: their order, or the names they were given."""
    names = [source.id for source in checkpoint.sources]
    if names and len(names) != len(job.sources):
        raise RunbookError(
            f"the registry names {plural(len(job.sources), 'source')} of {job.name}, the checkpoint {len(names)}"
        )
    yield from zip(job.sources, names or [str(number) for number in range(len(job.sources))], strict=True)


def _opened(source: Source) -> Opened:
    opened = open_source(source)
    if opened is None:
        raise RunbookError(f"a source of format {source.format} cannot be looked into yet")
    return opened


def _next(job: Job, checkpoint: Checkpoint, source: Opened, name: str) -> Found:
    """From the last commit on: what is planned beyond it is read again by the next start."""
    if isinstance(source, FileSource):
        return _next_files(checkpoint, source, name)
    if isinstance(source, TableSource):
        done = _at(last_commit(checkpoint), name)
        if done is None:
            return [], ["nothing has been read yet; a new stream begins with the whole table"]
        can, why = source.still_readable(done.offset)
        return ([], [why]) if can else ([why], [])
    ends = source.ends()
    start = _at(last_commit(checkpoint), name)
    begin = as_offsets(start.offset) if start else first_offsets(checkpoint, name)
    if begin is None:
        return [], [f"nothing has been read yet; the source begins at {_short(ends.earliest)}"]
    planned = _at(checkpoint.latest_offsets, name) if checkpoint.in_flight else None
    end = as_offsets(planned.offset) if planned else None
    missing = made_anew(source, ends, checkpoint, name) or lost(ends, begin, None)
    if end is not None and not missing:
        missing = lost(ends, begin, end)
    return missing, [f"next is {_short(begin)}; the source holds {_held(ends)}"]


def _next_files(checkpoint: Checkpoint, source: FileSource, name: str) -> Found:
    log = checkpoint.source_logs.get(name)
    source.seen()  # a directory that cannot be read has nothing to go on with
    if log is None:
        return [], ["nothing has been read yet, and the source's directory can be read"]
    done = _at(last_commit(checkpoint), name)
    after = (log_offset(done.offset) if done else None) if done and done.kind != "none" else -1
    if after is None:
        raise RunbookError(f"how far source {name} has been read is not in the checkpoint")
    waiting = input_paths(open_store(checkpoint.url), log, after=after)
    gone, _ = source.gone(waiting)
    missing = [f"{plural(len(gone), 'input file')} of the next batch are gone: {_files(gone)}"] if gone else []
    return missing, [f"{plural(len(waiting), 'input file')} planned beyond the last commit"]


def _all(
    job: Job,
    checkpoint: Checkpoint,
    source: Opened,
    name: str,
    held: dict[tuple[str | None, int], tuple[int, int]] | None = None,
) -> Found:
    """Everything the output holds, or held before this walk began to empty it."""
    if isinstance(source, FileSource):
        return _all_files(job, checkpoint, source, name, emptied=held is not None)
    if isinstance(source, TableSource):
        return _all_of_table(job, source)
    ends = source.ends()
    known = topic_ids(checkpoint, name)
    missing = made_anew(source, ends, checkpoint, name)
    seen = [f"the source holds {_held(ends)}"]
    if not known:
        seen.append("the checkpoint does not say which topic it began with; that it is still the same is not seen")
    held = smallest_and_largest(job) if held is None else held
    topics = list(ends.latest)
    for (topic, partition), (first, last) in sorted(held.items(), key=lambda item: (str(item[0][0]), item[0][1])):
        if topic is None and len(topics) > 1:
            raise RunbookError(f"{job.name} reads {len(topics)} topics and the key has no topic; add topic to sink.key")
        if topic is not None and topic not in topics:
            if len(job.sources) == 1:
                missing.append(f"the output holds rows of the topic {topic}, which is not read any more")
            continue
        there = topic or topics[0]
        missing += lost(ends, {there: {str(partition): first}}, {there: {str(partition): last + 1}})
        seen.append(f"the output holds {first}–{last} of {there} partition {partition}")
    if not held:
        seen.append("the output holds no rows")
    return missing, seen


def _all_of_table(job: Job, source: TableSource) -> Found:
    """By the rows themselves: what the table has lost since cannot be told from its versions."""
    rows, examples = beyond(job, source.files())
    lines = [f"{plural(rows, 'row')} of the output are not in the table that it reads, e.g. {examples}"] if rows else []
    return lines, ["the rows of the output were looked for in the table that it reads, as it is now"]


def _all_files(job: Job, checkpoint: Checkpoint, source: FileSource, name: str, *, emptied: bool) -> Found:
    log = checkpoint.source_logs.get(name)
    if log is None or log.names.latest is None:
        if checkpoint.planned is None:
            raise RunbookError("the checkpoint names no input file, so where the output's rows came from is not known")
        return [], ["no input file has been read"]
    read = input_paths(open_store(checkpoint.url), log)
    gone, hidden = source.gone(read)
    seen = f"{plural(len(read), 'input file')} read so far"
    missing = [
        f"{len(some_of)} of {plural(len(read), 'input file')} are {how}: {_files(some_of)}"
        for some_of, how in ((gone, "gone"), (hidden, "hidden from a new reader"))
        if some_of
    ]
    if missing and (emptied or _all_in_others(job, source)):
        # A batch upstream that was run again has its rows in files of other names.
        return [], [seen, *missing, "every row of the output was found in the files that are there now"]
    return missing, [seen]


def _all_in_others(job: Job, source: FileSource) -> bool:
    """Whether the files that are there now have all rows of the output; not where that cannot be told."""
    if len(job.sources) != 1:
        return False
    try:
        files = [input_file(job.source.path or "", path, job.source.format) for path in sorted(source.seen())]
        return bool(output_of(job).files) and beyond(job, files)[0] == 0
    except RunbookError:
        return False


def _range(world: World) -> Found:
    told = world.answers["range"]
    source = _opened(world.job.source)
    if isinstance(source, FileSource):
        if "files" not in told:
            raise RunbookError("the range names no files, and the source is one of files; give the range by batches")
        gone, hidden = source.gone([str(path) for path in told["files"]])
        lines = [f"{plural(len(gone), 'input file')} of the range are gone: {_files(gone)}"] if gone else []
        lines += [f"{plural(len(hidden), 'input file')} of the range are hidden: {_files(hidden)}"] if hidden else []
        return lines, [f"the range has {plural(len(told['files']), 'input file')}"]
    if isinstance(source, TableSource):
        raise RunbookError("a range of a Delta table cannot be looked for yet; replay or reset instead")
    start, end = as_offsets(told.get("start")), as_offsets(told.get("end"))
    if start is None or end is None:
        raise RunbookError("the range has no offsets to look for; give it by batches, offsets or time")
    ends = source.ends()
    checkpoint = read_checkpoint(open_store(world.job.checkpoint), recent=2)
    name = checkpoint.sources[0].id if checkpoint.sources else "0"
    missing = made_anew(source, ends, checkpoint, name) or lost(ends, start, end)
    return missing, [f"the range is {_short(start)} to {_short(end)}; the source holds {_held(ends)}"]


def _at(entry: OffsetEntry | None, name: str) -> SourceOffset | None:
    return next((source for source in entry.sources if source.id == name), None) if entry else None


def _short(offsets: Offsets) -> str:
    return "; ".join(
        f"{topic} " + ", ".join(f"{p}: {parts[p]}" for p in sorted(parts, key=int)) for topic, parts in offsets.items()
    )


def _held(ends: Ends) -> str:
    return "; ".join(
        f"{topic} " + ", ".join(f"{p}: {n}–{ends.latest[topic][p]}" for p, n in parts.items())
        for topic, parts in ends.earliest.items()
    )


def _files(paths: Sequence[str]) -> str:
    return some([mask(path) for path in paths], 3)
