"""What a runbook may name, declared: facts to check, actions to do, answers to give, ways to end.

    Probe("sink.empty", says="The output holds no rows and no log of its own.", unknown_when="…")
    Action("sink.truncate", requires=("job.stopped",), makes="sink.empty", destroys=True, says="…", way_back="…")

A declaration holds no code. The proof reads it before anything runs; the engine attaches what is run to the same name,
and a test holds the two together. What is dangerous is said here and nowhere else, so a runbook can add a guard and
never take one away.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Probe:
    """A question to the live world. It answers holds, fails or unknown; if it holds, the fact of its name is true."""

    name: str
    says: str
    unknown_when: str
    takes: tuple[str, ...] = ()  # answers the operator must have given before it can be asked
    waivable: str = ""  # why somebody may go on although it does not hold; empty: nobody may
    waived_unseen: bool = False  # the waiver is of a look that could not tell; what was seen to fail is not waived
    attestable: str = ""  # why the operator can know what cannot be observed; empty: only the probe can say


@dataclass(frozen=True)
class Action:
    """A change to the live world. It counts as done only when the fact it makes has been probed again."""

    name: str
    says: str
    makes: str
    way_back: str
    requires: tuple[str, ...] = ()  # must hold on every path that leads here, and is probed again right before
    may_undo: tuple[str, ...] = ()  # no longer certain once it was tried, whether it worked or not
    owes: tuple[str, ...] = ()  # must hold before a walk that did this may call itself resolved
    takes: tuple[str, ...] = ()
    destroys: bool = False  # asks for the job's name, typed


@dataclass(frozen=True)
class Answer:
    """Something only the operator can name. `gives` is what actions and probes ask for under `takes`."""

    name: str
    gives: str
    says: str
    may_undo: tuple[str, ...] = ()  # facts about the value given before; a new value starts over


@dataclass(frozen=True)
class Outcome:
    """A way for a walk to end, and what must hold for it to be said."""

    name: str
    says: str
    requires: tuple[str, ...] = ()
    settles: bool = False  # nothing may be owed any more


@dataclass(frozen=True)
class Path:
    """One of the four things that can be done; triage ends by choosing one."""

    name: str
    says: str
    requires: tuple[str, ...]


Entry = Probe | Action | Answer | Outcome | Path
