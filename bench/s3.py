"""Moves a checkpoint of 20,000 objects into quarantine on S3: ours against `aws s3 mv --recursive`, on one server.

    python bench/s3.py [--objects N] [--rounds N]

The two take turns at the same objects, so a busy machine moves both sides. Whole processes are timed. After each
move every object is looked for by name, size and ETag. The server is the one of the tests, on loopback and in memory;
`aws` comes from PyPI into build/awscli.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
for _room in ("fixtures/connectors", "fixtures/s3"):
    sys.path.insert(0, str(ROOT / _room))

from connectors import jars  # noqa: E402
from s3server import S3Server  # noqa: E402

AWSCLI = "awscli==1.46.2"
AIM = 5.0
BUCKET = "bench"
# What the engine calls for `checkpoint.delete`, with the manifest that makes it resumable.
OURS = """
import sys
from wizard.catalogue.effects import Move
Move(sys.argv[1], sys.argv[2], ("offsets", "commits", "state"))._do_together()
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    aws = awscli()
    with S3Server(jars("s3-server"), memory_mb=1024) as server:
        os.environ |= server.environment()
        wanted = fill(given.objects)
        ours, theirs = [], []
        place = f"s3://{BUCKET}/checkpoint"
        for number in range(given.rounds):
            for name, costs in (("ours", ours), ("aws", theirs)):
                target = f"s3://{BUCKET}/{name}-{number}"
                quiet = [aws, "s3", "mv", "--recursive", "--only-show-errors", place, target]
                command = [sys.executable, "-c", OURS, place, target] if name == "ours" else quiet
                costs.append(timed(command))
                moved(place, target, wanted)
                print(f"{name:<6}{given.objects / costs[-1]:>8.0f} objects a second, {costs[-1]:.1f} s", flush=True)
                place = target
    print(f"\n{'a quarantine of ' + format(given.objects, ',') + ' objects':<42}{'best s':>9}{'median s':>10}")
    print(f"{'runbook (copied, compared, then deleted)':<42}{min(ours):>9.1f}{median(ours):>10.1f}")
    print(f"{'aws s3 mv --recursive':<42}{min(theirs):>9.1f}{median(theirs):>10.1f}")
    ratio = median(theirs) / median(ours)
    said = "met" if ratio >= AIM else "missed"
    print(f"{'aws / runbook':<42}{min(theirs) / min(ours):>9.2f}{ratio:>10.2f}   >= {AIM:g}    {said}")


def awscli() -> str:
    place = ROOT / "build" / "awscli"
    if not (place / "bin" / "aws").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin" / "pip", "install", "-q", AWSCLI], check=True)
    return str(place / "bin" / "aws")


def client() -> Any:
    from wizard.store import RemoteStore, open_store

    store = open_store("s3://")
    assert isinstance(store, RemoteStore)
    return store.fs


def fill(count: int) -> dict[str, str]:
    """State files of about a kilobyte for the most part, as a checkpoint has; name → ETag and size."""
    fs = client()
    fs.call_s3("create_bucket", Bucket=BUCKET)
    names = [f"state/0/{n % 200}/{n // 200}.delta" for n in range(count - 200)]
    names += [f"{log}/{n}" for log in ("offsets", "commits") for n in range(100)]
    fs.pipe({f"{BUCKET}/checkpoint/{name}": name.encode() * 40 for name in names}, batch_size=64)
    (found,) = fs.listed([f"{BUCKET}/checkpoint/"])
    assert len(found) == count
    return dict(found)


def moved(source: str, target: str, wanted: dict[str, str]) -> None:
    """A fast wrong answer is worth nothing."""
    (there,) = client().listed([f"{target.removeprefix('s3://')}/"])
    (left,) = client().listed([f"{source.removeprefix('s3://')}/"])
    there = {name: mark for name, mark in there.items() if not name.endswith(".runbook-moved")}
    left = {name: mark for name, mark in left.items() if not name.endswith(".runbook-moved")}
    if there != wanted or left:
        sys.exit(f"{target}: {len(there)} objects of {len(wanted)} came out, {len(left)} were left at {source}")
    own = [name for name in client().listed([f"{target.removeprefix('s3://')}/"])[0] if name.endswith(".runbook-moved")]
    client().delete([f"{target.removeprefix('s3://')}/{name}" for name in own])


def timed(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
