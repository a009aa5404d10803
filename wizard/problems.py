"""What lint found, in runbooks and in the registry alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    code: str  # stable: scripts and suppressions key on it, so a code is never given a second meaning
    severity: str  # "error" | "warning"
    message: str  # what is wrong and what to do; a counter-example follows on lines of its own
    where: str  # file:line:column
