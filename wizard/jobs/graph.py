"""Who reads what whom writes: a job's sink is another's source, by path or by Kafka topic.

Both directions err on the side of an edge too many: a consumer that is asked about in vain costs a question,
one that is missed loses data.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from wizard.errors import BadInput
from wizard.jobs.model import Job, Registry, Source
from wizard.jobs.paths import above, canonical, is_glob, overlaps

Edges = dict[str, tuple[str, ...]]


def consumers(registry: Registry, job: str) -> tuple[str, ...]:
    """The jobs that read what `job` writes, and those that read what they write, nearest first; never `job` itself."""
    return _reach(readers(registry), registry, job)


def producers(registry: Registry, job: str) -> tuple[str, ...]:
    """The jobs whose output `job` reads, directly or through others, nearest first."""
    writers: dict[str, list[str]] = defaultdict(list)
    for writer, reading in readers(registry).items():
        for reader in reading:
            writers[reader].append(writer)
    return _reach(writers, registry, job)


def readers(registry: Registry) -> Edges:
    """Each job's direct consumers, in the order of the registry; one that reads its own output is its own consumer."""
    found: dict[str, set[str]] = {name: set() for name in registry.jobs}
    for writer, reader in (*_by_path(registry), *_by_topic(registry)):
        found[writer].add(reader)
    order = {name: number for number, name in enumerate(registry.jobs)}
    return {name: tuple(sorted(reading, key=order.__getitem__)) for name, reading in found.items()}


def cycles(registry: Registry) -> list[tuple[str, ...]]:
    """Each cycle once, as the jobs along it. One cycle a knot is enough: breaking it shows the next."""
    edges = readers(registry)
    done: set[str] = set()
    found = []
    for root in edges:
        if root in done:
            continue
        trail: dict[str, Iterator[str]] = {root: iter(edges[root])}  # own stack: a chain of jobs may be long
        while trail:
            node, rest = next(reversed(trail.items()))
            for reader in rest:
                if reader in trail:
                    names = list(trail)
                    found.append(tuple(names[names.index(reader) :]))
                elif reader not in done:
                    trail[reader] = iter(edges[reader])
                    break
            else:
                done.add(node)
                del trail[node]
    return found


def _reach(edges: Mapping[str, tuple[str, ...] | list[str]], registry: Registry, job: str) -> tuple[str, ...]:
    if job not in registry.jobs:
        raise BadInput(f"{registry.path}: no job {job}; write one of {', '.join(registry.jobs)}")
    reached = {job: None}
    queue = [job]
    for node in queue:
        for other in edges.get(node, ()):
            if other not in reached:
                reached[other] = None
                queue.append(other)
    return tuple(queue[1:])


def _by_path(registry: Registry) -> Iterator[tuple[str, str]]:
    written: dict[str, list[str]] = defaultdict(list)
    under: dict[str, list[str]] = defaultdict(list)  # directories that have an output somewhere below
    for job in registry.jobs.values():
        if job.sink.path:
            place = canonical(job.sink.path)
            written[place].append(job.name)
            for directory in above(place):
                under[directory].append(job.name)
    for job in registry.jobs.values():
        for source in job.sources:
            if not source.path:
                continue
            place = canonical(source.path)
            if is_glob(place):
                writers = [name for sink, names in written.items() if overlaps(place, sink) for name in names]
            else:
                writers = [*written[place], *under[place]]
                for directory in above(place):
                    writers += written.get(directory, ())
            for writer in writers:
                yield writer, job.name


def _by_topic(registry: Registry) -> Iterator[tuple[str, str]]:
    written = [(job, topic) for job in registry.jobs.values() if (topic := _topic_written(job))]
    if not written:
        return
    for reader in registry.jobs.values():
        for source in reader.sources:
            if source.format.lower() != "kafka":
                continue
            reads = _topics_read(source)
            for writer, topic in written:
                if reads(topic) and _same_cluster(writer.sink.options, source.options):
                    yield writer.name, reader.name


def _topic_written(job: Job) -> str | None:
    return job.sink.options.get("topic") if job.sink.format.lower() == "kafka" else None


def _topics_read(source: Source) -> Callable[[str], bool]:
    if "subscribePattern" in source.options:
        try:
            pattern = re.compile(source.options["subscribePattern"])
        except re.error:
            return lambda topic: True  # a Java expression Python cannot read may match anything
        return lambda topic: pattern.fullmatch(topic) is not None
    names = {name.strip() for name in source.options.get("subscribe", "").split(",")}
    if "assign" in source.options:
        try:
            names |= set(json.loads(source.options["assign"]))
        except (ValueError, TypeError, RecursionError):
            return lambda topic: True
    return names.__contains__


def _same_cluster(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    name = "kafka.bootstrap.servers"
    if name not in one or name not in other:
        return True
    return not set(one[name].replace(" ", "").split(",")).isdisjoint(other[name].replace(" ", "").split(","))
