"""PostgreSQL goes away in the middle of a walk: a clear stop, nothing lost, and `continue` completes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import server
from tables import Output

from wizard.engine.operator import Nobody, Prepared
from wizard.engine.start import begin, pick_up
from wizard.engine.undo import undo
from wizard.errors import ExitCode
from wizard.jobs.registry import load_registry

JOB = "job"
ANSWERS: dict[str, Any] = {"place": "in_place", "wait_commit": "stop"}


@pytest.fixture
def own(tmp_path: Path, database: server.Server) -> Iterator[Output]:
    """A server of its own, to be stopped; that the common one started says that there can be one."""
    started = server.Server(database.bin)
    try:
        output = Output(started.start(), tmp_path)
        raw = json.loads(output.jobs.read_text())
        up = tmp_path / "up"
        raw["jobs"][JOB]["control"] = {
            "kind": "command",
            "start": ["touch", str(up)],
            "stop": ["rm", "-f", str(up)],
            "status": ["test", "-e", str(up)],
            "stopped": {"exit_codes": [1]},
            "settle_seconds": 0.1,
        }
        output.jobs.write_text(json.dumps(raw))
        output.create()
        output.fill()
        yield output
    finally:
        started.remove()


def operator(events: list[dict[str, Any]], when: Any = None) -> Prepared:
    def tell(event: dict[str, Any]) -> None:
        events.append(event)
        if when is not None:
            when(event)

    return Prepared(dict(ANSWERS), JOB, Nobody(tell))


def at(step: str, what: Any) -> Any:
    done: list[str] = []

    def when(event: dict[str, Any]) -> None:
        if event["event"] == "effect" and event["step"] == step and not done:
            done.append(step)
            what()

    return when


def test_a_database_that_dies_in_mid_step_stops_the_walk_and_continue_completes_it(own: Output) -> None:
    registry, events, before = load_registry(own.jobs), [], own.rows()
    ending = begin(registry, JOB, "reset", operator(events, at("truncate", own.database.stop)), patience=0.1)
    assert (ending.outcome, ending.exit_code) == ("hand_over", ExitCode.VERIFICATION_FAILED)
    (failed,) = [e for e in events if e["event"] == "outcome" and not e["ok"]]
    assert failed["step"] == "truncate" and "does not answer" in failed["evidence"][0]
    assert own.options["password"] not in json.dumps(events)
    assert "runbook" in (own.home / "checkpoint/metadata").read_text(), (
        "the fence keeps the job from starting meanwhile"
    )

    own.database.start()
    assert own.rows() == before, "nothing was lost"
    ended = pick_up(registry, ending.run, operator(events), patience=0.1)
    assert own.rows() == {}
    # The job is a file that is there or not: it commits nothing, and the walk says so.
    assert (ended.outcome, ended.step) == ("hand_over", "hand_over")
    assert not (own.home / "checkpoint/offsets").exists()
    undo(registry, ending.run, operator(events))
    assert own.rows() == before
    assert json.loads((own.home / "checkpoint/metadata").read_text())["id"] == own.query


def test_a_database_that_is_gone_from_the_start_stops_the_walk_at_the_fence(own: Output) -> None:
    before = own.rows()
    own.database.stop()
    files = {path: path.read_bytes() for path in (own.home / "checkpoint").rglob("*") if path.is_file()}
    registry, events = load_registry(own.jobs), []
    ending = begin(registry, JOB, "reset", operator(events), patience=0.1)
    assert (ending.outcome, ending.exit_code) == ("hand_over", ExitCode.VERIFICATION_FAILED)
    assert [e["action"] for e in events if e["event"] == "outcome" and e["ok"]] == ["checkpoint.fence"]
    own.database.start()
    undo(registry, ending.run, operator([]))
    assert {path: path.read_bytes() for path in (own.home / "checkpoint").rglob("*") if path.is_file()} == files
    assert own.rows() == before


def test_an_undo_without_the_database_is_refused_and_done_when_it_is_back(own: Output) -> None:
    from wizard.errors import RunbookError

    registry, before = load_registry(own.jobs), own.rows()
    ending = begin(registry, JOB, "reset", operator([]), patience=0.1)
    assert own.rows() == {}
    own.database.stop()
    with pytest.raises(RunbookError, match="does not answer"):
        undo(registry, ending.run, operator([]))
    own.database.start()
    undo(registry, ending.run, operator([]))
    assert own.rows() == before
