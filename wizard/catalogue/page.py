"""The catalogue as a page for people: `python -m wizard.catalogue.page > docs/catalogue.md`."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from wizard.catalogue import FAMILIES
from wizard.catalogue.declare import Action, Answer, Entry, Outcome, Path, Probe

_INTRO = """# The catalogue: what a runbook may name

Generated from `wizard/catalogue/` by `python -m wizard.catalogue.page > docs/catalogue.md`; a test keeps it current.

- A **probe** answers *holds*, *fails* or *unknown*. If it holds, the fact of its name is certain until undone.
- An **action** may be done only where everything it requires is certain on every path, and counts as done only when the
  fact it makes has been probed again. What it *owes* must hold before a walk may end `resolved`.
- **Destroys** means: nothing is deleted for good, but the job's name must be typed before it is done.
- A fact can be **waived** (it does not hold, and somebody answers for going on) or **attested** (it cannot be observed,
  and somebody vouches for it) only where it says so here. Both are recorded.
"""


_UNSEEN = ", unless it was seen to fail"


def page() -> str:
    return _INTRO + "".join(_family(family) for family in FAMILIES)


def _family(family: ModuleType) -> str:
    title = (family.__doc__ or "").strip().splitlines()[0]
    name = family.__name__.rpartition(".")[2]
    return f"\n## {name}\n\n{title}\n" + "".join(_entry(entry) for entry in family.ENTRIES)


def _entry(entry: Entry) -> str:
    lines = [f"\n### {type(entry).__name__.lower()} `{entry.name}`\n", entry.says, "", *_details(entry)]
    return "\n".join(lines).rstrip() + "\n"


def _details(entry: Entry) -> list[str]:
    match entry:
        case Probe():
            return [
                f"- unknown when {entry.unknown_when}",
                *_listed("takes", entry.takes),
                *([f"- can be waived{_UNSEEN * entry.waived_unseen}: {entry.waivable}"] if entry.waivable else []),
                *([f"- can be attested: {entry.attestable}"] if entry.attestable else []),
            ]
        case Action():
            return [
                *(["- **destroys**: asks for the job's name"] if entry.destroys else []),
                *_listed("requires", entry.requires),
                *_listed("makes", (entry.makes,)),
                *_listed("may undo", entry.may_undo),
                *_listed("owes", entry.owes),
                *_listed("takes", entry.takes),
                f"- way back: {entry.way_back}",
            ]
        case Answer():
            return [*_listed("gives", (entry.gives,)), *_listed("starts over", entry.may_undo)]
        case Outcome():
            owed = ["- nothing may be owed any more"] if entry.settles else []
            return [*_listed("requires", entry.requires), *owed]
        case Path():
            return _listed("requires", entry.requires)


def _listed(what: str, names: Iterable[str]) -> list[str]:
    told = ", ".join(f"`{name}`" for name in names)
    return [f"- {what}: {told}"] if told else []


if __name__ == "__main__":
    print(page(), end="")
