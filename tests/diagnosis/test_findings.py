"""Every finding of the catalogue comes out of files: damage a recorded checkpoint, and the code is told."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from recorded import NAMES, ROOT, as_recorded, at_home, codes, facts, look, remove
from restart_cases import (
    CHANGELOG,
    FORMAT2,
    ROCKSDB,
    ROWS,
    WINDOWS,
    Damage,
    all_of,
    cut,
    empty,
    last_sst,
    lose,
    second_source,
    touch,
    write,
)

from wizard.diagnosis.diagnose import Subject, diagnose
from wizard.diagnosis.explain import explain
from wizard.diagnosis.findings import CATALOGUE

KILLED = "spark-4.2-stateless-killed"  # planned 2, committed 1, an orphan file in the sink
DELTA = "spark-4.2-delta"  # planned and committed 4, the table at txn 4
SINK_LOG = "../sink/_spark_metadata"
JOIN3 = "spark-4.2-join-rocksdb3"
OPERATOR = "state/0/_metadata/v2/0"


def nothing(_: Path) -> None:
    pass


def sink_file(checkpoint: Path) -> Path:
    return next((checkpoint.parent / "sink").glob("part-*"))


def edit(path: str, old: str, new: str) -> Damage:
    return lambda checkpoint: write(path, (checkpoint / path).read_bytes().replace(old.encode(), new.encode()))(
        checkpoint
    )


def moved(checkpoint: Path) -> None:
    log = checkpoint / SINK_LOG
    for path in log.glob("[0-9]*"):
        path.write_bytes(path.read_bytes().replace(b"/sink/", b"/before/"))


def planned_an_hour_later(batch: int) -> Damage:
    """The batch planned an hour after its files were written, by the times in the two logs."""
    return lambda checkpoint: later_than(checkpoint, batch, [checkpoint / SINK_LOG / str(batch)])


def began_an_hour_later(checkpoint: Path) -> None:
    """Batch 0 planned an hour after the oldest file of the output was written."""
    later_than(checkpoint, 0, [path for path in (checkpoint / SINK_LOG).iterdir() if path.name[0] != "."])


def later_than(checkpoint: Path, batch: int, logs: list[Path]) -> None:
    entries = [json.loads(line) for path in logs for line in path.read_text().splitlines()[1:]]
    oldest = min(entry["modificationTime"] for entry in entries)
    path = checkpoint / f"offsets/{batch}"
    version, meta, *offsets = path.read_text().splitlines()
    later = json.loads(meta) | {"batchTimestampMs": oldest + 3_600_000}
    path.write_text("\n".join([version, json.dumps(later), *offsets]))


def into_state(version: int) -> Damage:
    return lambda checkpoint: write(f"state/0/0/{version}.delta", b"")(checkpoint)


def link_in(checkpoint: Path) -> None:
    """A foreign file at the root and one in a log."""
    write("notes.txt", b"x")(checkpoint)
    write("offsets/13.bak", b"x")(checkpoint)


@dataclass(frozen=True)
class Case:
    code: str
    fixture: str
    damage: Damage
    says: str
    how: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code}: {self.says}"


CASES = [
    Case("CHECKPOINT_ABSENT", ROWS, lose(""), "there is no checkpoint"),
    Case("METADATA_MISSING", ROWS, lose("metadata"), "metadata: the file is not there"),
    Case("METADATA_UNREADABLE", ROWS, cut("metadata", 9), "metadata: it is not JSON"),
    Case("FENCED", ROWS, write("metadata", b'{"runbook_lock":"run-1"}'), "the checkpoint is fenced"),
    Case("OFFSETS_UNREADABLE", ROWS, write("offsets/12", b""), "offsets/12 is empty"),
    Case("OLD_ENTRY_UNREADABLE", ROWS, write("offsets/3", b"garbage"), "offsets/3 does not start with a version"),
    Case("OFFSETS_GAP", ROWS, lose("offsets/12"), "offsets/12 is not there"),
    Case("OFFSETS_HOLES", ROWS, lose("offsets/5"), "older offsets are missing"),
    Case("COMMIT_UNREADABLE", ROWS, write("commits/13", b""), "commits/13 is empty"),
    Case("COMMITS_BEHIND", ROWS, lose("commits/13", "commits/12"), "batches 12, 13 are planned and not committed"),
    Case(
        "COMMITS_BEHIND",
        ROWS,
        lose("commits/13", "commits/12", "offsets/12"),
        "batch 13 is planned and not committed",
    ),
    Case("COMMITS_AHEAD", ROWS, lose("offsets/13"), "commits/13 is ahead of offsets/12"),
    Case("COMMITS_WITHOUT_OFFSETS", ROWS, empty("offsets"), "commits are there and no offsets"),
    Case("HALF_DELETED", WINDOWS, empty("offsets", "commits"), "state/ is left beside empty offsets"),
    Case(
        "HALF_DELETED",
        ROWS,
        all_of(empty("offsets", "commits"), write("offsets/.0.7c1e.tmp", b"")),
        "offsets/.0.7c1e.tmp is left beside empty offsets",
    ),
    Case("START_PINNED", "spark-4.2-rate", empty("offsets", "commits"), "source 0 remembers where it began"),
    Case("BATCH_IN_FLIGHT", KILLED, nothing, "batch 2 was in flight"),
    Case("STATE_BROKEN", WINDOWS, lose("state/0/1/19.delta"), "state version 19 cannot be loaded in 1 store"),
    Case("STATE_BROKEN", ROCKSDB, last_sst, "state version 19 cannot be loaded in state/0/0"),
    Case("STATE_BROKEN", CHANGELOG, lose("state/0/1"), "operator 0 lacks partitions"),
    Case("STATE_ABSENT", WINDOWS, lose("state"), "there is no state/, and the watermark has moved"),
    Case(
        "STATE_SCHEMA_MOVED",
        JOIN3,
        edit(OPERATOR, "/state/0/_stateSchema", "/old/0/_stateSchema"),
        "operator 0 looks for",
    ),
    Case(
        "STATE_SCHEMA_GONE",
        JOIN3,
        all_of(
            edit(OPERATOR, "symmetricHashJoin", "transformWithStateExec"),
            edit(OPERATOR, "/state/0/_stateSchema", "/old/0/_stateSchema"),
        ),
        "operator 0 looks for the schema of its state elsewhere",
    ),
    Case("STATE_STALE", WINDOWS, into_state(21), "state is ahead of batch 18"),
    Case("STATE_FOREIGN", WINDOWS, write("state/0/0/notes.txt", b""), "1 foreign file among the state"),
    Case("OPERATOR_METADATA_UNREADABLE", WINDOWS, write("state/0/_metadata/metadata", b"v1\n{"), "state/0/_metadata"),
    Case("SOURCE_LOG_BROKEN", ROWS, lose("sources/0/13"), "sources/0 ends at 12, the offsets are at 13"),
    Case("SOURCE_LOG_BROKEN", ROWS, lose("sources/0/11"), "sources/0/11 is not there"),
    Case("SOURCES_DIFFER", ROWS, second_source, "batch 13 has 2 sources, batch 12 has 1"),
    Case("SOURCES_DIFFER", ROWS, nothing, "the registry names 2 sources, the checkpoint has 1", {"sources": 2}),
    Case("INPUT_GONE", ROWS, lose("commits/13", "../input/f13.json"), "1 input file of batch 13 is gone"),
    Case("INPUT_TOUCHED", ROWS, touch("../input/f3.json"), "1 input file of source 0 is newer than when read"),
    Case("ORPHAN_CRC", ROWS, write("offsets/.14.crc", b"crc\0"), "offsets/.14.crc has no main file"),
    Case("ORPHAN_CRC", ROWS, lambda c: (c / "commits/13").unlink(), "commits/.13.crc has no main file"),
    Case("TEMPORARY_FILES", ROWS, write("offsets/.3.ab.tmp", b""), "1 temporary file in offsets"),
    Case("FOREIGN_FILES", ROWS, link_in, "1 foreign entry at the root"),
    Case("NEWER_FORMAT", ROWS, write("offsets/13", b"v9\n{}\n{}"), "offsets/13 is version v9"),
    Case("ASYNC_PROGRESS", "spark-4.2-async-progress", nothing, "only some batches are logged"),
    Case("CONTINUOUS_MODE", "spark-4.2-continuous", nothing, "this is a continuous query"),
    Case(
        "REPARTITIONED",
        WINDOWS,
        edit("offsets/18", '"spark.sql.shuffle.partitions":"2"', '"spark.sql.shuffle.partitions":"5"'),
        "spark.sql.shuffle.partitions went from 2 to 5 at batch 18",
    ),
    Case(
        "REPARTITION_UNFINISHED",
        WINDOWS,
        all_of(
            edit("offsets/18", '"spark.sql.shuffle.partitions":"2"', '"spark.sql.shuffle.partitions":"5"'),
            lose("commits/18"),
        ),
        "batch 18 repartitions the state and has no commit",
    ),
    Case("SINK_UNKNOWN_KIND", ROWS, nothing, "no reader for a sink of kind jdbc", {"sink_format": "jdbc"}),
    Case("SINK_UNREADABLE", DELTA, write("../sink/_delta_log/00000000000000000002.json", b"{"), "cannot be read"),
    Case("SINK_LOG_UNREADABLE", ROWS, write(f"{SINK_LOG}/12", b"v1\n{"), "the sink's log cannot be parsed"),
    Case("SINK_LOG_HOLE", ROWS, lose(f"{SINK_LOG}/11"), "the sink's log has a hole"),
    Case("SINK_LOG_ABSENT", ROWS, lose(SINK_LOG), "the sink holds data files and has no log"),
    Case("SINK_FILES_GONE", ROWS, lambda c: sink_file(c).unlink(), "files that the sink's log lists are gone"),
    Case("SINK_ORPHANS", KILLED, nothing, "the sink holds data files that its log does not list"),
    Case("SINK_MOVED", ROWS, moved, "the sink's log names files under another path"),
    Case(
        "SINK_AHEAD",
        ROWS,
        lose("offsets/13", "offsets/12", "commits/13", "commits/12"),
        "batches 12 to 13 would be skipped without an error",
    ),
    Case("SINK_BEHIND", ROWS, lose(f"{SINK_LOG}/13"), "batch 13 is committed and not in the sink"),
    Case("SINK_OLDER", ROWS, began_an_hour_later, "the output holds files from 3600 s before this checkpoint began"),
    Case(
        "SINK_OLDER",
        ROWS,
        planned_an_hour_later(12),
        "the output's files of batch 12 are 3600 s older than this checkpoint's batch",
    ),
    Case(
        "SPARK_TOO_OLD",
        "spark-4.2-named-sources",
        nothing,
        "offsets/4 was written by a newer Spark than 3.5",
        {"spark_version": "3.5.1"},
    ),
    Case(
        "SPARK_TOO_OLD",
        FORMAT2,
        nothing,
        "commits/18 was written by a newer Spark than 3.5",
        {"spark_version": "3.5.1"},
    ),
    Case("ORPHAN_CRC", ROWS, write(f"{SINK_LOG}/.14.crc", b"crc\0"), "_spark_metadata/.14.crc has no main file"),
    Case("SINK_ANOTHER_QUERY", DELTA, write("metadata", b'{"id":"new"}'), "the table knows 1 other writer and not"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_damage_is_told_by_its_code(case: Case, tmp_path: Path) -> None:
    root = at_home(case.fixture, tmp_path)
    before = codes(look(root))
    case.damage(root / "checkpoint")
    seen = look(root, **case.how)
    told = [found for found in seen.findings if found.code == case.code]
    assert any(case.says in found.message for found in told), [found.message for found in seen.findings]
    assert (case.code in before) == (case.damage is nothing and not case.how)


def test_a_sink_that_is_gone_is_told(tmp_path: Path) -> None:
    root = at_home(ROWS, tmp_path)
    shutil.rmtree(root / "sink")
    seen = diagnose(Subject(str(root / "checkpoint"), str(root / "sink")))
    (told,) = [found for found in seen.findings if found.severity == "error"]
    assert (told.code, told.message) == ("SINK_ABSENT", "batches up to 13 are committed and the sink is not there")


def test_an_operator_without_keys_declares_the_session_s_partitions_and_keeps_one(tmp_path: Path) -> None:
    """As 4.2 was seen to leave it for `groupBy().count()`; with keys the same is a partition that is gone."""
    root = at_home(WINDOWS, tmp_path)
    shutil.rmtree(root / "checkpoint/state/0/1")
    assert "STATE_BROKEN" in codes(look(root))
    text = {name: json.dumps({"type": "struct", "fields": fields}).encode() for name, fields in (
        ("key", []), ("value", [{"name": "count", "type": "long", "nullable": False, "metadata": {}}]))}  # fmt: skip
    chunks = b"".join(struct.pack(">iH", 1, len(each)) + each for each in text.values())
    write("state/0/0/_metadata/schema", b"\0\2v2" + chunks)(root / "checkpoint")
    seen = look(root)
    assert "STATE_BROKEN" not in codes(seen)
    assert [(op.partitions, op.needed, op.on_disk) for op in seen.checkpoint.operators] == [(2, 1, 1)]


def test_operators_that_are_not_there_are_told_at_once(tmp_path: Path) -> None:
    root = at_home(WINDOWS, tmp_path)
    (root / "checkpoint/state/9223372036854775807").mkdir()  # of no query
    assert "STATE_BROKEN" not in codes(look(root))
    (root / "checkpoint/state/900").mkdir()
    (told,) = [found for found in look(root).findings if found.code == "STATE_BROKEN"]
    assert told.message == "900 operators lack partitions"


def test_a_directory_of_something_else_is_not_a_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    assert codes(diagnose(Subject(str(tmp_path)))) == {"NOT_A_CHECKPOINT"}


@pytest.mark.parametrize("log", ["offsets", "commits", "sources/0"])
def test_a_single_log_is_told_from_a_checkpoint(log: str, tmp_path: Path) -> None:
    root = at_home(ROWS, tmp_path)
    seen = diagnose(Subject(str(root / "checkpoint" / log)))
    assert "BARE_LOG" in codes(seen)
    assert {path["verdict"] for path in seen.paths.values()} <= {"unknown", "blocked"}


def test_a_directory_that_may_not_be_listed_is_told_and_nothing_is_promised() -> None:
    with tempfile.TemporaryDirectory() as there:
        Path(there).chmod(0o755)
        root = at_home(WINDOWS, Path(there))
        look(root)
        (root / "checkpoint/commits").chmod(0)
        seen = as_nobody(lambda: look(root))
    assert codes(seen) == {"UNLISTED"}
    assert {name: path["verdict"] for name, path in seen.paths.items()} == dict.fromkeys(seen.paths, "unknown")


def as_nobody(act: Callable[[], Any]) -> Any:
    """Root may list everything, so it steps down for as long as it takes."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        return act()
    finally:
        os.seteuid(me)


def test_a_log_beside_the_checkpoint_adds_what_it_shows(tmp_path: Path) -> None:
    log = (ROOT / "fixtures/logs/4.2/state_delta_missing.log").read_bytes()
    root = at_home(ROWS, tmp_path)
    mine = json.loads((root / "checkpoint/metadata").read_text())["id"].encode()
    (its,) = set(re.findall(rb"\[id = ([0-9a-f-]{36}), runId", log))
    subject = Subject(str(root / "checkpoint"), str(root / "sink"))
    seen = diagnose(subject, explain(log.replace(its, mine)))
    (told,) = [found for found in seen.findings if found.code == "LOG_SIGNATURE"]
    assert "STATE_FILE_MISSING" in told.message
    assert seen.paths["resume"]["verdict"] == "blocked"
    # A driver runs several queries: the failure of another one says nothing of this checkpoint.
    seen = diagnose(subject, explain(log))
    (told,) = [found for found in seen.findings if found.code.startswith("LOG_")]
    assert told.message == f"the log is of query {its.decode()}, the checkpoint of {mine.decode()}"
    assert seen.paths["resume"]["verdict"] == "safe"


def test_every_code_of_the_catalogue_is_produced_by_a_test_here() -> None:
    elsewhere = {"NOT_A_CHECKPOINT", "SINK_ABSENT", "BARE_LOG", "UNLISTED", "LOG_SIGNATURE", "LOG_OF_ANOTHER_QUERY"}
    elsewhere |= {"SOURCE_LOST", "TOPIC_RECREATED"}  # test_held.py
    elsewhere |= {"SOURCE_REWRITTEN", "SINK_EMPTIED"}  # test_delta_streams.py
    elsewhere |= {"CONSUMER_AHEAD"}  # tests/engine/test_consumers.py
    assert {case.code for case in CASES} | elsewhere == set(CATALOGUE)


def test_every_kind_says_what_it_means_and_what_to_do() -> None:
    for kind in CATALOGUE.values():
        assert kind.meaning.endswith((".", "'.")) and kind.remedy.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_checkpoint_has_no_error(name: str, tmp_path: Path) -> None:
    seen = look(at_home(name, tmp_path))
    assert [found.code for found in seen.errors] == []
    assert ("BATCH_IN_FLIGHT" in codes(seen)) == facts(name)["killed"]


@pytest.mark.parametrize("name", [name for name in NAMES if "window" in name])
def test_a_copy_without_its_input_has_no_input_to_go_back_to(name: str, tmp_path: Path) -> None:
    root = as_recorded(name, tmp_path)
    remove(root, "input")
    for log in (root / "checkpoint/sources/0").glob("[0-9]*"):
        log.write_bytes(log.read_bytes().replace(b"/tmp/runbook-fixture", b"/nowhere"))
    seen = look(root, sink=False)
    assert seen.paths["reset"]["verdict"] == "blocked"
    assert json.dumps(seen.as_dict()["paths"]["reset"]["reasons"]).count("18 of 18 input files of source 0 are gone")
