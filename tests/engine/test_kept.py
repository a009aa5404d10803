"""What walks have put aside, told by job: in one go over the runs, without reading what they did."""

from __future__ import annotations

from stand import ANSWERS, JOB, Stand, fork, words

from wizard.engine.journal import Journal
from wizard.engine.undo import kept, kept_of_all
from wizard.jobs.registry import load_registry

NOTHING = {"files": 0, "bytes": 0, "oldest_seconds": 0}


def put_aside(stand: Stand) -> tuple[int, int]:
    files = [path for path in stand.runs.glob("*/quarantine/**/*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def test_every_file_in_quarantine_is_counted_until_it_is_purged(stand: Stand) -> None:
    registry = load_registry(stand.jobs)
    assert kept(registry, JOB) == NOTHING
    for path in ("replay", "reset"):
        code, said = fork(words(stand, path, JOB, given=ANSWERS[path]))
        assert code == 0, said
    told = kept_of_all(registry)
    assert list(told) == [JOB]
    assert (told[JOB]["files"], told[JOB]["bytes"]) == put_aside(stand) > (0, 0)
    for run in stand.run_ids():
        manifest = next((stand.runs / run / "manifests").iterdir())
        whole = manifest.read_bytes()
        manifest.write_bytes(b"[]")
        code, said = fork(["purge", run, "--confirm", run, "--jobs", stand.jobs])
        assert code == 5 and str(manifest) in said, said
        assert not [each for each in stand.journal(run) if each["kind"] == "purged"], "it could not be undone any more"
        manifest.write_bytes(whole)
    assert (told[JOB]["files"], told[JOB]["bytes"]) == put_aside(stand)
    for run in stand.run_ids():
        code, said = fork(["purge", run, "--confirm", run, "--jobs", stand.jobs])
        assert code == 0, said
    assert kept(registry, JOB) == NOTHING


def test_only_the_first_entry_of_a_run_is_read_and_only_where_something_lies_aside(stand: Stand) -> None:
    for number, aside in enumerate((True, False)):
        place = stand.runs / f"reset-{JOB}-20261118T15000{number}-000{number}"
        journal = Journal.create(str(place / "journal.jsonl"))
        journal.append("start", run=place.name, job=JOB)
        with (place / "journal.jsonl").open("a") as cut_short:
            cut_short.write("neither JSON nor a whole line")
        if aside:
            (place / "quarantine").mkdir()
            (place / "quarantine/rows").write_bytes(b"x" * 7)
    strange = stand.runs / f"reset-{JOB}-20261118T150009-0009/quarantine"
    strange.mkdir(parents=True)
    (strange / "rows").write_bytes(b"no journal says whose")
    told = kept(load_registry(stand.jobs), JOB)
    assert (told["files"], told["bytes"]) == (1, 7)
