"""S3 over HTTP: conditional writes, listings in pages, many objects at once; and a server that does not behave."""

from __future__ import annotations

import hashlib
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from wizard import durable
from wizard.errors import RunbookError
from wizard.store import Listing, RemoteStore, open_store

if TYPE_CHECKING:
    from faults import Faults

MANY = 1020  # more than a page of a listing, more than one DeleteObjects


def client() -> Any:
    store = open_store("s3://")
    assert isinstance(store, RemoteStore)
    return store.fs


def fill(url: str, count: int) -> dict[str, str]:
    """So many objects; name → SHA-256."""
    data = {f"{n % 7}/part-{n:05}": f"{n}".encode() * 9 for n in range(count)}
    client().pipe({f"{url.partition('://')[2]}/{name}": each for name, each in data.items()}, batch_size=64)
    return {name: hashlib.sha256(each).hexdigest() for name, each in data.items()}


def held(url: str) -> dict[str, str]:
    """Every object below, read by s3fs alone."""
    at = url.partition("://")[2]
    client().invalidate_cache()
    found = client().find(at)
    read = client().cat(found) if found else {}
    return {name[len(at) + 1 :]: hashlib.sha256(data).hexdigest() for name, data in read.items()}


def test_of_many_that_create_one_object_one_wins(bucket: str) -> None:
    for lock in range(5):
        won: list[int] = []
        start = threading.Barrier(12)

        def one(number: int, url: str = f"{bucket}/lock-{lock}", won: list[int] = won, start: Any = start) -> None:
            start.wait()
            if durable.create(url, f"{number}".encode()):
                won.append(number)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = won
        assert durable.read(f"{bucket}/lock-{lock}") == f"{winner}".encode()


def test_of_two_that_take_over_one_lock_one_wins(bucket: str) -> None:
    url = f"{bucket}/lock"
    assert durable.create(url, b"stale")
    assert durable.replace(url, b"stale", b"one")
    assert not durable.replace(url, b"stale", b"two")
    assert not durable.replace(f"{bucket}/none", b"", b"two")
    assert durable.read(url) == b"one"


def test_a_create_whose_answer_was_lost_is_known_for_our_own(behind: str, proxy: Faults) -> None:
    proxy.cut(1, when=b"PUT ", after=True)
    assert durable.create(f"{behind}/lock", b"mine")
    proxy.cut(1, when=b"PUT ", after=True)
    assert not durable.create(f"{behind}/lock", b"theirs")
    assert durable.read(f"{behind}/lock") == b"mine"


@pytest.mark.parametrize("status", [500, 502, 503])
def test_an_error_that_passes_is_waited_for(status: int, behind: str, proxy: Faults) -> None:
    proxy.fail(3, status=status)
    durable.write(f"{behind}/a", b"1")
    proxy.fail(2, status=status)
    assert durable.read(f"{behind}/a") == b"1"
    proxy.fail(2, status=status)
    assert [below for below, _ in durable.files(behind)] == ["a"]


def test_a_connection_cut_in_the_middle_is_made_again(behind: str, proxy: Faults) -> None:
    proxy.cut(2, when=b"PUT ")
    durable.write(f"{behind}/a", b"1")
    proxy.cut(2, when=b"GET ", after=True)
    assert durable.read(f"{behind}/a") == b"1"


@pytest.mark.parametrize("fault", ["503", "silence", "nobody there"])
def test_a_store_that_stays_away_is_said_so_in_one_line_and_in_time(
    fault: str, behind: str, proxy: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable.write(f"{behind}/a", b"1")
    monkeypatch.setenv("RUNBOOK_STORE_PATIENCE", "3")
    if fault == "503":
        proxy.fail(1 << 30)
    elif fault == "silence":
        proxy.hang()
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    began = time.monotonic()
    with pytest.raises(RunbookError, match=r"s3://runbook-tests does not answer: .*; asked \d+ times in \d s") as told:
        durable.read(f"{behind}/a")
    assert isinstance(told.value, OSError) and "\n" not in str(told.value)
    assert time.monotonic() - began < 8
    listing = open_store(behind).list()
    assert listing is not None and "does not answer" in str(listing.error)


def test_without_keys_the_way_to_give_them_is_said(behind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(PermissionError, match="no credentials; set AWS_ACCESS_KEY_ID"):
        durable.read(f"{behind}/a")


def test_a_wrong_key_is_not_tried_again_and_not_shown(
    behind: str, proxy: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret-key")
    proxy.seen.clear()
    with pytest.raises(OSError) as told:
        durable.write(f"{behind}/a", b"1")
    assert "wrong-secret-key" not in str(told.value)
    assert proxy.seen["PUT"] == 1


def test_more_objects_than_a_page_or_a_delete_takes_are_moved(behind: str, proxy: Faults) -> None:
    before = fill(f"{behind}/source", MANY)
    proxy.fail(2, when=b"continuation-token")  # a page is asked for again, and the listing is whole
    durable.move(f"{behind}/source", f"{behind}/target")
    assert held(f"{behind}/source") == {}
    found = client().find(f"{behind}/target".partition("://")[2], detail=True)
    assert len(found) == len(before) == MANY
    for n in (0, 1, MANY // 2, MANY - 1):
        name = f"{n % 7}/part-{n:05}"
        assert hashlib.sha256(durable.read(f"{behind}/target/{name}") or b"").hexdigest() == before[name]
    assert client().dircache.use_listings_cache is False and not list(client().dircache)


def test_a_tree_is_moved_there_and_back(bucket: str) -> None:
    before = fill(f"{bucket}/source", 40)
    durable.move(f"{bucket}/source", f"{bucket}/target")
    assert (held(f"{bucket}/source"), held(f"{bucket}/target")) == ({}, before)
    durable.move(f"{bucket}/target", f"{bucket}/source", f"{bucket}/record")
    assert (held(f"{bucket}/source"), held(f"{bucket}/target")) == (before, {})


def test_a_name_that_begins_alike_is_not_moved_along(bucket: str) -> None:
    for name in ("offsets/0", "offsets.old/0", "offsets2"):
        durable.write(f"{bucket}/{name}", b"1")
    durable.move(f"{bucket}/offsets", f"{bucket}/q/offsets")
    assert sorted(held(bucket)) == ["offsets.old/0", "offsets2", "q/offsets.runbook-moved", "q/offsets/0"]


def test_markers_of_directories_go_along_and_come_back(bucket: str) -> None:
    fs, at = client(), bucket.partition("://")[2]
    for key in ("ck/offsets/", "ck/offsets/0", "ck/"):
        fs.call_s3("put_object", Bucket=at.split("/")[0], Key=f"{at.split('/', 1)[1]}/{key}", Body=b"")
    assert durable.directories(f"{bucket}/ck") == ["", "offsets"]
    assert durable.empty_directories(f"{bucket}/ck") == ()
    fs.call_s3("put_object", Bucket=at.split("/")[0], Key=f"{at.split('/', 1)[1]}/ck/commits/", Body=b"")
    assert durable.empty_directories(f"{bucket}/ck") == ("commits",)
    assert open_store(f"{bucket}/ck").list("commits") == Listing((), (), {})
    durable.remove_empty(f"{bucket}/ck/commits")
    durable.remove_empty(f"{bucket}/ck/offsets")
    durable.move(f"{bucket}/ck", f"{bucket}/q")
    assert durable.names(f"{bucket}/ck") == [] and not durable.exists(f"{bucket}/ck")
    assert durable.directories(f"{bucket}/q") == ["", "offsets"]


@pytest.mark.parametrize("fault", ["503", "cut", "hang"])
def test_a_move_that_broke_off_is_finished_by_calling_it_again(fault: str, behind: str, proxy: Faults) -> None:
    before = fill(f"{behind}/source", 120)
    kind = {"503": proxy.fail, "cut": proxy.cut, "hang": proxy.hang}[fault]
    for stage in (b"x-amz-copy-source:", b"POST "):  # in the middle of the copies; then at the delete
        kind(1 << 30, when=stage, skip=50 if stage != b"POST " else 0)
        with pytest.raises(RunbookError, match="does not answer"):
            durable.move(f"{behind}/source", f"{behind}/target")
        proxy.heal()
        assert held(f"{behind}/source") == before, "nothing is deleted before everything is copied"
    durable.move(f"{behind}/source", f"{behind}/target")
    assert (held(f"{behind}/source"), held(f"{behind}/target")) == ({}, before)


def test_what_was_copied_before_a_stop_is_not_copied_again(behind: str, proxy: Faults) -> None:
    fill(f"{behind}/source", 120)
    proxy.fail(1 << 30, when=b"x-amz-copy-source:", skip=80)
    with pytest.raises(RunbookError, match="does not answer"):
        durable.move(f"{behind}/source", f"{behind}/target")
    proxy.heal()
    proxy.seen.clear()
    durable.move(f"{behind}/source", f"{behind}/target")
    # The copies that were left, and the record of the move.
    assert proxy.seen["PUT"] <= 120 - 80 + 1


def test_an_object_that_changes_while_it_is_moved_is_not_deleted(behind: str, proxy: Faults) -> None:
    fill(f"{behind}/source", 20)
    proxy.fail(1 << 30, when=b"POST ")
    with pytest.raises(RunbookError, match="does not answer"):
        durable.move(f"{behind}/source", f"{behind}/target")
    proxy.heal()
    durable.write(f"{behind}/source/0/part-00000", b"changed")
    with pytest.raises(RunbookError, match="was changed while it was moved"):
        durable.move(f"{behind}/source", f"{behind}/target")
    assert durable.read(f"{behind}/source/0/part-00000") == b"changed"
    assert len(held(f"{behind}/source")) == 20


def test_bytes_of_an_object_uploaded_in_parts_are_compared_when_its_etag_cannot_be(bucket: str) -> None:
    fs, at = client(), bucket.partition("://")[2]
    name, key = at.split("/", 1)
    upload = fs.call_s3("create_multipart_upload", Bucket=name, Key=f"{key}/big")["UploadId"]
    parts = []
    for number, body in ((1, b"a" * (5 << 20)), (2, b"b")):
        told = fs.call_s3("upload_part", Bucket=name, Key=f"{key}/big", UploadId=upload, PartNumber=number, Body=body)
        parts.append({"PartNumber": number, "ETag": told["ETag"]})
    fs.call_s3(
        "complete_multipart_upload", Bucket=name, Key=f"{key}/big", UploadId=upload, MultipartUpload={"Parts": parts}
    )
    durable.move(f"{bucket}/big", f"{bucket}/moved")
    assert durable.read(f"{bucket}/moved") == b"a" * (5 << 20) + b"b"
    assert not durable.exists(f"{bucket}/big")
