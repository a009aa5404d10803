"""The batch to go back to: how it is named, and what keeps a walk from it. Over recorded checkpoints."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from recorded import at_home, remove
from worlds import answered, around, look

from wizard.errors import BadInput

HDFS = "spark-4.2-window-hdfs"  # offsets and commits 15 to 18
PLAIN = "spark-4.2-stateless-file"  # offsets and commits 0 to 13, a file in each
FACTS = ("target.offsets", "target.state", "target.source_log", "target.source_rows", "target.sink_log")


@pytest.mark.parametrize("name", [HDFS, "spark-4.2-window-changelog", "spark-4.2-window-format2"])
def test_everything_reaches_back_to_the_second_batch_that_is_kept_and_not_further(name: str, tmp_path: Path) -> None:
    world = around(at_home(name, tmp_path))
    for batch, truth in ((16, "holds"), (15, "fails")):
        world.answers["target"] = {"batch": batch}
        assert look(world, "target.offsets").truth == truth
    world.answers["target"] = {"batch": 16}
    assert {fact: look(world, fact).truth for fact in FACTS} == dict.fromkeys(FACTS, "holds")


@pytest.mark.parametrize(
    ("fact", "lost"),
    [
        ("target.offsets", "checkpoint/offsets/16"),
        ("target.offsets", "checkpoint/commits/17"),
        ("target.state", "checkpoint/state/0/1/18.delta"),
        ("target.source_log", "checkpoint/sources/0/16"),
        ("target.sink_log", "sink/_spark_metadata/16"),
    ],
)
def test_what_is_lost_is_named(fact: str, lost: str, tmp_path: Path) -> None:
    root = at_home(HDFS, tmp_path)
    world = around(root)
    world.answers["target"] = {"batch": 17}
    remove(root, lost)
    seen = look(world, fact)
    assert seen.truth == "fails"
    assert lost.rpartition("/")[2].partition(".")[0] in seen.evidence[0]


def test_input_that_is_gone_is_a_row_that_a_replay_would_lose(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    world.answers["target"] = {"batch": 11}
    assert look(world, "target.source_rows").holds
    newest = max((root / "input").iterdir(), key=lambda path: int(path.stem[1:]))
    newest.unlink()
    seen = look(world, "target.source_rows")
    assert (seen.truth, newest.name in seen.evidence[0]) == ("fails", True)


def test_a_batch_is_named_by_number_time_or_offset(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    times = {}
    for batch in (11, 12):
        text = (root / f"checkpoint/offsets/{batch}").read_text()
        times[batch] = int(text.partition('"batchTimestampMs":')[2].partition(",")[0])
    offset = int((root / "checkpoint/offsets/12").read_text().rpartition('"logOffset":')[2].rstrip("}\n"))
    assert answered(world, "target.by_batch", " 12 ") == {"batch": 12}
    assert answered(world, "target.by_time", str(times[12])) == {"batch": 11}
    assert answered(world, "target.by_time", str(times[12] + 1)) == {"batch": 12}
    assert answered(world, "target.by_time", "2100-01-01T00:00:00Z") == {"batch": 13}
    assert answered(world, "target.by_offset", str(offset)) == {"batch": 12}
    assert answered(world, "target.by_offset", f'{{"logOffset": {offset}}}') == {"batch": 12}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("by_batch", "-1", "not a batch number"),
        ("by_batch", "99", "15 to 18"),
        ("by_time", "yesterday", "2026-03-01T09:30:00Z"),
        ("by_time", "2026-03-01T09:30:00", "time zone"),
        ("by_time", "2001-01-01T00:00:00Z", "no batch was planned before"),
        ("by_offset", "x", "is not an offset"),
        ("by_offset", '{"topic": {"0": 1}}', "no batch"),
    ],
)
def test_what_names_no_batch_is_one_line(name: str, text: str, says: str, tmp_path: Path) -> None:
    world = around(at_home(HDFS, tmp_path))
    with pytest.raises(BadInput, match=says):
        answered(world, f"target.{name}", text)


def test_modes_without_a_batch_by_batch_log_are_unknown(tmp_path: Path) -> None:
    for name in ("spark-4.2-async-progress", "spark-4.2-continuous"):
        world = around(at_home(name, tmp_path))
        world.answers["target"] = {"batch": 2}
        assert look(world, "target.offsets").truth == "unknown"


def test_an_output_that_another_query_began_is_not_cut_by_this_ones_batches(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    world.answers["target"] = {"batch": 11}
    assert look(world, "target.sink_log").holds
    first = root / "checkpoint/offsets/0"
    version, meta, *offsets = first.read_text().splitlines()
    later = json.loads(meta)
    later["batchTimestampMs"] += 24 * 3_600_000
    first.write_text("\n".join([version, json.dumps(later), *offsets]))
    assert look(world, "target.sink_log").truth == "unknown"


def test_state_that_is_gone_as_a_whole_is_not_taken_for_a_job_without_any(tmp_path: Path) -> None:
    root = at_home(HDFS, tmp_path)
    world = around(root)
    world.answers["target"] = {"batch": 16}
    assert look(world, "target.state").holds
    shutil.rmtree(root / "checkpoint/state")
    assert look(world, "target.state").truth == "unknown"


def test_a_checkpoint_that_has_lost_its_id_is_not_taken_back(tmp_path: Path) -> None:
    root = at_home(PLAIN, tmp_path)
    world = around(root)
    world.answers["target"] = {"batch": 11}
    (root / "checkpoint/metadata").unlink()
    seen = look(world, "target.offsets")
    assert (seen.truth, "metadata" in seen.evidence[0]) == ("fails", True)
