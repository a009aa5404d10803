"""A job of the registry as something to diagnose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wizard.diagnosis.diagnose import Subject

if TYPE_CHECKING:  # a checkpoint given by hand needs no registry, and so no YAML
    from collections.abc import Iterable

    from wizard.jobs.model import Job, Registry
    from wizard.jobs.tried import Tried


def subject_of(job: Job, consumers: Iterable[Job] = (), tried: Tried | None = None) -> Subject:
    """`consumers` are the jobs that read its output: `direct_consumers`, or none where that makes no difference.

    `tried` goes before what is declared of the output.
    """
    return Subject(
        checkpoint=job.checkpoint,
        sink=job.sink.path,
        sink_format=job.sink.format,
        sink_options=job.sink.options,
        spark_version=job.spark_version,
        key=job.sink.key,
        idempotent=job.sink.idempotent if tried is None else tried.once,
        tried=tried.told if tried is not None else "",
        sources=len(job.sources),
        job=job.name,
        reads=tuple(job.sources),
        aggregates=job.sink.counts is not None or job.output_mode != "append",
        consumers=tuple(consumers),
    )


def direct_consumers(registry: Registry) -> dict[str, list[Job]]:
    """For every job at once: the graph is worked out of all of them."""
    from wizard.jobs.graph import readers

    return {
        name: [registry.jobs[each] for each in reading if each != name] for name, reading in readers(registry).items()
    }
