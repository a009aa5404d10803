"""The stand-in job of tests/engine with its checkpoint and its output on S3: `python s3job.py JOB --jobs jobs.yaml`.

It writes as Hadoop's S3A does: an object is put whole, there is no rename and no checksum beside it.
"""

from __future__ import annotations

import fnmatch
import posixpath
import sys
from pathlib import Path
from typing import Any

import s3fs
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "engine"))

import standin

FS = None


def fs() -> Any:
    global FS
    if FS is None:
        FS = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)
    return FS


class Place:
    """As much of a Path as the stand-in asks for, over s3fs alone."""

    def __init__(self, at: str) -> None:
        self.at = at.removeprefix("s3://")
        self.name = posixpath.basename(self.at)

    def __truediv__(self, below: str) -> Place:
        return Place(f"{self.at}/{below}")

    def __str__(self) -> str:
        return f"s3://{self.at}"

    @property
    def parent(self) -> Place:
        return Place(posixpath.dirname(self.at))

    def with_name(self, name: str) -> Place:
        return self.parent / name

    def as_uri(self) -> str:
        return f"s3a://{self.at}"

    def mkdir(self, **how: Any) -> None:
        return

    def exists(self) -> bool:
        return bool(fs().exists(self.at))

    def read_bytes(self) -> bytes:
        return bytes(fs().cat_file(self.at))

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, data: bytes) -> None:
        fs().pipe_file(self.at, data)

    def rename(self, target: Place) -> None:
        fs().mv(self.at, target.at)

    def glob(self, pattern: str) -> list[Place]:
        names = fs().ls(self.at, detail=False) if fs().exists(self.at) else []
        return [Place(each) for each in names if fnmatch.fnmatch(posixpath.basename(each), pattern)]


class Job(standin.Job):
    def __init__(self, name: str, jobs_file: str) -> None:
        base = Path(jobs_file).absolute().parent
        about = yaml.safe_load(Path(jobs_file).read_text())["jobs"][name]
        config = yaml.safe_load((base / about["config"]["file"]).read_text())
        self.checkpoint: Any = Place(about["checkpoint"])
        source, sink = about["source"], Place(about["sink"]["path"])
        self.input = standin.Log(self.checkpoint, base / source["path"], source["options"], config)
        self.output = standin.Directory(sink)  # type: ignore[arg-type]


def put(path: Any, data: str | bytes) -> None:
    path.write_bytes(data.encode() if isinstance(data, str) else data)


standin.write = put
standin.Job = Job  # type: ignore[misc]

if __name__ == "__main__":
    sys.exit(standin.main())
