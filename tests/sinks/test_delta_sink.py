"""Delta tables made by delta-rs: version, rows, the transaction ids that make batches idempotent, and damage."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from recorded import at_home, codes, facts, look

from wizard.errors import BadInput
from wizard.sinks.delta import DeltaSink
from wizard.sinks.interface import SinkReport
from wizard.store import LocalStore

deltalake = pytest.importorskip("deltalake", reason="the delta extra is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

QUERY = "0e8a4dd5-3fa4-4a69-ab58-f8057aee51a0"


def report(table: Path, query_id: str | None = QUERY) -> SinkReport:
    return DeltaSink(LocalStore(str(table))).report(query_id)


def append(table: Path, rows: int, transactions: dict[str, int]) -> None:
    ids = [deltalake.Transaction(app, batch) for app, batch in transactions.items()]
    properties = deltalake.CommitProperties(app_transactions=ids)
    data = pyarrow.table({"id": list(range(rows))})
    deltalake.write_deltalake(str(table), data, mode="append", commit_properties=properties)


@pytest.mark.parametrize("name", ["spark-4.2-delta", "spark-4.2-delta-killed"])
def test_a_recorded_table_holds_what_delta_rs_said_of_it(name: str, tmp_path: Path) -> None:
    root, said = at_home(name, tmp_path), facts(name)
    seen = report(root / "sink", said["query_id"])
    assert (seen.last_batch, seen.rows, seen.idempotent) == (said["transaction_version"], said["rows_written"], True)
    assert seen.details["version"] == said["table_version"]
    assert seen.details["transactions"] == {said["query_id"]: said["transaction_version"]}
    assert seen.files == len(list((root / "sink").glob("*.parquet")))
    assert seen.bytes == sum(path.stat().st_size for path in (root / "sink").glob("*.parquet"))
    assert [entry["version"] for entry in seen.details["history"]] == list(range(said["table_version"], -1, -1))


def test_each_writer_s_newest_batch_is_told_by_its_id(tmp_path: Path) -> None:
    table = tmp_path / "table"
    append(table, 3, {QUERY: 0, "other": 7})
    append(table, 2, {QUERY: 1})
    seen = report(table)
    assert (seen.last_batch, seen.rows, seen.files, seen.details["version"]) == (1, 5, 2, 1)
    assert seen.details["transactions"] == {QUERY: 1, "other": 7}
    assert [entry["operation"] for entry in seen.details["history"]] == ["WRITE", "WRITE"]


def test_a_writer_without_transactions_leaves_idempotence_unknown(tmp_path: Path) -> None:
    append(tmp_path / "table", 3, {})
    seen = report(tmp_path / "table")
    assert (seen.last_batch, seen.idempotent, seen.details["transactions"]) == (None, None, {})


def test_restore_does_not_take_the_transaction_back(tmp_path: Path) -> None:
    table = tmp_path / "table"
    for batch in range(4):
        append(table, 2, {QUERY: batch})
    deltalake.DeltaTable(str(table)).restore(1)
    seen = report(table)
    assert (seen.rows, seen.last_batch) == (4, 3)


def test_an_emptied_table_has_no_rows_and_still_remembers(tmp_path: Path) -> None:
    append(tmp_path / "table", 3, {QUERY: 5})
    deltalake.DeltaTable(str(tmp_path / "table")).delete()
    seen = report(tmp_path / "table")
    assert (seen.rows, seen.files, seen.last_batch) == (0, 0, 5)


def test_rows_are_unknown_where_a_file_has_no_statistics(tmp_path: Path) -> None:
    table = tmp_path / "table"
    append(table, 3, {QUERY: 0})
    commit = table / "_delta_log/00000000000000000000.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    commit.write_text("\n".join(map(json.dumps, lines)))
    assert report(table).rows is None


def test_transactions_survive_a_checkpoint_of_the_table(tmp_path: Path) -> None:
    table = tmp_path / "table"
    append(table, 1, {QUERY: 0})
    append(table, 1, {QUERY: 1})
    deltalake.DeltaTable(str(table)).create_checkpoint()
    for commit in (table / "_delta_log").glob("*.json"):
        commit.unlink()
    seen = report(table)
    assert (seen.last_batch, seen.details["transactions"]) == (1, {QUERY: 1})


def test_no_table_is_not_an_error_of_reading(tmp_path: Path) -> None:
    assert report(tmp_path / "nowhere") == SinkReport("delta", str(tmp_path / "nowhere"), exists=False)


@pytest.mark.parametrize(
    "damage",
    [b"", b"\xff\xfe", b"{", b'{"txn":{"appId":1,"version":1e999}}', b'{"protocol":{"minReaderVersion":99}}', b"[]"],
)
def test_a_damaged_table_is_a_finding_and_blocks_nothing_silently(damage: bytes, tmp_path: Path) -> None:
    root = at_home("spark-4.2-delta", tmp_path)
    for commit in (root / "sink/_delta_log").glob("*.json"):
        commit.write_bytes(damage)
    seen = look(root)
    assert codes(seen) & {"SINK_UNREADABLE", "SINK_ANOTHER_QUERY", "SINK_BEHIND"}
    assert seen.paths["resume"]["verdict"] in ("blocked", "unknown")


def test_a_table_of_another_query_makes_resume_unknown(tmp_path: Path) -> None:
    root = at_home("spark-4.2-delta", tmp_path)
    (root / "checkpoint/metadata").write_text(json.dumps({"id": QUERY}))
    seen = look(root)
    assert "SINK_ANOTHER_QUERY" in codes(seen)
    assert seen.paths["resume"]["verdict"] == "unknown"


def test_a_missing_package_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_delta_log").mkdir()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(BadInput, match=r"pip install 'runbook\[delta\]'"):
        report(tmp_path)
