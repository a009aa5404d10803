"""A dry run changes nothing at all; a plan is carried out once, by the walk and in the world it was made for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from stand import ANSWERS, JOB, Stand, differing, fork, words


@pytest.mark.parametrize("path", ["reset", "replay", "resume", "backfill"])
def test_a_dry_run_changes_no_byte_no_time_and_no_name(path: str, stand: Stand, tmp_path: Path) -> None:
    before = stand.everything()
    plan = tmp_path / "plan.json"
    code, said = fork(words(stand, path, JOB, "--dry-run", "--plan", str(plan), given=ANSWERS[path], confirm=None))
    # How the stand-in's code is run over a range is not known, so a backfill of it would be handed over.
    assert code == (3 if path == "backfill" else 0), said
    assert "nothing was changed" in said
    assert differing(stand.everything(), before) == []
    told = json.loads(plan.read_text())
    assert (told["runbook"], told["job"]) == (path, JOB) and told["steps"]


def planned(stand: Stand, file: Path, given: dict[str, object]) -> str:
    _, said = fork(words(stand, "reset", JOB, "--dry-run", "--plan", str(file), given=given, confirm=None))
    assert file.exists(), said
    return str(file)


def touch_checkpoint(stand: Stand) -> None:
    (stand.checkpoint / "commits/4").write_text('v1\n{"nextBatchWatermarkMs":0}')


def touch_sink(stand: Stand) -> None:
    (stand.sink / "part-new.parquet").write_bytes(b"")


def touch_config(stand: Stand) -> None:
    with (stand.root / "conf.yaml").open("a") as file:
        file.write("# by somebody\n")


def touch_registry(stand: Stand) -> None:
    with (stand.root / "jobs.yaml").open("a") as file:
        file.write("# by somebody\n")


@pytest.mark.parametrize("touch", [touch_checkpoint, touch_sink, touch_config, touch_registry])
def test_a_plan_is_refused_in_a_world_that_moved(touch: Callable[[Stand], None], stand: Stand, tmp_path: Path) -> None:
    plan = planned(stand, tmp_path / "plan.json", ANSWERS["reset"])
    touch(stand)
    before = stand.tree()
    code, said = fork(words(stand, "reset", JOB, "--plan", plan))
    assert code == 5, said
    assert touch.__name__.removeprefix("touch_") in said
    assert stand.tree() == before and stand.run_ids() == []


def test_a_plan_chooses_what_it_chose_and_works_once(stand: Stand, tmp_path: Path) -> None:
    plan = planned(stand, tmp_path / "plan.json", {"place": "leave"})
    before = stand.tree()
    code, said = fork(words(stand, "reset", JOB, "--plan", plan))
    assert code == 3 and "aborted" in said, said
    code, said = fork(words(stand, "reset", JOB, "--plan", plan))
    assert code == 5 and f"in run {stand.only_run()}" in said, said
    assert stand.tree() == before


def test_a_plan_is_carried_out_without_being_asked_again(stand: Stand, tmp_path: Path) -> None:
    plan = planned(stand, tmp_path / "plan.json", ANSWERS["reset"])
    code, said = fork(words(stand, "reset", JOB, "--plan", plan))
    assert code == 0, said
    stand.finish()
    assert stand.found() == stand.expected()


def test_what_is_not_a_plan_for_this_walk_is_one_line_and_exit_2(stand: Stand, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    good = json.loads(Path(planned(stand, file, {"place": "leave"})).read_text())
    before = stand.tree()
    broken: list[bytes] = [b"", b"\xff\xfe", b"[]", b"{", b"null", b'{"plan": 1}', b"[" * 100_000]
    broken += [json.dumps(good | change).encode() for change in (
        {"plan": 2}, {"job": "another"}, {"runbook": "replay"}, {"job": 7}, {"id": "../../x"}, {"id": None},
        {"fingerprint": []}, {"choices": {"place": "leave"}}, {"choices": {"place": [{"typed": ""}]}}, {"choices": None},
    )]  # fmt: skip
    for data in broken:
        file.write_bytes(data)
        code, said = fork(words(stand, "reset", JOB, "--plan", str(file)))
        assert code == 2, (data[:80], said)
        assert len(said.strip().splitlines()) == 1 and str(file) in said
    code, said = fork(words(stand, "reset", JOB, "--plan", str(tmp_path / "none.json")))
    assert code == 2, said
    for change in ({"fingerprint": {}}, {"choices": {"place": [{"option": "in_place"}]}}, {"ends": "resolved"}):
        file.write_text(json.dumps(good | change))
        code, said = fork(words(stand, "reset", JOB, "--plan", str(file)))
        assert code == 2 and "was changed since it was saved" in said, said
    assert stand.tree() == before and stand.run_ids() == []
