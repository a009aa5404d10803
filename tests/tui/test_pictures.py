"""Every screen is drawn again and is what the documents show; `.venv/bin/python scripts/pictures` draws them anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from pictures import SIZES, pictures, told
from stand import Stand

DOCS = Path(__file__).parents[2] / "docs"
SCREENS = {"fleet", "job", "help", "explain", "path", "question", "confirm", "leave", "working", "resolved", "audit", "run",
           "dry-run", "failed"}  # fmt: skip


@pytest.mark.parametrize("size", [SIZES[0], pytest.param(SIZES[1], marks=[pytest.mark.spark, pytest.mark.slow])])
def test_every_screen_is_what_its_picture_shows(size: tuple[int, int], stand: Stand, tmp_path: Path) -> None:
    drawn = pictures(tmp_path, sizes=(size,))
    assert {path.name.rpartition("-")[0] for path in drawn} == SCREENS
    for path in drawn:
        expected = told((DOCS / "pictures" / path.name).read_text())
        assert told(path.read_text()) == expected, f"{path.name} has changed; if it is meant: scripts/pictures"


def test_a_difference_of_a_word_or_of_a_colour_is_seen() -> None:
    svg = (DOCS / "pictures/fleet-80x24.svg").read_text()
    assert told(svg.replace("stopped", "running")) != told(svg)
    assert told(svg.replace("font-weight: bold", "font-weight: normal")) != told(svg)


def test_no_picture_is_left_over() -> None:
    there = {path.name for path in (DOCS / "pictures").iterdir()}
    assert there == {f"{screen}-{width}x{height}.svg" for screen in SCREENS for width, height in SIZES}
