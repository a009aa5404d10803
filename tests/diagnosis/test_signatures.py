from __future__ import annotations

import re

from wizard.diagnosis.signatures import SIGNATURES


def test_codes_are_unique_upper_snake_names() -> None:
    codes = [s.code for s in SIGNATURES]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"[A-Z][A-Z_]+", code) for code in codes)


def test_every_row_that_leaves_a_text_has_a_signature() -> None:
    assert set(range(1, 27)) - {19, 20} == {s.row for s in SIGNATURES if s.row is not None}


def test_every_pattern_compiles_and_every_text_says_something() -> None:
    for signature in SIGNATURES:
        assert signature.needles and all(re.compile(p) for p in signature.patterns)
        assert signature.meaning.endswith(".") and signature.remedy.endswith(".")
