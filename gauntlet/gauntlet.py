"""Every scenario against every path, on real Spark: what the diagnosis calls safe or risky must end row-exact and
verified; what it calls blocked or unknown must be refused before any change. `make gauntlet` runs it.

    gauntlet.py                                      all of it, about two hours on two cores
    gauntlet.py --only retention --only two-runs:resume
    gauntlet.py --results FILE --continue            the cells that FILE does not have yet
    gauntlet.py --profile cluster                    Kafka → Delta → Delta → Delta instead of the embedded profile

Beside each scenario stands what the naive order gives: delete the checkpoint, start the job, touch nothing else.
Exit 1 where a cell is not as promised.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cases import PATHS, Cell, by_hand, play
from stage import Stage

from wizard.spark.config import SparkConfig
from wizard.spark.scenarios import SCENARIOS, Scenario
from wizard.spark.session import build_session
from wizard.text import columns

BESIDE = ("duplicates-in-sink", "faulty-release", "state-file-lost")  # one for each job
BY_HAND = "by hand"
_CONF = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def main(argv: Sequence[str] | None = None) -> int:
    given = _arguments().parse_args(argv)
    try:
        profile = _profile(given.profile)
        wanted = _wanted(profile, given.only, given.sample)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    results = Path(given.results) if given.results else None
    cells = _read(results) if results and given.go_on else []
    done = {(cell.scenario, cell.path) for cell in cells}
    waiting = [each for each in wanted if each not in done]
    base = Path(given.dir or tempfile.mkdtemp(prefix="runbook-gauntlet-"))
    base.mkdir(parents=True, exist_ok=True)
    if results and not given.go_on:
        results.write_text("")
    try:
        for cell in _played(profile, base, waiting):
            cells.append(cell)
            line = json.dumps(cell.as_dict())
            if results:
                with results.open("a") as out:
                    out.write(line + "\n")
            if given.json:
                print(line, flush=True)
            print(_told(cell), file=sys.stderr, flush=True)
    finally:
        if given.dir is None and all(cell.right for cell in cells):
            shutil.rmtree(base)
    if not given.json:
        print("\n".join(table(cells, profile)))
    wrong = [cell for cell in cells if not cell.right]
    if wrong:
        print(f"{len(wrong)} of {len(cells)} cells are not as promised; the walks are in {base}/wrong", file=sys.stderr)
    return 1 if wrong else 0


@dataclass(frozen=True)
class Profile:
    scenarios: dict[str, Scenario]
    beside: tuple[str, ...]
    stage: Callable[[Path, Callable[[str], None]], AbstractContextManager[Stage]]


def _profile(name: str) -> Profile:
    if name == "embedded":
        return Profile(SCENARIOS, BESIDE, _embedded)
    import cluster_stage  # needs confluent-kafka, which the embedded profile does not

    return Profile(cluster_stage.SCENARIOS, cluster_stage.BESIDE, cluster_stage.cluster_stage)


@contextmanager
def _embedded(base: Path, say: Callable[[str], None]) -> Iterator[Stage]:
    spark = build_session("gauntlet", SparkConfig("local[2]", "1g", shuffle_partitions=2, log_level="OFF", conf=_CONF))
    stage = Stage(base, spark, say)
    try:
        yield stage
    finally:
        stage.stop_all()
        spark.stop()


def _played(profile: Profile, base: Path, waiting: list[tuple[str, str]]) -> Iterator[Cell]:
    if not waiting:
        return
    with profile.stage(base, lambda text: print(text, file=sys.stderr, flush=True)) as stage:
        for number, (name, path) in enumerate(waiting, 1):
            scenario = profile.scenarios[name]
            yield by_hand(stage, scenario) if path == BY_HAND else play(stage, scenario, path)
            if name not in [later for later, _ in waiting[number:]]:
                stage.forget(scenario)


def _wanted(profile: Profile, only: Sequence[str], sample: int | None) -> list[tuple[str, str]]:
    every = []
    for name in profile.scenarios:
        beside = ["reset beside"] if name in profile.beside else []
        every += [(name, path) for path in (*PATHS, *beside, BY_HAND)]
    for each in only:
        if not any(each in (name, f"{name}:{path}") for name, path in every):
            raise ValueError(f"--only {each}: there is no such cell; write SCENARIO or SCENARIO:PATH")
    asked = [cell for each in only for cell in every if each in (cell[0], ":".join(cell))]
    chosen = list(dict.fromkeys(asked)) if only else every
    return chosen if sample is None else sorted(random.Random(sample).sample(chosen, min(sample, len(chosen))))


def table(cells: Sequence[Cell], profile: Profile) -> list[str]:
    """A row a cell; the naive order's rows stand at the end of each."""
    naive = {cell.scenario: cell for cell in cells if cell.path == BY_HAND}
    order = {name: number for number, name in enumerate(profile.scenarios)}
    head = ["SCENARIO", "JOB", "PATH", "VERDICT", "RESULT", "SOURCE", "OUTPUT", "MISSING", "DOUBLED", "S", "BY HAND"]
    rows = [head]
    for cell in sorted(cells, key=lambda cell: order[cell.scenario]):
        if cell.path == BY_HAND:
            continue
        hand = naive.get(cell.scenario)
        walked = not cell.result.startswith("refused, untouched")
        counted = [str(n) if walked else "" for n in (cell.source, cell.rows, cell.missing, cell.doubled)]
        result = cell.result if cell.right else f"WRONG {cell.result}"
        if cell.right and walked and cell.wrong:
            result = f"every row once, {cell.wrong} of them wrong as before"
        if walked and cell.notes:
            result += f" ({', '.join(cell.notes)})"
        job = cell.job.removeprefix("sensor-")
        seconds = f"{cell.seconds:.0f}"
        rows.append([cell.scenario, job, cell.path, cell.verdict, result, *counted, seconds, _by_hand(hand)])
    return [line.rstrip() for line in columns(rows)]


def _by_hand(cell: Cell | None) -> str:
    if cell is None:
        return ""
    told = ", ".join(f"{n} {word}" for n, word in
                     ((cell.missing, "missing"), (cell.doubled, "doubled"), (cell.wrong, "wrong")) if n)  # fmt: skip
    return "; ".join(filter(None, [told or "exact", *(note.partition(":")[0] for note in cell.notes)]))


def _told(cell: Cell) -> str:
    mark = "ok   " if cell.right else "WRONG"
    counts = f"source {cell.source} output {cell.rows} missing {cell.missing} doubled {cell.doubled} wrong {cell.wrong}"
    notes = f"; {'; '.join(cell.notes)}" if cell.notes else ""
    return f"{mark} {cell.scenario}: {cell.path} ({cell.verdict}): {cell.result}; {counts}; {cell.seconds:.0f} s{notes}"


def _read(results: Path) -> list[Cell]:
    if not results.exists():
        return []
    return [Cell(**json.loads(line)) for line in results.read_text().splitlines()]


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gauntlet.py", description="Every scenario against every path, on real Spark."
    )
    parser.add_argument(
        "--profile", choices=("embedded", "cluster"), default="embedded", help="cluster: Kafka and Delta"
    )
    parser.add_argument("--only", action="append", default=[], metavar="SCENARIO[:PATH]", help="may be repeated")
    parser.add_argument("--sample", type=int, metavar="N", help="N cells, the same ones each time")
    parser.add_argument("--results", metavar="FILE", help="a line of JSON for each cell, written as it ends")
    parser.add_argument("--continue", dest="go_on", action="store_true", help="leave out what FILE has already")
    parser.add_argument("--json", action="store_true", help="the cells as JSON lines on stdout instead of the table")
    parser.add_argument("--dir", metavar="DIR", help="work here and keep it; default a temporary directory")
    return parser


if __name__ == "__main__":
    sys.exit(main())
