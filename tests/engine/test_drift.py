"""The world moves between two looks: the walk stops with exit 5 and does nothing further."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stand import ANSWERS, JOB, READER, Stand, differing

from wizard.engine.events import undone_in_words
from wizard.engine.operator import Choice, Confirmation, Prepared, Question
from wizard.engine.start import begin, pick_up
from wizard.engine.undo import undo
from wizard.engine.walk import Interrupted
from wizard.errors import WorldMoved
from wizard.jobs.control.open import open_controller
from wizard.jobs.registry import load_registry

REPOSITORY = Path(__file__).parents[2]


class Meddler:
    """Does something at the first event that fits; confirms whatever it is asked to."""

    def __init__(self, does: Callable[[], None], **at: Any) -> None:
        self.does, self.at, self.done = does, at, False

    def tell(self, event: dict[str, Any]) -> None:
        if not self.done and self.at and all(event.get(name) == value for name, value in self.at.items()):
            self.done = True
            self.does()

    def choose(self, question: Question) -> Choice:
        raise AssertionError(question.step.name)

    def confirm(self, asked: Confirmation) -> bool:
        return True


def walked(stand: Stand, meddler: Meddler, path: str = "reset") -> None:
    begin(load_registry(stand.jobs), JOB, path, Prepared(ANSWERS[path], None, meddler), patience=5)


def stopped_by(stand: Stand, does: Callable[[], None], path: str = "reset", **at: Any) -> str:
    meddler = Meddler(does, **at)
    with pytest.raises(WorldMoved) as stopped:
        walked(stand, meddler, path)
    assert meddler.done and stopped.value.exit_code == 5
    return str(stopped.value)


def intents(stand: Stand) -> list[str]:
    return [entry["action"] for entry in stand.journal(stand.only_run()) if entry["kind"] == "intent"]


def test_the_job_is_restarted_before_the_fence_is_up(stand: Stand) -> None:
    registry = load_registry(stand.jobs)
    controller = open_controller(registry, registry.jobs[JOB])
    said = stopped_by(stand, controller.start, event="preview", action="checkpoint.fence")
    assert "job.stopped" in said and "nothing was changed" in said
    assert intents(stand) == [] and "id" in json.loads((stand.checkpoint / "metadata").read_text())


@pytest.mark.parametrize("path", ["reset", "replay"])
def test_a_file_appears_in_the_output_between_preview_and_act(path: str, stand: Stand) -> None:
    action = {"reset": "sink.truncate", "replay": "sink.rollback"}[path]
    new = stand.sink / "part-99999-new-c000.snappy.parquet"
    shutil.copy(next(stand.sink.glob("part-*")), stand.root / "new")
    before = stand.tree()
    said = stopped_by(stand, lambda: shutil.copy(stand.root / "new", new), path, event="preview", action=action)
    assert action in said and f"runbook undo {stand.only_run()}" in said
    assert intents(stand) == ["checkpoint.fence"]
    changed = differing(stand.tree(), before)
    assert changed == sorted(
        str(path) for path in (stand.checkpoint / ".metadata.crc", stand.checkpoint / "metadata", new)
    )


def test_the_fence_is_taken_down_in_the_middle(stand: Stand) -> None:
    metadata = stand.checkpoint / "metadata"
    old = metadata.read_text()
    said = stopped_by(stand, lambda: metadata.write_text(old) and None, event="preview", action="checkpoint.delete")
    assert "checkpoint.fenced" in said or "fence" in said
    assert intents(stand) == ["checkpoint.fence", "sink.truncate"]
    assert (stand.checkpoint / "offsets/4").exists()


def test_the_configuration_is_changed_between_preview_and_act(stand: Stand) -> None:
    config = stand.root / "conf.yaml"
    other = config.read_text() + "# by somebody\n"
    stopped_by(stand, lambda: config.write_text(other) and None, event="preview", action="config.earliest")
    assert config.read_text() == other
    assert intents(stand)[-1] == "checkpoint.delete"


def interrupted(stand: Stand, **at: Any) -> str:
    """A walk that Ctrl-C ended in the middle of an action; its run."""

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as ended:
        walked(stand, Meddler(stop, **at))
    assert "in the middle of sink.truncate" in str(ended.value)
    return stand.only_run()


def test_the_runbook_changes_between_the_crash_and_the_continue(
    stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(REPOSITORY / "runbooks", tmp_path / "own/runbooks")
    monkeypatch.chdir(tmp_path / "own")
    run = interrupted(stand, event="effect", action=None, step="truncate", number=1)
    before = stand.tree()
    file = tmp_path / "own/runbooks/reset.yaml"
    was = file.read_text()
    file.write_text(was.replace("Look who reads this output.", "Look."))
    registry = load_registry(stand.jobs)
    with pytest.raises(WorldMoved, match=f"reset.yaml.* has changed since run {run} began"):
        pick_up(registry, run, Meddler(lambda: None))
    assert stand.tree() == before
    undo(registry, run, Meddler(lambda: None))  # the way back needs the journal alone


def test_a_manifest_that_was_edited_is_not_carried_out_in_either_direction(stand: Stand) -> None:
    run = interrupted(stand, event="effect", step="truncate", number=1)
    manifest = sorted((stand.runs / run / "manifests").iterdir(), key=lambda path: int(path.stem))[-1]
    was = manifest.read_text()
    manifest.write_text(was.replace("/out", "/checkpoint"))
    before, registry = stand.tree(), load_registry(stand.jobs)
    with pytest.raises(WorldMoved, match=manifest.name):
        pick_up(registry, run, Meddler(lambda: None))
    with pytest.raises(WorldMoved, match=manifest.name):
        undo(registry, run, Meddler(lambda: None))
    assert stand.tree() == before
    manifest.unlink()
    with pytest.raises(WorldMoved, match=manifest.name):
        pick_up(registry, run, Meddler(lambda: None))
    assert stand.tree() == before
    manifest.write_text(was)
    undo(registry, run, Meddler(lambda: None))


def test_what_a_finished_step_made_is_looked_at_again_by_a_continue(stand: Stand) -> None:
    run = interrupted(stand, event="effect", step="truncate", number=1)
    metadata = stand.checkpoint / "metadata"
    metadata.write_text('{"id":"11111111-1111-4111-8111-111111111111"}')
    before = stand.tree()
    with pytest.raises(WorldMoved, match=r"checkpoint\.fenced held when this run stopped and does not now"):
        pick_up(load_registry(stand.jobs), run, Meddler(lambda: None))
    assert stand.tree() == before


def test_a_reader_that_somebody_started_in_the_middle_is_stopped_for_the_undo_and_told(tmp_path: Path) -> None:
    stand = Stand.build(tmp_path / "with-a-reader", reader=True)
    before = stand.tree()
    run = interrupted(stand, event="effect", step="truncate", number=1)
    registry = load_registry(stand.jobs)
    reader = open_controller(registry, registry.jobs[READER])
    reader.start()
    told: list[dict[str, Any]] = []
    operator = Meddler(lambda: None)
    operator.tell = told.append  # type: ignore[method-assign]
    undo(registry, run, operator)
    assert reader.status().state == "stopped"
    assert told[-1]["event"] == "undone" and told[-1]["left_stopped"] == [READER]
    assert undone_in_words(told[-1]) == "what can be taken back is; reader ran and was stopped for this; start it again"
    assert differing(stand.tree(), before) == []
