"""Whether a connector can be had here. What cannot is skipped, with the reason; in CI, where mvn is there, it fails."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[2]
for _room in ("fixtures/connectors", "fixtures/cluster"):
    sys.path.insert(0, str(ROOT / _room))

import connectors  # noqa: E402


def have(*names: str) -> list[Path]:
    """The jars of these profiles."""
    try:
        return [path for name in names for path in connectors.jars(name)]
    except connectors.CannotHave as error:
        cannot(str(error))


def cannot(why: str) -> NoReturn:
    if os.environ.get("CI") == "true" and shutil.which("mvn"):
        pytest.fail(f"skipped in CI, where nothing may be: {why}", pytrace=False)
    pytest.skip(why)
