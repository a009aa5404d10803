"""Whether the source still has what is needed: after retention, after a topic was made anew, after files were lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streams import TOPIC, Stream, offsets, parquet, sink_log

from wizard.catalogue.live.source import can_rebuild, has_next_offsets, has_range

LOG = "{format: log, path: ./log, options: {subscribe: t}}"


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """100 records in segments of five, 40 committed, a batch up to 60 planned; the output begins at 10."""
    made = Stream(tmp_path)
    log = made.log(100, segment_bytes=200)
    made.registry(LOG, "{format: parquet, path: ./out, key: [partition, offset]}")
    made.began({"0": 10}, log.id)
    made.plan(0, {TOPIC: {"0": 40}})
    made.plan(1, {TOPIC: {"0": 60}}, commit=False)
    sink_log(made.output, "0", offsets(made.output, "a.parquet", 0, *range(10, 40)))
    return made


def retain(stream: Stream, offset: int) -> int:
    return stream_log(stream).drop_before(0, offset)


def stream_log(stream: Stream):  # type: ignore[no-untyped-def]
    from wizard.sources.embedded_log import EmbeddedLog

    return EmbeddedLog(stream.root / "log", TOPIC)


def test_a_source_that_has_everything_holds(stream: Stream) -> None:
    world = stream.world(range={"start": {TOPIC: {"0": 0}}, "end": {TOPIC: {"0": 100}}})
    assert [probe(world).truth for probe in (has_next_offsets, can_rebuild, has_range)] == ["holds"] * 3


def test_without_its_log_every_file_of_the_output_is_looked_for(stream: Stream) -> None:
    """A reader then lists the directory: what the source can rebuild of all files, it can rebuild of those that count."""
    shutil.rmtree(stream.output / "_spark_metadata")
    seen = can_rebuild(stream.world())
    assert seen.holds and "the output holds 10–39 of t partition 0" in seen.evidence
    assert retain(stream, 40) > 10
    assert can_rebuild(stream.world()).truth == "fails"


def test_retention_takes_the_past_first_and_then_the_next_offsets(stream: Stream) -> None:
    first = retain(stream, 40)
    assert 10 < first <= 40
    seen = can_rebuild(stream.world())
    assert seen.truth == "fails"
    assert seen.evidence[0] == f"t partition 0: offsets 10–{first - 1} are gone, the source begins at {first}"
    assert has_next_offsets(stream.world()).holds
    first = retain(stream, 60)
    assert first > 40
    assert has_next_offsets(stream.world()).truth == "fails"


def test_the_offsets_of_the_range_are_looked_for(stream: Stream) -> None:
    first = retain(stream, 40)
    here = {"start": {TOPIC: {"0": first}}, "end": {TOPIC: {"0": 100}}}
    assert has_range(stream.world(range=here)).holds
    before = {"start": {TOPIC: {"0": first - 1}}, "end": {TOPIC: {"0": 100}}}
    assert has_range(stream.world(range=before)).truth == "fails"
    beyond = {"start": {TOPIC: {"0": first}}, "end": {TOPIC: {"0": 101}}}
    assert has_range(stream.world(range=beyond)).truth == "fails"


def test_a_topic_made_anew_has_none_of_it(stream: Stream) -> None:
    shutil.rmtree(stream.root / "log")
    stream.log(500)
    world = stream.world(range={"start": {TOPIC: {"0": 0}}, "end": {TOPIC: {"0": 50}}})
    for probe in (has_next_offsets, can_rebuild, has_range):
        seen = probe(world)
        assert seen.truth == "fails" and "created anew" in seen.evidence[0]


def test_a_source_shorter_than_what_was_planned_fails(stream: Stream) -> None:
    stream.plan(1, {TOPIC: {"0": 101}}, commit=False)
    seen = has_next_offsets(stream.world())
    assert seen.truth == "fails" and "offset 101 is asked for and the source ends at 100" in seen.evidence[0]


def test_a_source_that_is_not_there_is_unknown(stream: Stream) -> None:
    shutil.rmtree(stream.root / "log")
    assert [probe(stream.world()).truth for probe in (has_next_offsets, can_rebuild)] == ["unknown"] * 2
    stream.registry("{format: rate}", "{format: parquet, path: ./out, key: [partition, offset]}")
    assert has_next_offsets(stream.world()).truth == "unknown"


def test_without_a_checkpoint_the_next_offset_is_the_first(stream: Stream) -> None:
    shutil.rmtree(stream.checkpoint)
    seen = has_next_offsets(stream.world())
    assert seen.truth == "holds" and "nothing has been read yet" in seen.evidence[0]


def test_an_output_that_does_not_say_which_offsets_it_holds_is_unknown(stream: Stream) -> None:
    stream.registry(LOG, "{format: parquet, path: ./out, key: [id]}")
    assert can_rebuild(stream.world()).truth == "unknown"


@pytest.fixture
def files(tmp_path: Path) -> Stream:
    """Input files 0 and 1 committed, 2 planned; the directory is another job's output."""
    made = Stream(tmp_path)
    made.registry("{format: parquet, path: ./in}", "{format: parquet, path: ./out, key: [id]}")
    for k in range(3):
        file = parquet(tmp_path / f"in/f{k}.parquet", id=[k])
        made.read(k, file)
        sink_log(tmp_path / "in", str(k), file)
        made.plan(k, {"logOffset": k}, commit=k < 2)
    return made


def test_files_that_are_gone_are_missed_by_those_who_need_them(files: Stream) -> None:
    both = (has_next_offsets, can_rebuild)
    assert [probe(files.world()).truth for probe in both] == ["holds", "holds"]
    (files.root / "in/f0.parquet").unlink()
    assert [probe(files.world()).truth for probe in both] == ["holds", "fails"]
    (files.root / "in/f2.parquet").unlink()
    assert [probe(files.world()).truth for probe in both] == ["fails", "fails"]
    assert "f2.parquet" in has_next_offsets(files.world()).evidence[0]


def test_files_that_the_log_upstream_no_longer_names_cannot_rebuild(files: Stream) -> None:
    sink_log(files.root / "in", "1")
    seen = can_rebuild(files.world())
    assert seen.truth == "fails" and "1 of 3 input files are hidden" in seen.evidence[0]


def test_the_files_of_a_range_are_looked_for(files: Stream) -> None:
    world = files.world(range={"files": [str(files.root / "in/f1.parquet")]})
    assert has_range(world).holds
    (files.root / "in/f1.parquet").unlink()
    assert has_range(world).truth == "fails"
