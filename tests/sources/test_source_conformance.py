"""What every kind of source must do alike, whatever a checkpoint keeps of it. docs/adapters.md says it in words.

A source of your own is a `Case` more. Kafka, which needs a broker, goes through it in tests/connectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from wizard.errors import RunbookError
from wizard.jobs.model import Source
from wizard.sources.embedded_log import EmbeddedLog, Record
from wizard.sources.interface import FileSource, OffsetSource, TableSource, lost
from wizard.sources.open import open_source


@dataclass(frozen=True)
class Case:
    """`add` writes ten rows more; `position` is what a checkpoint that has read half of it keeps; `lose` takes what is
    to be read next, as retention, a VACUUM or a clean-up would; `leave` takes the source away, and `name` is what an error
    must call it by."""

    source: Callable[[Path], Source]
    add: Callable[[Path], None]
    position: Callable[[Path], Any]
    lose: Callable[[Path], None]
    leave: Callable[[Path], object] = lambda root: root.rename(root.with_name("elsewhere"))
    name: Callable[[Path], str] = str


def log_add(root: Path) -> None:
    log = EmbeddedLog(root, "t") if root.exists() else EmbeddedLog.create(root, "t", 1, segment_bytes=100)
    log.append(0, [Record(n, None, b"v" * 20) for n in range(10)])


def files_add(root: Path) -> None:
    root.mkdir(exist_ok=True)
    for _ in range(10):
        pq.write_table(pa.table({"a": [1]}), root / f"part-{len(list(root.iterdir())):03}.parquet")


def delta_add(root: Path) -> None:
    write_deltalake(str(root), pa.table({"a": list(range(10))}), mode="append")


def delta_position(root: Path) -> Any:
    return {"reservoirId": str(DeltaTable(root).metadata().id), "reservoirVersion": 1, "index": -1}


def delta_lose(root: Path) -> None:
    """As the clean-up of the log does: a checkpoint of it, and the commits before that go."""
    DeltaTable(root).create_checkpoint()
    for version in (0, 1):
        (root / "_delta_log" / f"{version:020}.json").unlink()


CASES = {
    "log": Case(
        lambda root: Source("log", str(root), {"subscribe": "t"}),
        log_add,
        lambda root: {"t": {"0": 5}},
        lambda root: EmbeddedLog(root, "t").drop_before(0, 15) and None,
    ),
    "files": Case(
        lambda root: Source("parquet", str(root)),
        files_add,
        lambda root: [str(path) for path in sorted(root.glob("part-*"))[:5]],
        lambda root: (root / "part-003.parquet").unlink(),
    ),
    "delta": Case(
        lambda root: Source("delta", str(root)),
        delta_add,
        delta_position,
        delta_lose,
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def amount(source: Any) -> int | None:
    if isinstance(source, OffsetSource):
        return sum(n for parts in source.ends().latest.values() for n in parts.values())
    return source.rows() if isinstance(source, TableSource) else len(source.seen())


def gone(source: Any, position: Any) -> bool:
    if isinstance(source, OffsetSource):
        return bool(lost(source.ends(), position, None))
    if isinstance(source, TableSource):
        return not source.still_readable(position)[0]
    return bool(source.gone(position)[0])


def test_it_is_of_one_kind_and_of_no_other(case: Case, tmp_path: Path) -> None:
    case.add(tmp_path / "s")
    source = open_source(case.source(tmp_path / "s"))
    assert sum(isinstance(source, kind) for kind in (OffsetSource, FileSource, TableSource)) == 1


def test_it_is_seen_as_it_is_now(case: Case, tmp_path: Path) -> None:
    case.add(tmp_path / "s")
    source = open_source(case.source(tmp_path / "s"))
    assert amount(source) == 10
    case.add(tmp_path / "s")
    assert amount(source) == 20


def test_what_is_gone_is_told_and_nothing_else(case: Case, tmp_path: Path) -> None:
    for _ in range(3):
        case.add(tmp_path / "s")
    source, position = open_source(case.source(tmp_path / "s")), case.position(tmp_path / "s")
    assert not gone(source, position)
    case.lose(tmp_path / "s")
    assert gone(source, position)


def test_a_source_that_is_not_there_is_an_error_or_gone_and_never_whole(case: Case, tmp_path: Path) -> None:
    case.add(tmp_path / "s")
    position = case.position(tmp_path / "s")
    away = open_source(case.source(tmp_path / "s"))
    case.leave(tmp_path / "s")
    try:
        assert gone(away, position)
    except RunbookError as error:
        assert "\n" not in str(error) and case.name(tmp_path / "s") in str(error)
