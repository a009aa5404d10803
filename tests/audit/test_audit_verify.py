"""Whatever is done to a record is found, and named; what a kill leaves is said and forgiven."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from walked import walked, workspace

from wizard.audit.verifying import verify
from wizard.auditing import audit
from wizard.engine.journal import hash_of
from wizard.engine.runs import open_run
from wizard.errors import BadInput


def run_audit(*arguments: object, jobs: Path) -> Result:
    done = CliRunner().invoke(audit, [*map(str, arguments), "--jobs", str(jobs)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def lines_of_whole() -> list[bytes]:
    return (walked().runs / walked().whole / "journal.jsonl").read_bytes().splitlines(keepends=True)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """The run that was killed, picked up and taken back; without what it had put aside."""
    to = tmp_path / "runs" / walked().whole
    shutil.copytree(walked().runs / walked().whole, to, ignore=shutil.ignore_patterns("quarantine", "displaced"))
    yield to


def first_bad(place: Path) -> int | None:
    return verify(open_run(str(place.parent), place.name)).first_bad


def test_real_runs_hold(copy: Path) -> None:
    done = run_audit("verify", "--json", jobs=walked().jobs)
    told = json.loads(done.stdout)
    assert done.return_value == 0
    assert [(each["sound"], each["first_bad"]) for each in told] == [(True, None)] * 3
    whole = next(each for each in told if each["run"] == walked().whole)
    assert (whole["entries"], whole["head"]) == (len(lines_of_whole()), walked().heads["undone"])


def test_every_edit_removal_swap_and_insertion_at_every_entry_is_found_and_named(copy: Path) -> None:
    lines, journal = lines_of_whole(), copy / "journal.jsonl"
    missed = []
    for at, line in enumerate(lines):
        entry = json.loads(line)
        ways = {
            "kind": (at, [*lines[:at], line.replace(b'"kind":"', b'"kind":"x', 1), *lines[at + 1 :]]),
            "time": (at, [*lines[:at], line.replace(b'"at":"20', b'"at":"21', 1), *lines[at + 1 :]]),
            "blank": (at, [*lines[:at], line.replace(b",", b", ", 1), *lines[at + 1 :]]),
            "key twice": (at, [*lines[:at], line.replace(b"{", b'{"kind":"end",', 1), *lines[at + 1 :]]),
            "carriage return": (at, [*lines[:at], line.replace(b",", b",\r", 1), *lines[at + 1 :]]),
            "inserted again": (at + 1, [*lines[: at + 1], line, *lines[at + 1 :]]),
            "garbage": (at, [*lines[:at], b"{]\n", *lines[at:]]),
            "empty line": (at, [*lines[:at], b"\n", *lines[at:]]),
        }
        forged = {**entry, "at": "2030-01-01T00:00:00+00:00"}
        forged["hash"] = hash_of(forged)
        if at + 1 < len(lines):  # what comes at the very end is the cut tail, below
            ways["removed"] = (at, [*lines[:at], *lines[at + 1 :]])
            ways["swapped"] = (at, [*lines[:at], lines[at + 1], line, *lines[at + 2 :]])
            ways["rehashed"] = (
                at + 1,
                [*lines[:at], json.dumps(forged, separators=(",", ":")).encode() + b"\n", *lines[at + 1 :]],
            )
            ways["cut short"] = (at, [*lines[:at], line[:-9] + b"\n", *lines[at + 1 :]])
            ways["joined"] = (at, [*lines[:at], line[:-1], *lines[at + 1 :]])
        for way, (bad, edited) in ways.items():
            journal.write_bytes(b"".join(edited))
            if first_bad(copy) != bad:
                missed.append((at, way, first_bad(copy)))
    assert missed == []


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_byte_changed_removed_or_added_is_found(copy: Path, data: st.DataObject) -> None:
    whole = b"".join(lines_of_whole())
    at = data.draw(st.integers(0, len(whole) - 2))  # the very last line break may go: that is a torn tail
    put = data.draw(st.binary(max_size=3))
    length = data.draw(st.integers(0, 3))
    edited = whole[:at] + put + whole[at + length :]
    if edited == whole or whole.startswith(edited):
        return
    (copy / "journal.jsonl").write_bytes(edited)
    found = verify(open_run(str(copy.parent), copy.name))
    torn = not edited.endswith(b"\n")  # the last entry was taken with it: said, as a kill may do the same
    assert not found.sound or (torn and any(each.weight == "doubt" for each in found.found))


def test_a_broken_chain_ends_with_4_and_names_the_entry(copy: Path) -> None:
    lines = lines_of_whole()
    (copy / "journal.jsonl").write_bytes(
        b"".join([*lines[:5], lines[5].replace(b"2026", b"2027", 1).replace(b"20", b"21", 1), *lines[6:]])
    )
    jobs = copy.parent.parent / "jobs.yaml"
    shutil.copy(walked().jobs, jobs)
    done = run_audit("verify", copy.name, jobs=jobs)
    assert done.return_value == 4
    assert "does not hold at entry 5" in done.stdout


def test_no_such_run_is_bad_input() -> None:
    with pytest.raises(BadInput, match="there is no run 'nowhere'"):
        run_audit("verify", "nowhere", jobs=walked().jobs)


def test_a_torn_tail_is_said_and_tolerated(copy: Path) -> None:
    lines = lines_of_whole()
    (copy / "journal.jsonl").write_bytes(b"".join(lines)[:-20])
    found = verify(open_run(str(copy.parent), copy.name))
    assert found.sound
    assert any(
        each.weight == "doubt" and each.entry == len(lines) - 1 and "never finished" in each.says
        for each in found.found
    )


def test_a_cut_tail_is_found_with_the_head_and_only_with_it(copy: Path) -> None:
    lines = lines_of_whole()
    (copy / "journal.jsonl").write_bytes(b"".join(lines[:-3]))
    run = open_run(str(copy.parent), copy.name)
    without = verify(run)
    assert without.sound and any("leave no trace" in each.says for each in without.found)
    assert not verify(run, walked().heads["undone"]).sound
    assert verify(run, walked().heads["ended"]).sound  # that one is still in it


def test_a_head_that_is_none_or_has_no_run_is_bad_input() -> None:
    with pytest.raises(BadInput, match="64 hexadecimal digits"):
        run_audit("verify", walked().whole, "--head", "12ab", jobs=walked().jobs)
    with pytest.raises(BadInput, match="one run"):
        run_audit("verify", "--head", "0" * 64, jobs=walked().jobs)


def test_a_run_in_doubt_is_said_and_is_no_error() -> None:
    done = run_audit("verify", jobs=walked().doubt)
    assert done.return_value == 0
    assert "sink.truncate has no outcome" in done.stdout
    assert f"runbook continue {walked().whole}" in done.stdout


def test_an_outcome_that_is_missing_in_the_middle_is_found_though_every_hash_fits(copy: Path) -> None:
    entries = [json.loads(line) for line in lines_of_whole()]
    gone = next(entry["seq"] for entry in entries if entry["kind"] == "outcome")
    intent = max(entry["seq"] for entry in entries[:gone] if entry["kind"] == "intent")
    prev, rewritten = "0" * 64, []
    for seq, entry in enumerate(entry for entry in entries if entry["seq"] != gone):
        new = {**entry, "seq": seq, "prev": prev}
        new["hash"] = prev = hash_of(new)
        rewritten.append(json.dumps(new, separators=(",", ":")) + "\n")
    (copy / "journal.jsonl").write_text("".join(rewritten))
    run = open_run(str(copy.parent), copy.name)
    assert run.chain.bad is None
    assert verify(run).first_bad == intent


def test_a_manifest_that_was_changed_or_is_gone_is_found(copy: Path) -> None:
    manifest = sorted((copy / "manifests").glob("*.json"))[0]
    seq = int(manifest.stem)
    manifest.write_bytes(manifest.read_bytes() + b" ")
    assert first_bad(copy) == seq
    manifest.unlink()
    assert first_bad(copy) == seq


def test_another_runs_journal_is_found(copy: Path) -> None:
    shutil.copy(walked().runs / walked().declined / "journal.jsonl", copy / "journal.jsonl")
    assert first_bad(copy) == 0


def test_a_runbook_that_has_changed_since_is_told_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Path(__file__).parents[2] / "runbooks/reset.yaml"
    (tmp_path / "reset.yaml").write_text(shipped.read_text().replace("Put up the fence.", "Put our fence up."))
    monkeypatch.setenv("RUNBOOK_PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = verify(open_run(str(walked().runs), walked().whole))
    assert found.sound
    assert any(each.weight == "note" and "not the one that was walked" in each.says for each in found.found)


def test_an_object_stores_journal_is_verified_entry_by_entry(tmp_path: Path) -> None:
    import fsspec
    from walked import FULL, JOB, last_run, prepared

    from wizard.engine.start import begin
    from wizard.jobs.registry import load_registry

    jobs = workspace(tmp_path, "memory://audit-verify/runs")
    registry = load_registry(jobs)
    ending = begin(registry, JOB, "reset", prepared({**FULL, "place": "leave"}, []), patience=0.1)
    run = last_run(registry)
    assert run_audit("verify", run, "--head", ending.head, jobs=jobs).return_value == 0
    fs = fsspec.filesystem("memory")
    objects = sorted(fs.ls(f"/audit-verify/runs/{run}/journal.jsonl.d", detail=False))
    assert len(objects) == 4  # start, a look, an answer, the end
    for at, name in enumerate(objects):
        kept = fs.cat_file(name)
        fs.pipe_file(name, kept[:-1])  # in the middle this is no torn tail
        if at + 1 < len(objects):
            assert verify(open_run(registry.runs, run)).first_bad == at
        fs.pipe_file(name, kept.replace(b'"at":"20', b'"at":"21'))
        assert verify(open_run(registry.runs, run)).first_bad == at
        fs.rm_file(name)
        assert verify(open_run(registry.runs, run), ending.head).first_bad == at
        fs.pipe_file(name, kept)
    assert verify(open_run(registry.runs, run), ending.head).sound
    listed = json.loads(run_audit("list", "--json", jobs=jobs).stdout)
    assert [(one["run"], one["verdict"]) for one in listed] == [(run, "aborted")]
    assert "Ended: aborted" in run_audit("show", run, jobs=jobs).stdout
    assert "<h1>reset clicks: aborted</h1>" in run_audit("export", run, jobs=jobs).stdout
