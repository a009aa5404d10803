"""The four paths, each safe, risky, blocked or unknown, with the reasons.

Safe and risky promise the same end: every source row in the sink exactly once; risky needs a step first that its reasons
name. Blocked means it would lose or double rows, or Spark would refuse. Unknown is never taken for yes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from wizard.checkpoint.reader import Checkpoint
from wizard.diagnosis.explain import Match
from wizard.diagnosis.findings import Finding
from wizard.diagnosis.reach import Reach
from wizard.diagnosis.restart import Restart
from wizard.sinks.interface import SinkReport
from wizard.sources.files import InputReport
from wizard.text import is_are, plural

if TYPE_CHECKING:
    from wizard.diagnosis.held import Asked, Held, HeldTable

Word = Literal["safe", "risky", "blocked", "unknown"]
_RANK: dict[Word, int] = {"safe": 0, "risky": 1, "unknown": 2, "blocked": 3}

_BLOCKS_RESUME = frozenset(
    [
        "CHECKPOINT_ABSENT",
        "NOT_A_CHECKPOINT",
        "METADATA_MISSING",
        "METADATA_UNREADABLE",
        "FENCED",
        "COMMITS_BEHIND",
        "COMMITS_AHEAD",
        "ORPHAN_CRC",
        "STATE_BROKEN",
        "STATE_STALE",
        "STATE_SCHEMA_GONE",
        "SOURCES_DIFFER",
        "SOURCE_LOST",
        "SOURCE_REWRITTEN",
        "TOPIC_RECREATED",
        "INPUT_GONE",
        "INPUT_TOUCHED",
        "NEWER_FORMAT",
        "REPARTITION_UNFINISHED",
        "SPARK_TOO_OLD",
        "SINK_ABSENT",
        "SINK_AHEAD",
        "SINK_BEHIND",
        "SINK_EMPTIED",
        "SINK_LOG_HOLE",
        "SINK_LOG_ABSENT",
        "SINK_LOG_UNREADABLE",
        "SINK_FILES_GONE",
        "SINK_MOVED",
    ]
)
_UNKNOWN_FOR_ALL = frozenset({"UNLISTED", "SINK_UNREADABLE", "BARE_LOG"})
_SINK_BEYOND_REPLAY = frozenset(
    {"SINK_ABSENT", "SINK_EMPTIED", "SINK_LOG_HOLE", "SINK_LOG_ABSENT", "SINK_LOG_UNREADABLE", "SINK_FILES_GONE"}
    | {"SINK_MOVED"}
)
_UNKNOWN_WITH_THIS_CHECKPOINT = frozenset({"STATE_ABSENT", "SINK_OLDER"})
_CONSUMERS = frozenset({"CONSUMER_AHEAD"})
_NO_READER = frozenset({"SINK_UNKNOWN_KIND"})
_MAKES_NEW_ROWS = frozenset({"rate", "rate-micro-batch"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a verdict is made from."""

    checkpoint: Checkpoint
    restart: Restart
    findings: tuple[Finding, ...]
    reach: Reach
    sink: SinkReport | None
    inputs: Mapping[str, InputReport]
    held: Mapping[str, Asked] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    aggregates: bool = False
    failure: Match | None = None

    def having(self, codes: frozenset[str]) -> list[Finding]:
        return [finding for finding in self.findings if finding.code in codes]


class _Verdict:
    """Reasons gathered; the worst of them is the verdict. What speaks for a path that is blocked is left out."""

    def __init__(self) -> None:
        self.word: Word = "safe"
        self.found: dict[str, Word] = {}

    def add(self, word: Word, reason: str) -> None:
        if _RANK[word] > _RANK[self.word]:
            self.word = word
        self.found.setdefault(reason, word)

    @property
    def reasons(self) -> list[str]:
        worst_first = sorted(self.found.items(), key=lambda item: -_RANK[item[1]])
        return [reason for reason, word in worst_first if self.word != "blocked" or word != "safe"]

    def as_dict(self, **more: Any) -> dict[str, Any]:
        return {"verdict": self.word, "reasons": self.reasons, **more}


def verdicts(seen: Evidence) -> dict[str, dict[str, Any]]:
    return {"resume": _resume(seen), "replay": _replay(seen), "backfill": _backfill(seen), "reset": _reset(seen)}


def _resume(seen: Evidence) -> dict[str, Any]:
    verdict = _Verdict()
    restart, sink = seen.restart, seen.sink
    for found in seen.having(_BLOCKS_RESUME):
        verdict.add("blocked", found.message)
    _common(verdict, seen, _UNKNOWN_WITH_THIS_CHECKPOINT)
    if restart.action == "refused":
        verdict.add("blocked", f"Spark refuses: {restart.error}")
    elif restart.action == "unknown":
        verdict.add("unknown", restart.says)
    elif restart.action == "fresh":
        verdict.add("blocked", "there is no batch to resume from: it would start at batch 0")
    if seen.checkpoint.async_progress:
        verdict.add("risky", "start it with async progress tracking on, as it was")
    if restart.action == "rerun":
        _runs_again(verdict, sink, f"batch {restart.batch} runs again")
    elif restart.action == "next" and seen.checkpoint.continuous:
        # Rows leave as they are read, and an epoch is committed after them.
        _runs_again(verdict, sink, f"{restart.says}, and what was written after that is written again")
    elif restart.action == "next" and seen.checkpoint.async_progress:
        _runs_again(
            verdict, sink, f"{restart.says}; what ran after batch {seen.checkpoint.planned} unlogged runs again"
        )
    elif restart.action == "next":
        verdict.add("safe", restart.says + ("" if _looked_at(seen) else "; the sink was not looked at"))
    if seen.having(frozenset({"SINK_ANOTHER_QUERY"})):
        verdict.add("unknown", "the sink knows other writers and not this query")
    for found in seen.having(_CONSUMERS):
        verdict.add("risky", f"{found.message}: it must be stopped first, and reset or replayed after")
    if seen.failure is not None and seen.failure.signature.severity == "error":
        cause = seen.failure.signature
        if cause.path not in ("resume", "none"):
            verdict.add("blocked", f"the log shows {cause.code}: {cause.title}; resume would meet it again")
        else:
            verdict.add("safe", f"the log shows {cause.code}: {cause.remedy}")
    return verdict.as_dict(batch=restart.batch, action=restart.action)


def _runs_again(verdict: _Verdict, sink: SinkReport | None, what: str) -> None:
    if sink is None:
        verdict.add("unknown", f"{what}, and the sink was not looked at")
    elif sink.idempotent is None:
        verdict.add("unknown", f"{what}; whether this sink takes it twice is not known")
    elif sink.idempotent is False:
        why = f"; {sink.details['tried']}" if sink.details.get("tried") else ""
        verdict.add("risky", f"{what}: what it already wrote must be removed first{why}")
    else:
        verdict.add("safe", f"{what}; the sink keeps a batch written twice once")


def _looked_at(seen: Evidence) -> bool:
    """A sink of a kind that has no reader is declared, not seen."""
    return seen.sink is not None and not seen.having(_NO_READER)


def _replay(seen: Evidence) -> dict[str, Any]:
    verdict = _Verdict()
    earliest = seen.reach.earliest
    if earliest is None:
        not_seen = seen.checkpoint.unlisted or seen.checkpoint.foreign_provider
        verdict.add("unknown" if not_seen else "blocked", seen.reach.why)
    else:
        verdict.add("safe", f"can go back as far as the end of batch {earliest}: {seen.reach.why}")
    for found in seen.having(
        _SINK_BEYOND_REPLAY
        | {
            "FENCED",
            "NEWER_FORMAT",
            "SPARK_TOO_OLD",
            "STATE_SCHEMA_GONE",
            "METADATA_MISSING",
            "METADATA_UNREADABLE",
            "SINK_BEHIND",
        }
        | {"SOURCES_DIFFER", "SOURCE_LOST", "TOPIC_RECREATED", "INPUT_TOUCHED"}
    ):
        if (
            found.code == "SINK_BEHIND"
            and earliest is not None
            and seen.sink
            and (seen.sink.last_batch or -1) >= earliest
        ):
            verdict.add("safe", f"to batch {seen.sink.last_batch} or before: the sink holds no later one")
        else:
            verdict.add("blocked", found.message)
    _common(verdict, seen, _UNKNOWN_WITH_THIS_CHECKPOINT)
    _source_holds(verdict, seen, "after that batch")
    if seen.sink is None:
        verdict.add("unknown", "the sink must go back with the checkpoint, and was not looked at")
    elif seen.sink.format == "delta":
        verdict.add(
            "risky", "Delta remembers the later batches under this query id: the replay must run under a new one"
        )
    elif seen.sink.log is None and not seen.sink.by_batch:
        verdict.add("unknown", "which rows of this sink belong to which batch is not known")
    return verdict.as_dict(earliest_batch=earliest)


def _backfill(seen: Evidence) -> dict[str, Any]:
    verdict = _Verdict()
    _common(verdict, seen)
    if (seen.aggregates or seen.checkpoint.operators) and not seen.checkpoint.unlisted:
        verdict.add("blocked", "the output is not made row by row: what a range makes depends on the rows before it")
    _source_holds(verdict, seen, "of the range")
    if not _looked_at(seen):
        verdict.add("unknown", "the sink was not looked at")
    elif not seen.key:
        verdict.add("unknown", "no key of the sink is registered, so a second run could not be told from a first")
    for found in seen.having(frozenset({"SINK_ABSENT", "SINK_MOVED", "SINK_LOG_HOLE", "SINK_LOG_UNREADABLE"})):
        verdict.add("blocked", found.message)
    in_flight = () if seen.checkpoint.unlisted else seen.checkpoint.in_flight
    if seen.sink is not None and seen.sink.log is not None and seen.sink.last_batch in in_flight:
        # Whatever is added to the log now comes after that batch, and the output is compared as of the last commit.
        verdict.add("blocked", f"batch {seen.sink.last_batch} is in the output and not committed yet: resume first")
    resume = _resume(seen)
    if verdict.word != "blocked" and resume["verdict"] in ("blocked", "unknown"):
        # A hole is filled beside a stream that can go on; one that cannot is a larger hole.
        verdict.add(resume["verdict"], f"the stream itself cannot be resumed as it is: {resume['reasons'][0]}")
    if verdict.word == "safe":
        verdict.add("safe", "the input is there; the live checkpoint is not touched")
    for found in seen.having(_CONSUMERS):
        verdict.add("safe", f"{found.message}: the walk asks to stop and reset it, or it may read rows twice")
    return verdict.as_dict()


def _reset(seen: Evidence) -> dict[str, Any]:
    verdict = _Verdict()
    _common(verdict, seen)
    if seen.having(frozenset({"FENCED"})):
        verdict.add("blocked", "a walk is under way: the checkpoint is fenced")
    _source_holds(verdict, seen, "from the beginning")
    if seen.having(frozenset({"SOURCES_DIFFER"})):
        verdict.add(
            "unknown", "a source that was taken away is not rebuilt: whether its rows may go is asked by the walk"
        )
    if not _looked_at(seen):
        verdict.add("unknown", "the output must be emptied with the checkpoint, and was not looked at")
    if verdict.word == "safe":
        what = "record" if seen.held else "input file"
        verdict.add("safe", f"every {what} is still there, so the output can be rebuilt")
    return verdict.as_dict()


def _common(verdict: _Verdict, seen: Evidence, also: frozenset[str] = frozenset()) -> None:
    for found in seen.having(_UNKNOWN_FOR_ALL | also):
        verdict.add("unknown", found.message)


def _source_holds(verdict: _Verdict, seen: Evidence, what: str) -> None:
    """Whether the source can give its records again. What was not asked is not known."""
    if not seen.checkpoint.sources and not seen.held:
        verdict.add("unknown", "no offsets can be read, so the source is not known")
    for name, held in seen.held.items():
        if isinstance(held, str):
            verdict.add("unknown", f"source {name} could not be asked: {held}")
        elif held.kind == "records":
            _records_held(verdict, held, what)
        elif what == "from the beginning":
            _rows_held(verdict, held, seen)
    for source in seen.checkpoint.sources:
        report = seen.inputs.get(source.id)
        if source.kind in _MAKES_NEW_ROWS:
            verdict.add("blocked", f"source {source.id} is a {source.kind} source: it makes new rows each time")
        elif source.kind == "file" and report is not None and report.unknown is None:
            gone = sum(len(paths) for paths in report.missing.values())
            if gone and what != "after that batch":
                verdict.add(
                    "blocked",
                    f"{gone} of {plural(report.files, 'input file')} of source {source.id} {is_are(gone)} gone",
                )
        elif source.id not in seen.held:
            verdict.add(
                "unknown", f"whether source {source.id} ({source.kind}) still holds the records {what} was not asked"
            )


def _records_held(verdict: _Verdict, held: Held, what: str) -> None:
    if held.made_anew:
        verdict.add("blocked", held.made_anew[0])
    elif what == "from the beginning" and (gone := held.lost_at_the_beginning):
        known = held.initial is not None
        verdict.add(
            "blocked" if known else "unknown",
            gone[0] if known else f"{gone[0]}; whether the output holds rows from before is not known",
        )


def _rows_held(verdict: _Verdict, held: HeldTable, seen: Evidence) -> None:
    """Rows are not compared here: the walk does that before it empties anything."""
    changed = held.rewritten or next(iter(held.stops.values()), None)
    if changed is None:
        return  # every commit of the table has only added
    mine = None if seen.aggregates or seen.sink is None else seen.sink.rows
    twice = bool(seen.having(frozenset({"SINK_OLDER"})))
    if held.rows is not None and mine is not None and held.rows < mine and not twice:
        verdict.add("blocked", f"the table that is read holds {plural(held.rows, 'row')} and the output {mine}")
    else:
        verdict.add("risky", f"{changed}: that the table still has every row is compared first, by the walk")
