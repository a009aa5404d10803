"""One broker for all tests here, and a workspace of the cluster profile on it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from had import cannot, connectors, have

if TYPE_CHECKING:
    from broker import Broker
    from pipeline import Workspace


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    jars = have("broker")
    if find_spec("confluent_kafka") is None:
        cannot("confluent-kafka is not installed; pip install 'runbook[kafka]'")
    from broker import Broker

    started = Broker(tmp_path_factory.mktemp("kafka") / "broker", jars)
    try:
        yield started.start()
    finally:
        started.stop()


@pytest.fixture(autouse=True)
def told_of_the_stand_in(request: pytest.FixtureRequest, tell: Callable[[str], None]) -> None:
    """A run without Spark's own jar for delegation tokens must not look like one that had it."""
    if {"workspace", "facts"} & set(request.fixturenames) and connectors.without_tokens(have("kafka")):
        jar = connectors.coordinates("kafka-tokens")[0]
        tell(f"Kafka on Spark with fixtures/connectors/no-delegation-tokens: the registry has no {jar}")


@pytest.fixture
def workspace(tmp_path: Path, broker: Broker) -> Iterator[Workspace]:
    have("kafka", "delta")
    from cluster import create
    from pipeline import Workspace, end_jobs

    made = Workspace(tmp_path / "cluster", broker)
    create(made.root, broker.address)
    # By the records' own times they are old enough to go.
    broker.create(made.topic, 2, retention_ms="-1")
    try:
        yield made
    finally:
        end_jobs(made.root)
        broker.delete(made.topic)
