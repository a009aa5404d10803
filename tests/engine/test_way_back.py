"""What the world has become since a walk: an undo that cannot bring back what was says so, and one that can loses nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from server import Server
from stand import ANSWERS, JOB, READER, Stand, differing, fork, words
from tables import KILLED, Output
from worlds import planned

from wizard import durable
from wizard.catalogue.effects import Effect, Irreversible, Keep, Move
from wizard.catalogue.world import World
from wizard.checkpoint.reader import read_checkpoint
from wizard.engine.way_back import refuse_if_irreversible, written_again
from wizard.jobs.registry import load_registry
from wizard.store import open_store

Steps = list[tuple[dict[str, object], tuple[Effect, ...]]]


def test_a_batch_that_was_cleared_and_has_run_again_since_keeps_its_rows(tmp_path: Path) -> None:
    stand = Stand.build(tmp_path / "w", cut="files", reader=True)
    registry = stand.root / "jobs.yaml"
    registry.write_text(registry.read_text().replace("path: ./out}", "path: './out/part-*'}"))
    left = {path.name for path in stand.sink.iterdir()}
    try:
        code, said = fork(words(stand, "resume", JOB, given={**ANSWERS["resume"], "readers_too": "leave_alone"}))
        assert code == 0, said
        left -= {path.name for path in stand.sink.iterdir()}
        assert left  # a reader that lists the directory would have seen them
        code, said = fork(words(stand, "undo", stand.only_run(), "--json", confirm=None))
        assert code == 0 and "stays put aside" in said, said
        undone = next(event for line in said.splitlines() if '"undone"' in line and (event := json.loads(line)))
        assert undone["stays"] == [JOB]
        assert not left & {path.name for path in stand.sink.iterdir()}
        stand.stop_all()
        stand.finish_one(JOB)
        assert stand.found() == stand.expected()
    finally:
        stand.stop_all()
    assert READER in stand.jobs_there


def test_rows_of_a_batch_that_were_moved_out_of_a_table_stay_out_once_it_has_run_again(
    database: Server, tmp_path: Path
) -> None:
    output = Output(database, tmp_path, KILLED)
    output.create()
    batch = read_checkpoint(open_store(str(output.home / "checkpoint"))).in_flight[0]
    output.fill(last=batch)
    world = output.world()
    cleared = planned(world, "sink.clear_in_flight")
    for effect in cleared.effects:
        effect.do(world)
    intent = {"action": "sink.clear_in_flight", "remember": cleared.remember}
    assert cleared.effects and written_again(world, intent) is None
    output.write(batch)
    (output.home / f"checkpoint/commits/{batch}").write_text("v1\n{}")
    assert "has run again since" in (written_again(world, intent) or "")


@pytest.fixture
def world(stand: Stand) -> World:
    registry = load_registry(stand.jobs)
    return World(registry, registry.jobs[JOB], "run-1", str(stand.runs / "run-1"))


def moved(stand: Stand, world: World) -> tuple[Steps, set[tuple[int, int]], Path]:
    """The newest commits put aside, all else left in place."""
    source, aside = stand.checkpoint / "commits", stand.runs / "run-1/quarantine/commits"
    effects = (Keep.of(str(stand.checkpoint)), Move.of(str(source), str(aside), ("3", "2")))
    for effect in effects:
        effect.do(world)
    return [({"seq": 7, "action": "checkpoint.rollback"}, effects)], {(7, 0), (7, 1)}, aside


@pytest.mark.parametrize(
    ("since", "says"),
    [
        (lambda stand, aside: (aside / "3").unlink(), "commits/3 is gone"),
        (lambda stand, aside: shutil.rmtree(aside), "commits/3 is gone, and not by this run (2 in all)"),
        (lambda stand, aside: (stand.checkpoint / "offsets/0").unlink(), "offsets/0, which this run left in place"),
        (lambda stand, aside: shutil.rmtree(stand.checkpoint / "offsets"), "was cleared away since"),
    ],
)
def test_what_is_gone_for_good_is_told_before_anything_is_touched_though_the_job_has_made_it_anew(
    since: Callable[[Stand, Path], None], says: str, stand: Stand, world: World
) -> None:
    steps, done, aside = moved(stand, world)
    for name in ("3", "2"):  # the job has gone on since, and its batches have the same numbers
        (stand.checkpoint / "commits" / name).write_text("v1\n{}")
    (stand.checkpoint / "offsets/.9.tmp").write_text("")
    refuse_if_irreversible(world, steps, done)
    since(stand, aside)
    with pytest.raises(Irreversible, match="nothing was touched") as refused:
        refuse_if_irreversible(world, steps, done)
    assert says in str(refused.value) and refused.value.exit_code == 3


def test_what_was_moved_on_by_a_later_step_or_never_was_is_not_missed(stand: Stand, world: World) -> None:
    steps, done, aside = moved(stand, world)
    back = Move.of(str(aside), str(stand.checkpoint / "commits"), ("3",))
    back.do(world)
    never = Move(str(stand.checkpoint / "commits"), str(aside), ("1",), 1)
    refuse_if_irreversible(world, [*steps, ({"seq": 9, "action": "x"}, (back, never))], done | {(9, 0)})


def test_a_registry_that_names_other_places_by_now_is_told_before_anything_is_touched(stand: Stand) -> None:
    code, said = fork(words(stand, "reset", JOB, given=ANSWERS["reset"], confirm=None))
    assert code == 4, said
    registry = stand.root / "jobs.yaml"
    was = registry.read_text()
    journal = stand.journal(stand.only_run())
    for changed in (was.replace("./checkpoint", "./elsewhere"), was.replace("ingest:", "renamed:")):
        registry.write_text(changed)
        code, said = fork(words(stand, "undo", stand.only_run(), confirm=None))
        assert code == 2 and "jobs.yaml" in said, said
        assert stand.journal(stand.only_run()) == journal
    registry.write_text(was)
    code, said = fork(words(stand, "undo", stand.only_run(), confirm=None))
    assert code == 0, said


def test_half_a_log_file_that_a_killed_backfill_left_goes_with_its_undo(tmp_path: Path) -> None:
    stand = Stand.build(tmp_path / "w", cut="")
    stand.can_be_run_over_a_range()
    stand.lose()
    before = stand.tree()
    try:
        code, said = fork(words(stand, "backfill", JOB, given=ANSWERS["backfill"]))
        assert code == 0, said
        (stand.sink / f"_spark_metadata/.3.0badcafe{durable.TEMPORARY}").write_text("v1\n{")
        code, said = fork(words(stand, "undo", stand.only_run(), confirm=None))
        assert code == 0, said
        assert differing(stand.tree(), before) == []
    finally:
        stand.stop_all()
