"""What every store must do alike: a local disk, memory, and S3 over HTTP. docs/adapters.md says it in words.

A store of your own is added to `place` below, and has to pass all of this.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from wizard import durable
from wizard.engine.journal import Journal, read_chain
from wizard.engine.lock import Locks, read_lock
from wizard.errors import InDoubt, JournalUnwritable, Locked, RunbookError
from wizard.store import Content, open_store


@pytest.fixture(params=["disk", "memory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new, empty place on the store."""
    if request.param == "s3":
        return str(request.getfixturevalue("bucket"))
    return str(tmp_path / "place") if request.param == "disk" else f"memory://{uuid.uuid4().hex}/place"


def put(place: str, names: dict[str, bytes]) -> None:
    for name, data in names.items():
        durable.write(f"{place}/{name}", data)


TREE = {
    "metadata": b'{"id":"x"}',
    "offsets/0": b"v1",
    "offsets/10": b"v1",
    "state/0/1/.1.delta.crc": b"\0",
    "empty": b"",
}


def test_a_directory_is_listed_and_a_file_read_as_it_is_now(place: str) -> None:
    put(place, TREE)
    store = open_store(place)
    root = store.list()
    assert root is not None
    assert (sorted(root.dirs), sorted(root.files), root.error) == (["offsets", "state"], ["empty", "metadata"], None)
    assert store.list("nowhere") is None and store.list("metadata") is None
    assert store.read("offsets/10", 2) == Content(b"v1")
    assert store.read("offsets/10", 1) == Content(too_large=2)
    assert store.read("empty", 5) == Content(b"")
    assert store.read("nowhere", 5) == Content(missing=True)
    assert not store.read("offsets", 5).readable
    assert list(store.map(store.size, ["metadata", "nowhere", "empty"])) == [10, None, 0]
    durable.write(f"{place}/offsets/11", b"v1")
    durable.remove(f"{place}/offsets/0")
    again = store.list("offsets")
    assert again is not None and sorted(again.files) == ["10", "11"]


def test_a_file_is_written_read_and_removed(place: str) -> None:
    url = f"{place}/a/b"
    assert (durable.read(url), durable.exists(url), durable.digest(url), durable.mark(url)) == (None, False, None, None)
    durable.write(url, b"1")
    first = durable.mark(url)
    durable.write(url, b"2")
    assert (durable.read(url), durable.exists(url), durable.mark(url) != first) == (b"2", True, True)
    assert durable.is_directory(f"{place}/a") and not durable.is_directory(url)
    durable.remove(url)
    durable.remove(url)
    assert not durable.exists(url)


def test_a_name_is_created_once_and_replaced_only_from_what_was_seen(place: str) -> None:
    url = f"{place}/lock"
    assert durable.create(url, b"one")
    assert not durable.create(url, b"two")
    assert not durable.replace(url, b"two", b"three")
    assert durable.replace(url, b"one", b"three")
    assert durable.read(url) == b"three"


def test_files_below_are_known_with_their_sizes(place: str) -> None:
    put(place, TREE)
    assert list(durable.files(place)) == sorted((name, len(data)) for name, data in TREE.items())
    assert durable.size(place) == (5, 15) and durable.size(f"{place}/metadata") == (1, 10)
    assert durable.size(f"{place}/nowhere") == (0, 0)
    assert durable.names(f"{place}/offsets") == ["0", "10"] and durable.names(f"{place}/nowhere") == []


def test_a_tree_is_moved_there_and_back_and_never_onto_another(place: str) -> None:
    put(f"{place}/source", TREE)
    durable.move(f"{place}/source", f"{place}/target")
    assert not durable.exists(f"{place}/source")
    assert {name: durable.read(f"{place}/target/{name}") for name in TREE} == TREE
    put(f"{place}/other", {"new": b"new"})
    with pytest.raises(RunbookError, match="is there already"):
        durable.move(f"{place}/other", f"{place}/target", f"{place}/record")
    durable.move(f"{place}/target", f"{place}/source", f"{place}/back")
    assert {name: durable.read(f"{place}/source/{name}") for name in TREE} == TREE
    assert not durable.exists(f"{place}/target")


@pytest.mark.parametrize("stage", ["while it copied", "while it deleted"])
def test_a_move_that_was_killed_is_finished_by_calling_it_again(stage: str, place: str) -> None:
    """As a kill leaves it where there is no rename: some copies, or some of the originals gone."""
    put(f"{place}/source", TREE)
    marks = {name: durable.mark(f"{place}/source/{name}") for name in TREE}
    record = f"{place}/target{durable.MOVED}"
    if stage == "while it copied":
        durable.write(record, b"null")
        durable.copy(f"{place}/source/metadata", f"{place}/target/metadata")
    else:
        below = "/" if place.startswith("s3://") else ""
        put(f"{place}/target", TREE)
        durable.write(record, json.dumps({below + name: mark for name, mark in marks.items()}).encode())
        durable.remove(f"{place}/source/metadata")
    durable.move(f"{place}/source", f"{place}/target")
    assert list(durable.files(f"{place}/source")) == []
    assert {name: durable.read(f"{place}/target/{name}") for name in TREE} == TREE


def test_a_tree_is_removed_with_everything_in_it_and_nothing_beside(place: str) -> None:
    put(place, {"runs/a/1": b"1", "runs/a/b/2": b"2", "runs/a2": b"3"})
    durable.remove_tree(f"{place}/runs/a")
    durable.remove_tree(f"{place}/runs/a")
    assert list(durable.files(place)) == [("runs/a2", 1)]


def test_a_journal_is_appended_to_picked_up_and_never_written_by_two(place: str) -> None:
    url = f"{place}/runs/r/journal.jsonl"
    journal = Journal.create(url)
    for number in range(12):
        journal.append("probe", number=number)
    with pytest.raises(InDoubt):
        Journal.create(url)
    chain = read_chain(url)
    assert [entry["number"] for entry in chain.entries] == list(range(12)) and chain.bad is None
    other = Journal.reopen(url)
    other.append("continued")
    if "://" in place:  # on a disk the lock alone keeps the second writer away
        with pytest.raises(JournalUnwritable, match="written by somebody else"):
            journal.append("probe", number=12)
    assert len(read_chain(url).entries) == 13


def test_a_lock_is_held_by_one_and_taken_over_by_naming_its_run(place: str) -> None:
    mine = Locks(place, "reset-j-1", ["j"])
    mine.take()
    assert (read_lock(place, "j") or {})["run"] == "reset-j-1"
    with pytest.raises(Locked):
        Locks(place, "reset-j-2", ["j"]).take()
    url = f"{place}/locks/j.json"
    left = json.loads(durable.read(url) or b"") | {"pid": 1, "started": "long ago"}
    durable.write(url, json.dumps(left).encode())
    with pytest.raises(InDoubt, match="reset-j-1"):
        Locks(place, "reset-j-2", ["j"]).take()
    again = Locks(place, "reset-j-1", ["j"])
    again.take()
    again.release()
    assert read_lock(place, "j") is None
