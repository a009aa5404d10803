"""Expected rows against found rows, by key: which are missing, doubled or foreign, with examples.

    Comparison(key=("partition", "offset"), kinds={…}, found=files, ranges=(Range({"partition": 0}, 0, 200),))

The comparison is data, so that it can be done here with Arrow or by Spark in a process of its own, with one answer:
`{expected, found, repeated, missing: {rows, examples}, doubled: {rows, keys, examples}, foreign: {rows, examples}}`.
A key that the input has twice is expected twice.

Keys that end in an integer are kept as runs (5 to 204), not row by row: offsets come in long runs, and fifty million of
them are a few thousand numbers. Other keys are grouped by a hash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from wizard.datafiles import LOOSE, DataFile, OtherRows, Runs, Shape, arrow, arrow_type, batches, shape
from wizard.errors import RunbookError

EXAMPLES = 5
_MANY_GROUPS = 2_000  # more groups than this in one batch: a run each would gain nothing
_LARGEST = (1 << 63) - 1  # a run that ends with it has no integer after it

Group = tuple[Any, ...]
Key = dict[str, Any]


@dataclass(frozen=True)
class Range:
    """Integers `start` to `end − 1` of one group: the offsets of a partition."""

    group: dict[str, Any]
    start: int
    end: int


@dataclass(frozen=True)
class Counts:
    """The sum of `column` in the output, for each `by`, is the number of different `of` in the input rows of `where`."""

    column: str
    of: str
    by: tuple[str, ...] = ()
    where: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """`key` has its integer column last where it has one. `inside`: rows beyond what is expected are no matter."""

    key: tuple[str, ...]
    kinds: dict[str, str]
    found: tuple[DataFile, ...]
    ranges: tuple[Range, ...] = ()
    files: tuple[DataFile, ...] = ()
    counts: Counts | None = None
    inside: bool = False
    rows: int = 0  # to be read, both sides together
    bytes: int = 0

    @property
    def by_runs(self) -> bool:
        return self.counts is None and self.kinds[self.key[-1]] == "int"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, raw: Mapping[str, Any]) -> Comparison:
        counts = raw["counts"]
        return cls(
            key=tuple(raw["key"]),
            kinds=dict(raw["kinds"]),
            found=tuple(DataFile(**file) for file in raw["found"]),
            ranges=tuple(Range(**each) for each in raw["ranges"]),
            files=tuple(DataFile(**file) for file in raw["files"]),
            counts=Counts(**(counts | {"by": tuple(counts["by"])})) if counts else None,
            inside=raw["inside"],
            rows=raw["rows"],
            bytes=raw["bytes"],
        )


def plan_keys(
    key: Sequence[str],
    found: Sequence[DataFile],
    *,
    ranges: Sequence[Range] = (),
    files: Sequence[DataFile] = (),
    inside: bool = False,
) -> Comparison:
    """Reads the files' footers; RunbookError where the two sides cannot be compared."""
    shapes = [shape(file, key) for file in (*found, *files)]
    strict = {column: {s.kinds[column] for s in shapes} - {LOOSE} for column in key}
    for each in ranges:
        for column in key:
            strict[column].add("int" if column not in each.group or isinstance(each.group[column], int) else "text")
    kinds = {column: _one_kind(column, kinds) for column, kinds in strict.items()}
    integers = [column for column in key if kinds[column] == "int"]
    last = "offset" if "offset" in integers else integers[-1] if integers else key[-1]
    ordered = (*(column for column in key if column != last), last)
    return Comparison(ordered, kinds, tuple(found), tuple(ranges), tuple(files), None, inside, *_volume(shapes))


def plan_counts(key: Sequence[str], counts: Counts, found: Sequence[DataFile], files: Sequence[DataFile]) -> Comparison:
    outside = [shape(file, (*key, *counts.by, counts.column)) for file in found]
    inputs = [shape(file, (counts.of, *counts.by, *counts.where)) for file in files]
    kinds: dict[str, str] = {}
    for column in (*key, *counts.by, counts.of, *counts.where):
        seen = {s.kinds[column] for s in (*outside, *inputs) if column in s.kinds} - {LOOSE}
        kinds[column] = _one_kind(column, seen)
    if odd := {s.kinds[counts.column] for s in outside} - {"int", LOOSE}:
        raise RunbookError(f"{counts.column} of the output is {odd.pop()}, not a number; correct sink.counts")
    return Comparison(
        tuple(key), kinds | {counts.column: "int"}, tuple(found), (), tuple(files), counts, False,
        *_volume([*outside, *inputs]),
    )  # fmt: skip


def _one_kind(column: str, kinds: set[str]) -> str:
    if len(kinds) > 1:
        raise RunbookError(f"{column} is {' here and '.join(sorted(kinds))} there, so it cannot be compared")
    return next(iter(kinds), "text")


def _volume(shapes: Sequence[Shape]) -> tuple[int, int]:
    return sum(each.rows for each in shapes), sum(each.bytes for each in shapes)


def compare(comparison: Comparison) -> dict[str, Any]:
    answer = compare_runs(comparison) if comparison.by_runs else None
    return compare_hashed(comparison) if answer is None else answer


def extent(comparison: Comparison) -> dict[Group, tuple[int, int]]:
    """The smallest and largest integer of each group that the output holds."""
    runs = _runs(comparison, comparison.found)
    if runs is None:
        raise RunbookError(
            f"the output has more than {_MANY_GROUPS} groups of {', '.join(comparison.key[:-1])}, or the {comparison.key[-1]} "
            f"{_LARGEST}"
        )
    pc = arrow().compute
    return {
        group: (min(pc.min(s).as_py() for s, _ in kept), max(pc.max(e).as_py() for _, e in kept))
        for group, kept in runs[0].items()
    }


# Runs: a side is a few numbers for each stretch of integers.


def compare_runs(comparison: Comparison) -> dict[str, Any] | None:
    """None where runs cannot hold what is there."""
    pa = arrow()
    found = _runs(comparison, comparison.found)
    wanted = _runs(comparison, comparison.files)
    if found is None or wanted is None:
        return None
    for each in comparison.ranges:
        if each.start < each.end:
            group = tuple(each.group[column] for column in comparison.key[:-1])
            wanted[0][group].append((pa.array([each.start]), pa.array([each.end - 1])))
    answer = _Answer(comparison.inside)
    *groups, last = comparison.key
    for group in sorted({*found[0], *wanted[0], *found[1], *wanted[1]}, key=_order):
        name = dict(zip(groups, group, strict=True))
        nulls = [[None], [1], [wanted[1].get(group, 0)], [found[1].get(group, 0)]]
        answer.add(name, last, pa.table(nulls, ["at", "length", "want", "have"]))
        answer.add(name, last, _segments(wanted[0].get(group, []), found[0].get(group, [])))
    return answer_of(comparison.key, **answer.totals, tally=answer.tally)


def _runs(comparison: Comparison, files: Iterable[DataFile]) -> tuple[Runs, dict[Group, int]] | None:
    """The runs, and how many rows have null instead of an integer; None where there are too many groups, or runs cannot
    hold what is there."""
    pc = arrow().compute
    *groups, last = comparison.key
    runs: Runs = defaultdict(list)
    nulls: dict[Group, int] = defaultdict(int)
    for file in files:
        if isinstance(file, OtherRows):
            more, none = file.runs(groups, last)
            if len(more) > _MANY_GROUPS:
                return None
            for group in {*more, *none}:
                runs[group] += more.get(group, [])
                if any(pc.max(ends).as_py() == _LARGEST for _, ends in more.get(group, [])):
                    return None
                nulls[group] += none.get(group, 0)
            continue
        for batch in batches(file, {column: comparison.kinds[column] for column in comparison.key}):
            split = _by_group(batch, groups)
            if split is None:
                return None
            for group, part in split:
                values = part.column(last)
                if values.null_count:
                    nulls[group] += values.null_count
                    values = values.drop_null()
                if len(values) and pc.max(values).as_py() == _LARGEST:
                    return None
                if len(values):
                    runs[group].append(_run_ends(pc, values))
    return runs, nulls


def _by_group(batch: Any, groups: Sequence[str]) -> Iterator[tuple[Group, Any]] | None:
    pa = arrow()
    pc = pa.compute
    if not groups or not len(batch):
        return iter([((), batch)] if len(batch) else [])
    different = pa.Table.from_batches([batch.select(groups)]).group_by(groups, use_threads=False).aggregate([])
    if different.num_rows > _MANY_GROUPS:
        return None
    keys = [tuple(row[column] for column in groups) for row in different.to_pylist()]
    if len(keys) == 1:
        return iter([(keys[0], batch)])

    def parts() -> Iterator[tuple[Group, Any]]:
        for key in keys:
            mask = None
            for column, value in zip(groups, key, strict=True):
                values = batch.column(column)
                here = pc.is_null(values) if value is None else pc.fill_null(pc.equal(values, value), False)
                mask = here if mask is None else pc.and_(mask, here)
            yield key, batch.filter(mask)

    return parts()


def _run_ends(pc: Any, values: Any) -> tuple[Any, Any]:
    """The first and the last integer of each run of consecutive ones."""
    steps = pc.pairwise_diff(values)
    if (pc.min(steps).as_py() or 0) < 0:
        values = values.take(pc.array_sort_indices(values))
        steps = pc.pairwise_diff(values)
    begins = pc.fill_null(pc.not_equal(steps, 1), True)  # the first value has no step
    pa = arrow()
    ends = pa.concat_arrays([begins.slice(1), pa.array([True])])
    return values.filter(begins), values.filter(ends)


def _segments(wanted: Sequence[tuple[Any, Any]], found: Sequence[tuple[Any, Any]]) -> Any:
    """A table of stretches: first integer, length, times wanted and times found, in order."""
    pa = arrow()
    pc = pa.compute
    ats, wants, haves = [pa.array([], pa.int64())], [pa.array([], pa.int64())], [pa.array([], pa.int64())]
    for side, (want, have) in ((wanted, (1, 0)), (found, (0, 1))):
        for starts, ends in side:
            for at, sign in ((starts, 1), (pc.add(ends, 1), -1)):
                ats.append(at)
                wants.append(pa.repeat(pa.scalar(want * sign, pa.int64()), len(at)))
                haves.append(pa.repeat(pa.scalar(have * sign, pa.int64()), len(at)))
    events = pa.table([pa.concat_arrays(ats), pa.concat_arrays(wants), pa.concat_arrays(haves)], ["at", "want", "have"])
    events = events.sort_by("at")
    at, want, have = (column.combine_chunks() for column in events.columns)
    # Between one event and the next the sums of all before stand.
    count = max(len(at) - 1, 0)
    table = pa.table(
        [
            at.slice(0, count),
            pc.subtract(at.slice(1), at.slice(0, count)),
            pc.cumulative_sum(want).slice(0, count),
            pc.cumulative_sum(have).slice(0, count),
        ],
        ["at", "length", "want", "have"],
    )
    return table.filter(pc.greater(table["length"], 0))


class _Answer:
    """Adds up the stretches. Groups and integers come in order, so the first examples are the smallest keys."""

    def __init__(self, inside: bool) -> None:
        self.inside = inside
        self.totals = {"expected": 0, "found": 0, "repeated": 0}
        self.rows: dict[str, int] = defaultdict(int)
        self.keys: dict[str, int] = defaultdict(int)
        self.examples: dict[str, list[Key]] = defaultdict(list)

    def add(self, name: Key, last: str, table: Any) -> None:
        pc = arrow().compute
        if self.inside:
            table = table.filter(pc.greater(table["want"], 0))
        length, want, have = table["length"], table["want"], table["have"]
        self.totals["expected"] += _sum(pc.multiply(length, want))
        self.totals["found"] += _sum(pc.multiply(length, have))
        self.totals["repeated"] += _sum(pc.multiply(length, pc.max_element_wise(pc.subtract(want, 1), 0)))
        for what, mask in _differences(want, have).items():
            part = table.filter(mask)
            off = pc.abs(pc.subtract(part["want"], part["have"]))
            self.rows[what] += _sum(pc.multiply(part["length"], off))
            self.keys[what] += _sum(part["length"])
            for stretch in part.slice(0, EXAMPLES).to_pylist():
                room = EXAMPLES - len(self.examples[what])
                at = stretch["at"]
                values = [None] if at is None else range(at, at + min(stretch["length"], room))
                self.examples[what] += [name | {last: value} for value in values[:room]]

    def tally(self, what: str) -> tuple[int, int, list[Key]]:
        return self.rows[what], self.keys[what], self.examples[what]


def _differences(want: Any, have: Any) -> dict[str, Any]:
    pc = arrow().compute
    more, some = pc.greater(have, want), pc.greater(want, 0)
    return {"missing": pc.greater(want, have), "doubled": pc.and_(more, some), "foreign": pc.and_not(more, some)}


def _sum(values: Any) -> int:
    return int(arrow().compute.sum(values).as_py() or 0)


# Hashing: one table of both sides, one group a key.
def compare_hashed(comparison: Comparison) -> dict[str, Any]:
    """Every key in memory, or for counts every different one."""
    if comparison.counts is not None:
        return _counted(comparison, comparison.counts)
    pa = arrow()
    pc = pa.compute
    key = list(comparison.key)
    sides = [_side(comparison, comparison.files, 1, 0), _side(comparison, comparison.found, 0, 1)]
    sides += [_range_rows(comparison, each) for each in comparison.ranges]
    grouped = pa.concat_tables(sides).group_by(key).aggregate([("_want", "sum"), ("_have", "sum")])
    if comparison.inside:
        grouped = grouped.filter(pc.greater(grouped["_want_sum"], 0))
    want, have = grouped["_want_sum"], grouped["_have_sum"]
    repeated = _sum(pc.max_element_wise(pc.subtract(want, 1), 0))
    return answer_of(key, _sum(want), _sum(have), repeated, _differing(grouped, key))


Tally = Callable[[str], tuple[int, int, list[Key]]]


def answer_of(key: Sequence[str], expected: int, found: int, repeated: int, tally: Tally) -> dict[str, Any]:
    """`tally` gives rows, keys and examples of `missing`, `doubled` or `foreign`."""
    answer: dict[str, Any] = {"expected": expected, "found": found, "repeated": repeated}
    for what in ("missing", "doubled", "foreign"):
        rows, keys, examples = tally(what)
        answer[what] = {"rows": rows, "examples": [_plain({c: e[c] for c in key}) for e in examples]}
        if what == "doubled":
            answer[what]["keys"] = keys
    return answer


def _differing(grouped: Any, key: list[str]) -> Tally:
    pc = arrow().compute
    masks = _differences(grouped["_want_sum"], grouped["_have_sum"])

    def tally(what: str) -> tuple[int, int, list[Key]]:
        part = grouped.filter(masks[what])
        rows = _sum(pc.abs(pc.subtract(part["_want_sum"], part["_have_sum"])))
        order = [(column, "ascending", "at_start") for column in key]
        first = part.take(pc.sort_indices(part, order).slice(0, EXAMPLES)) if part.num_rows else part
        return rows, part.num_rows, first.select(key).to_pylist()

    return tally


def _side(comparison: Comparison, files: Iterable[DataFile], want: int, have: int) -> Any:
    pa = arrow()
    kinds = {column: comparison.kinds[column] for column in comparison.key}
    schema = pa.schema([(column, arrow_type(kind)) for column, kind in kinds.items()])
    table = pa.Table.from_batches([batch for file in files for batch in batches(file, kinds)], schema)
    return _marked(table, want, have)


def _range_rows(comparison: Comparison, each: Range) -> Any:
    pa = arrow()
    rows = max(each.end - each.start, 0)
    columns = {
        column: pa.repeat(pa.scalar(each.group[column], arrow_type(comparison.kinds[column])), rows)
        if column in each.group
        else pa.array(range(each.start, each.end), pa.int64())
        for column in comparison.key
    }
    return _marked(pa.table(columns), 1, 0)


def _marked(table: Any, want: int, have: int) -> Any:
    pa = arrow()
    marks = [pa.repeat(pa.scalar(mark, pa.int64()), table.num_rows) for mark in (want, have)]
    return table.append_column("_want", marks[0]).append_column("_have", marks[1])


# Counts.
def _counted(comparison: Comparison, counts: Counts) -> dict[str, Any]:
    pa = arrow()
    pc = pa.compute
    by = list(counts.by)
    kinds = comparison.kinds
    wanted = _table(comparison.files, {c: kinds[c] for c in dict.fromkeys((*by, counts.of, *counts.where))})
    for column, value in counts.where.items():
        same = pc.equal(wanted[column], pa.scalar(value).cast(arrow_type(kinds[column])))
        wanted = wanted.filter(pc.fill_null(same, False))
    wanted = wanted.filter(pc.is_valid(wanted[counts.of]))
    different = wanted.group_by([*by, counts.of]).aggregate([])
    want = different.group_by(by).aggregate([([], "count_all")]).rename_columns([*by, "want"])
    found = _table(comparison.found, {c: kinds[c] for c in dict.fromkeys((*comparison.key, *by, counts.column))})
    have = found.group_by(by).aggregate([(counts.column, "sum")]).rename_columns([*by, "have"])
    twice = found.group_by(list(comparison.key)).aggregate([([], "count_all")])
    twice = twice.filter(pc.greater(twice["count_all"], 1))
    return counted_answer(
        comparison,
        [(tuple(row[c] for c in by), row["want"], 0) for row in want.to_pylist()]
        + [(tuple(row[c] for c in by), 0, row["have"] or 0) for row in have.to_pylist()],
        [({c: row[c] for c in comparison.key}, row["count_all"]) for row in twice.to_pylist()],
    )


def counted_answer(
    comparison: Comparison, sums: Iterable[tuple[Group, int, int]], twice: Sequence[tuple[Key, int]]
) -> dict[str, Any]:
    """From sums by group and the keys that are there more than once: few enough rows for Python."""
    assert comparison.counts is not None
    totals: dict[Group, list[int]] = defaultdict(lambda: [0, 0])
    for group, want, have in sums:
        totals[group][0] += want
        totals[group][1] += have
    answer: dict[str, Any] = {
        "expected": sum(want for want, _ in totals.values()),
        "found": sum(have for _, have in totals.values()),
        "repeated": 0,
    }
    ordered = sorted(totals.items(), key=lambda item: _order(item[0]))
    for what, sign in (("missing", 1), ("foreign", -1)):
        off = [
            (dict(zip(comparison.counts.by, group, strict=True)), want, have)
            for group, (want, have) in ordered
            if (want - have) * sign > 0
        ]
        examples = [_plain(group) | {"expected": want, "found": have} for group, want, have in off[:EXAMPLES]]
        answer[what] = {"rows": sum(abs(want - have) for _, want, have in off), "examples": examples}
    doubled = sorted(twice, key=lambda each: _order(each[0].values()))
    examples = [_plain(key) for key, _ in doubled[:EXAMPLES]]
    surplus = sum(times - 1 for _, times in doubled)
    answer["doubled"] = {"rows": surplus, "examples": examples, "keys": len(doubled)}
    return answer


def _table(files: Iterable[DataFile], kinds: dict[str, str]) -> Any:
    pa = arrow()
    schema = pa.schema([(column, arrow_type(kind)) for column, kind in kinds.items()])
    return pa.Table.from_batches([batch for file in files for batch in batches(file, kinds)], schema)


def _order(values: Iterable[Any]) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in values]


def _plain(key: Key) -> Key:
    """JSON has neither times nor dates."""
    plain = (bool, int, str, type(None))
    return {column: value if isinstance(value, plain) else value.isoformat() for column, value in key.items()}
