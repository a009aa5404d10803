"""One S3 server for all tests here, and a proxy before it that can be made to misbehave."""

from __future__ import annotations

import shutil
import sys
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).parents[2]
for _room in ("fixtures/s3", "tests/connectors", "tests/engine", "tests/s3"):
    sys.path.insert(0, str(ROOT / _room))

from had import cannot, have  # noqa: E402

if TYPE_CHECKING:
    from faults import Faults
    from s3server import S3Server

HERE = Path(__file__).parent
BUCKET = "runbook-tests"


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("the S3 server"))


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    if shutil.which("java") is None:
        cannot(
            "the S3 server of the tests needs Java, and there is no java on PATH; apt install openjdk-17-jre-headless"
        )
    if find_spec("s3fs") is None:
        cannot("s3fs is not installed; pip install 'runbook[s3]'")
    from s3server import S3Server

    with S3Server(have("s3-server")) as started:
        yield started


@pytest.fixture
def proxy(server: S3Server) -> Iterator[Faults]:
    from faults import Faults

    with Faults(server.port) as started:
        yield started


@pytest.fixture
def bucket(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """`s3://…`, a place of its own for the test, with the environment that leads to it."""
    return _bucket(server.environment(), monkeypatch)


@pytest.fixture
def behind(server: S3Server, proxy: Faults, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, through the proxy, with little patience."""
    monkeypatch.setenv("RUNBOOK_STORE_PATIENCE", "8")
    return _bucket(server.environment(proxy.url), monkeypatch)


def _bucket(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    from wizard.store import RemoteStore, open_store

    store = open_store("s3://")
    assert isinstance(store, RemoteStore)
    try:
        store.fs.call_s3("create_bucket", Bucket=BUCKET)
    except FileExistsError:
        return f"s3://{BUCKET}/{uuid.uuid4().hex}"
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"
