"""The files that bench/rows.py asks about: `python bench/make_rows.py DIRECTORY ROWS [--workspace]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

PARTITIONS, A_FILE = 4, 500_000
TOPIC = "sensor-raw"


def keys(partition: int, first: int, last: int) -> pa.Table:
    """Offsets of one partition, as a batch of a stream has them."""
    count = last - first
    return pa.table(
        {
            "topic": pa.repeat(pa.scalar(TOPIC), count),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
            "offset": pa.array(range(first, last), pa.int64()),
        }
    )


def proof(root: Path, rows: int) -> None:
    each = rows // PARTITIONS
    found, wanted = [], []
    for partition in range(PARTITIONS):
        for first in range(0, each, A_FILE):
            table = keys(partition, first, min(first + A_FILE, each))
            name = f"{partition}-{first:012d}.parquet"
            wanted.append(write(root / "in" / name, table))
            if first == 0 and partition == 0:  # 7 is missing, 11 is there twice, and one is of no record
                table = pa.concat_tables(
                    [table.slice(0, 7), table.slice(8), table.slice(11, 1), keys(0, each, each + 1)]
                )
            found.append(write(root / "out" / name, table))
    ranges = [({"topic": TOPIC, "partition": partition}, 0, each) for partition in range(PARTITIONS)]
    for name, files, spans in (("topic", [], ranges), ("table", wanted, [])):
        asked = {"found": found, "files": files, "ranges": spans}
        (root / f"{name}.json").write_text(json.dumps(asked))
    print(f"{rows:,} rows in {len(found)} files, {sum(Path(path).stat().st_size for path in found) / 1e6:.0f} MB")


def workspace(root: Path, rows: int) -> None:
    """The raw zone of the demo with its log, and a typed zone that has every second file's rows."""
    from wizard.spark.workspace import create_workspace

    made = create_workspace(root / "ws")
    files = 10
    each = rows // files
    raw, typed = [], []
    for number in range(files):
        table = keys(number % 2, each * (number // 2), each * (number // 2 + 1))
        values = pa.array([_reading(number * each + n) for n in range(each)], pa.binary())
        at = pa.repeat(pa.scalar(1_790_000_000_000_000, pa.timestamp("us", tz="UTC")), each)
        columns = {"timestamp": at, "key": values.slice(0, each), "value": values}
        full = pa.table({name: table[name] for name in table.column_names} | columns)
        raw.append(write(made.raw / f"part-{number:05d}.parquet", full))
        if number % 2 == 0:
            typed.append(write(made.typed / f"quality=good/part-{number:05d}.parquet", table))
    for output, paths in ((made.raw, raw), (made.typed, typed)):
        log = output / "_spark_metadata/0"
        log.parent.mkdir()
        log.write_text("\n".join(["v1", *(json.dumps(_entry(path)) for path in paths)]))
    (root / "range.json").write_text(json.dumps({"files": [f"file://{quote(path)}" for path in raw]}))
    print(f"{rows:,} records in {len(raw)} files")


def write(path: Path, table: pa.Table) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return str(path)


def _entry(path: str) -> dict[str, object]:
    about = {"isDir": False, "modificationTime": 1, "blockReplication": 1, "blockSize": 33554432, "action": "add"}
    return {"path": f"file://{quote(path)}", "size": Path(path).stat().st_size, **about}


def _reading(number: int) -> bytes:
    return b'{"id": "r-%d", "sensor": "s-%d", "time": "2026-09-21T14:%02d:%02d.000Z", "temperature": %.2f}' % (
        number,
        number % 8,
        number // 60 % 60,
        number % 60,
        15 + number % 80 / 4,
    )


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    (workspace if sys.argv[3:] == ["--workspace"] else proof)(Path(sys.argv[1]), int(sys.argv[2]))
