"""State stores and operators: which versions can be loaded, told by the names of files."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest
from recorded import FIXTURES, as_recorded

from wizard.checkpoint.commits import CommitEntry
from wizard.checkpoint.logfile import Unreadable
from wizard.checkpoint.operators import OperatorMetadata, StoreInfo, parse_schema, read_operator_metadata
from wizard.checkpoint.reader import read_checkpoint
from wizard.checkpoint.state import State, StoreFiles, ids_from_commits, ranges, read_store_files
from wizard.store import Content, Listing, LocalStore


def store(*names: str, ids: dict[int, str] | None = None) -> StoreFiles:
    found = read_store_files(0, 0, "default", Listing(files=names), None)
    return StoreFiles(0, 0, "default", found.files, found.ssts, found.foreign, ids or {})


@pytest.mark.parametrize(
    ("names", "provider", "whole"),
    [
        (["1.delta", "2.delta", "3.delta"], "hdfs", {1, 2, 3}),
        (["1.delta", "3.delta"], "hdfs", {1}),
        (["3.delta", "4.delta"], "hdfs", set()),
        (["3.snapshot", "4.delta", "6.delta"], "hdfs", {3, 4}),
        (["9.delta", "9.snapshot", "10.delta"], "hdfs", {9, 10}),
        (["16.zip", "18.zip"], "rocksdb", {16, 18}),
        (["16.zip", "17.changelog", "18.changelog", "20.changelog"], "rocksdb", {16, 17, 18}),
        ([".1.delta.crc", ".2.delta.ab.TID7.tmp"], None, set()),
        ([], None, set()),
    ],
)
def test_a_version_is_whole_when_a_snapshot_and_an_unbroken_chain_lead_to_it(
    names: list[str], provider: str | None, whole: set[int]
) -> None:
    found = store(*names)
    assert (found.provider, found.whole, found.format) == (provider, whole, 1)


def test_format_two_takes_only_the_file_that_the_commit_names() -> None:
    names = ("1_a.changelog", "2_b.changelog", "2_other.changelog", "3_c.zip", "3_c.zip.crc")
    assert store(*names, ids={1: "a", 2: "b", 3: "c"}).whole == {1, 2, 3}
    assert store(*names, ids={1: "a", 2: "lost", 3: "c"}).whole == {1, 3}
    assert store(*names).format == 2


def test_the_commit_of_a_batch_names_the_files_of_the_next_version() -> None:
    commits = [CommitEntry(4, 2, 0, {0: (("p0s0", "p0s1"), ("p1s0", "p1s1"))}), CommitEntry(5, 1, 0)]
    assert ids_from_commits(commits, operator=0, partition=1, index=1) == {5: "p1s1", 6: ""}
    assert ids_from_commits(commits, operator=0, partition=2, index=0) == {5: "", 6: ""}
    assert ids_from_commits(commits, operator=1, partition=0, index=0) == {5: "", 6: ""}


def test_visible_checksums_are_spark_s_and_other_names_are_strangers() -> None:
    found = store("1.delta", "1.delta.crc", "notes.txt", "x.delta", "9223372036854775808.delta", f"{'0' * 30}9.zip")
    assert found.files == {"delta": {1: {""}}}
    assert found.foreign == (f"{'0' * 30}9.zip", "9223372036854775808.delta", "notes.txt", "x.delta")


def test_state_is_whole_only_where_every_store_is() -> None:
    state = State((store("1.delta", "2.delta"), store("2.snapshot", "3.delta")))
    assert state.whole == {2}
    assert [files.break_before(3, "hdfs") for files in state.lacking(3)] == ["state/0/0/3.delta"]
    assert State((store("1.delta"), store("1.zip"))).provider == "mixed"


def test_ranges_fold_what_is_consecutive() -> None:
    assert ranges([7, 1, 3, 2]) == ((1, 3), (7, 7))
    assert ranges([]) == ()


V1 = '{"operatorInfo":{"operatorId":0,"operatorName":"dedupe"},"stateStoreInfo":[{"storeName":"default","numPartitions":2}]}'
V2 = V1.replace(
    '"numPartitions":2', '"numPartitions":2,"stateSchemaFilePaths":["file:/ck/state/0/_stateSchema/default/0_a"]'
)


@pytest.mark.parametrize(
    ("text", "schemas"), [(f"v1\n{V1}", ()), (f"v2\n{V2}", ("file:/ck/state/0/_stateSchema/default/0_a",))]
)
def test_operator_metadata_of_both_versions(text: str, schemas: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "m").write_text(text)
    found = read_operator_metadata(LocalStore(str(tmp_path)), "m")
    assert found == OperatorMetadata("m", 0, "dedupe", (StoreInfo("default", 2, schemas),))


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "empty"), ("v1", "cut"), ("v3\n{}", "newer"), ("v1\n{}", "shape"), ("v1\n{", "cut"),
     ('v1\n{"operatorInfo":{"operatorId":true},"stateStoreInfo":[]}', "shape")],
)  # fmt: skip
def test_operator_metadata_that_cannot_be_used_says_why(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_text(text)
    found = read_operator_metadata(LocalStore(str(tmp_path)), "m")
    assert isinstance(found, Unreadable)
    assert found.why == why


def utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def test_a_state_schema_is_java_strings_in_chunks() -> None:
    data = utf("v2") + struct.pack(">i", 2) + utf('{"ke') + utf('y"}') + struct.pack(">i", 1) + utf("{}")
    found = parse_schema("schema", Content(data))
    assert not isinstance(found, Unreadable)
    assert (found.version, found.columns) == (2, (("default", '{"key"}', "{}"),))
    for cut in range(len(data)):
        assert isinstance(parse_schema("schema", Content(data[:cut])), Unreadable)


@pytest.mark.parametrize("data", [utf("v9"), utf("x"), b"\xff\xff\xff", utf("v2") + b"\x7f\xff\xff\xff", utf("v²")])
def test_a_state_schema_that_is_none_is_told(data: bytes) -> None:
    assert isinstance(parse_schema("schema", Content(data)), Unreadable)


@pytest.mark.parametrize("name", ["spark-4.2-window-rocksdb", "spark-4.2-join-rocksdb3", "spark-4.2-window-hdfs"])
def test_recorded_schemas_are_those_of_the_query(name: str) -> None:
    found = read_checkpoint(LocalStore(str(FIXTURES / name / "checkpoint")))
    assert found.schemas
    for schema in found.schemas:
        for _, key, value in schema.columns:
            assert '"type":"struct"' in key
            assert '"type":"struct"' in value


def test_a_table_file_that_the_newest_zip_names_is_missed(tmp_path: Path) -> None:
    root = as_recorded("spark-4.2-window-rocksdb", tmp_path)
    with zipfile.ZipFile(root / "checkpoint/state/0/0/19.zip") as archive:
        named = archive.read("metadata").decode()
    lost = next(sst for sst in (root / "checkpoint/state/0/0/SSTs").glob("*.sst") if sst.name in named)
    lost.unlink()
    found = read_checkpoint(LocalStore(str(root / "checkpoint")))
    assert found.lost_ssts == {"state/0/0": (f"state/0/0/SSTs/{lost.name}",)}


def test_a_damaged_zip_is_told_wherever_it_is_damaged(tmp_path: Path) -> None:
    root = as_recorded("spark-4.2-window-rocksdb", tmp_path)
    target = root / "checkpoint/state/0/0/19.zip"
    whole = target.read_bytes()
    clean = read_checkpoint(LocalStore(str(root / "checkpoint")))
    assert clean.lost_ssts == {}
    told = 0
    for at in range(0, len(whole), 41):
        target.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        lost = read_checkpoint(LocalStore(str(root / "checkpoint"))).lost_ssts
        told += bool(lost)
        assert set(lost) <= {"state/0/0"}
    assert told > 2
    target.write_bytes(whole[: len(whole) // 2])
    assert "is damaged" in str(read_checkpoint(LocalStore(str(root / "checkpoint"))).lost_ssts["state/0/0"])
