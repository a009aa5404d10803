"""A bounded piece of a source: said by an operator as offsets, batches or times, kept as fixed offsets or files.

{"start": {"sensor-raw": {"0": 10}}, "end": {"sensor-raw": {"0": 21}}}     the end is one past the last, as Kafka has it
{"files": ["file:///lake/raw/part-0.parquet", …]}                         of a source of files
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from wizard.checkpoint.filelog import read_entries
from wizard.checkpoint.logfile import LOG_LIMIT, Unreadable, long_of
from wizard.checkpoint.offsets import OffsetEntry, log_offset, parse_offsets
from wizard.checkpoint.reader import Checkpoint, read_checkpoint
from wizard.errors import BadInput, RunbookError
from wizard.jobs.model import Job
from wizard.sources.interface import Offsets, OffsetSource, as_offsets
from wizard.sources.open import FILES, open_source
from wizard.sources.rows import input_paths
from wizard.store import open_store
from wizard.text import plural

Range = dict[str, Any]
_PART = re.compile(r"\s*(?:([A-Za-z0-9._-]+)/)?(\d{1,9})\s*:\s*(\d{1,18})\s*-\s*(\d{1,18})\s*")
_BATCHES = re.compile(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?")
_BETWEEN = re.compile(r"\s*(?:/|,|\s+to\s+|\s)\s*")
_HOW = "write PARTITION:FIRST-LAST, such as 0:10-20,1:5-9, both ends included"


def of_offsets(job: Job, text: str) -> Range:
    """`0:10-20,1:5-9`, `topic/0:10-20`, or `{"topic": {"0": [10, 20]}}`, both ends included."""
    _one_source(job)
    if job.source.format.lower() in FILES:
        raise BadInput(f"{job.name} reads files, which have no offsets; give batches or times")
    said = _from_json(text) if text.strip().startswith("{") else _from_text(job, text)
    start: Offsets = {}
    end: Offsets = {}
    for topic, partition, first, last in said:
        if last < first:
            raise BadInput(f"partition {partition}: the range goes back from {first} to {last}; {_HOW}")
        if partition in start.get(topic, {}):
            raise BadInput(f"partition {partition} of {topic} is named twice; {_HOW}")
        start.setdefault(topic, {})[partition] = first
        end.setdefault(topic, {})[partition] = last + 1
    if strangers := set(start) - set(topics(job)) if topics(job) else set():
        raise BadInput(f"{job.name} does not read the topic {min(strangers)}; it reads {', '.join(topics(job))}")
    return {"start": start, "end": end}


def of_batches(job: Job, text: str) -> Range:
    """`3-5`, both ends included, or `3`."""
    _one_source(job)
    match = _BATCHES.fullmatch(text)
    if match is None:
        raise BadInput(f"{text!r} is not a range of batches; write FIRST-LAST, such as 3-5, both ends included")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise BadInput(f"the batches go back from {first} to {last}; write the smaller number first")
    after, up_to = _position(job, first - 1), _position(job, last)
    if job.source.format.lower() in FILES:
        begin, until = -1 if after is None else log_offset(after), log_offset(up_to)
        if begin is None or until is None:
            raise BadInput(f"{job.checkpoint}: batch {last} does not say which files it read; give times instead")
        return _files(job, begin, until, f"batches {first}-{last}")
    start, end = as_offsets({} if after is None else after) or {}, as_offsets(up_to)
    if end is None:
        raise BadInput(f"{job.checkpoint}: the offsets of batch {last} are not those of a log; give times instead")
    # A partition that was added since began at 0.
    return _without_empty({t: {p: start.get(t, {}).get(p, 0) for p in parts} for t, parts in end.items()}, end)


def of_times(job: Job, text: str) -> Range:
    """Two times in ISO form, `2026-01-01T10:00Z 2026-01-01T11:00Z`: from the first on, up to and without the second."""
    _one_source(job)
    words = [word for word in _BETWEEN.split(text.strip()) if word]
    if len(words) != 2:
        raise BadInput(f"{text!r} is not two times; write START END, such as 2026-01-01T10:00Z 2026-01-01T11:00Z")
    begin, until = (_milliseconds(word) for word in words)
    if until <= begin:
        raise BadInput(f"the time {words[1]} is not after {words[0]}; write the earlier one first")
    kind = job.source.format.lower()
    if kind in FILES:
        return _files_between(job, begin, until, text)
    source = open_source(job.source)
    if not isinstance(source, OffsetSource):
        raise BadInput(f"{job.name}: a source of format {job.source.format} cannot be asked for times; give offsets")
    return _without_empty(source.at_time(begin), source.at_time(until))


def topics(job: Job) -> tuple[str, ...]:
    return tuple(name.strip() for name in job.source.options.get("subscribe", "").split(",") if name.strip())


def rows_in(wanted: Range) -> int | None:
    """How many offsets a range has; None where it is of files."""
    if "files" in wanted:
        return None
    return sum(int(n) - int(wanted["start"][t][p]) for t, parts in wanted["end"].items() for p, n in parts.items())


def in_words(wanted: Range) -> str:
    if "files" in wanted:
        return plural(len(wanted["files"]), "file")
    return ", ".join(
        f"{topic} partition {p}: {wanted['start'][topic][p]}–{n - 1}"
        for topic, parts in wanted["end"].items()
        for p, n in sorted(parts.items(), key=lambda item: int(item[0]))
    )


def committed(job: Job) -> tuple[Checkpoint, OffsetEntry | None]:
    """The live checkpoint, and the offsets of its newest committed batch; None where nothing is committed."""
    ck = read_checkpoint(open_store(job.checkpoint))
    return ck, None if ck.committed is None else _entry(job, ck.committed)


def files_up_to(job: Job, ck: Checkpoint, offset: Any) -> list[str]:
    """The input files of a file source up to a committed offset."""
    log = next(iter(ck.source_logs.values()), None)
    at = log_offset(offset)
    return [] if log is None or at is None else input_paths(open_store(job.checkpoint), log, up_to=at)


def _one_source(job: Job) -> None:
    if len(job.sources) != 1:
        raise BadInput(f"{job.name} reads {len(job.sources)} sources, and a range is of one; fill it by hand")


def _from_text(job: Job, text: str) -> list[tuple[str, str, int, int]]:
    said = []
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise BadInput(f"{part.strip()!r} is not a range of offsets; {_HOW}")
        topic = match[1] or (topics(job)[0] if len(topics(job)) == 1 else None)
        if topic is None:
            raise BadInput(f"{job.name} does not read one topic alone; write TOPIC/PARTITION:FIRST-LAST")
        said.append((topic, str(int(match[2])), int(match[3]), int(match[4])))
    return said


def _from_json(text: str) -> list[tuple[str, str, int, int]]:
    expected = 'write {"TOPIC": {"PARTITION": [FIRST, LAST]}}, such as {"sensor-raw": {"0": [10, 20]}}'
    said: list[tuple[str, str, int, int]] = []
    try:
        for topic, parts in json.loads(text).items():
            for partition, (first, last) in parts.items():
                if (begin := long_of(first)) is None or (until := long_of(last)) is None or begin < 0:
                    raise ValueError(partition)
                said.append((topic, str(int(partition)), begin, until))
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise BadInput(f"that is not a range of offsets; {expected}") from None
    if not said:
        raise BadInput(f"that range names no partition; {expected}")
    return said


def _position(job: Job, batch: int) -> Any:
    """Where the source stood when the batch was done; None before the first batch of a source that says nothing."""
    if batch < 0:
        logs = read_checkpoint(open_store(job.checkpoint)).source_logs
        return next((log.initial for log in logs.values()), None)
    return _entry(job, batch).sources[0].offset


def _entry(job: Job, batch: int) -> OffsetEntry:
    path = f"offsets/{batch}"
    entry = parse_offsets(batch, path, open_store(job.checkpoint).read(path, LOG_LIMIT))
    if isinstance(entry, Unreadable):
        raise BadInput(f"{job.checkpoint}: batch {batch} is not known ({entry}); give offsets or times instead")
    return entry


def _files(job: Job, after: int, up_to: int, what: str) -> Range:
    ck = read_checkpoint(open_store(job.checkpoint))
    log = next(iter(ck.source_logs.values()), None)
    found = input_paths(open_store(job.checkpoint), log, after=after, up_to=up_to) if log is not None else []
    if not found:
        raise BadInput(f"{what} of {job.name} read no file; choose others")
    return {"files": sorted(found)}


def _files_between(job: Job, begin: int, until: int, what: str) -> Range:
    """By the time of the files, which the source's log keeps."""
    store = open_store(job.checkpoint)
    log = next(iter(read_checkpoint(store).source_logs.values()), None)
    if log is None or log.names.latest is None:
        raise BadInput(f"{job.checkpoint}: the checkpoint does not know any input file; nothing can be filled")
    found: list[str] = []
    entries = read_entries(store, f"sources/{log.id}", log.names, log.names.files_up_to(log.names.latest))
    for each in _whole(entries.values()):
        at = long_of(each.get("timestamp"))
        if at is not None and begin <= at < until:
            found.append(str(each["path"]))
    if not found:
        raise BadInput(f"{job.name} read no file of the time {what}; choose another")
    return {"files": sorted(set(found))}


def _whole(read: Iterable[list[dict[str, Any]] | Unreadable]) -> Iterable[dict[str, Any]]:
    for entries in read:
        if isinstance(entries, Unreadable):
            raise RunbookError(str(entries))
        yield from entries


def _without_empty(start: Offsets, end: Offsets) -> Range:
    kept = {t: {p: n for p, n in parts.items() if n > start[t][p]} for t, parts in end.items()}
    kept = {t: parts for t, parts in kept.items() if parts}
    if not kept:
        raise BadInput("there is no row in that range; choose another")
    return {"start": {t: {p: start[t][p] for p in parts} for t, parts in kept.items()}, "end": kept}


def _milliseconds(word: str) -> int:
    try:
        at = datetime.fromisoformat(word)
    except ValueError:
        raise BadInput(f"{word!r} is not a time; write it as 2026-01-01T10:00Z") from None
    # Without a zone it is UTC, as all times the tool shows are.
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
