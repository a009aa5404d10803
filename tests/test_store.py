"""Local disk or fsspec URL: the same answers, each directory listed once, and always as it is now."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from recorded import NAMES, at_home, look

from wizard.checkpoint.reader import read_checkpoint
from wizard.diagnosis.diagnose import Subject, diagnose
from wizard.errors import BadInput
from wizard.sinks.file_sink import FileSink
from wizard.store import Content, Listing, LocalStore, RemoteStore, exists, local_path, open_store

FEW = [name for name in NAMES if "4.2" in name and "delta" not in name]


@pytest.fixture
def memory() -> Iterator[Any]:
    """fsspec's in-memory file system is one for the whole process."""
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs
    fs.store.clear()


@pytest.mark.parametrize("name", FEW)
def test_a_checkpoint_gives_the_same_json_on_a_disk_and_behind_a_url(name: str, memory: Any, tmp_path: Path) -> None:
    root = at_home(name, tmp_path)
    memory.put(str(root / "checkpoint"), "/bucket/checkpoint", recursive=True)
    local = look(root, sink=False).as_dict()
    remote = diagnose(Subject("memory://bucket/checkpoint")).as_dict()
    assert remote.pop("checkpoint") == "memory://bucket/checkpoint"
    assert local.pop("checkpoint") == str(root / "checkpoint")
    assert plain(remote) == plain(local)


def plain(found: dict[str, Any]) -> Any:
    """The order in which a store lists its names says nothing."""
    return json.loads(json.dumps(found, sort_keys=True))


@pytest.mark.parametrize("name", NAMES)
def test_each_directory_is_listed_once_and_each_file_read_once(name: str, tmp_path: Path) -> None:
    root = at_home(name, tmp_path)
    store = Counting(str(root / "checkpoint"))
    read_checkpoint(store)
    assert set(store.lists.values()) == {1}
    assert {path for path, times in store.reads.items() if times > 1 and not path.startswith("commits/")} == set()
    directories = {str(p.relative_to(store.root)) for p in Path(store.root).rglob("*") if p.is_dir()}
    assert store.lists.keys() - {""} <= directories


def test_a_sink_lists_each_directory_once(tmp_path: Path) -> None:
    root = at_home("spark-4.2-stateless-file", tmp_path)
    store = Counting(str(root / "sink"))
    FileSink(store).report(None)
    assert store.lists == {"": 1, "_spark_metadata": 1}


class Counting(LocalStore):
    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.lists: Counter[str] = Counter()
        self.reads: Counter[str] = Counter()

    def list(self, path: str = "") -> Listing | None:
        self.lists[path] += 1
        return super().list(path)

    def read(self, path: str, limit: int) -> Content:
        self.reads[path] += 1
        return super().read(path, limit)


def test_a_url_is_opened_without_a_listing_cache_or_a_shared_instance(memory: Any) -> None:
    memory.pipe("/bucket/ck/metadata", b"{}")
    first, second = open_store("memory://bucket/ck"), open_store("memory://bucket/ck")
    assert isinstance(first, RemoteStore)
    assert isinstance(second, RemoteStore)
    assert first.fs is not second.fs
    assert first.fs.storage_options["use_listings_cache"] is False
    assert first.fs.dircache.use_listings_cache is False


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_file_that_appears_between_two_looks_is_seen(kind: str, memory: Any, tmp_path: Path) -> None:
    url = str(tmp_path) if kind == "local" else "memory://bucket/ck"
    fs = memory if kind == "memory" else fsspec.filesystem("file")
    at = "/bucket/ck" if kind == "memory" else str(tmp_path)
    fs.makedirs(f"{at}/offsets", exist_ok=True)
    fs.pipe(f"{at}/offsets/0", b"v1\n{}\n1")
    store = open_store(url)
    before, after = [read_checkpoint(store).planned], []
    fs.pipe(f"{at}/offsets/1", b"v1\n{}\n1")
    after.append(read_checkpoint(store).planned)
    fs.rm(f"{at}/offsets/1")
    after.append(read_checkpoint(store).planned)
    assert (before, after) == ([0], [1, 0])


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_stores_answer_alike(kind: str, memory: Any, tmp_path: Path) -> None:
    (tmp_path / "d/inner").mkdir(parents=True)
    (tmp_path / "d/inner/x").write_bytes(b"12345")
    (tmp_path / "d/empty").write_bytes(b"")
    memory.put(str(tmp_path / "d"), "/bucket/d", recursive=True)
    store = open_store(str(tmp_path / "d") if kind == "local" else "memory://bucket/d")
    root = store.list()
    assert root is not None
    assert (root.dirs, root.files, root.error) == (("inner",), ("empty",), None)
    assert store.list("nowhere") is None
    assert store.read("inner/x", 5) == Content(b"12345")
    assert store.read("inner/x", 4) == Content(too_large=5)
    assert store.read("empty", 5) == Content(b"")
    assert store.read("nowhere", 5) == Content(missing=True)
    assert not store.read("inner", 5).readable
    assert (store.size("inner/x"), store.size("nowhere")) == (5, None)
    assert list(store.map(store.size, ["inner/x", "nowhere", "empty"])) == [5, None, 0]


def test_a_place_that_is_a_file_is_not_a_directory(memory: Any, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    memory.pipe("/bucket/f", b"x")
    assert open_store(str(tmp_path / "f")).list() is None
    assert open_store("memory://bucket/f").list() is None


@pytest.mark.parametrize("url", ["nosuch://bucket/path", "", "a\0b"])
def test_a_place_that_cannot_be_opened_is_one_clear_line(url: str) -> None:
    with pytest.raises(BadInput) as raised:
        open_store(url)
    assert "\n" not in str(raised.value)


def test_a_scheme_whose_package_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.registry import known_implementations

    monkeypatch.setitem(
        known_implementations, "absent", {"class": "no_such_package.FS", "err": "Install no_such_package"}
    )
    with pytest.raises(BadInput, match=r"no_such_package.*pip install 'runbook\[") as raised:
        open_store("absent://user:secret@bucket/path")
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("relative/x", "relative/x"),
        ("s3://bucket/x", None),
    ],
)
def test_local_paths_in_every_spelling(url: str, path: str | None) -> None:
    assert local_path(url) == path


def test_whether_a_file_exists_is_true_false_or_not_known(memory: Any, tmp_path: Path) -> None:
    (tmp_path / "a b").write_text("x")
    memory.pipe("/bucket/x", b"x")
    assert exists(f"file://{tmp_path}/a%20b") is True
    assert exists(f"file:{tmp_path}/gone") is False
    assert exists("memory://bucket/x") is True
    assert exists("memory://bucket/gone") is False
    assert exists("nosuch://bucket/x") is None


def test_a_link_is_followed_unless_it_leads_back(tmp_path: Path) -> None:
    (tmp_path / "real/deep").mkdir(parents=True)
    (tmp_path / "root/sub").mkdir(parents=True)
    (tmp_path / "root/sub/out").symlink_to(tmp_path / "real")
    (tmp_path / "root/sub/up").symlink_to(tmp_path / "root")
    (tmp_path / "real/back").symlink_to(tmp_path / "root/sub")
    store = LocalStore(str(tmp_path / "root"))
    inside, through = store.list("sub"), store.list("sub/out")
    assert inside is not None
    assert through is not None
    assert inside.dirs == ("out",)
    assert through.dirs == ("deep",)
