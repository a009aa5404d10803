"""What probes and actions are given, and what they give back.

A probe looks at the live world and answers with a `Seen`. An action looks at it and answers with a `Plan`: the effects
it would have, one after the other, as data. The same plan is shown in a preview, written to the journal, carried out,
carried out again after a kill, and taken back by an undo.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from wizard import durable
from wizard.roots import Roots

if TYPE_CHECKING:
    from wizard.catalogue.effects import Effect
    from wizard.jobs.control.stopped import Watch
    from wizard.jobs.model import Job, Registry

Truth = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True)
class Seen:
    """The answer of a probe, and what it looked at: lines for a person, `data` for a script."""

    truth: Truth
    evidence: tuple[str, ...]
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return self.truth == "holds"


def holds(*evidence: str, **data: Any) -> Seen:
    return Seen("holds", evidence, data)


def fails(*evidence: str, **data: Any) -> Seen:
    return Seen("fails", evidence, data)


def unknown(*evidence: str, **data: Any) -> Seen:
    return Seen("unknown", evidence, data)


@dataclass(frozen=True)
class Plan:
    """What an action would do. `remember` goes to the journal with it, for the probes that come later."""

    effects: tuple[Effect, ...]
    remember: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass
class World:
    """One job, as a walk sees it. Paths are absolute or URLs; nothing in here is a cache of the live world."""

    registry: Registry
    job: Job
    run: str  # the run's id
    place: str  # the run's own directory: journal, manifests, quarantine
    answers: dict[str, Any] = field(default_factory=dict)  # what the operator gave: target, range
    memory: dict[str, Any] = field(default_factory=dict)  # what actions of this walk wrote down
    waived: frozenset[str] = frozenset()
    assumed: frozenset[str] = frozenset()  # facts that a dry run pretends its earlier steps have made
    patience: float = 120.0  # seconds a probe may wait for something to happen
    say: Callable[[str], None] = lambda line: None
    real: tuple[str, ...] = ()  # where those of its places that are links led to when the walk began
    stood: dict[str, dict[str, Any]] = field(default_factory=dict)  # a checkpoint at the first look, see live/job.py
    watches: dict[str, Watch] = field(default_factory=dict)  # since when each checkpoint has not moved

    @property
    def quarantine(self) -> str:
        return durable.join(self.place, "quarantine")

    @property
    def displaced(self) -> str:
        """Where an undo puts what has come since."""
        return durable.join(self.place, "displaced")

    def roots(self) -> Roots:
        """What this walk may change: the jobs it is about, their configuration, the registry, and its own directory."""
        return Roots([*self.declared(), self.place, *self.memory.get("roots", [])], self.real)

    def declared(self) -> list[str]:
        from wizard.jobs.graph import consumers

        found = [self.registry.path]
        for name in (self.job.name, *consumers(self.registry, self.job.name)):
            job = self.registry.jobs[name]
            found += [job.checkpoint, *([job.sink.path] if job.sink.path else [])]
            found += [job.config.file] if job.config else []
        return found
