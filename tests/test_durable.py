"""File operations that survive: on a disk, between two, and on a store that has no rename."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from wizard import durable
from wizard.errors import RunbookError

MEMORY = Path("/dev/shm")


@pytest.fixture(params=["one disk", "two disks", "no rename"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place to move things to from tmp_path."""
    if request.param == "one disk":
        yield str(tmp_path / "target")
    elif request.param == "no rename":
        yield f"memory://{uuid.uuid4()}/target"
    else:
        if not MEMORY.is_dir() or MEMORY.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is no second file system here")
        room = tempfile.mkdtemp(prefix="runbook-test-", dir=MEMORY)
        yield f"{room}/target"
        shutil.rmtree(room)


def test_a_tree_is_moved_there_and_back(tmp_path: Path, target: str) -> None:
    source = tmp_path / "source"
    (source / "a/b").mkdir(parents=True)
    (source / "a/b/.0.crc").write_bytes(b"\0crc")
    (source / "a/1").write_text("one")
    durable.move(str(source), target)
    assert not source.exists()
    assert sorted(durable.files(target)) == [("a/1", 3), ("a/b/.0.crc", 4)]
    durable.move(target, str(source), str(tmp_path / "record"))
    assert (source / "a/1").read_text() == "one" and (source / "a/b/.0.crc").read_bytes() == b"\0crc"
    assert list(durable.files(target)) == []


def test_a_move_never_lands_on_something_else(tmp_path: Path, target: str) -> None:
    durable.write(target, b"precious")
    (tmp_path / "new").write_text("new")
    with pytest.raises(RunbookError, match="is there already"):
        durable.move(str(tmp_path / "new"), target)
    assert durable.read(target) == b"precious"
    assert (tmp_path / "new").read_text() == "new"


def test_a_file_changed_while_it_is_moved_is_not_deleted(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("changed")
    target.write_text("copied")
    durable.write(f"{target}{durable.MOVED}", b'{"": "0000"}')
    with pytest.raises(RunbookError, match="was changed while it was moved"):
        durable.move(str(source), str(target))
    assert source.read_text() == "changed"


def test_a_link_is_moved_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    durable.copy(str(tmp_path / "link"), str(tmp_path / "copy"))
    assert (str((tmp_path / "copy").readlink()), (tmp_path / "file").read_text()) == ("file", "x")


def test_what_a_killed_write_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".metadata.12ab.runbook-tmp", ".metadata.runbook-tmp", ".metadata2.1.runbook-tmp", "metadata"):
        (tmp_path / name).write_text("x")
    durable.remove_drafts(str(tmp_path / "metadata"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".metadata2.1.runbook-tmp", "metadata"]


def test_of_two_that_create_one_file_the_first_wins(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    assert durable.create(path, b"one")
    assert not durable.create(path, b"two")
    assert durable.read(path) == b"one"
    assert [each.name for each in tmp_path.iterdir()] == ["lock"]


def test_directories_that_hold_nothing_are_known(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "c/file").write_text("x")
    assert durable.empty_directories(str(tmp_path)) == ("a/b",)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_root_writes_over_somebody_elses_file_stays_his(tmp_path: Path) -> None:
    """The job's user is to read its configuration afterwards, and again after an undo."""
    file = tmp_path / "conf.yaml"
    file.write_text("one")
    file.chmod(0o600)
    os.chown(file, 12345, 23456)
    durable.copy(str(file), str(tmp_path / "saved"))
    durable.write(str(file), b"two")
    for each in (file, tmp_path / "saved"):
        seen = each.stat()
        assert (seen.st_uid, seen.st_gid, seen.st_mode & 0o777) == (12345, 23456, 0o600)
