"""How far back the stream can go: `paths.replay.earliest_batch`, worked out by hand from what each copy still holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import at_home, look
from restart_cases import CHANGELOG, FORMAT2, ROCKSDB, ROWS, WINDOWS, Damage, all_of, empty, last_sst, lose, write
from test_findings import edit

SINK_LOG = "../sink/_spark_metadata"
UNION = "spark-4.2-union"


def many(pattern: str, *numbers: int) -> Damage:
    return lose(*(pattern.format(number) for number in numbers))


def unread(batch: int) -> Damage:
    """The batch as it is planned before its second source has anything."""

    def damage(checkpoint: Path) -> None:
        lines = (checkpoint / f"offsets/{batch}").read_text().split("\n")
        write(f"offsets/{batch}", "\n".join([*lines[:-1], "-"]).encode())(checkpoint)

    return damage


@pytest.mark.parametrize(
    ("fixture", "damage", "earliest", "why"),
    [
        (ROWS, lambda _: None, 0, "everything is still there"),
        # Spark needs offsets/N-1 as well, so the oldest file itself is no target.
        (ROWS, many("offsets/{}", 0, 1, 2, 3, 4), 6, "offsets/4 is not there"),
        (ROWS, lose("offsets/7"), 9, "offsets/7 is not there"),
        # Batches 1 and 2 need the damaged file; batch 0 needs neither it nor what comes after.
        (ROWS, write("offsets/1", b"garbage"), 0, "everything is still there"),
        (ROWS, empty("commits"), None, "commits/13 is not there"),
        (ROWS, many("commits/{}", 0, 1, 2), 3, "commits/2 is not there"),
        # What Spark itself leaves: the compacted file stands for all before it.
        (ROWS, many("sources/0/{}", *range(9)), 9, "sources/0/0 is not there"),
        (ROWS, many(f"{SINK_LOG}/{{}}", *range(9)), 9, "_spark_metadata/0 is not there"),
        (ROWS, lose("../input/f12.json"), 12, "input of a later batch is gone"),
        (ROWS, lose("../input/f13.json"), 13, "input of a later batch is gone"),
        # At batches 0 to 2 nothing of the second source had been read yet.
        (UNION, all_of(*map(unread, range(3)), lose("../input/refunds/f0.json")), 3, "input of a later batch is gone"),
        (ROWS, lose("offsets"), None, "no batch is planned"),
        # minBatchesToRetain=3 left offsets 15 to 18, and state 16 to 19 in both partitions.
        (WINDOWS, lambda _: None, 16, "offsets/14 is not there"),
        (WINDOWS, lose("state/0/1/19.delta"), 16, "offsets/14 is not there"),
        (WINDOWS, lose("state/0/1/16.snapshot", "state/0/1/16.delta"), None, "state version 19 is not whole"),
        (ROCKSDB, lose("state/0/1/17.zip"), 17, "state version 17 is not whole"),
        (CHANGELOG, lose("state/0/0/15.zip"), 17, "state version 17 is not whole"),
        # Older zips name some of the same table files.
        (ROCKSDB, last_sst, None, "state version 19 is not whole"),
        (CHANGELOG, last_sst, None, "state version 19 is not whole"),
        (FORMAT2, last_sst, None, "state version 19 is not whole"),
        (FORMAT2, write("commits/18", b'v1\n{"nextBatchWatermarkMs":0}'), 16, "offsets/14 is not there"),
        ("spark-4.2-join", lose("state/0/1/left-keyToNumValues"), None, "state version 5 is not whole"),
        ("spark-3.5-window-hdfs", lose("state/0/1"), None, "operator 0 has 1 of its 2 partitions"),
        (
            WINDOWS,
            all_of(
                *(
                    edit(f"offsets/{batch}", 'shuffle.partitions":"2"', 'shuffle.partitions":"5"')
                    for batch in (15, 16, 17)
                )
            ),
            18,
            "repartitioned after batch 17",
        ),
        ("spark-4.2-async-progress", lambda _: None, None, "async progress tracking"),
        ("spark-4.2-continuous", lambda _: None, None, "a continuous query has no batches"),
        ("spark-4.2-stateless-killed", lambda _: None, 0, "everything is still there"),
        ("spark-4.2-stateless-killed", all_of(lose("commits/0", "commits/1")), None, "commits/2 is not there"),
    ],
)
def test_the_oldest_batch_a_replay_can_go_back_to(
    fixture: str, damage: Damage, earliest: int | None, why: str, tmp_path: Path
) -> None:
    root = at_home(fixture, tmp_path)
    damage(root / "checkpoint")
    seen = look(root)
    assert seen.paths["replay"]["earliest_batch"] == earliest
    assert why in seen.reach.why
    assert (seen.paths["replay"]["verdict"] == "blocked") == (earliest is None)


def test_a_repartition_in_the_middle_of_a_long_log_is_not_gone_across(tmp_path: Path) -> None:
    """Batches 3 to 35 are known by name alone."""
    root = at_home(ROWS, tmp_path)
    checkpoint = root / "checkpoint"
    for batch in range(14, 60):
        old, new = ('partitions":"2"', 'partitions":"2"' if batch < 20 else 'partitions":"4"')
        (checkpoint / f"offsets/{batch}").write_text((checkpoint / "offsets/13").read_text().replace(old, new))
        (checkpoint / f"commits/{batch}").write_text((checkpoint / "commits/13").read_text())
    seen = look(root, sink=False)
    assert seen.paths["replay"]["earliest_batch"] == 36
    assert "repartitioned after batch 35" in seen.reach.why
