"""`python -m wizard.spark.backfill` without Spark, for the stand-in job: same arguments, same staged files and manifest.

What the real one makes of a range, killed or not, is tested on Spark (tests/spark/test_live_actions.py).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import threading
import uuid
from pathlib import Path
from typing import Any

import standin


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    for option in ("--jobs", "--range", "--to", "--name"):
        parser.add_argument(option, required=True)
    parser.add_argument("--end-with-stdin", action="store_true")
    given = parser.parse_args()
    threading.Thread(target=end_with_stdin, daemon=True).start()
    job, to = standin.Job(given.job, given.jobs), Path(given.to)
    assert isinstance(job.input, standin.Log)
    wanted = json.loads(Path(given.range).read_text())
    for left in to.parent.glob(f".{to.name}.*"):
        shutil.rmtree(left)
    attempt = to.with_name(f".{to.name}.{uuid.uuid4().hex[:8]}")
    attempt.mkdir(parents=True)
    files = []
    there = keys(job.output)
    for topic, parts in wanted["end"].items():
        for p, end in parts.items():
            table = job.input.rows(topic, int(p), wanted["start"][topic][p], end)
            lacking = [(topic, int(p), offset) not in there for offset in table.column("offset").to_pylist()]
            if any(lacking):
                path = attempt / f"backfill-{given.name}-part-{len(files):05}.snappy.parquet"
                path.write_bytes(standin.in_parquet(table.filter(lacking)))
                seen = path.stat()
                files.append({"path": path.name, "size": seen.st_size, "modified": int(seen.st_mtime * 1000)})
    (attempt / "manifest.json").write_text(json.dumps({"job": given.job, "range": wanted, "files": files}))
    attempt.rename(to)
    print(f"staged {len(files)} files", flush=True)


def keys(output: standin.Directory | standin.Table) -> set[tuple[Any, ...]]:
    import pyarrow.parquet as pq
    from deltalake import DeltaTable

    if isinstance(output, standin.Table):
        paths = [Path(path) for path in DeltaTable(output.path).file_uris()]
    else:
        paths = [standin.local(entry) for entry in standin.entries(output.log)]
    tables = [pq.ParquetFile(path).read(["topic", "partition", "offset"]).to_pylist() for path in paths]
    return {tuple(row.values()) for table in tables for row in table}


def end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os._exit(130)


if __name__ == "__main__":
    main()
