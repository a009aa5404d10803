"""Files and directories no checkpoint should hold: a finding or one clear line, never a traceback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import permissions
import pytest
from recorded import WORDS, at_home, codes, look, remove

from wizard.diagnosis.diagnose import Diagnosis, Subject, diagnose
from wizard.store import Content, Listing, LocalStore

NAME = "spark-4.2-window-hdfs"
NEWEST = 18
BAD = {
    "empty": b"",
    "cut": b'v1\n{"batchWaterm',
    "binary": bytes(range(256)) * 8,
    "zeros": b"\0" * 4096,
    "not UTF-8": b"v1\n{\xff\xfe}\n1",
    "newer": b"v9\n{}\n1",
    "huge version": b"v" + b"9" * 400 + b"\n{}\n1",
    "number of 400 digits": b'v1\n{"batchWatermarkMs":1' + b"0" * 400 + b'}\n{"logOffset":1' + b"0" * 400 + b"}",
    "number of 5000 digits": b'v1\n{"batchWatermarkMs":' + b"9" * 5000 + b"}\n1",
    "nested 100,000 deep": b"v1\n" + b'{"a":' * 100_000,
    "nested, and closed": b'v1\n{}\n{"a":' + b"[" * 900 + b"]" * 900 + b"}",
    "lone surrogate": b'v1\n{"conf":{"a":"\\ud800"}}\n"\\udfff"',
    "infinite": b'v1\n{"batchTimestampMs":Infinity}\n1e999',
    "only newlines": b"\n" * 1000,
}
FILES = (f"offsets/{NEWEST}", f"offsets/{NEWEST - 1}", f"commits/{NEWEST}", "metadata", "sources/0/17", "state/0/_metadata/metadata",
         "state/0/0/_metadata/schema")  # fmt: skip


def told(seen: Diagnosis) -> set[str]:
    """The codes found; and that it can be printed, in both ways, on a terminal that knows UTF-8 only."""
    from wizard.diagnosis.report import lines
    from wizard.text import Paint

    found = seen.as_dict()
    json.dumps(found, allow_nan=False)
    assert {path["verdict"] for path in found["paths"].values()} <= WORDS
    assert lines(seen, Paint(sys.stderr))
    return codes(seen)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return at_home(NAME, tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("bad", BAD)
def test_any_file_may_hold_anything(bad: str, file: str, home: Path) -> None:
    target = home / "checkpoint" / file
    whole = target.read_bytes()
    target.write_bytes(BAD[bad])
    try:
        seen = look(home)
    finally:
        target.write_bytes(whole)
    found = told(seen)
    readable = bad in ("number of 400 digits", "lone surrogate")
    if file.startswith("offsets") and not readable:
        assert found & {"OFFSETS_UNREADABLE", "NEWER_FORMAT"}
        assert seen.paths["resume"]["verdict"] == "blocked"
    if file == "metadata":
        assert "METADATA_UNREADABLE" in found
        assert seen.paths["resume"]["verdict"] == "blocked"
    if file.startswith("commits") and bad in ("empty", "cut", "binary", "newer", "not UTF-8"):
        assert found & {"COMMIT_UNREADABLE", "NEWER_FORMAT"}
        assert seen.paths["resume"]["verdict"] == "blocked"


@pytest.mark.parametrize(
    "path", ["offsets", "commits", "sources", "sources/0", "state", "state/0", "state/0/1", "metadata"]
)
def test_a_missing_part_is_a_finding(path: str, tmp_path: Path) -> None:
    root = at_home(NAME, tmp_path)
    remove(root / "checkpoint", path)
    seen = look(root)
    found = told(seen)
    if path not in ("state", "state/0"):  # no other file says that the query had any state
        assert [one for one in seen.findings if one.severity == "error"], found
        assert seen.paths["resume"]["verdict"] in ("blocked", "unknown")


def test_an_empty_directory_and_an_absent_one_are_told_apart(tmp_path: Path) -> None:
    assert told(diagnose(Subject(str(tmp_path)))) == {"NOT_A_CHECKPOINT"}
    assert told(diagnose(Subject(str(tmp_path / "nowhere")))) == {"CHECKPOINT_ABSENT"}


def test_directories_in_place_of_files_and_files_in_place_of_directories(tmp_path: Path) -> None:
    root = at_home("spark-4.2-stateless-file", tmp_path)
    remove(root / "checkpoint", "metadata", "commits", "offsets/13")
    (root / "checkpoint/metadata").mkdir()
    (root / "checkpoint/offsets/13").mkdir()
    (root / "checkpoint/commits").write_text("not a directory")
    seen = look(root)
    assert told(seen) >= {"METADATA_MISSING"}
    assert seen.checkpoint.planned == 12
    assert seen.paths["resume"]["verdict"] == "blocked"


def test_links_that_lead_in_circles_are_not_followed_for_ever(tmp_path: Path) -> None:
    root = at_home(NAME, tmp_path)
    state, sink = root / "checkpoint/state", root / "sink"
    (state / "0" / "7").symlink_to(state)
    (state / "self").symlink_to("self")
    for side, other in (("a", "b"), ("b", "a")):
        (sink / side).mkdir()
        for twin in ("x", "y"):
            (sink / side / twin).symlink_to(sink / other)
    (root / "checkpoint/offsets/19").symlink_to("19")
    seen = look(root)
    assert told(seen)
    assert seen.paths["resume"]["verdict"] in ("blocked", "unknown")


def test_a_pipe_and_a_socket_do_not_block_the_reader(tmp_path: Path) -> None:
    root = at_home("spark-4.2-stateless-file", tmp_path)
    os.mkfifo(root / "checkpoint/offsets/14")
    remove(root / "checkpoint", "commits/13")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(root / "checkpoint/commits")  # the path of a socket may only be short
        try:
            listener.bind("14")
        finally:
            os.chdir(here)
        seen = look(root)
    assert told(seen) >= {"OFFSETS_UNREADABLE", "COMMIT_UNREADABLE"}
    assert seen.paths["resume"]["verdict"] == "blocked"


def test_ten_thousand_foreign_files_are_two_findings_and_change_nothing_else(tmp_path: Path) -> None:
    root = at_home(NAME, tmp_path)
    for directory in ("offsets", "state/0/0"):
        for number in range(5000):
            os.close(os.open(root / "checkpoint" / directory / f"{number}.bak", os.O_CREAT))
    seen = look(root)
    assert told(seen) >= {"FOREIGN_FILES", "STATE_FOREIGN"}
    assert seen.checkpoint.planned == NEWEST
    assert len(json.dumps(seen.as_dict())) < 50_000


def test_names_that_are_not_text_can_be_shown(tmp_path: Path) -> None:
    root = at_home("spark-4.2-stateless-file", tmp_path)
    for name in (b"\xff\xfe", b"a\nb", b"\x1b[31mred"):
        (root / "checkpoint/offsets" / os.fsdecode(name)).touch()
        (root / "checkpoint" / os.fsdecode(name)).touch()
    for arguments in ([], ["--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "wizard.cli", "diagnose", "--checkpoint", str(root / "checkpoint"), *arguments],
            capture_output=True, check=False,
        )  # fmt: skip
        assert b"Traceback" not in done.stderr
        assert done.returncode == 0
        assert b"\x1b[31mred" not in done.stdout


class Denying(LocalStore):
    """A disk on which one directory cannot be listed, and no file in it read, whoever asks."""

    denied = ""

    def list(self, path: str = "") -> Listing | None:
        return Listing(error="Permission denied") if path == self.denied else super().list(path)

    def read(self, path: str, limit: int) -> Content:
        return Content(error="Permission denied") if path.startswith(self.denied) else super().read(path, limit)


@pytest.mark.parametrize("path", ["", "offsets", "commits", "sources/0", "state", "state/0/0"])
def test_what_may_not_be_listed_is_unknown_and_never_safe(
    path: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_denying(url: str) -> LocalStore:
        store = Denying(url)
        store.denied = path
        return store

    # Root may read everything, so the refusal cannot come from the disk's own permissions in every run.
    monkeypatch.setattr("wizard.diagnosis.diagnose.open_store", open_denying)
    seen = look(home)
    assert "UNLISTED" in told(seen)
    assert {said["verdict"] for said in seen.paths.values()} <= {"unknown", "blocked"}


@pytest.mark.skipif(not permissions.bind(), reason=permissions.WHY_NOT)
@pytest.mark.parametrize(
    "path", ["checkpoint", "checkpoint/offsets", "checkpoint/state/0", "checkpoint/metadata", "sink"]
)
def test_permissions_of_the_disk_are_a_finding(path: str, tmp_path: Path) -> None:
    root = at_home(NAME, tmp_path)
    (root / path).chmod(0)
    try:
        seen = look(root)
    finally:
        (root / path).chmod(0o755)
    assert told(seen) & {"UNLISTED", "METADATA_UNREADABLE", "SINK_UNREADABLE"}
    assert seen.paths["resume"]["verdict"] in ("unknown", "blocked")


@pytest.mark.parametrize("url", ["", "a\0b", "nosuch://bucket/path", "x" * 5000])
def test_a_place_that_is_none_is_one_clear_line(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from wizard.cli import main; sys.argv[1:] = eval(sys.argv[1]); main()",
         repr(["diagnose", "--checkpoint", url])],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 or done.returncode == 0
