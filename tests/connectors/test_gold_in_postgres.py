"""Kafka → Delta → Delta → PostgreSQL: a reset of the first job takes its consumers with it, the table in the database too."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pipeline import JOBS, TABLES, Workspace, end_jobs, good_readings, produce
from server import PASSWORD

if TYPE_CHECKING:
    from server import Server

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]

GOLD = "cluster_gold"


@pytest.fixture
def gold(workspace: Workspace, database: Server) -> Server:
    from cluster import create

    database.rows(f"CREATE SCHEMA {GOLD}")
    create(
        workspace.root,
        workspace.broker.address,
        f"{database.url}?user=etl&password={PASSWORD}&currentSchema={GOLD}",
    )
    return database


def rows(database: Server) -> Counter[tuple[Any, ...]]:
    return Counter(database.rows(f"SELECT * FROM {GOLD}.sensor_windows"))


def counted(database: Server) -> Counter[str]:
    return Counter(dict(database.rows(f"SELECT sensor, sum(readings)::bigint FROM {GOLD}.sensor_windows GROUP BY 1")))


def test_a_reset_with_consumers_fills_the_database_anew_and_undo_brings_it_back(
    workspace: Workspace, gold: Server
) -> None:
    broker, topic = workspace.broker, workspace.topic
    produce(broker, topic, 400)
    workspace.once(*JOBS)
    assert counted(gold) == good_readings(broker.read(topic))
    before, checkpoint = rows(gold), workspace.state(JOBS[2])
    produce(broker, topic, 60, first=400)
    workspace.runbook("reset", JOBS[0], *workspace.answers(wait_commit="again", wait_moving="again"))
    end_jobs(workspace.root)
    workspace.once(*JOBS)
    records = broker.read(topic)
    assert workspace.keys(TABLES[1]) == Counter((partition, offset) for partition, offset, _, _ in records)
    assert counted(gold) == good_readings(records)
    assert {row[-2] for row in rows(gold)} == {workspace.query_id(JOBS[2])}
    workspace.runbook("undo", workspace.last_run(), "--no-input", "--confirm", JOBS[0])
    assert rows(gold) == before
    assert workspace.state(JOBS[2]) == checkpoint
