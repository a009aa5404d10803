"""Readings for the demo and the tests: `python -m wizard.spark.produce LOG_DIR --records 1000`.

The same seed and position give the same bytes. Among the good readings are duplicates (the same reading again, under a
later offset), late ones (older than those around them, within the watermark of the gold job) and bad records of every
kind the pipeline names. No pyspark here: producing must not need a JVM.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from wizard.errors import RunbookError
from wizard.sources.embedded_log import EmbeddedLog, Record

TOPIC = "sensor-raw"
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_LATE = timedelta(minutes=9)
_BAD_VALUES = (
    b"",
    b"\xff\xfe not text",
    b'{"id": "cut-short", "sensor": "s-0", "ti',
    b'{"sensor": "s-1", "time": "2026-01-01T00:00:00.000Z", "temperature": 20.5}',
    b'{"id": "no-sensor", "time": "2026-01-01T00:00:00.000Z", "temperature": 20.5}',
    b'{"id": "bad-time", "sensor": "s-2", "time": "yesterday", "temperature": 20.5}',
    b'{"id": "too-hot", "sensor": "s-3", "time": "2026-01-01T00:00:00.000Z", "temperature": 9999.0}',
    b'{"id": "words", "sensor": "s-4", "time": "2026-01-01T00:00:00.000Z", "temperature": "warm"}',
)


@dataclass(frozen=True)
class Mix:
    """How much of what, in records of a hundred."""

    sensors: int = 8
    seconds_apart: int = 3
    bad: int = 3
    duplicate: int = 5
    late: int = 5


def records(count: int, seed: int = 0, first: int = 0, mix: Mix | None = None) -> Iterator[tuple[str, Record]]:
    """(sensor, record) numbers `first` to `first + count − 1` of the endless sequence that the seed stands for."""
    mix = mix or Mix()
    for number in range(first, first + count):
        yield _record(number, seed, mix)


def produce(log: EmbeddedLog, count: int, seed: int = 0, first: int = 0, mix: Mix | None = None) -> dict[int, int]:
    """Appends the records, each sensor's to one partition as Kafka does by key; how many went to each."""
    waiting: dict[int, list[Record]] = {partition: [] for partition in log.partitions}
    for sensor, record in records(count, seed, first, mix):
        waiting[int(sensor.removeprefix("s-")) % len(log.partitions)].append(record)
    for partition, batch in waiting.items():
        if batch:
            log.append(partition, batch)
    return {partition: len(batch) for partition, batch in waiting.items()}


def produce_more(log: EmbeddedLog, count: int, seed: int = 0) -> dict[int, int]:
    """The next records of the sequence. Where it stands is what was ever written: offsets count that, retention or not."""
    return produce(log, count, seed, first=sum(log.latest().values()))


def _record(number: int, seed: int, mix: Mix) -> tuple[str, Record]:
    # One generator per record: record n is the same whether or not those before it were asked for.
    chance = random.Random(f"{seed}:{number}")
    kind = chance.randrange(100)
    sensor = f"s-{chance.randrange(mix.sensors)}"
    written = _BEGIN + timedelta(seconds=number * mix.seconds_apart)
    at = int(written.timestamp() * 1000)
    if kind < mix.bad:
        return sensor, Record(at, sensor.encode(), chance.choice(_BAD_VALUES))
    if kind < mix.bad + mix.duplicate and number > 0:
        original_sensor, original = _record(max(0, number - 1 - chance.randrange(20)), seed, mix)
        return original_sensor, Record(at, original.key, original.value)
    late = chance.random() * _LATE if kind < mix.bad + mix.duplicate + mix.late else timedelta()
    time = max(written - late, _BEGIN)
    reading = {
        "id": f"r-{seed}-{number}",
        "sensor": sensor,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z",
        # Quarters: sums of them are exact, so an aggregate can be compared with `==`.
        "temperature": 15 + chance.randrange(80) / 4,
    }
    return sensor, Record(at, sensor.encode(), json.dumps(reading).encode())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m wizard.spark.produce", description="Append sensor readings.")
    parser.add_argument("log", metavar="LOG_DIR")
    parser.add_argument("--topic", default=TOPIC)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=2, help="for a topic that is not there yet")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    try:
        new = not (Path(given.log) / given.topic / "topic.json").exists()
        log = (
            EmbeddedLog.create(given.log, given.topic, given.partitions) if new else EmbeddedLog(given.log, given.topic)
        )
        written = produce_more(log, given.records, given.seed)
    except (RunbookError, OSError) as error:
        print(f"{given.log}: {error}", file=sys.stderr)
        return 1
    print(f"{given.topic}: {sum(written.values())} records; the log ends at {log.latest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
