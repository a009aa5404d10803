"""Writes a large stateful checkpoint, as one aggregation over Kafka on the HDFS-backed store leaves it.

    python bench/make_checkpoint.py DIRECTORY

50,000 files: offsets and commits of the last 100 batches, and for each of 200 partitions a delta per version and a
snapshot every tenth, all with Hadoop's hidden `.crc`. The deltas hold no rows: Spark and `runbook` read them as
unchanged state, and only their number matters here.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

FILES = 50_000
PARTITIONS = 200
BATCHES = range(13, 113)
VERSIONS = range(1, BATCHES.stop + 1)  # batch b writes version b + 1
SNAPSHOT_EVERY = 10
QUERY_ID = "7f8a4d0e-3a52-4c1c-9d0b-5b1f0c2a9e11"
FIRST_BATCH_MS = 1_794_981_060_000

# Copied from a checkpoint Spark wrote: an LZ4Block stream of the int -1, with which the store ends every file.
EMPTY_STATE = bytes.fromhex(
    "4c5a34426c6f636b150400000004000000db804d08ffffffff4c5a34426c6f636b15000000000000000000000000"
)

CONFS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.compression.codec": "lz4",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "true",
    "spark.sql.shuffle.partitions": str(PARTITIONS),
}
OPERATOR = {
    "operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"},
    "stateStoreInfo": [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": PARTITIONS}],
}


def make(root: Path) -> int:
    """Write the checkpoint and return the number of files in it."""
    _write(root / "metadata", _json({"id": QUERY_ID}))
    _write(root / "sources/0/0", b"\0v1\n" + _json({"sensor-raw": {"0": 0, "1": 0}}))
    for batch in BATCHES:
        at = FIRST_BATCH_MS + 60_000 * batch
        planned = {"batchWatermarkMs": at - 600_000, "batchTimestampMs": at, "conf": CONFS}
        reached = {"sensor-raw": {"0": 1000 * batch, "1": 1000 * batch}}
        _write(root / f"offsets/{batch}", b"v1\n" + _json(planned) + b"\n" + _json(reached))
        _write(root / f"commits/{batch}", b"v1\n" + _json({"nextBatchWatermarkMs": at - 540_000}))

    state = root / "state/0"
    _write(state / "_metadata/metadata", b"v1\n" + _json(OPERATOR))
    _write(state / "0/_metadata/schema", _schema())
    for partition in range(PARTITIONS):
        for version in VERSIONS:
            _write(state / f"{partition}/{version}.delta", EMPTY_STATE)
            if version % SNAPSHOT_EVERY == 0:
                _write(state / f"{partition}/{version}.snapshot", EMPTY_STATE)

    # Maintenance deletes the oldest versions first; here it got as far as the number of files asked for.
    for partition in range((_count(root) - FILES) // 2):
        (state / f"{partition}/1.delta").unlink()
        (state / f"{partition}/.1.delta.crc").unlink()
    return _count(root)


def _count(root: Path) -> int:
    return sum(path.is_file() for path in root.rglob("*"))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _schema() -> bytes:
    """Java's `writeUTF("v2")`, then key and value schema, each as a number of chunks and the chunks."""

    def utf(text: bytes) -> bytes:
        return len(text).to_bytes(2, "big") + text

    def struct(name: str, kind: str) -> bytes:
        return _json({"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}}]})

    one = (1).to_bytes(4, "big")
    return utf(b"v2") + one + utf(struct("sensor", "string")) + one + utf(struct("count", "long"))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.with_name(f".{path.name}.crc").write_bytes(_hadoop_crc(data))


@cache
def _hadoop_crc(data: bytes) -> bytes:
    """Hadoop's local checksum file: magic, chunk size, a CRC32C per chunk of 512 bytes."""
    chunks = (data[at : at + 512] for at in range(0, len(data), 512))
    return b"crc\0" + (512).to_bytes(4, "big") + b"".join(_crc32c(chunk).to_bytes(4, "big") for chunk in chunks)


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(f"{make(Path(sys.argv[1])):,} files")
