"""A walk as a person would tell it: what was asked and answered, seen before, done, and seen after.

The story is a list of parts, in the order of the journal. A terminal, a page and a post-mortem show the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from wizard.audit.listing import Summary, understood, when
from wizard.audit.verifying import Verified
from wizard.engine.journal import Entry
from wizard.engine.runs import Run
from wizard.engine.state import fold
from wizard.secrets import mask, mask_all
from wizard.text import Paint, plural, printable, span

Mark = Literal["plain", "good", "bad", "warn"]
_TRUTHS: dict[str, tuple[str, Mark]] = {
    "holds": ("holds", "good"),
    "fails": ("does not hold", "bad"),
    "unknown": ("cannot be told", "warn"),
}
_COLOURS: dict[Mark, tuple[str, str]] = {
    "plain": ("·", "dim"),
    "good": ("✓", "green"),
    "bad": ("✗", "red"),
    "warn": ("!", "yellow"),
}


@dataclass(frozen=True)
class Part:
    """One thing that happened. `details` are headed lists of lines, already masked and fit for a screen."""

    entry: int
    at: str
    mark: Mark
    says: str
    details: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "details": [{"what": what, "lines": list(lines)} for what, lines in self.details]}


def story(run: Run) -> list[Part]:
    """Of the entries that can be believed: those before the first bad one."""
    try:
        return list(_Teller(run.chain.entries).parts())
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        # Hashes that fit over entries no version of this tool wrote: they are shown as they are.
        return [
            _part(entry, "warn", f"{entry.get('kind')}", ("entry", [json.dumps(entry)])) for entry in run.chain.entries
        ]


class _Teller:
    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.intents = {entry["seq"]: entry for entry in entries if entry["kind"] == "intent"}

    def parts(self) -> Iterator[Part]:
        for number, entry in enumerate(self.entries):
            teller = getattr(self, f"_{entry['kind']}", None)
            if entry["kind"] in ("did", "undid"):
                continue  # told with the action, and with the undo
            yield (
                teller(entry, number) if teller else _part(entry, "warn", entry["kind"], ("entry", [json.dumps(entry)]))
            )

    def _start(self, entry: Entry, number: int) -> Part:
        mode = "" if entry["mode"] == "live" else f", as a {entry['mode']}"
        details = [
            ("on", [f"{entry.get('host', 'an unknown host')}, pid {entry.get('pid')}, runbook {entry.get('version')}"]),
            ("runbook", [f"{entry['runbook']}, SHA-256 {entry['digest']}"]),
            ("registry", [entry.get("registry", "")]),
            ("plan", [entry["plan"]] if entry.get("plan") else []),
        ]
        return _part(entry, "plain", f"{entry['who']} began {entry['runbook']} for {entry['job']}{mode}", *details)

    def _probe(self, entry: Entry, number: int) -> Part:
        word, mark = _TRUTHS[entry["truth"]]
        again = " again" if entry.get("again") else ""
        return _part(entry, mark, f"Looked{again}: {entry['fact']} {word}", ("seen", entry["evidence"]))

    def _answer(self, entry: Entry, number: int) -> Part:
        who, details = entry.get("who", "somebody"), []
        details.append(("answered", [f"{entry['option']}, by {who}"]))
        if entry.get("gives"):
            details.append(("typed", [f"{entry['typed']}, understood as {json.dumps(mask_all(entry['value']))}"]))
        if entry.get("waives"):
            details.append(
                ("waived", [f"{who} waived {entry['waives']} in these words: “{entry['typed']}”; it was not proved"])
            )
        if entry.get("attests"):
            details.append(("vouched for", [f"{who} vouched for {entry['attests']}; the tool has not seen it"]))
        return _part(entry, "warn" if entry.get("waives") else "plain", f"Asked: {entry['question']}", *details)

    def _confirm(self, entry: Entry, number: int) -> Part:
        who, action = entry.get("who", "somebody"), entry["action"]
        if entry["given"]:
            return _part(entry, "plain", f"{who} confirmed {action} by typing “{entry['phrase']}”")
        return _part(entry, "warn", f"{who} did not confirm {action}")

    def _intent(self, entry: Entry, number: int) -> Part:
        before = [
            f"{fact} {_TRUTHS[seen['truth']][0]}: {'; '.join(seen['evidence'])}"
            for fact, seen in entry["before"].items()
        ]
        done, taken_back = self._effects_of(entry, number)
        effects = []
        for each, says in enumerate(entry["effects"]):
            fate = f"done {done[each]}" if each in done else "not known to be done"
            effects.append(f"{says} [{fate}{f', taken back {taken_back[each]}' if each in taken_back else ''}]")
        details = [("evidence before", before), ("effects", effects or ["none: nothing had to be changed"])]
        return _part(entry, "plain", f"{entry.get('who', 'Somebody')} set out on {entry['action']}", *details)

    def _effects_of(self, intent: Entry, number: int) -> tuple[dict[int, str], dict[int, str]]:
        done: dict[int, str] = {}
        for entry in self.entries[number + 1 :]:
            if entry["kind"] in ("intent", "outcome"):
                break
            if entry["kind"] == "did":
                done[entry["number"]] = when(entry["at"])[11:]
        undid = [e for e in self.entries if e["kind"] == "undid" and e["intent"] == intent["seq"]]
        return done, {entry["number"]: when(entry["at"])[11:] for entry in undid}

    def _outcome(self, entry: Entry, number: int) -> Part:
        word, _ = _TRUTHS[entry["truth"]]
        mark, says = ("good", "done and verified") if entry["ok"] else ("bad", "not done, or not seen to be")
        after = [f"{entry['fact']} {word}", *entry["evidence"]]
        return _part(entry, mark, f"{entry['action']}: {says}", ("evidence after", after))

    def _refused(self, entry: Entry, number: int) -> Part:
        says = f"{entry['action']} could not be planned, and changed nothing"
        return _part(entry, "bad", says, ("because", [entry["error"]]))

    def _end(self, entry: Entry, number: int) -> Part:
        good = entry["outcome"] in ("resolved", "chosen")
        details = [("next", [f"runbook {entry['path']}"] if entry.get("path") else [])]
        return _part(entry, "good" if good else "warn", f"Ended: {entry['outcome']}. {entry.get('says', '')}", *details)

    def _continued(self, entry: Entry, number: int) -> Part:
        before = fold(self.entries[:number])
        if before.ended:
            left = f"the run had ended with {before.ended}"
        elif before.doubt is not None:
            left = (
                f"{before.doubt['action']} was in flight: begun in entry {before.doubt['seq']}, its outcome not known"
            )
        else:
            left = "it was between two steps"
        gap = _seconds(self.entries[number - 1]["at"], entry["at"])
        left += f"; nothing was written for {span(gap)}" if gap is not None and gap >= 1 else ""
        details = [
            ("interrupted" if before.ended is None else "before", [left]),
            ("torn", [f"{entry['torn']}; it was dropped"] if entry.get("torn") else []),
        ]
        return _part(
            entry, "warn", f"{entry['who']} picked the run up, on {entry.get('host', 'an unknown host')}", *details
        )

    def _undo(self, entry: Entry, number: int) -> Part:
        taken = []
        for later in self.entries[number + 1 :]:
            if later["kind"] == "undo":
                break
            if later["kind"] == "undid":
                effects = self.intents[later["intent"]]["effects"]
                taken.append(
                    f"{self.intents[later['intent']]['action']}: {effects[later['number']]} [{when(later['at'])[11:]}]"
                )
        says = f"{entry['who']} set out to take the run back, the last effect first"
        return _part(entry, "warn", says, ("taken back", taken or ["nothing yet"]))

    def _undone(self, entry: Entry, number: int) -> Part:
        left = stays(entry)
        says = "everything else" if left else "everything"
        return _part(
            entry, "good", f"Taken back by {entry['who']}: {says} is as it was before the run", ("stays", left)
        )

    def _purged(self, entry: Entry, number: int) -> Part:
        says = f"{entry['who']} deleted for good what the run had put aside; it cannot be undone any more"
        return _part(entry, "warn", says)


def stays(undone: Entry) -> list[str]:
    """What an undo left as it was, or could not bring back."""
    told = (
        ("stays", "had gone on from where it stood; what it committed since stays"),
        ("left_stopped", "ran and was stopped; it was not started again"),
        ("ahead", "has read rows that its source no longer shows; reset it before it is started"),
    )
    lists = [(jobs, words) for name, words in told if isinstance(jobs := undone.get(name), list)]
    return [f"{job} {words}" for jobs, words in lists for job in jobs]


def _part(entry: Entry, mark: Mark | str, says: str, *details: tuple[str, list[str]]) -> Part:
    kept = tuple((what, tuple(clean(line) for line in lines)) for what, lines in details if lines)
    return Part(entry["seq"], when(str(entry.get("at", ""))), mark, clean(says), kept)  # type: ignore[arg-type]


def clean(text: Any) -> str:
    """On one line, without a secret in it or anything a terminal would obey."""
    return printable(mask(str(text)))


def _seconds(before: str, after: str) -> float | None:
    try:
        return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
    except (ValueError, TypeError):
        return None


def standing(run: Run, summary: Summary) -> str:
    """Where the run stands now, and what to type."""
    state = understood(run)
    if summary.verdict == "broken":
        return "broken: the journal cannot be believed from its first bad entry on"
    if state is None or summary.verdict == "empty":
        return "empty: nothing was done"
    if summary.verdict == "under way":
        return "under way"
    words = summary.verdict
    if state.undoing:
        return f"{words}: finish it with `runbook undo {run.id}`"
    if state.open:
        words += f": go on with `runbook continue {run.id}`" + (
            f", or take it back with `runbook undo {run.id}`" if state.changed else ""
        )
    return words


def waivers(run: Run) -> list[str]:
    """What somebody answered for in place of a proof."""
    found = []
    for entry in run.chain.entries:
        if entry.get("kind") == "answer" and entry.get("waives"):
            found.append(clean(f"{entry['waives']}, waived by {entry.get('who')}: “{entry.get('typed')}”"))
        if entry.get("kind") == "answer" and entry.get("attests"):
            found.append(clean(f"{entry['attests']}, vouched for by {entry.get('who')}"))
    return found


def record_says(result: Verified) -> str:
    if result.sound:
        return f"holds ({plural(result.entries, 'entry', 'entries')}, head {result.head})"
    first = next(each for each in result.found if each.weight == "error")
    return f"DOES NOT HOLD: {clean(first.says)}"


def lines(run: Run, summary: Summary, result: Verified, paint: Paint) -> Iterator[str]:
    for what, text in facts(run, summary, result):
        yield f"{paint(what.ljust(9), 'dim')} {text}"
    for part in story(run):
        mark, colour = _COLOURS[part.mark]
        yield ""
        yield f"{paint(part.at, 'dim')} {paint(mark, colour, 'bold')} {part.says}"
        for what, texts in part.details:
            yield f"    {paint(what + ':', 'dim')}"
            yield from (f"      {text}" for text in texts)


def facts(run: Run, summary: Summary, result: Verified) -> Iterable[tuple[str, str]]:
    """The head of every telling."""
    yield "run", clean(summary.run)
    yield "job", clean(summary.job)
    yield "runbook", clean(summary.runbook + ("" if summary.mode == "live" else f" ({summary.mode})"))
    yield "by", clean(", ".join(summary.who))
    yield "from", f"{when(summary.began)} to {when(summary.last)} UTC"
    yield "stands", clean(standing(run, summary))
    yield "record", record_says(result)
    for entry in run.chain.entries:
        yield from (("stays", clean(line)) for line in (stays(entry) if entry.get("kind") == "undone" else ()))
    for waiver in waivers(run):
        yield "unproved", waiver
