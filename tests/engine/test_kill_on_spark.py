"""The same kills with real Spark behind the job: RUNBOOK_ALL_SCENARIOS=1 tries four of a reset and one of a resume, else one.

The first checkpoint and output are the stand-in's, so that a start of Spark is spent on what is looked at: that Spark
goes on from what a killed and picked-up walk leaves behind, and, in the resume, that it takes the stand-in's checkpoint
for one of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kill_driver import Counted, die
from stand import ANSWERS, JOB, STANDIN, Stand, fork, words

EVERY = os.environ.get("RUNBOOK_ALL_SCENARIOS") == "1"
SPARK_JOB = "sensor-raw-ingest"
CONFIG = """master: "local[1]"
shufflePartitions: 2
trigger: 1 seconds
startingOffsets: latest
options: {maxOffsetsPerTrigger: 8, failOnDataLoss: true}
conf: {spark.ui.enabled: false, spark.driver.host: 127.0.0.1, spark.driver.bindAddress: 127.0.0.1}
"""
# How far from the end of the walk: in the middle of the output's move, of the checkpoint's, before and after the start.
KILLS = [("reset", 100), ("reset", 70), ("reset", 40), ("reset", 18), ("resume", 20)]


@pytest.fixture
def spark_stand(tmp_path: Path) -> Iterator[Stand]:
    """The stand-in's world under the name and the command of the pipeline's own job."""
    made = Stand.build(tmp_path / "w")
    registry = made.root / "jobs.yaml"
    text = registry.read_text().replace(f"  {JOB}:", f"  {SPARK_JOB}:")
    text = text.replace(
        f"[python, {STANDIN}, {JOB}, --jobs, jobs.yaml]",
        f"[python, -m, wizard.spark.run, {SPARK_JOB}, --jobs, jobs.yaml]",
    )
    registry.write_text(text.replace("settle_seconds: 0.05", "settle_seconds: 1"))
    (made.root / "conf.yaml").write_text(CONFIG)
    assert SPARK_JOB in text and "wizard.spark.run" in text
    yield made
    made.stop(SPARK_JOB)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("path", "n"), KILLS if EVERY else KILLS[3:4])
def test_spark_goes_on_from_what_a_killed_walk_leaves(path: str, n: int, spark_stand: Stand) -> None:
    stand = spark_stand
    given = ANSWERS[path] | {"wait_commit": ["again"] * 3, "wait_moving": ["again"] * 3}

    def command(*first: str) -> list[str]:
        made = words(stand, *first, given=given, confirm=SPARK_JOB)
        made[made.index("--wait") + 1] = "90"
        return made

    total = {"reset": 175, "resume": 81}[
        path
    ]  # on the stand-in; Spark's start makes no difference to the walk's own changes
    code, said = fork(command(path, SPARK_JOB), lambda: Counted(stand.root, total - n, die) and None)
    assert code == -9, said
    code, said = fork(command("continue", stand.only_run()))
    assert code == 0, said
    for _ in range(600):
        if stand.committed() == stand.latest():
            break
        time.sleep(0.1)
    stand.stop(SPARK_JOB)
    assert stand.found() == stand.expected()
