"""What is in the log and in the sinks, by code that shares nothing with the pipeline."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
from deltalake import DeltaTable

Key = tuple[int, int]


def log_values(topic: Path) -> dict[Key, bytes]:
    """(partition, offset) → value, straight from the bytes of the segments."""
    found: dict[Key, bytes] = {}
    for segment in sorted(topic.glob("*/*.log")):
        data, at = segment.read_bytes(), 0
        while at + 8 <= len(data):
            (length,) = struct.unpack_from(">I", data, at)
            offset, _, key_length = struct.unpack_from(">qqi", data, at + 8)
            found[int(segment.parent.name), offset] = data[at + 28 + max(key_length, 0) : at + 8 + length]
            at += 8 + length
    return found


def sink_files(output: Path) -> list[Path]:
    """The data files that the sink's own log lists: files it does not list were never part of the output."""
    names = {p.name for p in (output / "_spark_metadata").iterdir() if re.fullmatch(r"\d+(\.compact)?", p.name)}
    compacts = [int(n.partition(".")[0]) for n in names if n.endswith(".compact")]
    newest = max(compacts, default=-1)
    logs = [n for n in names if int(n.partition(".")[0]) > newest] + ([f"{newest}.compact"] if compacts else [])
    entries = [
        json.loads(line) for name in logs for line in (output / "_spark_metadata" / name).read_text().splitlines()[1:]
    ]
    return [Path(unquote(urlparse(entry["path"]).path)) for entry in entries if entry["action"] == "add"]


def sink_rows(output: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for path in sink_files(output):
        quality = re.search(r"/quality=(\w+)/", str(path))
        extra = {"quality": quality[1]} if quality else {}
        rows += [row | extra for row in pq.ParquetFile(path).read().to_pylist()]
    return rows


def keys(rows: list[dict[str, Any]]) -> Counter[Key]:
    return Counter((row["partition"], row["offset"]) for row in rows)


def reading(value: bytes) -> dict[str, Any] | None:
    """The reading in a record, None when the record is a bad one."""
    try:
        parsed = json.loads(value.decode())
        time = datetime.strptime(parsed["time"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
        good = isinstance(parsed["temperature"], float) and -100 <= parsed["temperature"] <= 200
        return parsed | {"time": time} if good and parsed["id"] and parsed["sensor"] else None
    except (ValueError, KeyError):
        return None


def expected_gold(values: dict[Key, bytes]) -> dict[tuple[str, datetime], tuple[int, float, float, float]]:
    """(sensor, window start) → (count, min, max, sum) over distinct readings."""
    distinct = {r["id"]: r for r in map(reading, values.values()) if r}
    windows: dict[tuple[str, datetime], list[float]] = {}
    for each in distinct.values():
        start = each["time"] - timedelta(
            minutes=each["time"].minute % 5, seconds=each["time"].second, microseconds=each["time"].microsecond
        )
        windows.setdefault((each["sensor"], start), []).append(each["temperature"])
    return {key: (len(t), min(t), max(t), sum(t)) for key, t in windows.items()}


def gold(path: Path) -> dict[tuple[str, datetime], tuple[int, float, float, float]]:
    rows = [row for uri in DeltaTable(path).file_uris() for row in pq.ParquetFile(uri).read().to_pylist()]
    result = {
        (r["sensor"], r["window_start"]): (
            r["readings"],
            r["temperature_min"],
            r["temperature_max"],
            r["temperature_sum"],
        )
        for r in rows
    }
    assert len(result) == len(rows), "a (sensor, window) is in the gold table twice"
    return result


def log_ends(topic: Path) -> dict[int, int]:
    """Partition → the offset of the next record, from the last segment's name and what it holds."""
    ends: dict[int, int] = {}
    for partition in (p for p in topic.iterdir() if p.name.isdigit()):
        last = max(partition.glob("*.log"), key=lambda p: int(p.stem))
        data, at, end = last.read_bytes(), 0, int(last.stem)
        while at + 8 <= len(data):
            at += 8 + struct.unpack_from(">I", data, at)[0]
            end += 1
        ends[int(partition.name)] = end
    return ends


def stray_rows(output: Path) -> list[dict[str, Any]]:
    """Rows in whole data files that the sink's log does not list."""
    listed = set(sink_files(output))
    files = [p for p in output.rglob("*.parquet") if p not in listed and p.stat().st_size]
    return [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]
