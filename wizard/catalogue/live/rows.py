"""Whether every source row is in the output exactly once: the proof at the end of every walk. See docs/proof.md.

The commit is fixed first: what the checkpoint's last commit says was read is what the output must hold, as of the same
batch. A job that runs on while we look moves neither.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from wizard.catalogue.live import tables
from wizard.catalogue.live.aside import beside_of
from wizard.catalogue.live.binding import probe
from wizard.catalogue.world import Seen, World, fails, holds, unknown
from wizard.checkpoint.offsets import OffsetEntry, SourceOffset, log_offset
from wizard.checkpoint.reader import Checkpoint, read_checkpoint
from wizard.compare import Comparison, Counts, Range, compare_hashed, compare_runs, extent, plan_counts, plan_keys
from wizard.datafiles import DataFile
from wizard.diagnosis.held import made_anew
from wizard.errors import BadInput, RunbookError
from wizard.jobs.model import Job, Source
from wizard.secrets import mask
from wizard.sinks.jdbc import rows_of
from wizard.sinks.rows import NoLog, Output, listed_files, output_files
from wizard.sources.interface import Ends, FileSource, Offsets, OffsetSource, TableSource, as_offsets
from wizard.sources.open import open_source
from wizard.sources.rows import input_file, input_paths
from wizard.store import open_store
from wizard.text import is_are, plural, printable, some

ROWS_HERE = 5_000_000  # hashed in this process; above it, on Spark
ROWS_HERE_IN_RUNS = 100_000_000  # keys that end in an integer take little memory
BYTES_HERE = 2_000_000_000  # of the key columns, uncompressed
ABOVE_ROWS = "RUNBOOK_SPARK_ABOVE_ROWS"

_OFFSET_KEYS = ({"partition", "offset"}, {"topic", "partition", "offset"})
_SPARK_SECONDS = 6 * 3600

Say = Callable[[str], None]


@probe("rows.exact")
def rows_exact(world: World) -> Seen:
    return exact(world.job, world.say)


@probe("beside.exact")
def beside_exact(world: World) -> Seen:
    beside = beside_of(world)
    if beside is None:
        return unknown("no second output has been set aside in this walk")
    job = world.job
    return exact(replace(job, checkpoint=beside.checkpoint, sink=replace(job.sink, path=beside.sink)), world.say)


def exact(job: Job, say: Say = lambda line: None) -> Seen:
    """Every source row up to the last commit of the job's checkpoint is in its output once, and nothing else is."""
    try:
        seen = _at_last_commit(job, say)
        if not seen.holds and "batch" in seen.data and _committed(job) != seen.data["batch"]:
            # The job has gone on: what was not there as of that batch may have been taken back and written anew.
            seen = _at_last_commit(job, say)
        return seen
    except RunbookError as error:
        return unknown(str(error))


def in_range(job: Job, told: Mapping[str, Any], say: Say = lambda line: None) -> tuple[dict[str, Any], str]:
    """The rows of a range against the output as a reader sees it now, which is said in words; rows beyond it are no matter."""
    key, output = _key(job), output_of(job)
    if "files" in told:
        files = _input_files(job.source, [str(path) for path in told["files"]])
        return _answer(plan_keys(key, output.files, files=files, inside=True), say), output.as_of
    start, end = _offsets(told["start"], "the range"), _offsets(told["end"], "the range")
    if len(end) > 1 and "topic" not in {column.lower() for column in key}:
        raise RunbookError("the range is of several topics and the key does not name the topic; add topic to sink.key")
    ranges = _ranges(key, start, end)
    return _answer(plan_keys(key, output.files, ranges=ranges, inside=True), say), output.as_of


def smallest_and_largest(job: Job) -> dict[tuple[str | None, int], tuple[int, int]]:
    """(topic, partition) → the first and last offset that the output holds now; topic is None where it is no key."""
    key = _key(job)
    if {column.lower() for column in key} not in _OFFSET_KEYS:
        raise RunbookError(f"the key [{', '.join(key)}] of {job.name} does not say which offsets the output holds")
    try:
        output = output_of(job)
    except NoLog:
        output = listed_files(_place(job), job.sink.format.lower())  # none that is there can be missed
    if not output.files:
        return {}
    planned = plan_keys(key, output.files)
    if planned.kinds[planned.key[-1]] != "int":
        planned = replace(planned, kinds=planned.kinds | {"offset": "int", "partition": "int"})
    named = [column.lower() for column in planned.key[:-1]]
    found = {}
    for group, ends in extent(planned).items():
        values = dict(zip(named, group, strict=True))
        if values["partition"] is not None:
            found[values.get("topic"), int(values["partition"])] = ends
    return found


def beyond(job: Job, files: list[DataFile]) -> tuple[int, str]:
    """How many rows of the output are in none of these input files, and a few of them."""
    output = output_of(job).files
    if not output:
        return 0, ""
    told = job.sink.counts
    if told is not None:
        counts = Counts(told.column, told.of, told.by, dict(told.where))
        planned = plan_counts(job.sink.key, counts, output, [file for file in files if _may_match(file, counts)])
    elif job.output_mode != "append":
        raise RunbookError(f"{job.name} writes in {job.output_mode} mode: an output row is not a source row")
    else:
        planned = plan_keys(_key(job), output, files=files)
    answer = _answer(planned, lambda line: None)
    found = [answer["foreign"], *([answer["doubled"]] if told is not None else [])]
    return sum(each["rows"] for each in found), next(
        (examples_of(each["examples"]) for each in found if each["rows"]), ""
    )


def output_of(job: Job, *, up_to: int | None = None, query_id: str | None = None) -> Output:
    """What the output held when batch `up_to` was done; all of it where None."""
    if tables.is_table(job):
        overwrites = job.output_mode != "append"
        rows, as_of = rows_of(tables.table_of(job), up_to=up_to, query_id=query_id, whole=overwrites)
        return Output((rows,) if rows is not None else (), as_of)
    return output_files(_place(job), job.sink.format.lower(), up_to=up_to, query_id=query_id)


def last_commit(checkpoint: Checkpoint) -> OffsetEntry | None:
    """What the last committed batch had read; None where nothing is committed. RunbookError where it cannot be told."""
    if checkpoint.committed is None:
        return None
    entry = checkpoint.offsets.get(checkpoint.committed)
    if isinstance(entry, OffsetEntry):
        return entry
    why = str(entry) if entry is not None else f"offsets/{checkpoint.committed} is not there"
    raise RunbookError(f"batch {checkpoint.committed} is committed, and what it read is not known: {why}")


def first_offsets(checkpoint: Checkpoint, source_id: str) -> Offsets | None:
    """Where the stream began, as the checkpoint has pinned it (sources/<n>/0)."""
    log = checkpoint.source_logs.get(source_id)
    return as_offsets(log.initial) if log else None


def _at_last_commit(job: Job, say: Say) -> Seen:
    key = _key(job)
    _place(job)
    store = open_store(job.checkpoint)
    checkpoint = read_checkpoint(store, recent=3)
    if not checkpoint.exists:
        return unknown(f"there is no checkpoint at {mask(job.checkpoint)}, so what should be there is not known")
    entry = last_commit(checkpoint)
    if entry is None:
        return unknown("no batch is committed yet, so there is nothing to compare")
    if len(entry.sources) != len(job.sources):
        return unknown(f"the registry names {plural(len(job.sources), 'source')}, the checkpoint {len(entry.sources)}")
    output = output_of(job, up_to=entry.batch, query_id=checkpoint.query_id)
    if tables.is_table(job) and (stray := tables.beyond_plan(job, checkpoint.query_id)):
        return replace(fails(stray), data={"batch": entry.batch, "output": output.as_of})
    opened = [open_source(source) for source in job.sources]
    if job.sink.counts is not None:
        seen = _counts(job, checkpoint, entry, output, say)
    elif why := _not_one_to_one(job, checkpoint):
        seen = unknown(why)
    elif all(isinstance(each, OffsetSource) for each in opened):
        seen = _by_offsets(job, key, checkpoint, entry, output, say)
    elif all(isinstance(each, FileSource | TableSource) for each in opened):
        files = _read_files(job, checkpoint, entry)
        planned = plan_keys(key, output.files, files=files)
        seen = _judged(_answer(planned, say), [f"of {plural(len(files), 'input file')} up to batch {entry.batch}"])
    else:
        kinds = sorted({source.format for source in job.sources})
        seen = unknown(f"a source of format {' and '.join(kinds)} cannot be compared with an output row by row")
    return replace(seen, data=seen.data | {"batch": entry.batch, "output": output.as_of})


def _by_offsets(
    job: Job, key: Sequence[str], checkpoint: Checkpoint, entry: OffsetEntry, output: Output, say: Say
) -> Seen:
    ranges: list[Range] = []
    notes: list[str] = []
    doubts: list[str] = []
    dense = True
    topics = 0
    for source, at in zip(job.sources, entry.sources, strict=True):
        opened = open_source(source)
        assert isinstance(opened, OffsetSource)
        dense = dense and opened.dense
        end = _offsets(at.offset, f"offsets/{entry.batch}")
        topics += len(end)
        ends = opened.ends()
        doubts += _other_source(opened, ends, checkpoint, at, end)
        start = first_offsets(checkpoint, at.id)
        if start is None:
            start = ends.earliest
            notes.append("where the stream began is not in the checkpoint; taken to be where the source begins now")
            if any(n > 0 for parts in start.values() for n in parts.values()):
                doubts.append("rows the source dropped before cannot be accounted for")
        ranges += _ranges(key, start, end)
        notes += _dropped(start, end, ends)
    if topics > 1 and "topic" not in {column.lower() for column in key}:
        return unknown(f"{job.name} reads {topics} topics and the key has no topic; add topic to sink.key")
    planned = plan_keys(key, output.files, ranges=ranges)
    answer = _answer(planned, say)
    if answer["missing"]["rows"] and not dense:
        doubts.append("not every offset of this source is a record (transactions, compaction), so gaps may be none")
    return _judged(answer, [f"up to batch {entry.batch}", *notes], _span(ranges), doubts)


def _other_source(
    source: OffsetSource, ends: Ends, checkpoint: Checkpoint, at: SourceOffset, end: Offsets
) -> list[str]:
    """Why the source is not the one that was read: its offsets would say nothing about the output."""
    lines = made_anew(source, ends, checkpoint, at.id)
    for topic, parts in end.items():
        for name, n in parts.items():
            last = ends.latest.get(topic, {}).get(name)
            if last is None:
                lines.append(f"{topic} partition {name} is not in the source any more")
            elif n > last and not lines:
                lines.append(f"{topic} partition {name} was read up to {n} and the source ends at {last}")
    return lines


def _dropped(start: Offsets, end: Offsets, ends: Ends) -> list[str]:
    lines = []
    for topic, parts in start.items():
        for name, n in parts.items():
            first = min(ends.earliest.get(topic, {}).get(name, n), end.get(topic, {}).get(name, n))
            if first > n:
                lines.append(
                    f"the source no longer has {n}–{first - 1} of {topic} partition {name}: "
                    "compared by their offsets alone, their values cannot be looked up"
                )
    return lines


def _ranges(key: Sequence[str], start: Offsets, end: Offsets) -> list[Range]:
    names = {column.lower(): column for column in key}
    if set(names) not in _OFFSET_KEYS:
        raise RunbookError(
            f"the key [{', '.join(key)}] cannot be derived from offsets; with [topic, partition, offset] it could"
        )
    found = []
    for topic, parts in sorted(end.items()):
        for name in sorted(parts, key=int):
            group: dict[str, Any] = {names["topic"]: topic} if "topic" in names else {}
            # A partition that was added since begins at 0.
            begin = start.get(topic, {}).get(name, 0)
            found.append(Range(group | {names["partition"]: int(name)}, begin, parts[name]))
    return found


def _counts(job: Job, checkpoint: Checkpoint, entry: OffsetEntry, output: Output, say: Say) -> Seen:
    told = job.sink.counts
    assert told is not None
    counts = Counts(told.column, told.of, told.by, dict(told.where))
    if not all(isinstance(open_source(source), FileSource | TableSource) for source in job.sources):
        return unknown("counts are compared with input files, and this job does not read files")
    files = [file for file in _read_files(job, checkpoint, entry) if _may_match(file, counts)]
    answer = _answer(plan_counts(job.sink.key, counts, output.files, files), say)
    # An append-mode aggregate gives a window out when the watermark has passed it.
    open_windows = job.output_mode == "append" and answer["missing"]["rows"] > 0
    doubts = ["windows that are still open are not in the output yet"] if open_windows else []
    return _judged(answer, [f"up to batch {entry.batch}"], counts=counts, doubts=doubts)


def _may_match(file: DataFile, counts: Counts) -> bool:
    return all(
        file.values.get(column, str(value)) in (str(value), str(value).lower())
        for column, value in counts.where.items()
    )


def _not_one_to_one(job: Job, checkpoint: Checkpoint) -> str | None:
    declare = "declare sink.counts, and sums are compared instead (docs/proof.md)"
    if job.output_mode != "append":
        return f"{job.name} writes in {job.output_mode} mode: an output row is not a source row; {declare}"
    if names := sorted({operator.name or "stateful operator" for operator in checkpoint.operators}):
        return f"{job.name} has state ({', '.join(names)}): an output row is not a source row; {declare}"
    return None


def _read_files(job: Job, checkpoint: Checkpoint, entry: OffsetEntry) -> list[DataFile]:
    """The input files up to the commit, in every one of the job's sources; RunbookError where one is gone."""
    store = open_store(checkpoint.url)
    files: list[DataFile] = []
    for source, at in zip(job.sources, entry.sources, strict=True):
        position = log_offset(at.offset)
        if at.kind == "none":
            continue
        opened = open_source(source)
        if isinstance(opened, TableSource):
            files += opened.read_files(at.offset)
            continue
        if position is None or at.id not in checkpoint.source_logs:
            raise RunbookError(f"which files source {at.id} has read is not in the checkpoint")
        files += _input_files(source, input_paths(store, checkpoint.source_logs[at.id], up_to=position))
    return files


def _input_files(source: Source, paths: Sequence[str]) -> list[DataFile]:
    opened = open_source(source)
    if not isinstance(opened, FileSource) or source.path is None:
        raise RunbookError(f"a source of format {source.format} has no files")
    gone, _ = opened.gone(paths)
    if gone:
        raise RunbookError(
            f"{len(gone)} of {plural(len(paths), 'input file')} {is_are(len(gone))} gone, "
            f"so what they held is not known: {some([mask(path) for path in gone], 3)}"
        )
    return [input_file(source.path, path, source.format.lower()) for path in paths]


def _answer(planned: Comparison, say: Say) -> dict[str, Any]:
    """Here or on Spark, by size."""
    told = os.environ.get(ABOVE_ROWS)
    if told is not None and not told.isdigit():
        raise BadInput(f"${ABOVE_ROWS} is {told!r}; it must be a whole number of rows")
    in_runs, hashed = (ROWS_HERE_IN_RUNS, ROWS_HERE) if told is None else (int(told), int(told))
    only_here = not {file.format for file in (*planned.found, *planned.files)} <= {"parquet", "orc"}
    # There may be too many groups for runs, and to hash as many rows is another matter.
    if planned.by_runs and (only_here or planned.rows <= in_runs) and (answer := compare_runs(planned)) is not None:
        return answer
    if only_here or (planned.rows <= hashed and planned.bytes <= BYTES_HERE):
        return compare_hashed(planned)
    say(f"comparing {planned.rows} rows on Spark")
    return on_spark(planned)


def on_spark(planned: Comparison) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "wizard.spark.verify"],
        input=json.dumps(planned.as_json()),
        capture_output=True,
        text=True,
        timeout=_SPARK_SECONDS,
        check=False,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    except (ValueError, IndexError):
        answer = {}
    if not answer:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
        raise RunbookError(f"{planned.rows} rows were to be compared on Spark, which failed: {mask(said[-1])[:300]}")
    return answer


def _judged(
    answer: dict[str, Any],
    notes: Sequence[str],
    span: str = "",
    doubts: Sequence[str] = (),
    counts: Counts | None = None,
) -> Seen:
    """What the numbers mean. A doubt never turns into a yes; a row that is there twice is wrong whatever else is so."""
    what = "source rows" if counts is None else f"different {counts.of} of the source"
    expected, missing = answer["expected"], answer["missing"]["rows"]
    doubled, foreign = answer["doubled"], answer["foreign"]["rows"]
    bad = missing or doubled["rows"] or foreign
    where = f" ({span})" if span else ""
    if counts is not None:
        first = f"the output counts {answer['found']} of {expected} {what}{where}"
    else:
        once = expected - missing - doubled["keys"]
        first = f"{max(once, 0)} of {expected} {what} are in the output exactly once{where}"
    lines = [first]
    verb = {"missing": "missing", "doubled": "there more than once", "foreign": "not from the source"}
    if counts is not None:
        verb = {"missing": "too few", "doubled": "surplus rows of a key", "foreign": "too many"}
    for kind, words in verb.items():
        if answer[kind]["rows"]:
            lines.append(f"{answer[kind]['rows']} {words}: {examples_of(answer[kind]['examples'])}")
    if answer["repeated"]:
        lines.append(f"the input itself holds {answer['repeated']} rows whose key came before; compared as such")
    lines += [*notes, *doubts]
    if doubts and not doubled["rows"]:
        return unknown(*lines, **answer)
    return (fails if bad else holds)(*lines, **answer)


def examples_of(keys: Sequence[dict[str, Any]]) -> str:
    return "; ".join(printable(", ".join(f"{column} {value}" for column, value in key.items())) for key in keys)


def _span(ranges: Sequence[Range]) -> str:
    """`partitions 0: 0–199, 1: 0–199`"""
    if not ranges:
        return ""
    shown = []
    for each in ranges[:8]:
        name = "/".join(str(value) for value in each.group.values())
        shown.append(f"{name}: {each.start}–{each.end - 1}" if each.end > each.start else f"{name}: none")
    more = f", … {len(ranges)} in all" if len(ranges) > 8 else ""
    return f"partition{'s' if len(ranges) > 1 else ''} {', '.join(shown)}{more}"


def _key(job: Job) -> tuple[str, ...]:
    if not job.sink.key:
        raise RunbookError(
            f"the sink of {job.name} has no key in the registry, so no row can be told from another; add key"
        )
    return job.sink.key


def _place(job: Job) -> str:
    if tables.is_table(job):
        return tables.table_of(job).shown
    if job.sink.path is None:
        raise RunbookError(f"the sink of {job.name} ({job.sink.format}) has no path, so its rows cannot be read here")
    return job.sink.path


def _offsets(value: Any, where: str) -> Offsets:
    offsets = as_offsets(value)
    if offsets is None:
        raise RunbookError(f"{where} holds no offsets of the form {{topic: {{partition: offset}}}}")
    return offsets


def _committed(job: Job) -> int | None:
    return read_checkpoint(open_store(job.checkpoint), recent=1).committed
