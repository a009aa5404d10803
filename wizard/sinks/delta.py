"""A Delta table, read through `deltalake`: its version, its rows, and the transaction ids that make batches idempotent.

A writer that commits with (app id, batch id) is skipped when the table already holds that batch id or a later one.
RESTORE does not take the id back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from wizard.errors import BadInput
from wizard.sinks.interface import SinkProblem, SinkReport
from wizard.store import COMMIT_LIMIT, Store, exists
from wizard.tables import delta_table

LOG = "_delta_log"
_HISTORY = 10
# What deltalake commits to a table as Spark expects it: emptied, restored and read back on Delta 4.4 (docs/connectors.md).
_WRITTEN = frozenset(
    (
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
    )
)
_COMMITS_READ = 200
BACKFILL = "runbook-backfill-"
"""What the transaction ids of this tool's own backfills begin with."""


class DeltaSink:
    format = "delta"

    def __init__(self, store: Store) -> None:
        self.store = store

    def report(self, query_id: str | None) -> SinkReport:
        if self.store.list(LOG) is None:
            return SinkReport("delta", self.store.url, exists=False)
        try:
            table = delta_table(self.store.url)
            version = table.version()
            last = table.transaction_version(query_id) if query_id else None
            history = table.history(_HISTORY)
            rows, size, files = _statistics(table)
            written = _written(table)
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001  deltalake raises its own kinds, and panics of Rust code, for a damaged table
            problem = SinkProblem(
                "SINK_UNREADABLE", f"the Delta table cannot be read: {' '.join(str(error).split())[:200]}"
            )
            return SinkReport("delta", self.store.url, exists=True, problems=(problem,))
        transactions, writers, emptied_at = self._commits(version, query_id)
        if query_id and last is not None:
            transactions[query_id] = int(last)
        others = [at for path, at in written.items() if _another_query(writers.get(path), query_id)]
        return SinkReport(
            "delta",
            self.store.url,
            exists=True,
            last_batch=int(last) if last is not None else None,
            # Only a writer that commits under a transaction id is idempotent; that the id is there shows it does.
            idempotent=True if last is not None else None,
            rows=rows,
            files=files,
            bytes=size,
            # Of another query's files only: a replay goes on under a new id, and a backfill has one of its own.
            oldest_ms=min(others, default=None),
            details={
                "version": int(version),
                "emptied_at": emptied_at if not files else None,
                "transactions": transactions,
                "history": [
                    {
                        "version": entry.get("version"),
                        "operation": entry.get("operation"),
                        "timestamp": entry.get("timestamp"),
                    }
                    for entry in history
                ],
            },
        )

    def _commits(self, version: int, query_id: str | None) -> tuple[dict[str, int], dict[str, str], int | None]:
        """From the commits still in the log: app id → its newest version (`deltalake` only answers for a name one knows),
        data file → the app id that added it, and the newest commit that took rows out behind this query's back."""
        wanted = range(max(0, version - _COMMITS_READ + 1), version + 1)
        contents = self.store.map(lambda v: self.store.read(f"{LOG}/{v:020d}.json", COMMIT_LIMIT), wanted)
        transactions: dict[str, int] = {}
        writers: dict[str, str] = {}
        took: int | None = None
        for number, content in zip(wanted, contents, strict=True):
            app, added, removes = None, [], False
            for kind, action in actions_of(content.data if content.readable else b""):
                if kind == "txn":
                    app, transactions[str(action.get("appId"))] = str(action.get("appId")), action["version"]
                elif kind == "add":
                    added.append(unquote(str(action.get("path"))))
                elif action.get("dataChange", True):
                    removes = True
            writers |= dict.fromkeys(added, app) if app else {}
            took = number if removes and app is None and query_id in transactions else took
        return transactions, writers, took


def actions_of(commit: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The transactions, and the files that come and go; what is not of that form is not ours to judge."""
    for line in commit.splitlines():
        try:
            told = json.loads(line)
            kind = next(iter(told))
            if kind == "txn":
                told[kind]["version"] = int(told[kind]["version"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, StopIteration):
            continue
        if kind in ("txn", "add", "remove") and isinstance(told[kind], dict):
            yield kind, told[kind]


def _another_query(app: str | None, query_id: str | None) -> bool:
    return app is not None and app != query_id and not app.startswith(BACKFILL)


def lost_files(path: str, version: int) -> list[str] | str:
    """Data files of a version that are gone from the store; a text where the version itself can no longer be read."""
    try:
        uris = delta_table(path, version=version).file_uris()
    except Exception as error:  # noqa: BLE001  as in `report`
        return f"version {version} of {path} can no longer be read ({' '.join(str(error).split())[:120]})"
    return [uri for uri in uris if exists(uri) is False]


def cannot_write(path: str) -> str | None:
    """Why this tool must not commit to the table; None where it can."""
    table = delta_table(path)
    if table.metadata().configuration.get("delta.appendOnly", "").lower() == "true":
        return f"{path} is append-only (delta.appendOnly), so nothing can be taken out of it; unset that first"
    if strange := sorted(set(table.protocol().writer_features or ()) - _WRITTEN):
        return (
            f"{path} uses {', '.join(strange)}, which deltalake cannot write; do it with Spark "
            f"(DELETE FROM, RESTORE TABLE) and look again"
        )
    return None


def way_back(path: str, version: int) -> str:
    """How long a table can be taken back to a version, or that it no longer can: to be said before it is left."""
    lost = lost_files(path, version)
    if isinstance(lost, str):
        return f"this cannot be undone: {lost}"
    if lost:
        return f"this cannot be undone: {len(lost)} data files of version {version} were vacuumed, e.g. {lost[0]}"
    told = delta_table(path).metadata().configuration.get("delta.deletedFileRetentionDuration", "interval 1 week")
    return f"it can be undone until a VACUUM takes the files of version {version}, which it may after {told.removeprefix('interval ')}"


def _written(table: Any) -> dict[str, int]:
    """Each data file of the table, with the time at which it was written."""
    import pyarrow as pa

    added = pa.table(table.get_add_actions(flatten=True)).select(["path", "modification_time"]).to_pylist()
    return {unquote(str(row["path"])): int(row["modification_time"]) for row in added}


def _statistics(table: Any) -> tuple[int | None, int, int]:
    """Rows from the files' statistics; None where one file has none."""
    actions = table.get_add_actions(flatten=True)
    names = actions.schema.names if hasattr(actions.schema, "names") else [f.name for f in actions.schema]
    sizes = [int(value.as_py()) for value in actions.column("size_bytes")] if "size_bytes" in names else []
    records = [value.as_py() for value in actions.column("num_records")] if "num_records" in names else []
    rows = sum(int(record) for record in records) if records and all(r is not None for r in records) else None
    return (0 if not sizes else rows), sum(sizes), len(sizes)
