"""What a registry that can be read still gets wrong: the places of its jobs, their graph, their configuration.

Each rule is a function from a registry to problems; the codes are stable and listed in docs/registry.md.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from wizard.errors import BadInput
from wizard.jobs.control.places import pid_file
from wizard.jobs.graph import cycles
from wizard.jobs.keys import counts_problems, key_problems
from wizard.jobs.model import Problem, ProcessControl, Registry, Severity
from wizard.jobs.paths import above, canonical, changing_part, is_glob, is_inside, is_url, local_path
from wizard.jobs.reading import base_of
from wizard.postgres import Table, is_postgres, table_place
from wizard.secrets import mask
from wizard.strict_yaml import PathKey

CONFIG_READ_AT_MOST = 5_000_000


@dataclass(frozen=True)
class _Place:
    """A directory a job owns, by its one name. `job` is None for the runs directory."""

    job: str | None
    role: str  # checkpoint, output or runs
    path: PathKey
    at: str

    @property
    def owner(self) -> str:
        return f"the {self.role} of {self.job}" if self.job else "the runs directory"


def lint(registry: Registry) -> list[Problem]:
    """Every problem, in the order of the file."""
    return in_file_order([problem for rule in _RULES for problem in rule(registry)])


def in_file_order(problems: list[Problem]) -> list[Problem]:
    def place(problem: Problem) -> tuple[int, int, str]:
        _, line, column = problem.where.rsplit(":", 2)
        return int(line), int(column), problem.code

    return sorted(problems, key=place)


def _problem(
    registry: Registry, code: str, severity: Severity, path: PathKey, message: str, *others: str, value: bool = True
) -> Problem:
    jobs = dict.fromkeys(((str(path[1]),) if path[0] == "jobs" else ()) + others)
    return Problem(code, severity, message, registry.document.where(path, value=value), tuple(jobs))


def _places(registry: Registry) -> Iterator[_Place]:
    yield _Place(None, "runs", ("runs",), canonical(registry.runs))
    for name, job in registry.jobs.items():
        yield _Place(name, "checkpoint", ("jobs", name, "checkpoint"), canonical(job.checkpoint))
        if job.sink.path:
            yield _Place(name, "output", _sink_path(registry, name), canonical(job.sink.path))


def _sink_path(registry: Registry, name: str) -> PathKey:
    direct = "path" in registry.document.data["jobs"][name]["sink"]
    return ("jobs", name, "sink", "path") if direct else ("jobs", name, "sink", "options", "path")


def _overlapping_places(registry: Registry) -> Iterator[Problem]:
    by_name: dict[str, list[_Place]] = defaultdict(list)
    places = list(_places(registry))
    for place in places:
        # In the order of the file, so that it is the later of the two that is reported.
        for earlier in _first_of_each_role(by_name[place.at]):
            yield _same(registry, earlier, place)
        by_name[place.at].append(place)
    for inner in places:
        for directory in above(inner.at):
            for outer in _first_of_each_role(by_name.get(directory, [])):
                yield _nested(registry, inner, outer)


def _first_of_each_role(places: list[_Place]) -> list[_Place]:
    """A hundred jobs in one place are a hundred problems, not ten thousand."""
    return list({place.role: place for place in reversed(places)}.values())


def _same(registry: Registry, first: _Place, second: _Place) -> Problem:
    line, _ = registry.document.position(first.path)
    roles = {first.role, second.role}
    other = f"{first.owner} (line {line})"
    if roles == {"checkpoint"}:
        code, message = "J101", f"the checkpoint of {second.job} is also {other}; give each job its own"
    elif roles == {"output"}:
        code, message = "J104", f"the output of {second.job} is also {other}; one job writes one place"
    elif "runs" in roles:
        code, message = "J107", f"{second.owner} is also {other}; keep runs outside everything a job owns"
    else:
        code, message = "J102", f"{second.owner} is also {other}; keep checkpoints outside every output"
    return _problem(registry, code, "error", second.path, message, *((first.job,) if first.job else ()))


def _nested(registry: Registry, inner: _Place, outer: _Place) -> Problem:
    roles = {inner.role, outer.role}
    reported, other = (outer, inner) if inner.job is None else (inner, outer)
    line, _ = registry.document.position(other.path)
    relation = "contains" if reported is outer else "is inside"
    what = f"{reported.owner} {relation} {other.owner} (line {line})"
    if roles == {"checkpoint"}:
        code, fix = "J103", "give each job its own directory"
    elif roles == {"output"}:
        code, fix = "J105", "emptying one would empty both, so move one"
    elif "runs" in roles:
        code, fix = "J107", "keep runs outside everything a job owns"
    else:
        code, fix = "J102", "keep checkpoints outside every output"
    return _problem(registry, code, "error", reported.path, f"{what}; {fix}", *((other.job,) if other.job else ()))


def _sources(registry: Registry) -> Iterator[Problem]:
    """A source that goes with a checkpoint when that is deleted, and rows put aside where a job reads them again."""
    checkpoints = {place.at: place for place in _places(registry) if place.role == "checkpoint"}
    for name, job in registry.jobs.items():
        for number, source in enumerate(job.sources):
            if not source.path or is_glob(at := canonical(source.path)):
                continue
            path = _source_path(registry, name, number)
            outer = next((checkpoints[each] for each in (at, *above(at)) if each in checkpoints), None)
            if outer is not None:
                message = f"what {name} reads is inside {outer.owner}, and would be deleted with it; move one"
                yield _problem(registry, "J108", "error", path, message, outer.job or name)
            if is_inside(canonical(registry.runs), at):
                message = f"what {name} reads contains the runs directory, and so what a walk puts aside; move runs"
                yield _problem(registry, "J108", "error", path, message)


def _source_path(registry: Registry, name: str, number: int) -> PathKey:
    several: PathKey = ("sources", number) if "sources" in registry.document.data["jobs"][name] else ("source",)
    return ("jobs", name, *several, "path")


def _same_tables(registry: Registry) -> Iterator[Problem]:
    writers: dict[str, str] = {}
    for name, job in registry.jobs.items():
        options = {option.lower(): value for option, value in job.sink.options.items()}
        if job.sink.format.lower() != "jdbc" or not {"url", "dbtable"} <= options.keys():
            continue
        server = mask(options["url"]).partition("?")[0].rstrip("/")
        table = table_place(options) or f"{server} {options['dbtable'].lower()}"
        first = writers.setdefault(table, name)
        if first != name:
            line, _ = registry.document.position(("jobs", first, "sink"))
            message = f"the output of {name} is also the output of {first} (line {line}); one job writes one place"
            yield _problem(registry, "J104", "error", ("jobs", name, "sink", "options", "dbtable"), message, first)


def _tables(registry: Registry) -> Iterator[Problem]:
    """What is written to PostgreSQL must be one table, whose rows say which batch they came from."""
    for name, job in registry.jobs.items():
        if job.sink.format.lower() != "jdbc" or not is_postgres(job.sink.options):
            continue
        path = ("jobs", name, "sink", "options")
        try:
            table = Table.of(job.sink.options)
        except BadInput as error:
            yield _problem(registry, "J208", "error", path, f"the sink of {name}: {error}")
            continue
        if table.batch_column is None:
            what = f"the rows of {name} do not say which batch they came from, so they cannot be taken back to one"
            yield _problem(
                registry, "J209", "warning", path, f"{what}; add batch_column (docs/connectors.md)", value=False
            )


def _changing_paths(registry: Registry) -> Iterator[Problem]:
    data: Any = registry.document.data
    base = base_of(registry.path)
    for place in _places(registry):
        written = data
        for part in place.path:
            written = written.get(part, "") if isinstance(written, dict) else ""
        if changing := changing_part(str(written), base):
            part, why = changing
            message = f"{place.owner} changes from day to day: {mask(part)} {why}; write a path that stays the same"
            yield _problem(registry, "J106", "error", place.path, message)


def _configs(registry: Registry) -> Iterator[Problem]:
    for name, job in registry.jobs.items():
        if job.config is None or (file := local_path(job.config.file)) is None:
            continue
        path: PathKey = ("jobs", name, "config", "file")
        try:
            with file.open("rb") as opened:
                text = opened.read(CONFIG_READ_AT_MOST).decode("utf-8", "replace")
        except OSError as error:
            said = error.strerror or type(error).__name__
            message = f"the config file of {name} cannot be read ({said}); correct the path: {mask(str(file))}"
            yield _problem(registry, "J301", "error", path, message)
            continue
        option = job.config.starting_offsets
        if option and not _has_option(text, option):
            path = ("jobs", name, "config", "starting_offsets")
            message = f"{option} is not set in {file.name}, so where {name} starts reading is not known; add it there"
            yield _problem(registry, "J302", "error", path, message)


def _has_option(text: str, option: str) -> bool:
    """In YAML, JSON, properties, HOCON or code: the name, then a separator. A dotted name may be nested there."""
    names = {option, option.rpartition(".")[2]}
    return any(re.search(rf"(?m)^(?!\s*[#;!]).*?(?<![\w-]){re.escape(name)}[\"']?\s*[:=, ]", text) for name in names)


def _controls(registry: Registry) -> Iterator[Problem]:
    for name, job in registry.jobs.items():
        if job.control is None:
            message = f"job {name} has no control, so it cannot be stopped or started from here; add control"
            yield _problem(registry, "J401", "warning", ("jobs", name), message, value=False)
        elif job.control.kind == "process" and is_url(job.control.cwd):
            message = f"control.cwd of job {name} is a URL; a process needs a directory on this machine"
            yield _problem(registry, "J402", "error", ("jobs", name, "control", "cwd"), message)


def _pid_files(registry: Registry) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name, job in registry.jobs.items():
        if not isinstance(job.control, ProcessControl):
            continue
        path = ("jobs", name, "control", "pid_file") if job.control.pid_file else ("jobs", name, "control")
        place = pid_file(registry, name, job.control)
        if place is None:
            message = f"the pid file of job {name} is not on this machine; set control.pid_file to a path that is"
            yield _problem(registry, "J403", "error", path, message)
            continue
        if (other := first.setdefault(canonical(str(place)), name)) != name:
            message = f"job {name} has the pid file of job {other}, so one would be taken for the other; name its own"
            yield _problem(registry, "J404", "error", path, message, name, other)


def _cycles(registry: Registry) -> Iterator[Problem]:
    for cycle in cycles(registry):
        around = " → ".join((*cycle, cycle[0]))
        message = f"the jobs feed each other in a circle: {around}; take one source or output out of it"
        yield _problem(registry, "J501", "error", ("jobs", cycle[0], "sink"), message, *cycle, value=False)


def _keys(registry: Registry) -> Iterator[Problem]:
    for name, job in registry.jobs.items():
        for code, severity, message in key_problems(job):
            yield _problem(registry, code, severity, ("jobs", name, "sink", "key"), message, value=False)
        for code, severity, message in counts_problems(job):
            yield _problem(registry, code, severity, ("jobs", name, "sink", "counts"), message, value=False)


_RULES: tuple[Callable[[Registry], Iterator[Problem]], ...] = (
    _overlapping_places,
    _sources,
    _same_tables,
    _tables,
    _changing_paths,
    _keys,
    _configs,
    _controls,
    _pid_files,
    _cycles,
)
