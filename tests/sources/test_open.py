"""What a source says it has, each kind against the same questions."""

from __future__ import annotations

from pathlib import Path

import pytest
from streams import TOPIC, Stream, parquet, sink_log

from wizard.checkpoint.reader import read_checkpoint
from wizard.errors import BadInput
from wizard.jobs.model import Source
from wizard.sources.interface import Ends, FileSource, OffsetSource, as_offsets, lost
from wizard.sources.open import caught_up, open_source
from wizard.store import open_store

LOG = "{format: log, path: ./log, options: {subscribe: t}}"


def test_each_kind_answers_its_own_questions(tmp_path: Path) -> None:
    assert isinstance(open_source(Source("log", str(tmp_path), {"subscribe": "t"})), OffsetSource)
    assert isinstance(open_source(Source("parquet", str(tmp_path))), FileSource)
    assert open_source(Source("rate")) is None


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Source("log", "/x"), "no option subscribe"),
        (Source("log", "s3://b/x", {"subscribe": "t"}), "local disk"),
        (Source("json"), "no path"),
    ],
)
def test_a_source_without_its_place_is_refused_in_one_line(source: Source, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        open_source(source)


def test_the_log_tells_its_ends_and_ids(tmp_path: Path) -> None:
    log = Stream(tmp_path).log(30, 20)
    opened = open_source(Source("log", str(tmp_path / "log"), {"subscribe": "t"}))
    assert isinstance(opened, OffsetSource)
    assert opened.ends() == Ends({TOPIC: {"0": 0, "1": 0}}, {TOPIC: {"0": 30, "1": 20}}, {TOPIC: log.id})


def test_what_is_lost_is_told_partition_by_partition() -> None:
    ends = Ends({TOPIC: {"0": 10, "1": 0}}, {TOPIC: {"0": 50, "1": 5}}, {})
    assert lost(ends, {TOPIC: {"0": 10, "1": 5}}, None) == []
    assert lost(ends, {TOPIC: {"0": 3, "1": 0}}, {TOPIC: {"0": 3, "1": 5}}) == []
    assert lost(ends, {TOPIC: {"0": 3, "1": 6, "2": 0}}, None) == [
        "t partition 0: offsets 3–9 are gone, the source begins at 10",
        "t partition 1: offset 6 is asked for and the source ends at 5",
        "t partition 2 is not in the source any more",
    ]


@pytest.mark.parametrize("value", [None, 3, {}, {"t": 3}, {"t": {"0": "x"}}, {"t": {"0": True}}, {"logOffset": 3}])
def test_only_offsets_are_taken_for_offsets(value: object) -> None:
    assert as_offsets(value) is None


def test_a_job_has_caught_up_when_its_last_commit_has_all_of_the_log(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    log = stream.log(10)
    stream.registry(LOG, "{format: parquet, path: ./out, key: [partition, offset]}")
    stream.plan(0, {TOPIC: {"0": 9}})
    job = stream.world().job

    def now() -> str | None:
        return caught_up(job, read_checkpoint(open_store(job.checkpoint)))

    assert now() is None
    stream.plan(1, {TOPIC: {"0": 10}}, commit=False)
    assert now() is None
    stream.plan(1, {TOPIC: {"0": 10}})
    assert now() == "the source has nothing newer"
    (log.path / "topic.json").unlink()
    assert now() is None


@pytest.mark.parametrize("logged", [True, False])
def test_a_job_has_caught_up_when_it_has_read_every_file_there_is_to_see(tmp_path: Path, logged: bool) -> None:
    stream = Stream(tmp_path)
    stream.registry("{format: parquet, path: ./in}", "{format: parquet, path: ./out, key: [id]}")
    inputs = [parquet(tmp_path / f"in/day={k}/f {k}.parquet", id=[k]) for k in range(2)]
    for k, file in enumerate(inputs):
        stream.read(k, file)
        if logged:
            sink_log(tmp_path / "in", str(k), file)
    stream.plan(0, {"logOffset": 0})
    job = stream.world().job
    assert caught_up(job, read_checkpoint(open_store(job.checkpoint))) is None
    stream.plan(1, {"logOffset": 1})
    assert caught_up(job, read_checkpoint(open_store(job.checkpoint))) is not None
    parquet(tmp_path / "in/day=2/stray.parquet", id=[2])
    assert (caught_up(job, read_checkpoint(open_store(job.checkpoint))) is not None) == logged
