"""Real checkpoints, damaged at random and diagnosed as a whole: always an answer, and never a careless one."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from mutations import KINDS, Mutation, Tree, tree_of, write_difference
from recorded import CONTRACT, NAMES, WORDS, at_home, look

from wizard.errors import RunbookError

EXAMPLES = 66

numbers = st.integers(0, 1 << 20)
mutations = st.builds(Mutation, st.sampled_from(sorted(KINDS)), numbers, numbers, numbers)


def test_make_test_runs_at_least_two_thousand_mutations() -> None:
    assert EXAMPLES * len(NAMES) >= 2000


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_checkpoint_gets_an_answer_that_promises_nothing_false(name: str, tmp_path: Path) -> None:
    root = at_home(name, tmp_path)
    whole = tree_of(root)
    ran = 0

    @seed(zlib.crc32(name.encode()))
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(mutations, min_size=1, max_size=3))
    def damage(changes: list[Mutation]) -> None:
        nonlocal ran
        ran += 1
        tree = dict(whole)
        for change in changes:
            change.on(tree)
        write_difference(root, whole, tree)
        try:
            seen = look(root).as_dict()
        except RunbookError as error:
            assert "\n" not in str(error)
        else:
            complete(seen)
            honest(seen, tree)
        finally:
            write_difference(root, tree, whole)

    damage()
    assert ran >= EXAMPLES


def complete(seen: dict[str, Any]) -> None:
    assert json.loads(json.dumps(seen, allow_nan=False)).keys() >= CONTRACT
    assert set(seen["paths"]) == {"resume", "replay", "backfill", "reset"}
    for path in seen["paths"].values():
        assert path["verdict"] in WORDS
        assert path["reasons"]
    for batch in (*(seen["batches"][key] for key in ("first", "planned", "committed")), *seen["batches"]["in_flight"]):
        assert batch is None or type(batch) is int
    for found in seen["findings"]:
        assert found["severity"] in ("error", "warning", "info")
        assert found["message"]
        assert found["remedy"]


def honest(seen: dict[str, Any], tree: Tree) -> None:
    """What the damaged files allow, worked out here from their bytes alone."""
    offsets, commits = log(tree, "offsets"), log(tree, "commits")
    planned, committed = max(offsets, default=None), max(commits, default=None)
    if "bare_log" in seen:
        assert seen["paths"]["resume"]["verdict"] == "unknown"
        return
    assert (seen["batches"]["planned"], seen["batches"]["committed"]) == (planned, committed)
    verdict = seen["paths"]["resume"]["verdict"]
    if verdict in ("safe", "risky"):
        assert planned is not None
        assert json.loads(tree["checkpoint/metadata"])["id"] == seen["query_id"]
        assert parses(tree.get(f"checkpoint/offsets/{planned}", b""))
        if seen["mode"] == "micro-batch":
            assert planned == 0 or parses(tree.get(f"checkpoint/offsets/{planned - 1}", b""))
            assert committed == planned or (committed if committed is not None else -1) == planned - 1
    earliest = seen["paths"]["replay"]["earliest_batch"]
    if earliest is not None:
        assert earliest in offsets
        assert earliest in commits
        assert earliest == 0 or earliest - 1 in offsets
    if not seen["sources"]:
        assert verdict != "safe"


def log(tree: Tree, name: str) -> set[int]:
    """The batches of a log: files whose whole name is a number that a long can hold."""
    found = {path.removeprefix(f"checkpoint/{name}/") for path in tree if path.startswith(f"checkpoint/{name}/")}
    return {int(file) for file in found if re.fullmatch(r"[0-9]{1,19}", file) and int(file) < 2**63}


def parses(data: bytes) -> bool:
    """Version line, metadata that is an object or (continuous mode) nothing, and at least one source."""
    lines = data.decode().split("\n")
    if len(lines) < 3 or lines[0].rstrip("\r") not in ("v1", "v2"):
        return False
    return not lines[1].strip() or isinstance(json.loads(lines[1]), dict)
