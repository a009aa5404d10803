"""What a journal says is certain, after looks and answers that contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from wizard.engine.state import fold


@pytest.mark.parametrize("truth", ["holds", "fails", "unknown"])
@pytest.mark.parametrize(("word", "fact"), [("waives", "beside.exact"), ("attests", "code.same_sources")])
def test_a_new_look_takes_the_place_of_what_was_waived_or_vouched_for(word: str, fact: str, truth: str) -> None:
    """`ready: later` of a reset compares again; what it sees is looked at once more before the switch."""
    answered: dict[str, Any] = {"kind": "answer", "step": "asked", "goto": "ready", word: fact}
    looked: dict[str, Any] = {"kind": "probe", "step": "again", "goto": "ready", "fact": fact, "truth": truth}
    before, after = fold([answered]), fold([answered, looked])
    assert before.waived | before.attested == {fact}
    assert after.waived | after.attested == set()
    assert fold([looked, answered]).waived | fold([looked, answered]).attested == {fact}
