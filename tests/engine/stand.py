"""A workspace around the stand-in job, ways to walk it, and its rows read by code of its own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import struct
import sys
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
import yaml

sys.path.insert(0, str(Path(__file__).parent))

import standin

from wizard import cli
from wizard.catalogue.live.binding import loaded
from wizard.engine import dry_run, rehearse, start, undo  # noqa: F401  here, so that a fork has them already
from wizard.sources.embedded_log import EmbeddedLog, Record

loaded()

JOB, READER, TOPIC = "ingest", "reader", "t"
STANDIN = str(Path(__file__).with_name("standin.py"))
_BACKFILL = str(Path(__file__).with_name("standin_backfill.py"))
_CONTROL = f"""    control:
      kind: process
      start: [python, {STANDIN}, {{job}}, --jobs, jobs.yaml]
      settle_seconds: 0.05
      stop_timeout: 20
"""
REGISTRY = f"""version: 1
runs: {{runs}}
jobs:
  {JOB}:
    checkpoint: ./checkpoint
    source: {{{{format: log, path: ./log, options: {{{{subscribe: {TOPIC}}}}}}}}}
    sink: {{{{format: {{sink}}, path: ./out, key: [topic, partition, offset]}}}}
    output_mode: append
    spark_version: "4.2.0"
    config: {{{{file: ./conf.yaml, starting_offsets: startingOffsets}}}}
{_CONTROL.format(job=JOB)}"""
_READER = f"""  {READER}:
    checkpoint: ./reader-checkpoint
    source: {{format: parquet, path: ./out}}
    sink: {{format: parquet, path: ./reader-out, key: [topic, partition, offset]}}
    output_mode: append
    spark_version: "4.2.0"
{_CONTROL.format(job=READER)}"""
CONFIG = "# how the job runs\nstartingOffsets: latest\noptions: {maxOffsetsPerTrigger: 8, failOnDataLoss: true}\n"
ANSWERS: dict[str, dict[str, Any]] = {
    "reset": {"place": "in_place"},
    "replay": {
        "target": {"option": "by_batch", "value": 1},
        "say_operators": "same",
    },
    "resume": {"running": "stop", "say_operators": "same"},
    "backfill": {"range": {"option": "by_offsets", "value": {TOPIC: {"0": [0, 4], "1": [0, 4]}}}, "pause": "stop"},
}
ROWS = 24  # in each of two partitions
WATCH_SECONDS = 0.4


@dataclass(frozen=True)
class Stand:
    root: Path
    elsewhere: Path | None = None  # the runs, where they are on another disk

    @classmethod
    def build(
        cls,
        root: Path,
        *,
        batches: int = 4,
        cut: str = "files",
        runs: Path | None = None,
        value: bytes = b"",
        sink: str = "parquet",
        reader: bool = False,
    ) -> Stand:
        """So many committed batches, and one more that was killed where `cut` says (none with an empty one).

        With a `reader`, a second job has read all that the first one shows.
        """
        root.mkdir(parents=True)
        registry = REGISTRY.format(runs=runs or "./runs", sink=sink) + (_READER if reader else "")
        (root / "jobs.yaml").write_text(registry)
        (root / "conf.yaml").write_text(CONFIG.replace("latest", "earliest"))
        log = EmbeddedLog.create(root / "log", TOPIC, 2, segment_bytes=200)
        for partition in (0, 1):
            log.append(partition, [Record(1000 + n, b"k", f"{partition}:{n}".encode() + value) for n in range(ROWS)])
        job = standin.Job(JOB, str(root / "jobs.yaml"))
        job.start()
        for _ in range(batches):
            assert job.step()
        if cut:
            assert job.step(cut)
        made = cls(root, runs)
        if reader:
            made.finish_one(READER)
        (root / "conf.yaml").write_text(CONFIG)  # a reset that does not set it to the earliest loses every row
        return made

    @property
    def jobs(self) -> str:
        return str(self.root / "jobs.yaml")

    def job(self, name: str = JOB) -> dict[str, Any]:
        """As the registry has it now; a reset beside gives it other paths."""
        return dict(yaml.safe_load((self.root / "jobs.yaml").read_text())["jobs"][name])

    @property
    def jobs_there(self) -> list[str]:
        return list(yaml.safe_load((self.root / "jobs.yaml").read_text())["jobs"])

    @property
    def checkpoint(self) -> Path:
        return self.root / self.job()["checkpoint"]

    @property
    def sink(self) -> Path:
        return self.root / self.job()["sink"]["path"]

    @property
    def runs(self) -> Path:
        return self.elsewhere or self.root / "runs"

    def tree(self) -> dict[str, str]:
        """Checkpoints, outputs, configuration and registry: every file by its bytes, every directory by its name.

        A Delta table goes back by a commit of its own: of it, the rows.
        """
        found = tree(self.root / "conf.yaml") | tree(self.root / "jobs.yaml")
        for name in self.jobs_there:
            job = self.job(name)
            found |= tree(self.root / job["checkpoint"])
            if job["sink"]["format"] == "delta":
                found |= {f"{name} {row}": str(count) for row, count in self.found(name).items()}
            else:
                found |= tree(self.root / job["sink"]["path"])
        return found

    def everything(self) -> dict[str, tuple[int, str]]:
        """All of the workspace: bytes and time of every file, names and times of every directory."""
        told = tree(self.root)
        return {name: (Path(name).lstat().st_mtime_ns, mark) for name, mark in told.items()}

    def run_ids(self) -> list[str]:
        return sorted(path.parent.name for path in self.runs.glob("*/journal.jsonl"))

    def only_run(self) -> str:
        (run,) = self.run_ids()
        return run

    def journal(self, run: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.runs / run / "journal.jsonl").read_text().splitlines()]

    def expected(self) -> Counter[tuple[int, int, bytes]]:
        """Every record of the log, from the bytes of its segments."""
        found: Counter[tuple[int, int, bytes]] = Counter()
        for segment in sorted((self.root / "log" / TOPIC).glob("*/*.log")):
            data, at = segment.read_bytes(), 0
            while at < len(data):
                length, _ = struct.unpack_from(">II", data, at)
                body = data[at + 8 : at + 8 + length]
                offset, _, key = struct.unpack_from(">qqi", body)
                found[int(segment.parent.name), offset, body[20 + max(key, 0) :]] += 1
                at += 8 + length
        return found

    def found(self, name: str = JOB) -> Counter[tuple[int, int, bytes]]:
        """Every row a reader of the output sees: the files that its log names."""
        sink = self.job(name)["sink"]
        shown = in_table if sink["format"] == "delta" else in_log
        rows: Counter[tuple[int, int, bytes]] = Counter()
        for file in shown(self.root / sink["path"]):
            for row in pq.ParquetFile(file).read().to_pylist():
                assert row["topic"] == TOPIC
                rows[row["partition"], row["offset"], row["value"]] += 1
        return rows

    def lose(self, batch: int = 0) -> None:
        """Takes the first data file of a batch out of the output and its log, as a writer does that left rows out."""
        if self.job()["sink"]["format"] == "delta":
            from deltalake import DeltaTable

            DeltaTable(self.sink).delete(f"partition = 0 AND offset < {(batch + 1) * 4}")
            return
        log = self.sink / f"_spark_metadata/{batch}"
        version, first, *rest = log.read_text().splitlines()
        lost = Path(unquote(urlparse(json.loads(first)["path"]).path))
        for path in (lost, lost.with_name(f".{lost.name}.crc")):
            path.unlink()
        standin.write(log, "\n".join([version, *rest]))

    def lose_newest(self, *, files: bool = True) -> None:
        """What a kill in the middle of the newest batch leaves of it: nothing in the output, or files outside its log."""
        log = max((self.sink / "_spark_metadata").glob("[0-9]*"), key=lambda path: int(path.name))
        lost = [Path(unquote(urlparse(json.loads(line)["path"]).path)) for line in log.read_text().splitlines()[1:]]
        for path in (log, *(lost if files else ())):
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink()

    def can_be_run_over_a_range(self) -> None:
        """A backfill knows how to run this pipeline's own command, and takes the stand-in's for it."""
        registry = self.root / "jobs.yaml"
        words = f"{JOB}, --jobs, jobs.yaml"
        registry.write_text(registry.read_text().replace(words, f"{words}, --in-place-of, wizard.spark.run"))

    def start(self, name: str) -> None:
        from wizard.jobs.control.open import open_controller
        from wizard.jobs.registry import load_registry

        registry = load_registry(self.jobs)
        open_controller(registry, registry.jobs[name]).start()

    def runs_now(self, name: str) -> bool:
        from wizard.jobs.control.open import open_controller
        from wizard.jobs.registry import load_registry

        registry = load_registry(self.jobs)
        return open_controller(registry, registry.jobs[name]).status().state == "running"

    def latest(self) -> dict[str, int]:
        return {str(partition): ROWS for partition in (0, 1)}

    def committed(self) -> dict[str, int] | None:
        """What the last committed batch had read."""
        done = [int(path.name) for path in (self.checkpoint / "commits").glob("[0-9]*")]
        if not done:
            return None
        offsets: dict[str, int] = json.loads((self.checkpoint / f"offsets/{max(done)}").read_text().splitlines()[2])[
            TOPIC
        ]
        return offsets

    def stop(self, job: str = JOB) -> None:
        """Ends the job as its controller does; a job that does not run is left as it is."""
        from wizard.jobs.control.open import open_controller
        from wizard.jobs.registry import load_registry

        registry = load_registry(self.jobs)
        controller = open_controller(registry, registry.jobs[job])
        if controller.status().state != "stopped":
            controller.stop()

    def stop_all(self) -> None:
        for name in self.jobs_there:
            self.stop(name)

    def finish(self) -> None:
        """Lets each job do all that its source has, and stops it."""
        self.stop_all()
        for name in self.jobs_there:
            self.finish_one(name)

    def finish_one(self, name: str) -> None:
        job = standin.Job(name, self.jobs)
        job.start()
        while job.step():
            continue

    def add_reader(self) -> None:
        """One that has not read anything yet."""
        with (self.root / "jobs.yaml").open("a") as registry:
            registry.write(_READER)


def in_log(sink: Path) -> list[Path]:
    files: dict[str, str] = {}
    for path in sorted((sink / "_spark_metadata").glob("[0-9]*"), key=lambda path: int(path.name.split(".")[0])):
        for line in path.read_text().splitlines()[1:]:
            entry = json.loads(line)
            files[entry["path"]] = entry["action"]
    assert set(files.values()) <= {"add"}
    return [Path(unquote(urlparse(file).path)) for file in files]


def in_table(sink: Path) -> list[Path]:
    """By the commits themselves; none of these tables is old enough to have had them summed up."""
    files: dict[str, None] = {}
    for commit in sorted((sink / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                files.pop(action["remove"]["path"], None)
        for action in actions:
            if "add" in action:
                assert not action["add"].get("deletionVector")
                files[action["add"]["path"]] = None
    return [sink / unquote(file) for file in files]


def tree(root: Path) -> dict[str, str]:
    if root.is_file() or root.is_symlink():
        return {str(root): hashlib.sha256(root.read_bytes()).hexdigest()}
    found = {str(root): "directory"} if root.exists() else {}
    for directory, below, names in os.walk(root):
        found |= {f"{directory}/{name}": "directory" for name in below}
        found |= {
            f"{directory}/{name}": hashlib.sha256(Path(directory, name).read_bytes()).hexdigest() for name in names
        }
    return found


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def answers(path: Path, given: dict[str, Any]) -> str:
    path.write_text(json.dumps(given))
    return str(path)


def words(stand: Stand, *first: str, given: dict[str, Any] | None = None, confirm: str | None = JOB) -> list[str]:
    """A command line that asks nobody."""
    command = [*first, "--jobs", stand.jobs, "--no-input", "--wait", "20"]
    if given is not None:
        command += ["--answers", answers(stand.root.parent / f"{stand.root.name}-answers.json", given)]
    return [*command, *(["--confirm", confirm] if confirm else [])]


def impatient() -> None:
    """Shorter waits, nothing else: a start is watched for a moment only, a batch is looked for more often."""
    from wizard.catalogue.effects import build
    from wizard.catalogue.live import job
    from wizard.jobs.control.process import ProcessController

    ProcessController.__init__.__defaults__ = (WATCH_SECONDS,)
    job._POLL_SECONDS = build._POLL_SECONDS = 0.05


def without_spark() -> None:
    """The one program that a walk runs by itself is stood in for too; its arguments and what it leaves are the same."""
    from wizard.catalogue.effects import program

    real = program.resolve_argv

    def resolved(argv: Any) -> list[str]:
        words = list(real(argv))
        return [words[0], _BACKFILL, *words[3:]] if "wizard.spark.backfill" in words else words

    program.resolve_argv = resolved


def fork(what: list[str], before: Any = None, stdin: str = os.devnull) -> tuple[int, str]:
    """The command in a child that has everything imported: its exit code, or minus the signal, and what it said."""
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = 99
        with contextlib.suppress(BaseException):
            os.close(reading)
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            sys.stdin, sys.stdout, sys.stderr = os.fdopen(0, "r"), os.fdopen(1, "w"), os.fdopen(2, "w")
            os.environ.setdefault("STANDIN_ENDS_WITH", str(parent))
            signal.signal(signal.SIGINT, signal.default_int_handler)
            impatient()
            without_spark()
            os.fsync = lambda handle: None  # a kill, unlike a power cut, loses nothing of what was written
            try:
                sys.argv = ["runbook", *what]
                if before is not None:
                    before()
                cli.main()
            except SystemExit as ended:
                code = int(ended.code or 0)
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), said


def apart(what: Any) -> None:
    """In a child of its own: a process that has opened a Delta table can no longer be forked."""
    child = os.fork()
    if child == 0:
        try:
            what()
        except BaseException:  # noqa: BLE001  whatever it is, the parent is told
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"{what} failed in a child"


def fresh(pristine: Stand, root: Path) -> Stand:
    """The pristine workspace, at the path it was built at: checkpoints and sink logs hold absolute paths."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(pristine.root, root, symlinks=True)
    return Stand(root)
