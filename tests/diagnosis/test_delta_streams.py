"""A stream from one Delta table to another: what was done to either of them behind its back, and the verdicts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import worlds
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyarrow import table
from recorded import codes

from wizard.diagnosis.diagnose import Diagnosis, Subject, diagnose
from wizard.errors import RunbookError
from wizard.jobs.model import Source
from wizard.sinks.delta import BACKFILL, cannot_write
from wizard.sinks.rollback import CannotGoBack, DeltaCut, delta_cut
from wizard.sinks.rows import output_files

QUERY = "3b9c4b3e-5d0e-4f5e-9a55-0f3a1f3f0c11"
BATCHES = 3


def append(path: Path, first: int, app: str | None = None, batch: int = 0) -> None:
    ids = [Transaction(app, batch)] if app else []
    properties = CommitProperties(app_transactions=ids)
    rows = table({"id": [10 * first + n for n in range(10)]})
    write_deltalake(str(path), rows, mode="append", commit_properties=properties)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three commits of ten rows, each read and written by a batch of its own."""
    for number in range(BATCHES):
        append(tmp_path / "up", number)
        append(tmp_path / "sink", number, QUERY, number)
    started = min(path.stat().st_mtime for path in (tmp_path / "sink").glob("*.parquet"))
    files = {"metadata": json.dumps({"id": QUERY})}
    for number in range(BATCHES):
        told = {"batchWatermarkMs": 0, "batchTimestampMs": int(started * 1000) - 1000 + number, "conf": {}}
        at = {"sourceVersion": 1, "reservoirId": DeltaTable(str(tmp_path / "up")).metadata().id}
        at |= {"reservoirVersion": number + 1, "index": -1, "isStartingVersion": False}
        files[f"offsets/{number}"] = f"v1\n{json.dumps(told)}\n{json.dumps(at)}"
        files[f"commits/{number}"] = 'v1\n{"nextBatchWatermarkMs":0}'
    for name, text in files.items():
        (tmp_path / "checkpoint" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkpoint" / name).write_text(text)
    return tmp_path


def look(root: Path) -> Diagnosis:
    source = Source(format="delta", path=str(root / "up"))
    places = (str(root / "checkpoint"), str(root / "sink"))
    return diagnose(Subject(*places, spark_version="4.2.0", key=("id",), sources=1, reads=(source,)))


def words(seen: Diagnosis) -> str:
    return " ".join(seen.paths[path]["verdict"] for path in ("resume", "replay", "backfill", "reset"))


def test_whole_it_can_go_on_be_taken_back_and_be_rebuilt(root: Path) -> None:
    append(root / "up", 7)
    seen = look(root)
    assert (words(seen), codes(seen)) == ("safe risky safe safe", set())
    assert seen.paths["replay"]["earliest_batch"] == 0


def test_rows_taken_out_upstream_stop_every_path_that_reads_on(root: Path) -> None:
    DeltaTable(str(root / "up")).delete("id < 4")
    write_deltalake(str(root / "up"), table({"id": [0, 1, 2, 3]}), mode="append")
    seen = look(root)
    assert codes(seen) == {"SOURCE_REWRITTEN"}
    assert words(seen) == "blocked blocked blocked risky"
    assert "is compared first, by the walk" in seen.paths["reset"]["reasons"][0]


def test_a_table_upstream_with_fewer_rows_than_the_output_cannot_rebuild_it(root: Path) -> None:
    DeltaTable(str(root / "up")).delete("id < 4")
    seen = look(root)
    assert words(seen) == "blocked blocked blocked blocked"
    assert seen.paths["reset"]["reasons"] == ["the table that is read holds 26 rows and the output 30"]


def test_a_table_upstream_made_anew_is_another_one(root: Path) -> None:
    shutil.rmtree(root / "up")
    for number in range(BATCHES + 1):
        append(root / "up", number)
    seen = look(root)
    assert codes(seen) == {"SOURCE_REWRITTEN"}
    assert words(seen) == "blocked blocked blocked risky"


def test_of_many_batches_those_behind_the_rewrite_are_told_from_those_after_it(root: Path) -> None:
    """The rewrite is commit 1; a stream that stands behind it goes on, one that would have to read it does not."""
    shutil.rmtree(root / "up")
    append(root / "up", 0)
    DeltaTable(str(root / "up")).delete("id = 3")
    append(root / "up", 1)
    for number in range(BATCHES):
        path = root / f"checkpoint/offsets/{number}"
        version, told, at = path.read_text().splitlines()
        at = json.dumps(json.loads(at) | {"reservoirId": DeltaTable(str(root / "up")).metadata().id})
        path.write_text(f"{version}\n{told}\n{at}")
    seen = look(root)
    assert seen.paths["resume"]["verdict"] == "safe"
    assert (seen.paths["replay"]["verdict"], seen.paths["replay"]["earliest_batch"]) == ("risky", 1)


def test_an_output_emptied_under_the_checkpoint_is_seen_though_it_remembers_its_batches(root: Path) -> None:
    DeltaTable(str(root / "sink")).delete()
    seen = look(root)
    assert codes(seen) == {"SINK_EMPTIED"}
    assert words(seen) == "blocked blocked blocked safe"
    seen_by_the_walk = worlds.look(worlds.around(root, sink="delta", source="delta"), "checkpoint.consistent")
    assert seen_by_the_walk.truth == "fails", "a resume that the diagnosis blocks must not go through"
    for target in range(BATCHES):
        assert isinstance(delta_cut(str(root / "sink"), QUERY, target), CannotGoBack)


def test_rows_of_an_older_query_that_are_still_there_are_seen(root: Path) -> None:
    """The checkpoint was deleted over a full table: a new query wrote every row a second time."""
    (root / "checkpoint/metadata").write_text(json.dumps({"id": "another"}))
    for number in range(BATCHES):
        append(root / "sink", number, "another", number)
        path = root / f"checkpoint/offsets/{number}"
        version, told, at = path.read_text().splitlines()
        told = json.dumps(json.loads(told) | {"batchTimestampMs": json.loads(told)["batchTimestampMs"] + 60_000})
        path.write_text(f"{version}\n{told}\n{at}")
    seen = look(root)
    assert codes(seen) == {"SINK_OLDER"}
    assert words(seen) == "unknown unknown unknown safe"


def test_a_backfill_and_a_replay_under_a_new_id_are_not_taken_for_an_older_query(root: Path) -> None:
    append(root / "sink", 8, f"{BACKFILL}0123", 0)
    (root / "checkpoint/metadata").write_text(json.dumps({"id": "new"}))
    append(root / "sink", 3, "new", 2)
    assert codes(look(root)) == set()


def test_a_backfill_counts_in_the_output_as_of_a_batch_before_it(root: Path) -> None:
    """Batch 2 is in flight: the table has it, and after it the rows of a backfill. As of batch 1 it has those too."""
    append(root / "sink", 8, f"{BACKFILL}0123", 0)
    whole = output_files(str(root / "sink"), "delta", up_to=2, query_id=QUERY)
    before = output_files(str(root / "sink"), "delta", up_to=1, query_id=QUERY)
    assert (len(whole.files), len(before.files)) == (4, 3)
    assert before.as_of == "version 1, the last of batch 1, and what others have added since"


def test_rows_of_others_are_not_forgotten_where_files_were_taken_out_since(root: Path) -> None:
    """The table is compacted after somebody has added to it: as of batch 1 it holds their rows, in files of both."""
    table = str(root / "sink")
    DeltaTable(table).optimize.compact()
    assert len(output_files(table, "delta", up_to=1, query_id=QUERY).files) == 2, "compacting alone changes no row"
    append(root / "sink", 8, "somebody", 0)
    with pytest.raises(RunbookError, match="version 4 was committed by somebody else, and version 3 took files out"):
        output_files(table, "delta", up_to=1, query_id=QUERY)
    assert output_files(table, "delta", up_to=2, query_id=QUERY).as_of == "version 4"


def test_a_commit_that_says_nothing_of_files_hides_none(root: Path) -> None:
    append(root / "sink", 8, "somebody", 0)
    (root / "sink/_delta_log/00000000000000000004.json").write_text('{"commitInfo":{"operation":"VACUUM START"}}\n')
    assert len(output_files(str(root / "sink"), "delta", up_to=1, query_id=QUERY).files) == 3


def test_an_output_that_only_a_backfill_has_added_to_stays_at_its_newest_batch(root: Path) -> None:
    append(root / "sink", 8, f"{BACKFILL}0123", 0)
    assert delta_cut(str(root / "sink"), QUERY, 2) == DeltaCut(3, 3, ())


@pytest.mark.parametrize("feature", ["rowTracking", "inCommitTimestamp", "domainMetadata"])
def test_a_table_that_deltalake_cannot_write_is_refused_with_what_to_do(root: Path, feature: str) -> None:
    commit = root / "sink/_delta_log/00000000000000000003.json"
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [feature, "domainMetadata"]}
    commit.write_text(json.dumps({"protocol": protocol}) + "\n")
    why = cannot_write(str(root / "sink"))
    assert why is not None and feature in why
    assert why.endswith("do it with Spark (DELETE FROM, RESTORE TABLE) and look again")
