"""The proof: outputs with known defects, made by hand, and what is said of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from streams import QUERY, TOPIC, Stream, offsets, parquet, sink_log

from wizard.catalogue.live import rows
from wizard.catalogue.live.backfill import backfill_visible, backfill_written
from wizard.catalogue.live.rows import beside_exact, in_range, rows_exact
from wizard.compare import plan_keys
from wizard.datafiles import DataFile

LOG = "{format: log, path: ./log, options: {subscribe: t}}"
PARQUET = "{format: parquet, path: ./out, key: [partition, offset]}"


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """200 records in each of two partitions, in batches 0 and 1, all of them in the output."""
    made = Stream(tmp_path)
    log = made.log(200, 200)
    made.registry(LOG, PARQUET)
    made.began({"0": 0, "1": 0}, log.id)
    made.plan(0, {TOPIC: {"0": 100, "1": 100}})
    made.plan(1, {TOPIC: {"0": 200, "1": 200}})
    for batch in (0, 1):
        rows = range(100 * batch, 100 * batch + 100)
        files = [offsets(made.output, f"b{batch}p{p}.parquet", p, *rows) for p in (0, 1)]
        sink_log(made.output, str(batch), *files)
    return made


def test_every_row_once_holds_and_says_which(stream: Stream) -> None:
    seen = rows_exact(stream.world())
    assert seen.truth == "holds"
    assert seen.evidence[0] == ("400 of 400 source rows are in the output exactly once (partitions 0: 0–199, 1: 0–199)")
    assert seen.data["batch"] == 1


def test_missing_doubled_and_foreign_rows_are_counted_with_examples(stream: Stream) -> None:
    # Without 7 and 150–155; 20 three times and 30 twice; 200 (not committed) and a partition that does not exist.
    kept = [n for n in range(100, 200) if not 150 <= n <= 155]
    offsets(stream.output, "b0p0.parquet", 0, *(n for n in range(100) if n != 7), 20, 20, 30)
    offsets(stream.output, "b1p1.parquet", 1, *reversed(kept), 200)
    sink_log(stream.output, "1", stream.output / "b1p0.parquet", stream.output / "b1p1.parquet",
             offsets(stream.output, "more.parquet", 9, 3))  # fmt: skip
    seen = rows_exact(stream.world())
    assert seen.truth == "fails"
    assert seen.data["missing"] == {
        "rows": 7,
        "examples": [{"partition": 0, "offset": 7}] + [{"partition": 1, "offset": n} for n in (150, 151, 152, 153)],
    }
    assert seen.data["doubled"] == {
        "rows": 3,
        "keys": 2,
        "examples": [{"partition": 0, "offset": 20}, {"partition": 0, "offset": 30}],
    }
    assert seen.data["foreign"] == {
        "rows": 2,
        "examples": [{"partition": 1, "offset": 200}, {"partition": 9, "offset": 3}],
    }
    assert (seen.data["expected"], seen.data["found"]) == (400, 398)
    assert seen.evidence[:4] == (
        "391 of 400 source rows are in the output exactly once (partitions 0: 0–199, 1: 0–199)",
        "7 missing: partition 0, offset 7; partition 1, offset 150; partition 1, offset 151; partition 1, offset 152; "
        "partition 1, offset 153",
        "3 there more than once: partition 0, offset 20; partition 0, offset 30",
        "2 not from the source: partition 1, offset 200; partition 9, offset 3",
    )


def test_a_file_that_the_log_does_not_name_is_not_in_the_output(stream: Stream) -> None:
    offsets(stream.output, "orphan.parquet", 0, *range(50))
    assert rows_exact(stream.world()).holds


def test_a_file_that_the_log_names_twice_is_there_twice(stream: Stream) -> None:
    sink_log(stream.output, "1", *(stream.output / name for name in ("b1p0.parquet", "b1p1.parquet", "b1p1.parquet")))
    seen = rows_exact(stream.world())
    assert (seen.truth, seen.data["doubled"]["rows"], seen.data["doubled"]["keys"]) == ("fails", 100, 100)


def test_an_empty_output_lacks_every_row(stream: Stream) -> None:
    shutil.rmtree(stream.output)
    seen = rows_exact(stream.world())
    assert (seen.truth, seen.data["missing"]["rows"], seen.data["found"]) == ("fails", 400, 0)


def test_a_row_without_a_key_is_foreign(stream: Stream) -> None:
    parquet(stream.output / "b1p1.parquet", partition=pa.array([1] * 101, pa.int32()),
            offset=pa.array([*range(100, 200), None], pa.int64()))  # fmt: skip
    seen = rows_exact(stream.world())
    assert (seen.truth, seen.data["foreign"]) == (
        "fails",
        {"rows": 1, "examples": [{"partition": 1, "offset": None}]},
    )


def test_what_a_running_job_wrote_after_the_commit_does_not_count(stream: Stream) -> None:
    stream.plan(2, {TOPIC: {"0": 220, "1": 200}}, commit=False)
    sink_log(stream.output, "2", offsets(stream.output, "b2.parquet", 0, *range(200, 220)))
    assert rows_exact(stream.world()).holds
    (stream.checkpoint / "commits/2").write_text("v1\n{}")
    # The log has 200 records in partition 0, so a commit up to 220 is of another topic.
    assert rows_exact(stream.world()).truth == "unknown"


def test_the_batch_in_flight_may_be_the_one_that_compacts_the_output_log(stream: Stream) -> None:
    everything = [stream.output / f"b{b}p{p}.parquet" for b in (0, 1) for p in (0, 1)]
    sink_log(stream.output, "2.compact", *everything, offsets(stream.output, "b2.parquet", 0, 200))
    stream.plan(2, {TOPIC: {"0": 201, "1": 200}}, commit=False)
    assert rows_exact(stream.world()).holds
    (stream.output / "_spark_metadata/0").unlink()
    seen = rows_exact(stream.world())
    assert seen.truth == "unknown" and "lacks 0" in seen.evidence[0]


def test_a_compacted_log_is_read_once(stream: Stream) -> None:
    everything = [stream.output / f"b{b}p{p}.parquet" for b in (0, 1) for p in (0, 1)]
    sink_log(stream.output, "1.compact", *everything)
    (stream.output / "_spark_metadata/1").unlink()
    assert rows_exact(stream.world()).holds


def test_a_stream_that_began_later_is_not_asked_for_what_was_before(stream: Stream) -> None:
    stream.began({"0": 50, "1": 0}, json.loads((stream.root / "log/t/topic.json").read_text())["id"])
    seen = rows_exact(stream.world())
    # 0–49 of partition 0 are in the output, and the stream cannot have read them.
    assert (seen.truth, seen.data["expected"], seen.data["foreign"]["rows"]) == ("fails", 350, 50)
    offsets(stream.output, "b0p0.parquet", 0, *range(50, 100))
    assert rows_exact(stream.world()).holds


def test_rows_that_the_source_has_dropped_are_compared_by_their_offsets(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    log = stream.log(100, segment_bytes=200)
    stream.registry(LOG, PARQUET)
    stream.began({"0": 0}, log.id)
    stream.plan(0, {TOPIC: {"0": 100}})
    sink_log(stream.output, "0", offsets(stream.output, "a.parquet", 0, *range(100)))
    first = log.drop_before(0, 60)
    assert 0 < first <= 60
    seen = rows_exact(stream.world())
    assert seen.truth == "holds"
    assert any(f"no longer has 0–{first - 1} of t partition 0" in line for line in seen.evidence)
    offsets(stream.output, "a.parquet", 0, *(n for n in range(100) if n != 3))
    seen = rows_exact(stream.world())
    assert (seen.truth, seen.data["missing"]["examples"]) == ("fails", [{"partition": 0, "offset": 3}])


def test_without_the_first_offsets_a_dropped_beginning_is_a_doubt(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    log = stream.log(100, segment_bytes=200)
    stream.registry(LOG, PARQUET)
    stream.plan(0, {TOPIC: {"0": 100}})
    sink_log(stream.output, "0", offsets(stream.output, "a.parquet", 0, *range(100)))
    assert rows_exact(stream.world()).holds
    log.drop_before(0, 60)
    assert rows_exact(stream.world()).truth == "unknown"
    offsets(stream.output, "a.parquet", 0, *range(100), 99)
    assert rows_exact(stream.world()).truth == "fails"


def test_a_topic_created_anew_leaves_nothing_to_compare_with(stream: Stream) -> None:
    shutil.rmtree(stream.root / "log")
    stream.log(300, 300)
    seen = rows_exact(stream.world())
    assert seen.truth == "unknown" and any("created anew" in line for line in seen.evidence)


@pytest.mark.parametrize(
    ("sink", "more", "said"),
    [
        ("{format: parquet, path: ./out}", "", "has no key in the registry"),
        ("{format: parquet, path: ./out, key: [id]}", "", "cannot be derived from offsets"),
        ("{format: parquet, path: ./out, key: [partition, offset]}", "    output_mode: update\n", "declare sink.counts"),
        ("{format: jdbc, key: [partition, offset], options: {url: x, dbtable: t}}", "", "has no path"),
        ("{format: text, path: ./out, key: [partition, offset]}", "", "cannot be read row by row"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_unknown_and_says_what_to_do(
    stream: Stream, sink: str, more: str, said: str
) -> None:
    stream.registry(LOG, sink, more)
    seen = rows_exact(stream.world())
    assert seen.truth == "unknown" and said in seen.evidence[0]


def test_a_key_that_offsets_do_not_give_is_unknown(stream: Stream) -> None:
    stream.registry(LOG, "{format: parquet, path: ./out, key: [topic, offset]}")
    seen = rows_exact(stream.world())
    assert seen.truth == "unknown" and "cannot be derived from offsets" in seen.evidence[0]


def test_a_damaged_file_is_unknown_and_named(stream: Stream) -> None:
    (stream.output / "b0p0.parquet").write_bytes(b"PAR1")
    seen = rows_exact(stream.world())
    assert seen.truth == "unknown" and "b0p0.parquet cannot be read" in seen.evidence[0]
    (stream.output / "b0p0.parquet").unlink()
    assert rows_exact(stream.world()).truth == "unknown"


def test_no_checkpoint_and_no_commit_are_unknown(stream: Stream) -> None:
    for batch in (0, 1):
        (stream.checkpoint / f"commits/{batch}").unlink()
    assert rows_exact(stream.world()).evidence == ("no batch is committed yet, so there is nothing to compare",)
    shutil.rmtree(stream.checkpoint)
    assert rows_exact(stream.world()).truth == "unknown"


def test_a_key_column_may_be_in_the_path(stream: Stream) -> None:
    for batch in (0, 1):
        rows = range(100 * batch, 100 * batch + 100)
        files = [
            parquet(stream.output / f"partition={p}/b{batch}.parquet", offset=pa.array(rows, pa.int64()))
            for p in (0, 1)
        ]
        sink_log(stream.output, str(batch), *files)
    assert rows_exact(stream.world()).holds


def delta(stream: Stream, numbers: list[int], batch: int, query: str = QUERY) -> None:
    rows = pa.table({"partition": pa.array([0] * len(numbers), pa.int32()), "offset": pa.array(numbers, pa.int64())})
    properties = CommitProperties(app_transactions=[Transaction(query, batch)])
    write_deltalake(str(stream.root / "table"), rows, mode="append", commit_properties=properties)


def test_a_delta_table_is_compared_at_the_version_of_the_commit(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.registry(LOG, "{format: delta, path: ./table, key: [partition, offset]}")
    stream.began({"0": 0}, stream.log(50).id)
    stream.plan(0, {TOPIC: {"0": 20}})
    delta(stream, list(range(20)), 0)
    assert rows_exact(stream.world()).holds
    stream.plan(1, {TOPIC: {"0": 50}}, commit=False)
    delta(stream, list(range(20, 50)), 1)
    seen = rows_exact(stream.world())
    assert (seen.truth, seen.data["expected"], seen.data["output"]) == ("holds", 20, "version 0, the last of batch 0")
    stream.plan(1, {TOPIC: {"0": 50}})
    assert rows_exact(stream.world()).data["expected"] == 50
    delta(stream, [3, 60], 9, query="another")
    seen = rows_exact(stream.world())
    assert seen.truth == "fails"
    assert seen.data["doubled"]["examples"] == [{"partition": 0, "offset": 3}]
    assert seen.data["foreign"]["examples"] == [{"partition": 0, "offset": 60}]


def files_stream(tmp_path: Path) -> Stream:
    """Three input files, the third not yet committed; the output has a partition of its own."""
    stream = Stream(tmp_path)
    stream.registry(
        "{format: parquet, path: ./in}", "{format: parquet, path: ./out, key: [id], partition_by: [quality]}"
    )
    inputs = [parquet(tmp_path / f"in/f{n}.parquet", id=[f"{n}-{i}" for i in range(10)]) for n in range(3)]
    for k, file in enumerate(inputs):
        stream.read(k, file)
    stream.plan(0, {"logOffset": 0})
    stream.plan(1, {"logOffset": 1})
    stream.plan(2, {"logOffset": 2}, commit=False)
    for n in (0, 1):
        sink_log(stream.output, str(n), *(
            parquet(stream.output / f"quality={q}/f{n}.parquet", id=[f"{n}-{i}" for i in range(10) if (i < 8) == (q == "good")])
            for q in ("good", "bad")
        ))  # fmt: skip
    return stream


def test_input_files_up_to_the_commit_are_what_is_expected(tmp_path: Path) -> None:
    stream = files_stream(tmp_path)
    seen = rows_exact(stream.world())
    assert seen.evidence[:2] == (
        "20 of 20 source rows are in the output exactly once",
        "of 2 input files up to batch 1",
    )
    parquet(stream.output / "quality=bad/f1.parquet", id=["1-8", "1-8", "x"])
    seen = rows_exact(stream.world())
    assert seen.truth == "fails"
    assert [seen.data[kind]["examples"] for kind in ("missing", "doubled", "foreign")] == [
        [{"id": "1-9"}], [{"id": "1-8"}], [{"id": "x"}],
    ]  # fmt: skip


def test_an_input_that_repeats_itself_is_expected_to_come_out_as_often(tmp_path: Path) -> None:
    stream = files_stream(tmp_path)
    parquet(tmp_path / "in/f1.parquet", id=[f"1-{i}" for i in range(10)] + ["1-9", "0-0"])
    seen = rows_exact(stream.world())
    assert (seen.truth, seen.data["repeated"], seen.data["missing"]["rows"]) == ("fails", 2, 2)
    parquet(stream.output / "quality=bad/f1.parquet", id=["1-8", "1-9", "1-9", "0-0"])
    seen = rows_exact(stream.world())
    assert seen.truth == "holds"
    assert "the input itself holds 2 rows whose key came before; compared as such" in seen.evidence


def test_integer_keys_of_files_are_compared_as_a_multiset_too(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.registry("{format: parquet, path: ./in}", "{format: parquet, path: ./out, key: [id, region]}")
    stream.read(0, parquet(tmp_path / "in/a.parquet", id=[5, 1, 2, 2, 9], region=["n", "n", "n", "n", None]))
    stream.plan(0, {"logOffset": 0})
    out = stream.output / "a.parquet"
    sink_log(
        stream.output, "0", parquet(out, id=pa.array([1, 2, 2, 5, 9], pa.int32()), region=["n", "n", "n", "n", None])
    )
    seen = rows_exact(stream.world())
    assert (seen.truth, seen.data["repeated"]) == ("holds", 1)
    parquet(out, id=[2, 2, 2, 5, 5, 7, 9], region=["n", "n", "n", "n", "s", "n", None])
    seen = rows_exact(stream.world())
    assert [seen.data[kind]["rows"] for kind in ("missing", "doubled", "foreign")] == [1, 1, 2]
    assert seen.data["foreign"]["examples"] == [{"region": "n", "id": 7}, {"region": "s", "id": 5}]


def test_an_input_file_that_is_gone_is_named(tmp_path: Path) -> None:
    stream = files_stream(tmp_path)
    (tmp_path / "in/f0.parquet").unlink()
    seen = rows_exact(stream.world())
    assert (
        seen.truth == "unknown"
        and "1 of 2 input files is gone" in seen.evidence[0]
        and "f0.parquet" in seen.evidence[0]
    )


@pytest.mark.parametrize("format", ["json", "csv"])
def test_text_inputs_are_compared_with_a_parquet_output(tmp_path: Path, format: str) -> None:
    stream = Stream(tmp_path)
    stream.registry(f"{{format: {format}, path: ./in}}", "{format: parquet, path: ./out, key: [id]}")
    text = "id,v\n7,x\n8,y\n" if format == "csv" else '{"id": 7, "v": "x"}\n{"id": 8, "v": "y"}\n'
    file = tmp_path / f"in/a b%.{format}"
    file.parent.mkdir()
    file.write_text(text)
    stream.read(0, file)
    stream.plan(0, {"logOffset": 0})
    sink_log(stream.output, "0", parquet(stream.output / "a.parquet", id=[7]))
    seen = rows_exact(stream.world())
    assert (seen.truth, seen.data["missing"]["examples"]) == ("fails", [{"id": 8}])


COUNTS = "{format: parquet, path: ./out, key: [sensor, hour], counts: {column: total, of: id, where: {quality: good}, by: [sensor]}}"


def counted(tmp_path: Path) -> Stream:
    """Four different good readings of a (one of them twice), two of b, one bad one of b."""
    stream = Stream(tmp_path)
    stream.registry("{format: parquet, path: ./in}", COUNTS, "    output_mode: update\n")
    good = parquet(
        tmp_path / "in/quality=good/f.parquet", id=["1", "2", "3", "3", "4", "5", "6"], sensor=list("aaaaabb")
    )
    bad = parquet(tmp_path / "in/quality=bad/f.parquet", id=["7"], sensor=["b"])
    stream.read(0, good, bad)
    stream.plan(0, {"logOffset": 0})
    sink_log(
        stream.output,
        "0",
        parquet(stream.output / "f.parquet", sensor=["a", "a", "b"], hour=[1, 2, 1], total=[3, 1, 2]),
    )
    return stream


def test_an_aggregate_is_proved_by_its_counts(tmp_path: Path) -> None:
    stream = counted(tmp_path)
    seen = rows_exact(stream.world())
    assert (seen.truth, seen.evidence[0]) == ("holds", "the output counts 6 of 6 different id of the source")
    parquet(stream.output / "f.parquet", sensor=["a", "a", "b"], hour=[1, 1, 1], total=[3, 3, 1])
    seen = rows_exact(stream.world())
    assert seen.truth == "fails"
    assert seen.data["missing"] == {"rows": 1, "examples": [{"sensor": "b", "expected": 2, "found": 1}]}
    assert seen.data["foreign"] == {"rows": 2, "examples": [{"sensor": "a", "expected": 4, "found": 6}]}
    assert seen.data["doubled"] == {"rows": 1, "keys": 1, "examples": [{"sensor": "a", "hour": 1}]}


def test_windows_that_are_still_open_are_a_doubt_in_append_mode(tmp_path: Path) -> None:
    stream = counted(tmp_path)
    stream.registry("{format: parquet, path: ./in}", COUNTS)
    parquet(stream.output / "f.parquet", sensor=["a", "b"], hour=[1, 1], total=[3, 2])
    assert rows_exact(stream.world()).truth == "unknown"


def counts(answer: dict[str, Any]) -> list[int]:
    return [answer["expected"], *(answer[kind]["rows"] for kind in ("missing", "doubled", "foreign"))]


def test_the_rows_of_a_range_are_looked_for_and_no_others(stream: Stream) -> None:
    told = {"start": {TOPIC: {"0": 10, "1": 20}}, "end": {TOPIC: {"0": 30, "1": 20}}}
    world = stream.world(range=told)
    assert counts(in_range(world.job, told)[0]) == [20, 0, 0, 0]
    offsets(stream.output, "b0p0.parquet", 0, *(n for n in range(100) if n not in (5, 12)), 13)
    assert counts(in_range(world.job, told)[0]) == [20, 1, 1, 0]
    written = backfill_written(world)
    assert (written.truth, written.data) == ("fails", {"rows": 20, "gaps": 1, "duplicates": 1})
    assert "offset 12" in written.evidence[0] and "offset 13" in written.evidence[1]
    visible = backfill_visible(world)
    assert (visible.truth, len(visible.evidence)) == ("fails", 1)


def test_a_range_of_any_size_is_looked_for(stream: Stream) -> None:
    """By arithmetic: a thousand million offsets are not gone through one by one."""
    told = {"start": {TOPIC: {"0": 0}}, "end": {TOPIC: {"0": 10**9}}}
    assert backfill_written(stream.world(range=told)).data == {"rows": 10**9, "gaps": 10**9 - 200, "duplicates": 0}


def test_the_rows_of_a_range_of_files_are_looked_for(tmp_path: Path) -> None:
    stream = files_stream(tmp_path)
    world = stream.world()
    for name, wanted in (("f1", [10, 0, 0, 0]), ("f2", [10, 10, 0, 0])):
        assert counts(in_range(world.job, {"files": [str(tmp_path / f"in/{name}.parquet")]})[0]) == wanted


def test_a_row_that_the_range_holds_twice_is_wanted_twice(tmp_path: Path) -> None:
    stream = files_stream(tmp_path)
    file = tmp_path / "in/f1.parquet"
    pq.write_table(pa.concat_tables([pq.read_table(file), pq.read_table(file).slice(0, 1)]), file)
    seen = backfill_written(stream.world(range={"files": [str(file)]}))
    assert (seen.truth, seen.data) == ("fails", {"rows": 11, "gaps": 1, "duplicates": 0})


def test_the_output_beside_is_compared_with_the_checkpoint_beside(stream: Stream) -> None:
    world = stream.world()
    assert beside_exact(world).truth == "unknown"
    shutil.copytree(stream.checkpoint, stream.root / "checkpoint2")
    sink_log(stream.root / "out2", "0", offsets(stream.root / "out2", "a.parquet", 0, *range(200)))
    new = {"checkpoint": str(stream.root / "checkpoint2"), "sink": str(stream.root / "out2")}
    world.memory["beside"] = {"suffix": "2", "new": new, "old": {"checkpoint": "", "sink": ""}}
    seen = beside_exact(world)
    assert (seen.truth, seen.data["missing"]["rows"]) == ("fails", 200)
    assert rows_exact(world).holds


def test_looking_changes_nothing(stream: Stream) -> None:
    def state() -> list[tuple[str, int, bytes]]:
        files = sorted(p for p in stream.root.rglob("*") if p.is_file())
        return [(str(p), p.stat().st_mtime_ns, p.read_bytes()) for p in files]

    before = state()
    rows_exact(stream.world())
    assert state() == before


def test_more_groups_than_runs_can_hold_go_to_spark_where_they_are_too_many_to_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for side in ("found", "wanted"):
        pq.write_table(pa.table({"partition": range(2_100), "offset": [1] * 2_100}), tmp_path / side)
    files = [DataFile(str(tmp_path / "wanted"))]
    planned = plan_keys(["partition", "offset"], [DataFile(str(tmp_path / "found"))], files=files)
    here = rows._answer(planned, print)
    assert (here["expected"], here["missing"]["rows"], here["foreign"]["rows"]) == (2_100, 0, 0)
    monkeypatch.setattr(rows, "ROWS_HERE", 4_000)
    monkeypatch.setattr(rows, "on_spark", lambda planned: {"answered": "by Spark"})
    assert rows._answer(planned, print) == {"answered": "by Spark"}
