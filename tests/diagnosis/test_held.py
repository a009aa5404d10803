"""The source itself is asked what it still holds; the verdicts follow."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from recorded import at_home, codes, look

from wizard.diagnosis.diagnose import Diagnosis
from wizard.jobs.model import Source
from wizard.sources.embedded_log import EmbeddedLog, Record

FIXTURE = "spark-4.2-kafka-shaped"  # committed {"events": {"0": 18, "1": 12}} in batch 5
PATHS = ("resume", "replay", "backfill", "reset")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    there = at_home(FIXTURE, tmp_path)
    (there / "checkpoint/sources/0").mkdir(parents=True)
    (there / "checkpoint/sources/0/0").write_bytes(b'v1\n{"events":{"0":0,"1":0}}')
    return there


def a_log(root: Path, records: int = 20) -> EmbeddedLog:
    log = EmbeddedLog.create(root / "log", "events", 2, 100)
    for partition in (0, 1):
        for number in range(records):
            log.append(partition, [Record(number, b"k", b"x" * 40)])
    return log


def ask(root: Path) -> Diagnosis:
    source = Source(format="log", path=str(root / "log"), options={"subscribe": "events"})
    return look(root, reads=(source,), key=("partition", "offset"))


def words(seen: Diagnosis) -> str:
    return " ".join(seen.paths[path]["verdict"] for path in PATHS)


def test_a_source_that_holds_everything_makes_all_four_safe(root: Path) -> None:
    a_log(root)
    assert words(ask(root)) == "safe safe safe safe"


def test_records_that_were_read_and_are_gone_since_stop_only_what_reads_them_again(root: Path) -> None:
    log = a_log(root)
    assert 0 < log.drop_before(0, 18) <= 18
    seen = ask(root)
    assert words(seen) == "safe safe safe blocked"
    assert "SOURCE_LOST" not in codes(seen)
    assert seen.paths["replay"]["earliest_batch"] > 0


def test_records_that_come_next_and_are_gone_stop_all_four(root: Path) -> None:
    log = a_log(root, records=60)
    assert log.drop_before(0, 60) > 18
    seen = ask(root)
    assert "SOURCE_LOST" in codes(seen)
    assert words(seen) == "blocked blocked blocked blocked"


def test_a_topic_that_was_made_anew_stops_all_four(root: Path) -> None:
    log = a_log(root)
    (root / "checkpoint/sources/0/topics").write_text(json.dumps({"events": log.id}))
    assert words(ask(root)) == "safe safe safe safe"
    shutil.rmtree(root / "log")
    a_log(root)
    seen = ask(root)
    assert "TOPIC_RECREATED" in codes(seen)
    assert words(seen) == "blocked blocked blocked blocked"


def test_without_a_checkpoint_a_whole_source_can_still_rebuild(root: Path) -> None:
    a_log(root)
    shutil.rmtree(root / "checkpoint")
    assert words(ask(root)) == "blocked blocked blocked safe"


def test_where_the_stream_began_is_not_guessed(root: Path) -> None:
    log = a_log(root)
    log.drop_before(0, 18)
    (root / "checkpoint/sources/0/0").unlink()
    assert words(ask(root)) == "safe safe safe unknown"


def test_a_source_that_cannot_be_reached_is_not_taken_for_whole(root: Path) -> None:
    assert words(ask(root)) == "safe unknown unknown unknown"


def test_a_batch_before_the_first_record_stands_where_the_stream_began(root: Path) -> None:
    log = a_log(root)
    assert 0 < log.drop_before(0, 3) <= 3  # batch 0 ends at 3
    assert ask(root).paths["replay"]["earliest_batch"] == 0
    for batch in (0, 1):
        at = root / f"checkpoint/offsets/{batch}"
        at.write_text("\n".join([*at.read_text().split("\n")[:-1], "-"]))
    assert ask(root).paths["replay"]["earliest_batch"] == 2


def test_sources_that_the_checkpoint_knows_by_name_are_not_taken_one_for_the_other(root: Path) -> None:
    a_log(root)
    for at in (root / "checkpoint/offsets").glob("[0-9]*"):
        _, meta, line = at.read_text().split("\n")
        at.write_text("\n".join(["v2", meta, f"second:{line}", f"first:{line}"]))
    source = Source(format="log", path=str(root / "log"), options={"subscribe": "events"})
    seen = look(root, reads=(source, source), sources=2, key=("partition", "offset"))
    assert words(seen) == "safe unknown unknown unknown"
    assert "does not say which is which" in seen.paths["reset"]["reasons"][0]
