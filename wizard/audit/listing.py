"""The runs of a registry, one line each, newest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from wizard.engine.lock import alive, read_lock
from wizard.engine.runs import Run, all_runs
from wizard.engine.state import State, fold
from wizard.errors import BadInput
from wizard.secrets import mask, mask_all
from wizard.text import Paint, columns, printable

VERDICTS = {
    "resolved": "green",
    "chosen": "green",
    "aborted": "yellow",
    "hand_over": "yellow",
    "undone": "yellow",
    "under way": "cyan",
    "left behind": "red",
    "in doubt": "red",
    "undo in doubt": "red",
    "broken": "red",  # the chain does not hold; what the journal says is not to be relied on
    "empty": "dim",  # killed before its first entry was on disk; nothing was done
}
_AGO = re.compile(r"(\d{1,6})(min|h|d)")
_UNITS = {"min": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class Summary:
    run: str
    job: str
    runbook: str
    mode: str
    who: tuple[str, ...]  # everybody who had a hand in it, the one who began it first
    began: str
    last: str  # when its last entry was written
    verdict: str
    changed: bool  # whether anything was changed that has not been taken back
    entries: int
    head: str
    torn: bool

    def as_dict(self) -> dict[str, Any]:
        masked: dict[str, Any] = mask_all(asdict(self))
        return masked


@dataclass(frozen=True)
class Wanted:
    job: str | None = None
    who: str | None = None
    runbook: str | None = None
    verdict: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def fits(self, one: Summary) -> bool:
        began = _parsed(one.began)
        return (
            (
                self.job in (None, one.job) or (not one.job and f"-{self.job}-" in one.run)
            )  # unreadable ones are not hidden
            and (self.who is None or self.who in one.who)
            and self.runbook in (None, one.runbook)
            and self.verdict in (None, one.verdict)
            and (self.since is None or (began is not None and began >= self.since))
            and (self.until is None or (began is not None and began <= self.until))
        )


def summaries(runs: str, wanted: Wanted) -> list[Summary]:
    found = [summary for run in all_runs(runs) if wanted.fits(summary := summary_of(runs, run))]
    return found[::-1]


def summary_of(runs: str, run: Run) -> Summary:
    entries = run.chain.entries
    state = understood(run)
    who = list(dict.fromkeys(str(entry["who"]) for entry in entries if entry.get("who")))
    last = str(entries[-1].get("at", "")) if entries else ""
    told = state or State()
    return Summary(run.id, told.job, told.runbook, told.mode, tuple(who), told.began, last,
                   _verdict(runs, run, state), told.changed, len(entries), run.chain.head,
                   run.chain.torn is not None)  # fmt: skip


def understood(run: Run) -> State | None:
    """What the entries come to; None where they are not ones this tool writes, whatever their hashes say."""
    try:
        return fold(run.chain.entries)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _verdict(runs: str, run: Run, state: State | None) -> str:
    if run.chain.bad is not None or state is None:
        return "broken"
    if not run.chain.entries:
        return "empty"
    if (state.ended is None or state.undoing) and not state.undone and _walked_now(runs, run.id, state.job):
        return "under way"
    return state.verdict


def _walked_now(runs: str, run: str, job: str) -> bool:
    holder = read_lock(runs, job)
    return holder is not None and holder.get("run") == run and alive(holder)


def lines(found: list[Summary], paint: Paint) -> Iterator[str]:
    rows = [["BEGAN (UTC)", "VERDICT", "RUNBOOK", "JOB", "BY", "CHANGED", "RUN"]]
    rows += [[printable(mask(cell)) for cell in _row(one)] for one in found]
    header, *rest = columns(rows)
    yield paint(header, "dim")
    for one, line in zip(found, rest, strict=True):
        yield paint(line, *([VERDICTS.get(one.verdict, "red")] if one.verdict != "empty" else ["dim"]))


def _row(one: Summary) -> list[str]:
    mode = "" if one.mode == "live" else f" ({one.mode})"
    changed = "yes" if one.changed else "no"
    return [when(one.began), one.verdict, one.runbook + mode, one.job, ", ".join(one.who), changed, one.run]


def when(at: str) -> str:
    """`2026-11-18 03:15:00` in UTC; what is no time is shown as it is."""
    moment = _parsed(at)
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if moment else at or "–"


def _parsed(at: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def moment_of(text: str, option: str, *, end: bool = False) -> datetime:
    """`2026-11-18`, `2026-11-18T03:15`, with a zone or in UTC; or `90min`, `6h`, `2d` ago. A day as an end is all of it."""
    if match := _AGO.fullmatch(text):
        try:
            return datetime.now(UTC) - timedelta(**{_UNITS[match[2]]: int(match[1])})
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    moment = _parsed(text)
    if moment is None:
        raise BadInput(f"{option} {text!r} is no time; write 2026-11-18, 2026-11-18T03:15 (UTC), or 6h, 2d, 90min ago")
    whole_day = end and re.fullmatch(r"\d{4}-?\d\d-?\d\d", text)
    return moment + timedelta(days=1, microseconds=-1) if whole_day else moment


def verdict_of(text: str) -> str:
    wanted = text.strip().lower().replace("-", "_").replace(" ", "_")
    known = {verdict.replace(" ", "_"): verdict for verdict in VERDICTS}
    if wanted not in known:
        raise BadInput(f"--verdict {text!r} is none of {', '.join(known)}")
    return known[wanted]
