"""What docs/connectors.md claims about Spark, Kafka and Delta, and what the tool concludes, against what really happened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from had import ROOT, have

from wizard.diagnosis.explain import explain
from wizard.sinks.delta import cannot_write
from wizard.sources.delta import DeltaSource, position

if TYPE_CHECKING:
    from broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]

Facts = dict[str, Any]


@pytest.fixture(scope="module")
def facts(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Facts:
    have("kafka", "delta")
    place = tmp_path_factory.mktemp("facts")
    command = [sys.executable, Path(__file__).with_name("facts.py"), place, broker.address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    found: Facts = json.loads((place / "facts.json").read_text())
    return found


def test_a_batch_that_the_table_remembers_is_skipped_without_an_error(facts: Facts) -> None:
    sink = facts["delta_sink"]
    assert (sink["whole"], sink["txn"]) == ([0, 1, 2], 2)
    assert sink["txn_after_restore"] == 2, "RESTORE does not take the transaction back"
    assert sink["replay_under_the_same_id"] == [0], "batches 1 and 2 were skipped, and their rows lost"


def test_a_lowered_transaction_is_accepted_by_sparks_sink(facts: Facts) -> None:
    assert facts["delta_sink"]["replay_with_the_txn_lowered"] == [0, 1, 2]


def test_a_new_query_doubles_what_the_table_holds_unless_it_was_emptied(facts: Facts) -> None:
    assert facts["delta_sink"]["reset_over_the_full_table"] == [0, 0, 1, 1, 2, 2]
    assert facts["delta_sink"]["reset_over_the_emptied_table"] == [0, 1, 2]


def test_the_offset_of_a_delta_source_has_the_shape_we_read(facts: Facts) -> None:
    at = position(facts["delta_source"]["offset"])
    assert at is not None
    # Versions 0, 1 and 2 are the three batches; all of them are read.
    assert (at.version, at.between, at.starting) == (3, True, False)


DIES_OF = {
    "appended": "",
    "emptied": "DELTA_SOURCE_IGNORE_DELETE",
    "replaced": "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
    "undone": "DELTA_SOURCE_IGNORE_DELETE",
    "anew": "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
    "cleaned": "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
}


@pytest.mark.parametrize("case", DIES_OF)
def test_a_stream_on_a_table_dies_of_what_we_say_and_we_see_it_coming(facts: Facts, case: str) -> None:
    found = facts["delta_source"][case]
    assert DIES_OF[case] in found["error"]
    assert bool(found["error"]) == bool(DIES_OF[case]), found["error"]
    can, why = DeltaSource(found["table"]).still_readable(facts["delta_source"]["offset"])
    assert can == (not found["error"]), why


def test_a_stream_that_ignores_deletes_keeps_rows_that_are_gone_and_is_not_called_readable(facts: Facts) -> None:
    found = facts["delta_source"]["emptied_and_ignored"]
    assert (found["error"], found["rows"]) == ("", [0, 1, 2, 7]), "three rows that the table no longer has"
    can, why = DeltaSource(found["table"], found["options"]).still_readable(facts["delta_source"]["offset"])
    assert not can and "keeps the rows it had read" in why


def test_after_an_undo_a_stream_goes_on_from_an_offset_behind_it(facts: Facts) -> None:
    found = facts["delta_source"]["undone_and_moved"]
    assert (found["error"], found["rows"]) == ("", [0, 1, 2, 7])


@pytest.mark.parametrize(
    "name",
    [
        "column_mapping",
        "deletion_vectors",
        "row_tracking",
        "in_commit_timestamps",
        "append_only",
        "check_constraints",
        "generated_columns",
        "timestamp_ntz",
    ],
)
def test_what_deltalake_cannot_write_is_refused_and_what_it_can_spark_reads(facts: Facts, name: str) -> None:
    found = facts["features"][name]
    refused = cannot_write(found["path"])
    assert (refused is not None) == ("refused" in found), (refused, found)
    if "refused" not in found:
        assert len(found["had"]) == (9 if name == "deletion_vectors" else 10)
        assert (found["emptied"], found["back"]) == ([], found["had"])


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("earliest", {"0": 1, "1": 0}),
        ("latest", {"0": 5, "1": 2}),
        ("json", {"0": 1, "1": 1}),
        ("time", {"0": 1, "1": 1}),
        ("times", {"0": 2, "1": 0}),
    ],
)
def test_spark_pins_where_a_query_begins_and_we_say_the_same(
    facts: Facts, broker: Broker, form: str, begins: dict[str, int]
) -> None:
    from wizard.sources.kafka import KafkaSource

    found = facts["kafka"][f"begins_{form}"]
    assert found["error"] == ""
    zero, _, text = found["pinned"].partition("v1\n")
    assert zero == "\0"
    assert json.loads(text) == {"begins": begins}
    servers = {"kafka.bootstrap.servers": broker.address, "subscribe": "begins"}
    assert KafkaSource(servers | found["options"]).starting() == {"begins": begins}


def test_records_that_aged_out_stop_the_query(facts: Facts) -> None:
    found = facts["kafka"]["aged"]
    assert found["offset"] == {"lived-aged": {"0": 5}}
    assert "TASK_WRITE_FAILED" in found["error"], "why is only in the log: see the next test for the words"
    assert found["rows"] == [0, 1, 2, 3, 4]


def test_a_topic_created_anew_and_shorter_stops_the_query(facts: Facts) -> None:
    """Without the error class that FAILURES.md names; `explain` has to know the words."""
    error = facts["kafka"]["shorter"]["error"]
    assert "Partition lived-shorter-0 offset was changed from 5 to 2" in error
    assert [match.signature.code for match in explain(error).matches] == ["KAFKA_DATA_LOSS"]


def test_a_topic_created_anew_and_longer_loses_its_first_records_without_an_error(facts: Facts) -> None:
    """FAILURES.md, row 19."""
    found = facts["kafka"]["longer"]
    assert found["error"] == ""
    assert found["rows"] == [0, 1, 2, 3, 4, 5, 6, 7], "offsets 0–4 are of the old topic; the new one's were never read"


def test_a_partition_that_was_added_is_read_from_its_beginning(facts: Facts) -> None:
    assert facts["kafka"]["grown"] | {"offset": None} == {"error": "", "rows": [0, 0, 1, 1, 2, 3, 4], "offset": None}
