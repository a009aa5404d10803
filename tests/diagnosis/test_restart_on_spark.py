"""What `predict` says of a damaged checkpoint, and what real Spark does with the same files: the two agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recorded import look
from restart_cases import CASES, FORMAT2, Case, prepare

from wizard.diagnosis.diagnose import Diagnosis

PROVED = [case for case in CASES if case.proved]
NEW_ROW = 1000
DRIVER = Path(__file__).with_name("restart_driver.py")

pytestmark = pytest.mark.spark


def query(case: Case) -> str:
    return "rows" if "stateless" in case.fixture else "windows"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Diagnosis, dict[str, Any], bytes | None]]:
    """All cases in one Spark: the copy is diagnosed, given one more input file, and started."""
    there = tmp_path_factory.mktemp("restart")
    roots = {case.name: prepare(case, there / str(number)) for number, case in enumerate(PROVED)}
    said = {case.name: look(roots[case.name], spark_version="4.2.0") for case in PROVED}
    planned = {}
    for case in PROVED:
        more = {"id": NEW_ROW, "name": "new"} if query(case) == "rows" else {"ts": "2024-01-01T00:10:00Z", "key": "a"}
        (roots[case.name] / "input/new.json").write_text(json.dumps(more))
        latest = roots[case.name] / f"checkpoint/offsets/{case.batch}"
        planned[case.name] = latest.read_bytes() if latest.exists() else None
    todo = [
        {
            "name": case.name,
            "root": str(roots[case.name]),
            "query": query(case),
            "batch": str(case.batch),
            "format": "2" if case.fixture == FORMAT2 else "1",
        }
        for case in PROVED
    ]
    (there / "cases.json").write_text(json.dumps(todo))
    done = subprocess.run(
        [sys.executable, DRIVER, there / "cases.json"],
        cwd=there,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    did = json.loads(done.stdout.splitlines()[-1])
    return {name: (said[name], did[name], planned[name]) for name in roots}


@pytest.mark.parametrize("case", PROVED, ids=str)
def test_spark_does_what_was_predicted(case: Case, outcomes: Any) -> None:
    said, did, planned = outcomes[case.name]
    if said.restart.action == "refused":
        # test_restart.py holds what is said to the same words.
        assert case.error is not None and case.error in (did["error"] or "")
        assert did["ran"] == []
        return
    assert did["error"] is None
    assert did["ran"][0] == said.restart.batch
    assert (planned is not None) == (said.restart.action == "rerun")
    if planned is not None:
        assert did["offsets"] == planned.decode()


def test_where_resume_is_called_safe_every_row_is_in_the_sink_once(outcomes: Any) -> None:
    safe = {name: did for name, (said, did, _) in outcomes.items() if said.paths["resume"]["verdict"] == "safe"}
    assert {"C = M goes on with M + 1", "C = M - 1 runs M again", "killed in a batch"} <= set(safe)
    for name, did in safe.items():
        assert did["error"] is None, name
        if did["ids"] is not None:
            rows = 18 if name == "killed in a batch" else 42
            assert sorted(did["ids"]) == [*range(rows), NEW_ROW], name


def test_what_is_called_skipped_is_skipped_without_an_error(outcomes: Any) -> None:
    said, did, _ = outcomes["taken back without the sink"]
    (told,) = [found for found in said.findings if found.code == "SINK_AHEAD"]
    assert told.message == "batches 12 to 13 would be skipped without an error"
    assert said.paths["resume"]["verdict"] == "blocked"
    assert did["error"] is None
    assert NEW_ROW not in did["ids"]


def test_what_was_touched_since_it_was_read_is_read_again_without_an_error(outcomes: Any) -> None:
    """The log's entries are years older than the new file, so Spark forgets them, and knows the files no more."""
    said, did, _ = outcomes["input files touched"]
    assert "INPUT_TOUCHED" in {found.code for found in said.findings}
    assert said.paths["resume"]["verdict"] == said.paths["replay"]["verdict"] == "blocked"
    assert did["error"] is None
    assert len(did["ids"]) == len(set(did["ids"])) + 6  # three rows in each of the two
