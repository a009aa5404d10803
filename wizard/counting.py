"""The rows of a demo workspace, counted by code that shares nothing with the pipeline that wrote them.

    count(Path("demo"))["raw"]          # Stage(rows=1900, missing=100, extra=0)

The log is read from the bytes of its segments, a file sink by its own log (all files when it has none, as any reader
does), gold as a Delta table. A record is missing when the log has it and the output has not, extra when the output has
it more often than once, wrong when the output has it as something else: another value, or bad where it is good.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

Key = tuple[int, int]  # partition and offset
Rows = list[tuple[Key, object]]

_WINDOW_SECONDS = 300
_TOPIC, _RAW, _TYPED = "log/sensor-raw", "lake/raw/sensor_readings", "lake/typed/sensor_readings"
_GOLD = "lake/gold/sensor_windows"


@dataclass(frozen=True)
class Stage:
    """`rows` are records, or for gold the readings that its windows say they hold."""

    rows: int
    missing: int = 0
    extra: int = 0
    wrong: int = 0

    @property
    def exact(self) -> bool:
        return self.missing == self.extra == self.wrong == 0


def count(root: Path) -> dict[str, Stage]:
    """Source, raw, typed and gold; each output compared with the source."""
    raw, typed = _rows(root / _RAW, "value"), _rows(root / _TYPED, "quality")
    return compared(_log(root / _TOPIC), raw, typed, windows(root / _GOLD))


def compared(source: Mapping[Key, bytes], raw: Rows, typed: Rows, gold: Counter[tuple[str, int]]) -> dict[str, Stage]:
    """The records of a topic against the rows that were made from them, wherever either was read."""
    quality = {key: "good" if _reading(value) else "bad" for key, value in source.items()}
    return {
        "source": Stage(len(source)),
        "raw": _compare(source, raw),
        "typed": _compare(quality, typed),
        "gold": _compare_windows(_expected_windows(source), gold),
    }


def _compare(expected: Mapping[Key, object], found: Rows) -> Stage:
    # A row that retention has since dropped from the log is neither extra nor wrong for that.
    keys = {key for key, _ in found}
    wrong = sum(key in expected and expected[key] != value for key, value in found)
    return Stage(len(found), len(expected.keys() - keys), len(found) - len(keys), wrong)


def _compare_windows(expected: Counter[tuple[str, int]], found: Counter[tuple[str, int]]) -> Stage:
    return Stage(found.total(), (expected - found).total(), (found - expected).total())


def _log(topic: Path) -> dict[Key, bytes]:
    found: dict[Key, bytes] = {}
    for segment in topic.glob("*/*.log"):
        data, at = segment.read_bytes(), 0
        while at + 8 <= len(data):
            length = struct.unpack_from(">I", data, at)[0]
            offset, _, key = struct.unpack_from(">qqi", data, at + 8)
            found[int(segment.parent.name), offset] = data[at + 28 + max(key, 0) : at + 8 + length]
            at += 8 + length
    return found


def _rows(output: Path, column: str) -> Rows:
    """Partition and offset of every row, with the column, which may be a directory's `column=value`."""
    import pyarrow.parquet as pq

    rows: Rows = []
    for path in _files(output):
        named = re.search(rf"/{column}=(\w+)/", str(path))
        wanted = ["topic", "partition", "offset", *([] if named else [column])]
        for row in pq.ParquetFile(path).read(columns=wanted).to_pylist():
            if row["topic"] == Path(_TOPIC).name:
                rows.append(((row["partition"], row["offset"]), named[1] if named else row[column]))
    return rows


def _files(output: Path) -> list[Path]:
    log = output / "_spark_metadata"
    if not log.is_dir():
        return sorted(output.rglob("*.parquet"))
    names = [path.name for path in log.iterdir() if re.fullmatch(r"\d+(\.compact)?", path.name)]
    compact = max((int(name.split(".")[0]) for name in names if "." in name), default=-1)
    wanted = [name for name in names if int(name.split(".")[0]) > compact or name == f"{compact}.compact"]
    entries = [json.loads(line) for name in wanted for line in (log / name).read_text().splitlines()[1:]]
    return [Path(unquote(urlparse(each["path"]).path)) for each in entries]


def _expected_windows(source: Mapping[Key, bytes]) -> Counter[tuple[str, int]]:
    """(sensor, start of the window) → how many distinct readings."""
    readings = {each["id"]: each for each in map(_reading, source.values()) if each}
    return Counter(
        (each["sensor"], int(each["time"].timestamp()) // _WINDOW_SECONDS * _WINDOW_SECONDS)
        for each in readings.values()
    )


def _reading(value: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(value)
        time = datetime.strptime(found["time"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
        good = isinstance(found["temperature"], float) and -100 <= found["temperature"] <= 200
        return {**found, "time": time} if good and found["id"] and found["sensor"] else None
    except (ValueError, KeyError, TypeError):
        return None


def windows(path: Path) -> Counter[tuple[str, int]]:
    """(sensor, start of the window) → how many readings a gold table says it holds."""
    if not (path / "_delta_log").is_dir():
        return Counter()
    import pyarrow.parquet as pq
    from deltalake import DeltaTable

    found: Counter[tuple[str, int]] = Counter()
    for uri in DeltaTable(path).file_uris():
        for row in pq.ParquetFile(uri).read(columns=["sensor", "window_start", "readings"]).to_pylist():
            found[row["sensor"], int(row["window_start"].timestamp())] += row["readings"]
    return found
