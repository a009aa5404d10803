"""Kafka goes through the suite that every kind of source passes: tests/sources/test_source_conformance.py."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "sources"))

import test_source_conformance as suite
from test_source_conformance import (  # noqa: F401  run here too, with the case below
    test_a_source_that_is_not_there_is_an_error_or_gone_and_never_whole,
    test_it_is_of_one_kind_and_of_no_other,
    test_it_is_seen_as_it_is_now,
    test_what_is_gone_is_told_and_nothing_else,
)

from wizard.jobs.model import Source

if TYPE_CHECKING:
    from broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def topic(root: Path) -> str:
    return f"suite-{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"


@pytest.fixture
def case(broker: Broker) -> suite.Case:
    def add(root: Path) -> None:
        if topic(root) not in broker.names():
            broker.create(topic(root))
        broker.send(topic(root), [(0, None, b"v", n) for n in range(10)])

    def position(root: Path) -> Any:
        return {topic(root): {"0": 5}}

    return suite.Case(
        lambda root: Source("kafka", None, {"kafka.bootstrap.servers": broker.address, "subscribe": topic(root)}),
        add,
        position,
        lambda root: broker.drop_before(topic(root), 0, 15),
        lambda root: broker.delete(topic(root)),
        topic,
    )
