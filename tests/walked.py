"""Real walks of the engine over a recorded checkpoint, without Spark: the job is a file that is there or not.

One was declined, one has a waiver, one was killed with SIGKILL in the middle of emptying the output, picked up, and
taken back. The registry is full of secrets, and what the job's own command prints is hostile.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorded import at_home

from wizard.engine.dry_run import dry_run
from wizard.engine.operator import Nobody, Prepared
from wizard.engine.runs import all_runs
from wizard.engine.start import begin, pick_up
from wizard.engine.undo import undo
from wizard.jobs.model import Registry
from wizard.jobs.registry import load_registry

SECRETS = (
    "hunter2-url",
    "hunter2-jaas",
    "hunter2-argv",
    "hunter2-option",
    "AKIAIOSFODNN7EXAMPLE",
    "hunter2-bearer-token",
)
HOSTILE = "<script>alert(1)</script> | **bold** [x](http://evil)"
JOB = "clicks"
REGISTRY = """
version: 1
runs: {runs}
jobs:
  clicks:
    checkpoint: {root}/checkpoint
    source:
      format: json
      path: {root}/input
      options:
        password: hunter2-option
        kafka.sasl.jaas.config: 'org.apache.kafka.PlainLoginModule required username="u" password="hunter2-jaas";'
        fs.s3a.access.key: AKIAIOSFODNN7EXAMPLE
    sink: {{format: parquet, path: {root}/sink, key: [id]}}
    spark_version: "4.2.0"
    control:
      kind: command
      start: [sh, -c, 'touch {root}/up', submit, --password, hunter2-argv]
      stop: [sh, -c, 'rm -f {root}/up', submit, --api-token, hunter2-argv]
      status:
        - sh
        - -c
        - 'cat {root}/prints; test -e {root}/up'
        - submit
        - --password
        - hunter2-argv
      stopped: {{exit_codes: [1]}}
      settle_seconds: 0.1
"""
PRINTS = (
    'jdbc:postgresql://etl:hunter2-url@db/x sasl.jaas.config="x required password=\\"hunter2-jaas\\";" '
    f"AKIAIOSFODNN7EXAMPLE Authorization: Bearer hunter2-bearer-token {HOSTILE}\n"
)
LOSS = "rows that the source no longer has are lost"
FULL = {"place": "in_place", "wait_commit": "stop"}
# The walk is killed where no `finally` and no handler runs.
KILLED = """
import json, os, signal, sys
from wizard.engine.operator import Nobody, Prepared
from wizard.engine.start import begin
from wizard.jobs.registry import load_registry

def tell(event):
    print(json.dumps(event), flush=True)
    if event["event"] == "effect" and event["step"] == "truncate" and event["number"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)

begin(load_registry(sys.argv[1]), "clicks", "reset", Prepared(json.loads(sys.argv[2]), "clicks", Nobody(tell)), patience=0.1)
"""


@dataclass(frozen=True)
class Walked:
    root: Path
    jobs: Path
    declined: str
    waived: str
    whole: str  # killed, picked up, ended, taken back
    doubt: Path  # a registry whose one run, of the same id, is as the kill left it
    events: tuple[dict[str, Any], ...]
    heads: dict[str, str]

    @property
    def runs(self) -> Path:
        return self.root / "runs"


def workspace(root: Path, runs: str = "./runs") -> Path:
    home = at_home("spark-4.2-stateless-file", root)
    (home / "prints").write_text(PRINTS)
    jobs = home / "jobs.yaml"
    jobs.write_text(REGISTRY.format(root=home, runs=runs))
    return jobs


def prepared(answers: dict[str, Any], events: list[dict[str, Any]]) -> Prepared:
    # As `--json` prints them: what cannot be JSON fails here.
    return Prepared(answers, JOB, Nobody(lambda event: events.append(json.loads(json.dumps(event)))))


def last_run(registry: Registry) -> str:
    return list(all_runs(registry.runs))[-1].id


@functools.cache
def walked() -> Walked:
    place = Path(tempfile.mkdtemp(prefix="runbook-walked-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    jobs = workspace(place)
    root, registry, events, heads = jobs.parent, load_registry(jobs), [], {}

    dry_run(registry, JOB, "reset", prepared(FULL, events), patience=0.1)

    os.environ["RUNBOOK_OPERATOR"] = "ann"
    try:
        heads["declined"] = begin(registry, JOB, "reset", prepared({"place": "leave"}, events), patience=0.1).head
        declined = last_run(registry)

        aside = next(iter(sorted((root / "input").glob("*.json"))))
        aside.rename(root / "aside")
        answers = {"loss": {"option": "accept", "typed": LOSS}, "place": "leave"}
        begin(registry, JOB, "reset", prepared(answers, events), patience=0.1)
        (root / "aside").rename(aside)
        waived = last_run(registry)

        command = [sys.executable, "-c", KILLED, str(jobs), json.dumps(FULL)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == -9, done.stderr
        events += map(json.loads, done.stdout.splitlines())
        whole = last_run(registry)
        doubt = place / "doubt"
        shutil.copytree(root / "runs" / whole, doubt / "runs" / whole)
        (doubt / "jobs.yaml").write_text(REGISTRY.format(root=root, runs="./runs"))

        os.environ["RUNBOOK_OPERATOR"] = "bob"
        heads["ended"] = pick_up(registry, whole, prepared(FULL, events), patience=0.1).head
        heads["undone"] = undo(registry, whole, prepared({}, events))
    finally:
        del os.environ["RUNBOOK_OPERATOR"]
    return Walked(root, jobs, declined, waived, whole, doubt / "jobs.yaml", tuple(events), heads)
