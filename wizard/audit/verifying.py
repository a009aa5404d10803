"""Whether a run's record can be believed: the chain, the manifests, and that every act has its outcome.

An error means that somebody or something changed the record. A doubt is about the run, not about the record: a walk
that was killed leaves one. A note is worth knowing, and wrong in no way.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wizard import durable
from wizard.audit.listing import understood
from wizard.engine.journal import Entry
from wizard.engine.runs import Run
from wizard.engine.start import same_runbook
from wizard.engine.state import State
from wizard.errors import BadInput, RunbookError, WorldMoved
from wizard.secrets import mask, mask_all
from wizard.text import Paint, plural, printable

Weight = Literal["error", "doubt", "note"]
KINDS = {
    *("start", "probe", "answer", "confirm", "intent", "did", "outcome", "refused", "end"),
    *("continued", "undo", "undid", "undone", "purged"),
}
# What may stand between an intent and its outcome: a walk that was killed there is continued, or taken back.
_IN_BETWEEN = frozenset(("did", "probe", "continued", "undo", "undid"))
_MARKS = {"error": ("✗", "red"), "doubt": ("!", "yellow"), "note": ("·", "dim")}
CUT = "entries cut off at the end leave no trace; give --head with the hash that was printed when the walk ended"


@dataclass(frozen=True)
class Found:
    weight: Weight
    says: str
    entry: int | None = None


@dataclass(frozen=True)
class Verified:
    run: str
    entries: int
    head: str
    found: tuple[Found, ...]

    @property
    def sound(self) -> bool:
        return all(each.weight != "error" for each in self.found)

    @property
    def first_bad(self) -> int | None:
        bad = [each.entry for each in self.found if each.weight == "error" and each.entry is not None]
        return min(bad, default=None)

    def as_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = mask_all(asdict(self))
        return {**told, "sound": self.sound, "first_bad": self.first_bad}


Known = dict[tuple[str, str], tuple[Found, ...]]


def verify(run: Run, head: str | None = None, known: Known | None = None) -> Verified:
    """`known` is filled for the runs that come after: a runbook is proved once, and not for each that walked it."""
    found = tuple(_all(run, head, {} if known is None else known))
    return Verified(run.id, len(run.chain.entries), run.chain.head, found)


def _all(run: Run, head: str | None, known: Known) -> Iterator[Found]:
    chain = run.chain
    if chain.bad is not None:
        number, why = chain.bad
        yield Found("error", f"entry {number} {why}; nothing from it on can be believed", number)
        yield from _manifests(run)
        return
    if chain.torn is not None:
        yield Found(
            "doubt", f"{chain.torn}: a kill in the middle of a write; it was never acted on", len(chain.entries)
        )
    if not chain.entries:
        yield Found("doubt", "the journal holds no entry: killed before the first was on disk, or emptied")
    else:
        yield from _sense(run)
        yield from _outcomes(chain.entries)
        yield from _manifests(run)
        state = understood(run)
        if state is None:
            yield Found(
                "error",
                "the entries do not make sense together, though their hashes fit; they were not written by this tool",
                0,
            )
        else:
            yield from _standing(run, state)
            walked = (state.runbook, state.digest)
            if walked not in known:
                known[walked] = tuple(_runbook(state))
            yield from known[walked]
    yield from _head(run, head)


def _sense(run: Run) -> Iterator[Found]:
    first = run.chain.entries[0]
    if first.get("kind") != "start":
        yield Found("error", f"entry 0 is no start but {first.get('kind')!r}: the journal was made anew", 0)
    elif first.get("run") != run.id:
        yield Found("error", f"entry 0 is of run {first.get('run')}: this is another run's journal", 0)
    for entry in run.chain.entries:
        if str(entry.get("kind")) not in KINDS:
            yield Found(
                "error",
                f"entry {entry['seq']} is of a kind this version does not write: {entry.get('kind')!r}",
                entry["seq"],
            )


def _outcomes(entries: tuple[Entry, ...]) -> Iterator[Found]:
    """An intent has its outcome before anything else is begun. The last one may lack it: that run is in doubt."""
    pending: Entry | None = None
    for entry in entries:
        kind = str(entry.get("kind"))
        if pending is not None and kind not in _IN_BETWEEN and kind not in ("outcome", "undone"):
            yield Found(
                "error",
                f"entry {pending['seq']} ({pending.get('action')}) has no outcome, and entry {entry['seq']} ({kind}) goes on without it",
                pending["seq"],
            )
            pending = None
        if kind == "outcome" and pending is None:
            yield Found(
                "error", f"entry {entry['seq']} is the outcome of nothing: no intent comes before it", entry["seq"]
            )
        if kind == "intent":
            pending = entry
        elif kind in ("outcome", "undone"):
            pending = None


def _standing(run: Run, state: State) -> Iterator[Found]:
    if state.doubt is not None and not state.undoing:
        action, seq = state.doubt["action"], state.doubt["seq"]
        yield Found(
            "doubt",
            f"{action} has no outcome: it is in flight, or in doubt; `runbook continue {run.id}`, or `runbook undo {run.id}`",
            seq,
        )
    elif state.undoing:
        yield Found("doubt", f"the undo was not finished; `runbook undo {run.id}`", run.chain.entries[-1]["seq"])
    elif state.ended is None and not state.undone:
        yield Found(
            "doubt",
            f"the run has no end: it is under way, or was left behind; `runbook continue {run.id}`",
            run.chain.entries[-1]["seq"],
        )


def _manifests(run: Run) -> Iterator[Found]:
    """What an intent would do is in a file beside the journal; its hash is in the chain."""
    named = set()
    for entry in run.chain.entries:
        if entry.get("kind") != "intent":
            continue
        manifest, seq = str(entry.get("manifest")), entry["seq"]
        named.add(manifest.rpartition("/")[2])
        if not re.fullmatch(r"manifests/\d+\.json", manifest):
            yield Found("error", f"entry {seq} names a manifest {manifest!r}, which this tool does not write", seq)
            continue
        try:
            text = durable.read(durable.join(run.place, manifest))
        except OSError as error:
            yield Found("error", f"{manifest}, the effects of entry {seq}, cannot be read ({error.strerror})", seq)
            continue
        if text is None:
            yield Found(
                "error", f"{manifest}, the effects of entry {seq}, is gone: there is no way back without it", seq
            )
        elif hashlib.sha256(text).hexdigest() != entry.get("sha256"):
            yield Found("error", f"{manifest} is not what entry {seq} says: it was changed", seq)
    if run.chain.bad is None:
        for name in durable.names(durable.join(run.place, "manifests")):
            if name not in named and not name.endswith(durable.TEMPORARY):
                yield Found("note", f"manifests/{name} belongs to no entry: an action that was planned and never begun")


def _runbook(state: State) -> Iterator[Found]:
    try:
        same_runbook(state)
    except WorldMoved:
        yield Found(
            "note", f"runbook {state.runbook} is not the one that was walked any more (digest {state.digest[:12]} then)"
        )
    except (RunbookError, OSError) as error:
        yield Found("note", f"runbook {state.runbook} cannot be compared with the one that was walked: {error}")


def _head(run: Run, head: str | None) -> Iterator[Found]:
    if head is None:
        yield Found("note", CUT)
        return
    hashes = [entry["hash"] for entry in run.chain.entries]
    if head not in hashes:
        yield Found(
            "error",
            f"no entry has the hash {head}: the end of the journal was cut off, or all of it written anew",
            len(hashes),
        )
    elif since := len(hashes) - 1 - hashes.index(head):
        yield Found(
            "note",
            f"the head given is that of entry {hashes.index(head)}; {plural(since, 'entry', 'entries')} came after it",
        )


def head_of(text: str) -> str:
    head = text.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", head):
        raise BadInput("--head is the journal head that was printed when the walk ended: 64 hexadecimal digits")
    return head


def lines(result: Verified, paint: Paint) -> Iterator[str]:
    if result.sound:
        word = paint("✓ holds", "green", "bold")
    else:
        at = "" if result.first_bad is None else f" at entry {result.first_bad}"
        word = paint(f"✗ does not hold{at}", "red", "bold")
    yield f"{result.run}: {word} ({plural(result.entries, 'entry', 'entries')}, head {result.head})"
    for each in result.found:
        mark, colour = _MARKS[each.weight]
        yield f"  {paint(mark, colour)} {printable(mask(each.says))}"
