"""Damage done to recorded checkpoints, and what Spark does with each: the tables of CHECKPOINTS.md, §2 and §6g.

The outcomes were taken from those tables, not from the code; the ones marked `proved` are run on real Spark again by
test_restart_on_spark.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from recorded import at_home, remove

ROWS = "spark-4.2-stateless-file"  # batches 0 to 13; the source log compacted at 9
WINDOWS = "spark-4.2-window-hdfs"  # batches 15 to 18, state version 19
ROCKSDB = "spark-4.2-window-rocksdb"
CHANGELOG = "spark-4.2-window-changelog"
FORMAT2 = "spark-4.2-window-format2"

Damage = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """`error` is a part of what Spark raises; for a refusal, `batch` is the one it tries first, where it gets so far."""

    name: str
    fixture: str
    damage: Damage
    action: str
    batch: int | None
    error: str | None = None
    proved: bool = True
    spark: str | None = None

    def __str__(self) -> str:
        return self.name


def lose(*paths: str) -> Damage:
    return lambda checkpoint: remove(checkpoint, *paths)


def write(path: str, data: bytes) -> Damage:
    """As a disk that failed would leave it: the checksum goes with the file, or Hadoop would notice first."""

    def damage(checkpoint: Path) -> None:
        target = checkpoint / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
        (target.parent / f".{target.name}.crc").unlink(missing_ok=True)

    return damage


def cut(path: str, size: int) -> Damage:
    return lambda checkpoint: write(path, (checkpoint / path).read_bytes()[:size])(checkpoint)


def touch(*paths: str) -> Damage:
    """As a copy that kept no times."""

    def damage(checkpoint: Path) -> None:
        for path in paths:
            (checkpoint / path).touch()

    return damage


def all_of(*damages: Damage) -> Damage:
    def damage(checkpoint: Path) -> None:
        for one in damages:
            one(checkpoint)

    return damage


def empty(*directories: str) -> Damage:
    def damage(checkpoint: Path) -> None:
        for directory in directories:
            shutil.rmtree(checkpoint / directory)
            (checkpoint / directory).mkdir()

    return damage


def second_source(checkpoint: Path) -> None:
    text = (checkpoint / "offsets/13").read_bytes()
    write("offsets/13", text + b"\n" + text.splitlines()[-1])(checkpoint)


def partitions(batch: int, count: int) -> Damage:
    def damage(checkpoint: Path) -> None:
        text = (checkpoint / f"offsets/{batch}").read_text()
        new = text.replace('shuffle.partitions":"2"', f'shuffle.partitions":"{count}"')
        write(f"offsets/{batch}", new.encode())(checkpoint)

    return damage


def last_sst(checkpoint: Path) -> None:
    """Every table file of one partition: whichever the newest zip names is among them."""
    shutil.rmtree(checkpoint / "state/0/0/SSTs")


def latest_state(checkpoint: Path, partition: int, *kinds: str) -> None:
    for kind in kinds:
        path = f"state/0/{partition}/19.{kind}"
        if (checkpoint / path).exists():
            remove(checkpoint, path)


CASES = [
    Case("C = M goes on with M + 1", ROWS, lambda _: None, "next", 14),
    Case("C = M - 1 runs M again", ROWS, lose("commits/13"), "rerun", 13),
    Case("C < M - 1 runs only M again", ROWS, lose("commits/13", "commits/12", "commits/11"), "rerun", 13),
    Case("no commits runs only M again", ROWS, empty("commits"), "rerun", 13),
    Case("C > M runs M, then fails", ROWS, lose("offsets/13"), "refused", 12, "CONCURRENT_STREAM_LOG_UPDATE"),
    # The source log stays: what it has seen comes back as one batch, and the sink's log drops that by its number.
    Case("taken back without the sink", ROWS, lose("offsets/13", "offsets/12", "commits/13", "commits/12"), "next", 12),
    Case("input files touched", ROWS, touch("../input/f0.json", "../input/f3.json"), "next", 14),
    Case("commits and no offsets", ROWS, empty("offsets"), "refused", None, "assertion failed"),
    Case("offsets/M-1 missing", ROWS, lose("offsets/12"), "refused", None, "batch 12 doesn't exist"),
    Case(
        "older holes and garbage are not looked at",
        ROWS,
        all_of(lose("offsets/5", "commits/4"), write("offsets/3", b"garbage"), write("commits/5", b"")),
        "next",
        14,
    ),
    Case("only metadata kept", ROWS, lose("offsets", "commits", "sources"), "fresh", 0),
    Case(
        "a temporary file in empty offsets",
        ROWS,
        all_of(empty("offsets", "commits"), write("offsets/.0.7c1e.tmp", b"")),
        "refused",
        None,
        "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",
    ),
    Case(
        "state left beside empty logs",
        WINDOWS,
        empty("offsets", "commits"),
        "refused",
        None,
        "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",
    ),
    Case(
        "metadata missing", ROWS, lose("metadata"), "refused", None, "STREAMING_CHECKPOINT_MISSING_METADATA_FILE"
    ),
    Case("metadata cut", ROWS, cut("metadata", 9), "refused", None, "Unexpected end-of-input"),
    Case("metadata empty", ROWS, write("metadata", b""), "refused", None, "No content to map due to end-of-input"),
    Case("metadata without id", ROWS, write("metadata", b"{}"), "refused", None, "No usable value for id"),
    Case("offsets cut inside JSON", ROWS, cut("offsets/13", 40), "refused", None, "Unexpected end-of-input"),
    Case("offsets of no bytes", ROWS, write("offsets/13", b""), "refused", None, "Incomplete log file"),
    Case("offsets of a version line only", ROWS, write("offsets/13", b"v1"), "refused", None, "next on empty iterator"),
    Case(
        "offsets of a newer Spark",
        ROWS,
        write("offsets/13", b"v9\n{}\n{}"),
        "refused",
        None,
        "INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION",
    ),
    Case("offsets without a version", ROWS, write("offsets/13", b"xyz\n{}"), "refused", None, "MALFORMED_LOG_FILE"),
    Case("commit of no bytes", ROWS, write("commits/13", b""), "refused", None, "Incomplete log file"),
    Case("two sources in the last offsets", ROWS, second_source, "refused", None, "There are [2] sources"),
    Case("source log ends too early", ROWS, lose("sources/0/13"), "refused", None, "batch 13 doesn't exist"),
    Case("hole in the source log", ROWS, lose("sources/0/11"), "refused", None, "sources/0/11 doesn't exist (latestId: 13"),
    Case(
        "orphan checksum of the next offsets",
        ROWS,
        write("offsets/.14.crc", b"crc\0"),
        "refused",
        14,
        "Multiple streaming queries are concurrently using",
    ),
    Case(
        "state delta missing",
        WINDOWS,
        lambda checkpoint: latest_state(checkpoint, 1, "delta", "snapshot"),
        "refused",
        19,
        "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS",
    ),
    Case(
        "state changelog missing",
        CHANGELOG,
        lambda checkpoint: latest_state(checkpoint, 0, "changelog", "zip"),
        "refused",
        19,
        "CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE",
    ),
    Case(
        "a state partition missing",
        WINDOWS,
        lose("state/0/1"),
        "refused",
        19,
        "CANNOT_LOAD_STATE_STORE",
    ),
    Case("a commit that names no state files", FORMAT2, write("commits/18", b'v1\n{"nextBatchWatermarkMs":0}'),
         "refused", 19, "CANNOT_LOAD_STATE_STORE"),
    Case("state files named by commits", FORMAT2, lambda _: None, "next", 19),
    Case("3.5: the last state partition missing", "spark-3.5-window-hdfs", lose("state/0/1"), "refused", 19,
         "CANNOT_LOAD_STATE_STORE", proved=False, spark="3.5"),
    Case("3.5: the first state partition missing", "spark-3.5-window-hdfs", lose("state/0/0"), "refused", 19,
         "CANNOT_LOAD_STATE_STORE", proved=False, spark="3.5"),
    Case("3.5: every state partition missing", "spark-3.5-window-hdfs", empty("state/0"), "refused", 19,
         "CANNOT_LOAD_STATE_STORE", proved=False, spark="3.5"),
    Case("a store of a join missing", "spark-4.2-join", lose("state/0/1/left-keyToNumValues"), "refused", 5,
         "CANNOT_READ_DELTA_FILE_NOT_EXISTS] state/0/1/left-keyToNumValues/5.delta", proved=False),
    Case("3.5: a store of a join missing everywhere", "spark-3.5-join",
         lose("state/0/0/right-keyToNumValues", "state/0/1/right-keyToNumValues"), "refused", 5,
         "CANNOT_READ_DELTA_FILE_NOT_EXISTS] state/0/0/right-keyToNumValues/5.delta", proved=False, spark="3.5"),
    Case("an operator missing", "spark-4.2-join", lambda checkpoint: (checkpoint / "state/0").rename(checkpoint / "state/1"),
         "refused", 5, "CANNOT_LOAD_STATE_STORE", proved=False),
    Case("table file missing", ROCKSDB, last_sst, "refused", 19, "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"),
    Case("more partitions pinned by hand than there are", WINDOWS, partitions(18, 5), "refused", 19, "CANNOT_LOAD_STATE_STORE"),
    Case("a repartition that was not finished", WINDOWS, all_of(partitions(18, 5), lose("commits/18")), "refused", 18,
         "STREAMING_UNFINISHED_REPARTITION_DETECTED"),
    Case("state whole", WINDOWS, lambda _: None, "next", 19),
    Case("nothing at all", ROWS, lose(""), "fresh", 0, proved=False),
    Case("3.5: metadata missing", "spark-3.5-stateless-file", lose("metadata"), "next", 14, proved=False, spark="3.5"),
    Case("3.5: half deleted", "spark-3.5-window-hdfs", empty("offsets", "commits"), "fresh", 0, proved=False, spark="3.5"),
    Case("half deleted, release not known", "spark-4.2-window-hdfs", empty("offsets", "commits"), "unknown", 0, proved=False),
    Case("async progress tracking", "spark-4.2-async-progress", lambda _: None, "next", 12, proved=False),
    Case("async progress tracking, killed before a commit", "spark-4.2-async-progress", lose("commits/11"), "rerun", 11,
         proved=False),
    Case("async progress tracking, commits ahead", "spark-4.2-async-progress", lose("offsets/11"), "refused", 8,
         "CONCURRENT_STREAM_LOG_UPDATE", proved=False),
    Case("continuous mode, no offsets of the last commit", "spark-4.2-continuous", lose("offsets/5"), "refused", None,
         "committed without end epoch offsets", proved=False),
    Case("continuous mode, an epoch not committed", "spark-4.2-continuous", lose("commits/5"), "next", 5, proved=False),
    Case("continuous mode", "spark-4.2-continuous", lambda _: None, "next", 6, proved=False),
    Case("killed in a batch", "spark-4.2-stateless-killed", lambda _: None, "rerun", 2),
]  # fmt: skip


def prepare(case: Case, to: Path) -> Path:
    """A damaged copy that Spark can start: the logs that name its files carry no checksum of the old text."""
    root = at_home(case.fixture, to)
    for log in (*root.glob("sink/_spark_metadata"), *root.glob("checkpoint/sources/*")):
        for checksum in log.glob(".*.crc"):
            checksum.unlink()
    case.damage(root / "checkpoint")
    return root
