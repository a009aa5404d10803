"""What every sink can tell before anything is changed. A new kind fills `SinkReport` and is named in `open.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from wizard.checkpoint.filelog import LogNames


@dataclass(frozen=True)
class SinkReport:
    """What was observed. `last_batch` is the newest batch the sink itself remembers; None where it remembers none.

    `idempotent`: whether a batch written twice is there once. True and False are known, None is not known.
    """

    format: str
    path: str
    exists: bool
    last_batch: int | None = None
    idempotent: bool | None = None
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    log: LogNames | None = None
    by_batch: bool = False  # its rows say which batch they came from
    sparse: bool = False  # a batch without rows leaves no trace: the newest written may be newer than `last_batch`
    oldest_ms: int | None = None  # when the oldest file that its log lists was written
    written: dict[int, int] = field(
        default_factory=dict
    )  # when the first file of a batch was written, where that was asked
    details: dict[str, Any] = field(default_factory=dict)
    problems: tuple[SinkProblem, ...] = ()


@dataclass(frozen=True)
class SinkProblem:
    """A finding's code, and what was seen; what it means is for the diagnosis to say."""

    code: str
    evidence: str


class Sink(Protocol):
    def report(self, query_id: str | None) -> SinkReport: ...
