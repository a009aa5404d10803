"""The controller of a job.

controller = open_controller(registry, registry.jobs["sensor-raw-ingest"])
controller.status().state
"""

from __future__ import annotations

from pathlib import Path

from wizard.errors import BadInput
from wizard.jobs.control.command import CommandController
from wizard.jobs.control.interface import Controller, Unmanaged
from wizard.jobs.control.places import pid_file
from wizard.jobs.control.process import ProcessController
from wizard.jobs.control.spark_rest import SparkRestController
from wizard.jobs.model import CommandControl, Job, ProcessControl, Registry


def open_controller(registry: Registry, job: Job) -> Controller:
    cwd = Path(registry.path).resolve().parent
    control = job.control
    if control is None:
        return Unmanaged(job.name, registry.path)
    if isinstance(control, ProcessControl):
        path = pid_file(registry, job.name, control)
        if path is None:
            raise BadInput(
                f"{registry.path}: the pid file of job {job.name} is not on this machine; set control.pid_file"
            )
        return ProcessController(job.name, control, path)
    if isinstance(control, CommandControl):
        return CommandController(job.name, control, cwd)
    return SparkRestController(job.name, control, job.checkpoint, cwd)
