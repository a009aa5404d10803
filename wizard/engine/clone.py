"""A copy of a job to try things on: checkpoint, output and configuration in a scratch directory, under a registry of its own.

Data files of the output are hard-linked where the disk allows it: nobody writes into them again. Everything else is
copied. Logs that name files by their absolute path are rewritten to name those of the clone. The source is not cloned:
it is only read.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from wizard import durable
from wizard.catalogue.effects.sql import copy_table, drop_kept, schema_of
from wizard.catalogue.live.aside import Beside
from wizard.catalogue.live.beside import other_registry
from wizard.catalogue.live.tables import is_table, table_of
from wizard.catalogue.world import World
from wizard.engine.runs import run_ids
from wizard.errors import BadInput, Stopped
from wizard.jobs.model import Registry
from wizard.jobs.registry import load_registry
from wizard.store import local_path
from wizard.text import size

_LOGS = ("_spark_metadata", "_delta_log")
_ROOM_TO_SPARE = 64 * 1024 * 1024


@dataclass(frozen=True)
class Clone:
    registry: Registry
    scratch: str
    files: int
    bytes: int
    schema: str = ""  # where the copy of a table is


def clone(world: World) -> Clone:
    """Into `world.place`, which is made. Refuses, before anything is copied, what cannot be cloned or has no room."""
    job = world.job
    table = table_of(job) if is_table(job) else None
    checkpoint, sink = local_path(job.checkpoint), local_path(job.sink.path or "")
    if checkpoint is None or (table is None and (not job.sink.path or sink is None)):
        raise BadInput(f"{job.name}: a rehearsal clones local paths; this checkpoint or output is not on this machine")
    here = durable.join(world.place, "clone")
    beside = Beside("", f"{here}/checkpoint", f"{here}/output", checkpoint, sink or "")
    alternate = other_registry(world, beside)  # refuses a job that could not be started on other paths
    files, weight = _refuse_without_room(world, checkpoint, sink or "")
    _copy_tree(Path(checkpoint), Path(beside.checkpoint), link=False)
    if table is None and sink is not None:
        _copy_tree(Path(sink), Path(beside.sink), link=True)
        _rewrite(Path(beside.sink).glob("_spark_metadata/*"), sink, beside.sink)
    _rewrite(Path(beside.checkpoint).glob("state/*/_metadata/v2/*"), checkpoint, beside.checkpoint)
    mine = alternate["jobs"][job.name]
    alternate["jobs"] = {job.name: mine}  # nobody else's job can be touched by a walk that does not know it
    schema = ""
    if table is not None:
        schema = schema_of(world.run, job.name)
        del mine["sink"]["path"]
        mine["sink"]["options"] |= copy_table(table, schema, world.run)
    place = durable.join(world.place, "beside")
    durable.make_directory(place)
    if job.config is not None:
        durable.copy(job.config.file, mine["config"]["file"])
    file = durable.join(place, "jobs.yaml")
    durable.write(file, json.dumps(alternate, indent=1, ensure_ascii=False).encode())
    return Clone(load_registry(file), world.place, files, weight, schema)


def remove(copied: Clone) -> None:
    """The copy of a table, and what walks on it have kept in the database. Files go with the scratch directory."""
    if not copied.schema:
        return
    (job,) = copied.registry.jobs.values()
    kept = [schema_of(run, job.name) for run in run_ids(copied.registry.runs)]
    drop_kept(table_of(job), copied.schema, *kept, *(f"{name}_since" for name in kept))


def _refuse_without_room(world: World, checkpoint: str, sink: str) -> tuple[int, int]:
    files, weight = durable.size(checkpoint)
    more, output = durable.size(sink) if sink else (0, 0)
    place = Path(local_path(world.place) or ".")
    while not place.exists():
        place = place.parent
    linkable = os.stat(place).st_dev == os.stat(sink).st_dev if os.path.isdir(sink) else True
    # The walk rebuilds the output, at worst all of it.
    needed = weight + output * (1 if linkable else 2) + _ROOM_TO_SPARE
    free = shutil.disk_usage(place).free
    if needed > free:
        raise Stopped(f"{place}: {size(needed)} are needed for the clone and {size(free)} are free; make room first")
    return files + more, weight + output


def _copy_tree(source: Path, target: Path, *, link: bool) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for directory, _, names in os.walk(source):
        below = Path(directory).relative_to(source)
        (target / below).mkdir(exist_ok=True)
        data = link and not any(part in _LOGS for part in below.parts)
        for name in names:
            here, there = Path(directory) / name, target / below / name
            if not (data and not name.startswith(".") and _linked(here, there)):
                shutil.copy2(here, there, follow_symlinks=False)


def _linked(here: Path, there: Path) -> bool:
    try:
        os.link(here, there)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        return False
    return True


def _rewrite(logs: Iterable[Path], old: str, new: str) -> None:
    """Spark writes `file:///a%20b/part-0`, or `file:/a b/…`: the path is replaced in both spellings."""
    for log in list(logs):
        if not log.is_file() or log.name.startswith("."):
            continue
        data = log.read_bytes()
        changed = data
        for spelt in {old, quote(old)}:
            changed = changed.replace(f"{spelt}/".encode(), f"{quote(new) if spelt != old else new}/".encode())
        if changed != data:
            log.write_bytes(changed)
            # The checksum is of the old bytes; without one the file is taken as it is.
            log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
