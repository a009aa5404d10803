"""Each scenario on real Spark: what the next start raises, and what has become of every row.

One workspace is built; each scenario finds it at the same path, since checkpoints and sink logs hold absolute paths.
RUNBOOK_ALL_SCENARIOS=1 runs all of them, else the six whose outcomes differ most.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import truth
from pyspark.sql import SparkSession

from wizard.counting import Stage, count
from wizard.spark.produce import produce_more
from wizard.spark.run import JOBS, run_once
from wizard.spark.scenarios import SCENARIOS, Rows, Scenario
from wizard.spark.workspace import Workspace, create_workspace

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]

SAMPLE = (
    "checkpoint-deleted",
    "duplicates-in-sink",
    "faulty-release",
    "killed-during-sink-write",
    "retention",
    "state-schema-changed",
)
CHOSEN = sorted(SCENARIOS) if os.environ.get("RUNBOOK_ALL_SCENARIOS") else SAMPLE


@pytest.fixture(scope="module")
def built(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Path]:
    """A workspace in which the jobs have run, and a copy of it."""
    base = tmp_path_factory.mktemp("scenarios")
    workspace = create_workspace(base / "demo", segment_bytes=4_000)
    produce_more(workspace.log, 500)
    for job in JOBS:
        run_once(spark, workspace.jobs_file, job)
    return workspace, shutil.copytree(workspace.root, base / "copy")


@pytest.fixture
def broken(built: tuple[Workspace, Path]) -> Iterator[Workspace]:
    workspace, copy = built
    shutil.rmtree(workspace.root)
    shutil.copytree(copy, workspace.root)
    yield workspace


@pytest.mark.parametrize("name", CHOSEN)
def test_the_next_start_raises_the_recorded_signature_and_the_rows_are_as_stated(
    spark: SparkSession, broken: Workspace, name: str
) -> None:
    scenario, workspace = SCENARIOS[name], broken
    topic = workspace.root / "log/sensor-raw"
    old = truth.log_values(topic)
    last = newest_batch(workspace)
    scenario.inject(workspace, lambda job: run_once(spark, workspace.jobs_file, job))
    ends = truth.log_ends(topic)
    during = {(p, n) for p, end in ends.items() for n in range(end)} - old.keys()
    produce_more(workspace.log, 100)
    new = {(p, n) for p, end in truth.log_ends(topic).items() for n in range(end)} - old.keys() - during
    assert len(new) == 100

    raised = raised_at_the_next_start(spark, workspace, scenario)
    if scenario.live:
        assert raised is None
        raised = "".join(path.read_text() for path in (workspace.root / "logs").glob(f"{scenario.job}*.log"))
    if scenario.signature is None:
        assert raised is None
    else:
        assert any(text in (raised or "") for text in (scenario.signature, *scenario.or_else)), raised

    values = truth.log_values(topic) | old  # what a key held when it was first written
    named = {Rows.OLD: set(old), Rows.DURING: during, Rows.NEW: new, Rows.LAST: last}
    check_rows(workspace, scenario, values, named)


def raised_at_the_next_start(spark: SparkSession, workspace: Workspace, scenario: Scenario) -> str | None:
    for job in JOBS:
        if job == scenario.job:
            break
        run_once(spark, workspace.jobs_file, job)
    try:
        run_once(spark, workspace.jobs_file, scenario.job)
    except Exception as error:  # noqa: BLE001  whatever it is, it is compared with the signature
        return str(error)
    return None


def check_rows(
    workspace: Workspace, scenario: Scenario, values: dict[truth.Key, bytes], named: dict[Rows, set[truth.Key]]
) -> None:
    stated = scenario.truth
    missing = the_set(stated.missing, named)
    if scenario.job == "sensor-merge-gold":
        assert (stated.twice, stated.wrong, stated.stray) == (Rows.NONE, Rows.NONE, Rows.NONE)
        assert truth.gold(workspace.gold) == truth.expected_gold({k: v for k, v in values.items() if k not in missing})
        return
    output = workspace.raw if scenario.job == "sensor-raw-ingest" else workspace.typed
    rows = [row for row in truth.sink_rows(output) if row["topic"] == "sensor-raw"]
    counts: Counter[truth.Key] = truth.keys(rows)
    every = named[Rows.OLD] | named[Rows.DURING] | named[Rows.NEW]
    assert every - counts.keys() == missing
    assert counts.keys() - every == set()
    assert max(counts.values()) <= 2
    same(stated.twice, {key for key, times in counts.items() if times == 2}, named)
    if output == workspace.raw:
        wrong = {(r["partition"], r["offset"]) for r in rows if r["value"] != values[r["partition"], r["offset"]]}
        same(stated.wrong, wrong, named)
    else:
        good = {key for key, value in values.items() if truth.reading(value)}
        wrong = {(r["partition"], r["offset"]) for r in rows if r["quality"] == "good"} ^ good
        assert wrong == the_set(stated.wrong, named) & good
    if truth.log_values(workspace.root / "log/sensor-raw") == values:  # else the log has lost what was read from it
        told = count(workspace.root)["raw" if output == workspace.raw else "typed"]
        assert told == Stage(counts.total(), len(missing), counts.total() - len(counts), len(wrong))
    same(stated.stray, set(truth.keys(truth.stray_rows(output))), named)


def same(stated: Rows, found: set[truth.Key], named: dict[Rows, set[truth.Key]]) -> None:
    if stated is Rows.SOME_OLD:
        assert set() < found < named[Rows.OLD]
    elif stated is not Rows.UNSAID:
        assert found == the_set(stated, named)


def the_set(stated: Rows, named: dict[Rows, set[truth.Key]]) -> set[truth.Key]:
    return set().union(*(named[each] for each in stated))


def newest_batch(workspace: Workspace) -> set[truth.Key]:
    """What sensor-raw-ingest read in its newest batch, by the two newest files of its offset log."""
    offsets = workspace.checkpoint("sensor-raw-ingest") / "offsets"
    before, after = sorted((p for p in offsets.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))[-2:]
    start, end = (json.loads(path.read_text().splitlines()[2])["sensor-raw"] for path in (before, after))
    return {(int(p), n) for p in end for n in range(start[p], end[p])}


def test_the_page_has_every_scenario_with_its_signature_and_its_truth() -> None:
    page = (Path(__file__).parents[2] / "docs/pipeline.md").read_text()
    told = [line for line in page.splitlines() if line.startswith("| `") and line.count("|") == 6]
    rows = [
        f"| `{each.name}` | {each.job.removeprefix('sensor-')} | {each.story}"
        f" | {' or '.join(f'`{text}`' for text in (each.signature, *each.or_else)) if each.signature else 'nothing'}"
        f" | {each.truth.say} |"
        for each in SCENARIOS.values()
    ]
    assert told == rows
