"""The embedded log keeps Kafka's promises about offsets, also after a process was killed in the middle of an append."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wizard.errors import BadInput
from wizard.sources.embedded_log import CorruptLog, EmbeddedLog, OffsetOutOfRange, Record


def some(count: int, start: int = 0) -> list[Record]:
    return [Record(1000 * n, f"k{n}".encode(), f"value {n}".encode()) for n in range(start, start + count)]


def values(log: EmbeddedLog, partition: int = 0) -> list[bytes]:
    return [r.value for r in log.read(partition, log.earliest()[partition], log.latest()[partition])]


@pytest.fixture
def log(tmp_path: Path) -> EmbeddedLog:
    return EmbeddedLog.create(tmp_path, "t", partitions=2, segment_bytes=200)


def test_offsets_count_from_zero_in_each_partition(log: EmbeddedLog) -> None:
    assert log.append(0, some(3)) == 0
    assert log.append(0, some(2)) == 3
    assert log.append(1, some(1)) == 0
    assert (log.earliest(), log.latest()) == ({0: 0, 1: 0}, {0: 5, 1: 1})


def test_a_record_comes_back_as_it_was_written(log: EmbeddedLog) -> None:
    written = [Record(5, None, b""), Record(-1, b"", b"\x00\xff\n"), Record(2**60, b"k", b"x" * 1000)]
    log.append(1, written)
    read = list(log.read(1, 0, 3))
    assert [(r.timestamp_ms, r.key, r.value) for r in read] == [(r.timestamp_ms, r.key, r.value) for r in written]
    assert [r.offset for r in read] == [0, 1, 2]


def test_a_range_is_read_across_segments(log: EmbeddedLog) -> None:
    log.append(0, some(40))
    assert len(list((log.path / "0").glob("*.log"))) > 3
    assert [r.offset for r in log.read(0, 7, 33)] == list(range(7, 33))


def test_retention_drops_whole_segments_and_moves_the_earliest_offset(log: EmbeddedLog) -> None:
    log.append(0, some(40))
    earliest = log.drop_before(0, 20)
    assert 0 < earliest <= 20
    assert (log.earliest()[0], log.latest()[0]) == (earliest, 40)
    with pytest.raises(OffsetOutOfRange, match=rf"partition 0: offsets 0 to 39 .* holds {earliest} to 39"):
        list(log.read(0, 0, 40))


def test_a_log_that_retention_emptied_goes_on_at_the_next_offset(log: EmbeddedLog) -> None:
    log.append(0, some(10))
    assert log.drop_before(0, 10) == 10
    assert (log.earliest()[0], log.latest()[0]) == (10, 10)
    assert log.append(0, some(1)) == 10


def test_reading_past_the_end_is_refused_not_shortened(log: EmbeddedLog) -> None:
    log.append(0, some(3))
    with pytest.raises(OffsetOutOfRange, match="offsets 3 to 4"):
        list(log.read(0, 1, 5))


def test_an_offset_is_found_by_time(log: EmbeddedLog) -> None:
    log.append(0, some(10))
    assert log.offsets_for_time(4500) == {0: 5, 1: None}


@given(cut=st.integers(min_value=0, max_value=200), junk=st.binary(max_size=30))
def test_a_torn_tail_is_ignored_by_readers_and_cut_by_the_next_append(
    tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes
) -> None:
    log = EmbeddedLog.create(tmp_path_factory.mktemp("log"), "t", segment_bytes=10_000)
    log.append(0, some(5))
    segment = next((log.path / "0").glob("*.log"))
    whole = segment.read_bytes()
    segment.write_bytes(whole[: max(0, len(whole) - cut)] + (junk if cut else b""))
    kept = log.latest()[0]
    assert values(log) == [r.value for r in some(kept)]
    assert log.append(0, some(2, start=kept)) == kept
    assert values(log) == [r.value for r in some(kept + 2)]


def test_damage_before_the_tail_is_told_apart_from_a_torn_append(log: EmbeddedLog) -> None:
    log.append(0, some(40))
    first = sorted((log.path / "0").glob("*.log"))[0]
    first.write_bytes(first.read_bytes()[:-3])
    with pytest.raises(CorruptLog, match=r"00\.log: byte \d+: no valid record"):
        list(log.read(0, 0, 40))


def test_a_topic_created_again_has_another_id(tmp_path: Path) -> None:
    first = EmbeddedLog.create(tmp_path, "t").id
    with pytest.raises(BadInput, match="exists already"):
        EmbeddedLog.create(tmp_path, "t")
    (tmp_path / "t" / "topic.json").unlink()
    assert EmbeddedLog.create(tmp_path, "t").id != first


def test_a_topic_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no topic 'nope' here"):
        EmbeddedLog(tmp_path, "nope")


APPENDER = """
import sys
from wizard.sources.embedded_log import EmbeddedLog, Record
log = EmbeddedLog(sys.argv[1], "t")
n = 0
while True:
    first = log.append(0, [Record(i, None, b"%d" % i) for i in range(n, n + 50)])
    n = first + 50
    print(n, flush=True)
"""


def test_what_append_returned_for_survives_kill_9_and_offsets_have_no_hole(tmp_path: Path) -> None:
    log = EmbeddedLog.create(tmp_path, "t", segment_bytes=500)
    process = subprocess.Popen([sys.executable, "-c", APPENDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    durable = [int(process.stdout.readline()) for _ in range(20)][-1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    end = log.latest()[0]
    assert end >= durable
    assert values(log) == [b"%d" % n for n in range(end)]
    assert log.append(0, [Record(0, None, b"next")]) == end
