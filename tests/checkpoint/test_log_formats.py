"""The text logs, format by format: what each version holds, and what is refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded import FIXTURES

from wizard.checkpoint.commits import CommitEntry, parse_commit
from wizard.checkpoint.filelog import read_entries, read_names
from wizard.checkpoint.logfile import Unreadable, batch_id
from wizard.checkpoint.offsets import OffsetEntry, SourceOffset, kind_of, log_offset, parse_offsets
from wizard.checkpoint.reader import read_checkpoint
from wizard.checkpoint.sourcelog import read_source_log
from wizard.store import Content, LocalStore

META = '{"batchWatermarkMs":5,"batchTimestampMs":1794981060173,"conf":{"spark.sql.shuffle.partitions":"2"}}'


def offsets(text: str) -> OffsetEntry | Unreadable:
    return parse_offsets(3, "offsets/3", Content(text.encode()))


def commit(text: str) -> CommitEntry | Unreadable:
    return parse_commit(3, "commits/3", Content(text.encode()))


def test_offsets_v1_has_a_line_for_each_source_in_plan_order() -> None:
    entry = offsets(f'v1\n{META}\n{{"logOffset":3}}\n-\n{{"events":{{"0":23,"1":45}}}}\n7')
    assert entry == OffsetEntry(
        3, 1, 5, 1794981060173, {"spark.sql.shuffle.partitions": "2"},
        (
            SourceOffset("0", "file", {"logOffset": 3}),
            SourceOffset("1", "none", None),
            SourceOffset("2", "kafka", {"events": {"0": 23, "1": 45}}),
            SourceOffset("3", "unknown", 7),
        ),
    )  # fmt: skip


def test_offsets_v2_names_its_sources_and_splits_at_the_first_colon() -> None:
    entry = offsets(f'v2\n{META}\nrefunds:{{"logOffset":1}}\norders:-')
    assert isinstance(entry, OffsetEntry)
    assert entry.version == 2
    assert [(s.id, s.kind, s.offset) for s in entry.sources] == [
        ("refunds", "file", {"logOffset": 1}),
        ("orders", "none", None),
    ]


def test_numbered_sources_of_v2_stand_in_plan_order_whatever_their_lines() -> None:
    lines = "\n".join(f'{number}:{{"logOffset":{number}}}' for number in (10, 2, 0))
    entry = parse_offsets(1, "offsets/1", Content(f"v2\n{META}\n{lines}".encode()))
    assert isinstance(entry, OffsetEntry)
    assert [source.id for source in entry.sources] == ["0", "2", "10"]


def test_continuous_mode_has_an_empty_metadata_line() -> None:
    entry = offsets('v1\n\n{"0":{"value":16,"runTimeMs":1},"1":{"value":17,"runTimeMs":1}}')
    assert isinstance(entry, OffsetEntry)
    assert entry.continuous
    assert (entry.watermark_ms, entry.confs) == (None, {})
    assert entry.sources[0].kind == "rate"


def test_spark_2_1_wrote_no_confs_and_a_trailing_newline_is_harmless() -> None:
    entry = offsets('v1\n{"batchWatermarkMs":0,"batchTimestampMs":1489180207737}\n0\n')
    assert isinstance(entry, OffsetEntry)
    assert (entry.confs, len(entry.sources)) == ({}, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("\0\0\0\0", "empty"),
        ("v1", "cut"),
        (f"v1\n{META}", "cut"),
        (f"v1\n{META[:40]}", "cut"),
        (f'v1\n{META}\n{{"logOff', "cut"),
        (f"v2\n{META}\nno colon here", "cut"),
        (f"v3\n{META}\n0:1", "newer"),
        (f"v0\n{META}\n1", "version"),
        (f"v1 \n{META}\n1", "version"),
        (f"xyz\n{META}\n1", "version"),
        (f"{META}\n1", "version"),
        ("v1\n[1]\n1", "shape"),
        ("v1\n" + "[" * 100_000 + "\n1", "shape"),
        (f"v1\n{META}\n" + '{"a":' * 300 + "1" + "}" * 300, "shape"),
        (f'v1\n{META}\n{{"logOffset":1e999}}', "shape"),
        (f'v1\n{META}\n{{"logOffset":NaN}}', "shape"),
        (f'v1\n{META}\n{{"logOffset":{"9" * 5000}}}', "shape"),
    ],
)
def test_offsets_that_cannot_be_used_say_why(text: str, why: str) -> None:
    entry = offsets(text)
    assert isinstance(entry, Unreadable)
    assert (entry.path, entry.why) == ("offsets/3", why)
    assert "\n" not in str(entry)


def test_offsets_that_are_not_text_say_where() -> None:
    entry = parse_offsets(3, "offsets/3", Content(b"v1\n{}\n\xff"))
    assert isinstance(entry, Unreadable)
    assert (entry.why, "byte 6" in entry.detail) == ("not-text", True)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**400])
def test_a_number_beyond_a_long_is_no_position_and_no_time(number: int) -> None:
    entry = offsets(f'v1\n{{"batchWatermarkMs":{number},"batchTimestampMs":{number}}}\n{{"logOffset":{number}}}')
    assert isinstance(entry, OffsetEntry)
    assert (entry.watermark_ms, entry.timestamp_ms, log_offset(entry.sources[0].offset)) == (None, None, None)


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        ({"logOffset": 3}, "file"),
        ({"topic": {"0": 23, "1": 45}, "other": {"0": 1}}, "kafka"),
        ({"sourceVersion": 1, "reservoirId": "r", "reservoirVersion": 7, "index": -1, "isStartingVersion": False}, "delta"),
        ({"offset": 10, "timestamp": 2000}, "rate-micro-batch"),
        ({"0": {"value": -2, "runTimeMs": 1}}, "rate"),
        ({"topic": {"zero": 1}}, "unknown"),
        ({"topic": {"0": "1"}}, "unknown"),
        ({}, "unknown"),
        (2, "unknown"),
        ([1], "unknown"),
    ],
)  # fmt: skip
def test_the_kind_of_a_source_is_told_by_the_shape_of_its_offset(offset: object, kind: str) -> None:
    assert kind_of(offset) == kind


def test_an_offset_that_is_not_json_is_kept_as_it_is() -> None:
    entry = offsets(f"v1\n{META}\nshard-1@49590338271490256608")
    assert isinstance(entry, OffsetEntry)
    assert entry.sources == (SourceOffset("0", "unknown", "shard-1@49590338271490256608"),)


@pytest.mark.parametrize(
    ("text", "version", "watermark"),
    [
        ("v1", 1, None),
        ("v1\n{}", 1, None),
        ('v1\n{"nextBatchWatermarkMs":7}', 1, 7),
        (' v1 \n{"nextBatchWatermarkMs":7}', 1, 7),
        ('v3\n{"nextBatchWatermarkMs":7,"stateUniqueIds":{},"sinkMetadataMap":{"main":{"isActive":true}}}', 3, 7),
    ],
)
def test_commits_of_every_version(text: str, version: int, watermark: int | None) -> None:
    entry = commit(text)
    assert isinstance(entry, CommitEntry)
    assert (entry.version, entry.next_watermark_ms) == (version, watermark)
    assert entry.sinks == ({"main": {"isActive": True}} if version == 3 else {})


def test_commits_v2_name_the_state_files_by_operator_partition_and_store() -> None:
    entry = commit('v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["a","b"],["c","d"]],"1":[["e"]]}}')
    assert isinstance(entry, CommitEntry)
    assert entry.state_ids == {0: (("a", "b"), ("c", "d")), 1: (("e",),)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("v4\n{}", "newer"),
        ("v1\n{", "cut"),
        ("v1\n3", "shape"),
        ('v2\n{"stateUniqueIds":[1]}', "shape"),
        ('v2\n{"stateUniqueIds":{"x":[]}}', "shape"),
        ('v2\n{"stateUniqueIds":{"0":[1]}}', "shape"),
        ('v2\n{"stateUniqueIds":{"' + "9" * 5000 + '":[]}}', "shape"),
    ],
)
def test_commits_that_cannot_be_used_say_why(text: str, why: str) -> None:
    entry = commit(text)
    assert isinstance(entry, Unreadable)
    assert entry.why == why


def test_the_reason_a_file_has_no_bytes_is_kept() -> None:
    for content, why in (
        (Content(missing=True), "missing"),
        (Content(error="Permission denied"), "denied"),
        (Content(too_large=10**10), "too-large"),
    ):
        entry = parse_offsets(0, "offsets/0", content)
        assert isinstance(entry, Unreadable)
        assert entry.why == why


@pytest.mark.parametrize(
    ("name", "batch"),
    [("0", 0), ("17", 17), ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None), ("99x", None), ("3.bak", None),
     ("", None), ("²", None), ("٣", None), (" 3", None), ("1" * 400, None)],
)  # fmt: skip
def test_a_log_file_is_one_whose_whole_name_is_a_long(name: str, batch: int | None) -> None:
    assert batch_id(name) == batch


def test_names_are_sorted_into_entries_checksums_leftovers_and_strangers() -> None:
    names = read_names(
        ["0", "1", ".1.crc", "2.compact", ".2.compact.crc", ".9.crc", ".3.ab-c.tmp", "notes.txt", ".x.crc"]
    )
    assert (names.plain, names.compact, names.latest) == ({0, 1}, {2}, 2)
    assert (names.orphan_crcs, names.temporary, names.foreign) == ((9,), (".3.ab-c.tmp",), ("notes.txt",))


def test_offsets_and_commits_are_never_compacted(tmp_path: Path) -> None:
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text(f"v1\n{META}\n1")
        (tmp_path / log / "6.compact").write_text("v1")
    (tmp_path / "metadata").write_text('{"id":"x"}')
    found = read_checkpoint(LocalStore(str(tmp_path)))
    assert (found.planned, found.committed) == (0, 0)
    assert found.offset_names.foreign == ("6.compact",)


@pytest.mark.parametrize(
    ("names", "last", "needed", "missing"),
    [
        (["0", "1", "2"], 2, [0, 1, 2], []),
        (["0", "2"], 2, [0, 2], [1]),
        (["7", "8", "9.compact", "10", "11"], 11, [9, 10, 11], []),
        (["7", "8", "9.compact", "11"], 11, [9, 11], [10]),
        (["7", "8", "9.compact", "10", "11"], 8, [7, 8], [0, 1, 2, 3, 4, 5, 6]),
        (["9.compact", "19.compact", "20"], 20, [19, 20], []),
    ],
)
def test_a_compacted_log_needs_every_file_from_the_newest_compaction(
    names: list[str], last: int, needed: list[int], missing: list[int]
) -> None:
    log = read_names(names)
    assert (log.files_up_to(last), log.missing_up_to(last)) == (needed, missing)


def test_a_hole_up_to_the_largest_number_is_told_at_once() -> None:
    log = read_names(["0", "9223372036854775807"])
    assert log.missing_up_to(2**63 - 1)[:2] == [1, 2]
    assert len(log.holes) == 100


def test_the_recorded_source_log_lists_every_input_file_once() -> None:
    root = FIXTURES / "spark-4.2-stateless-file"
    store = LocalStore(str(root / "checkpoint"))
    names = read_names(path.name for path in (root / "checkpoint/sources/0").iterdir())
    read = read_entries(store, "sources/0", names, names.files_up_to(13))
    listed = [Path(str(entry["path"])).name for entries in read.values() for entry in entries]  # type: ignore[union-attr]
    assert sorted(listed) == sorted(path.name for path in (root / "input").iterdir() if path.name[0] != ".")


@pytest.mark.parametrize(
    ("line", "why"),
    [("{", "cut"), ("[]", "shape"), ('{"size":1}', "shape"), ('{"path":7}', "shape"), ("\udcff", "not-text")],
)
def test_a_file_log_with_a_bad_line_is_refused_as_a_whole(line: str, why: str, tmp_path: Path) -> None:
    text = f'v1\n{{"path":"file:///a","timestamp":1,"batchId":0}}\n{line}'
    (tmp_path / "0").write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "1").write_text("v1\n")
    names = read_names(["0", "1"])
    read = read_entries(LocalStore(str(tmp_path)), "", names, [0, 1])
    assert isinstance(read[0], Unreadable)
    assert read[0].why == why
    assert read[1] == []


@pytest.mark.parametrize(
    ("data", "kind", "initial"),
    [
        (b"v1\n1794991350771", "rate", 1794991350771),
        (b'\0v1\n{"events":{"0":5,"1":6}}', "kafka", {"events": {"0": 5, "1": 6}}),
        (b'v1\n{"path":"file:///in/a.json","timestamp":1,"batchId":0}', "file", None),
        (b"v1", "file", None),
        (b"", "unknown", None),
        (b"\xff\xfe", "unknown", None),
        (b'v1\n{"events":', "unknown", None),
    ],
)
def test_the_first_file_of_a_source_tells_its_kind_and_where_it_began(
    data: bytes, kind: str, initial: object, tmp_path: Path
) -> None:
    (tmp_path / "sources/0").mkdir(parents=True)
    (tmp_path / "sources/0/0").write_bytes(data)
    store = LocalStore(str(tmp_path))
    listing = store.list("sources/0")
    assert listing is not None
    log = read_source_log(store, "0", listing)
    assert (log.kind, log.initial) == (kind, initial)
    assert (log.problem is not None) == (kind == "unknown")


def test_async_progress_shows_as_the_same_holes_in_both_logs() -> None:
    found = read_checkpoint(LocalStore(str(FIXTURES / "spark-4.2-async-progress/checkpoint")))
    assert sorted(found.offset_names.ids) == sorted(found.commit_names.ids) == [0, 2, 5, 8, 11]
    assert found.async_progress
    assert not found.continuous


def test_recent_batches_are_read_in_full_and_the_oldest_three(tmp_path: Path) -> None:
    for batch in range(100):
        for log, text in (("offsets", f"v1\n{META}\n{batch}"), ("commits", "v1\n{}")):
            (tmp_path / log).mkdir(exist_ok=True)
            (tmp_path / log / str(batch)).write_text(text)
    (tmp_path / "metadata").write_text(json.dumps({"id": "q"}))
    found = read_checkpoint(LocalStore(str(tmp_path)), recent=5)
    assert sorted(found.offsets) == [0, 1, 2, 95, 96, 97, 98, 99]
    assert (found.first, found.planned, len(found.offset_names.ids)) == (0, 99, 100)
