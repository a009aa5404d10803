"""What of an output goes so that it ends with batch N.

A file sink loses the logs past N, newest first, then the data files that no log up to N lists: those of later batches,
and those of a batch that was killed before it was logged. A Delta table goes back to the version before the query's
first commit past N; everything committed since must be the query's own, or the restore would take it too.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass
from typing import Any

from wizard.checkpoint.filelog import read_names
from wizard.checkpoint.rollback import newest_first
from wizard.sinks.delta import LOG as DELTA_LOG
from wizard.sinks.delta import lost_files
from wizard.sinks.file_sink import LOG, FileSink
from wizard.store import COMMIT_LIMIT, Store, open_store
from wizard.tables import delta_table
from wizard.text import some

MARK = "runbook.run"
"""In the commit info of what this tool itself commits: `<run>/<what>`."""


@dataclass(frozen=True, slots=True)
class CannotGoBack:
    """`known` is false where it cannot be told, rather than be told that it cannot."""

    says: str
    known: bool = True


@dataclass(frozen=True, slots=True)
class FileCut:
    """`log` are names in `_spark_metadata`, `data` and `orphans` paths below the sink; orphans are in no log at all."""

    last: int
    log: tuple[str, ...]
    data: tuple[str, ...]
    orphans: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not (self.log or self.data or self.orphans)

    def by_directory(self) -> list[tuple[str, tuple[str, ...]]]:
        """The log first: a reader then sees fewer rows, never a log that names files which are gone."""
        groups: dict[str, list[str]] = {}
        for path in (*self.data, *self.orphans):
            groups.setdefault(posixpath.dirname(path), []).append(posixpath.basename(path))
        found = [(LOG, self.log)] if self.log else []
        return found + [(directory, tuple(names)) for directory, names in sorted(groups.items())]


def file_cut(store: Store, target: int) -> FileCut | CannotGoBack:
    sink = FileSink(store)
    listing = store.list(LOG)
    if listing is None:
        return CannotGoBack(f"{store.url} has no {LOG}, so it does not say which batch a file came from", known=False)
    if listing.error is not None:
        return CannotGoBack(f"{LOG} cannot be listed: {listing.error}", known=False)
    names = read_names(listing.files)
    if names.latest is None or names.latest < target:
        return CannotGoBack(f"the output ends with batch {names.latest}, and never held batch {target}")
    if missing := names.missing_up_to(target):
        return CannotGoBack(f"{LOG}/{missing[0]} is not there, so the files of batch {target} and before are not known")
    kept = sink.listed_up_to(names, target)
    listed = sink.listed_up_to(names, names.latest)
    for each in (kept, listed):
        if isinstance(each, str):
            return CannotGoBack(each)
    assert isinstance(kept, dict) and isinstance(listed, dict)
    on_disk = sink.all_files()
    if gone := sorted(kept.keys() - on_disk.keys()):
        return CannotGoBack(f"{len(gone)} files of batches up to {target} are gone, e.g. {gone[0]}")
    later = sorted(on_disk.keys() & (listed.keys() - kept.keys()))
    if filled := [path for path in later if posixpath.basename(path).startswith("backfill-")]:
        return CannotGoBack(
            f"{len(filled)} files of a backfill were added to the log after batch {target}, e.g. {filled[0]}; a replay would "
            "not bring their rows back: choose a later batch, or reset"
        )
    orphans = sorted(on_disk.keys() - listed.keys() - kept.keys())
    log = newest_first(listing.files, target, compacted=True)
    return FileCut(names.latest, log, _with_crcs(later, on_disk), _with_crcs(orphans, on_disk))


def orphans(store: Store) -> FileCut | CannotGoBack:
    """Data files that no log lists: what batches that were killed, or run again, have left."""
    listing = store.list(LOG)
    latest = read_names(listing.files).latest if listing is not None else None
    if latest is None:
        return CannotGoBack(f"{store.url} has no {LOG}, so it does not say which files count", known=False)
    return file_cut(store, latest)


def _with_crcs(paths: list[str], on_disk: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(each for path in paths for each in (*on_disk[path], path))


@dataclass(frozen=True, slots=True)
class DeltaCut:
    """From `version`, where the table is now, to `to`; `batches` are the query's commits that go."""

    version: int
    to: int
    batches: tuple[int, ...]


def delta_cut(path: str, query_id: str | None, target: int) -> DeltaCut | CannotGoBack:
    store = open_store(path)
    listing = store.list(DELTA_LOG)
    if listing is None:
        return CannotGoBack(f"there is no Delta table at {path}")
    if query_id is None:
        return CannotGoBack("the query's id is lost, so its commits cannot be told from others", known=False)
    numbers = sorted(int(found[1]) for name in listing.files if (found := re.fullmatch(r"(\d{20})\.json", name)))
    commits = {n: _commit(store, n) for n in numbers}
    if not commits:
        return CannotGoBack(f"{path}/{DELTA_LOG} holds no commit that can be read", known=False)
    version = numbers[-1]
    if bad := [n for n, actions in commits.items() if actions is None]:
        return CannotGoBack(f"version {bad[0]} of {path} cannot be read", known=False)
    batches = {n: batch for n, actions in commits.items() if (batch := _batch(actions or [], query_id)) is not None}
    kept = [n for n, batch in batches.items() if batch <= target]
    over = [n for n, batch in batches.items() if batch > target]
    if not kept or batches[max(kept)] != target:
        held = f"its newest up to there is {batches[max(kept)]}" if kept else "the log does not reach back that far"
        return CannotGoBack(f"{path} has no commit of batch {target} of query {query_id}; {held}")
    if not over:
        since = [n for n in numbers if n > max(kept) and n not in batches and not _harmless(commits[n] or [])]
        if taken := [n for n in since if _removes(commits[n] or [])]:
            return CannotGoBack(
                f"version {taken[0]} of {path}, after batch {target}, took rows out; it was not this query"
            )
        return DeltaCut(version, version, ())
    first = min(over)
    if max(kept) > first:
        return CannotGoBack(f"{path} holds the batches of query {query_id} out of order, from version {first} on")
    strangers = [n for n in numbers if n > first and n not in batches and not _harmless(commits[n] or [])]
    if strangers:
        return CannotGoBack(
            f"versions {some(strangers)} of {path}, after batch {target}, were committed by others; a restore would take "
            "their rows too"
        )
    lost = lost_files(path, first - 1)
    if isinstance(lost, str):
        return CannotGoBack(lost)
    if lost:
        return CannotGoBack(f"{len(lost)} data files of version {first - 1} were vacuumed, e.g. {lost[0]}")
    return DeltaCut(version, first - 1, tuple(batches[n] for n in sorted(over)))


def same_files(path: str, version: int, other: int) -> bool:
    """Whether two versions of a table hold the same data files, and so the same rows."""
    return set(delta_table(path, version=version).file_uris()) == set(delta_table(path, version=other).file_uris())


def _commit(store: Store, version: int) -> list[dict[str, Any]] | None:
    content = store.read(f"{DELTA_LOG}/{version:020d}.json", COMMIT_LIMIT)
    if not content.readable:
        return None
    try:
        actions = [json.loads(line) for line in content.data.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None
    return actions if all(isinstance(action, dict) for action in actions) else None


def _batch(actions: list[dict[str, Any]], query_id: str) -> int | None:
    found = [a["txn"] for a in actions if isinstance(a.get("txn"), dict) and a["txn"].get("appId") == query_id]
    return int(found[-1]["version"]) if found else None


def _harmless(actions: list[dict[str, Any]]) -> bool:
    """Neither rows nor columns change (OPTIMIZE, VACUUM), or it is our own: emptied and restored, in an earlier walk."""
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if isinstance(a.get("commitInfo"), dict)), {})
    what = str(info.get(MARK, "")).rpartition("/")[2]
    if what in ("delta_empty", "delta_restore", "undo-delta_append") or what.removeprefix("undo-").isdigit():
        return True
    changes = [a[kind] for a in actions for kind in ("add", "remove") if isinstance(a.get(kind), dict)]
    return not any(change.get("dataChange", True) for change in changes) and not any("metaData" in a for a in actions)


def _removes(actions: list[dict[str, Any]]) -> bool:
    return any(isinstance(a.get("remove"), dict) and a["remove"].get("dataChange", True) for a in actions)
