"""Where runbooks are looked for: ./runbooks, then what the configuration names, then the shipped ones.

The configuration is what a caller passes and, after that, the directories of RUNBOOK_PATH, separated as in PATH.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from wizard.errors import BadInput
from wizard.runbook.load import MAX_BYTES, Library, Unfound
from wizard.runbook.names import suggestion

VARIABLE = "RUNBOOK_PATH"
_PACKAGE = Path(__file__).resolve().parents[1]


def shipped() -> Path:
    """The runbooks that came with the tool: inside the package in a wheel, beside it in a checkout."""
    inside = _PACKAGE / "_runbooks"
    return inside if inside.is_dir() else _PACKAGE.parent / "runbooks"


def search_path(config: Sequence[str | Path] = ()) -> list[Path]:
    found: list[Path] = []
    for directory in (Path("runbooks"), *map(Path, config), *_from_environment(), shipped()):
        if directory.is_dir() and directory.resolve() not in {known.resolve() for known in found}:
            found.append(directory)
    return found


def _from_environment() -> list[Path]:
    """Each must be there: passed over in silence, a team's guards would be missing from every walk."""
    named = [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    for directory in named:
        if not directory.is_dir():
            raise BadInput(f"{VARIABLE} names {directory}, which is no directory; correct it, or unset it")
    return named


def known(config: Sequence[str | Path] = ()) -> dict[str, Path]:
    """Every runbook by its name; of two, the one that comes first on the path."""
    found: dict[str, Path] = {}
    for directory in search_path(config):
        for file in sorted(directory.glob("*.yaml")):
            found.setdefault(file.stem, file)
    return found


def find(name: str, config: Sequence[str | Path] = ()) -> Path:
    found = known(config)
    if name not in found:
        looked = ", ".join(map(str, search_path(config)))
        raise BadInput(f"no runbook named {name!r}{suggestion(name, found)} (looked in {looked})")
    return found[name]


def library(config: Sequence[str | Path] = ()) -> Library:
    """What `extends` looks in. A file that extends its own name means the next one on the path, not itself."""

    def look(name: str, seen_from: str) -> tuple[bytes, str]:
        for directory in search_path(config):
            file = directory / f"{name}.yaml"
            if file.is_file() and file.resolve() != Path(seen_from).resolve():
                with file.open("rb") as opened:
                    return opened.read(MAX_BYTES + 1), str(file)
        raise Unfound(sorted(known(config)))

    return look
