"""From the text of a registry that has the right form to `Registry`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wizard.jobs.model import (
    DEFAULT_COMMAND_TIMEOUT,
    DEFAULT_RUNNING,
    DEFAULT_SETTLE_SECONDS,
    DEFAULT_STOP_TIMEOUT,
    DEFAULT_STOPPED,
    Answer,
    CommandControl,
    Config,
    Control,
    Counts,
    Job,
    ProcessControl,
    Registry,
    Sink,
    Source,
    SparkRestControl,
)
from wizard.jobs.paths import resolve
from wizard.strict_yaml import Document


def base_of(registry_path: str) -> Path:
    """What relative paths are relative to: where the file was found, symlinks not followed."""
    return Path(registry_path).absolute().parent


def build(document: Document, path: str, skip: frozenset[str] = frozenset()) -> Registry:
    """`skip` names the jobs whose form is wrong."""
    base = base_of(path)
    jobs = {name: _job(name, raw, base) for name, raw in document.data["jobs"].items() if name not in skip}
    return Registry(str(Path(path).absolute()), resolve(document.data.get("runs", "./runs"), base), jobs, document)


def _job(name: str, raw: dict[str, Any], base: Path) -> Job:
    sources = raw["sources"] if "sources" in raw else [raw["source"]]
    config = raw.get("config")
    return Job(
        name=name,
        checkpoint=resolve(raw["checkpoint"], base),
        sources=tuple(_source(source, base) for source in sources),
        sink=_sink(raw["sink"], base),
        output_mode=raw.get("output_mode", "append"),
        spark_version=raw.get("spark_version"),
        config=Config(resolve(config["file"], base), config.get("starting_offsets")) if config else None,
        control=_control(raw["control"], base) if "control" in raw else None,
        description=raw.get("description", ""),
    )


def _source(raw: dict[str, Any], base: Path) -> Source:
    options = _options(raw)
    return Source(raw["format"], _path(raw, options, base), options)


def _sink(raw: dict[str, Any], base: Path) -> Sink:
    options = _options(raw)
    return Sink(
        format=raw["format"],
        path=_path(raw, options, base),
        key=tuple(raw.get("key", ())),
        partition_by=tuple(raw.get("partition_by", ())),
        idempotent=raw.get("idempotent"),
        options=options,
        counts=_counts(raw["counts"]) if "counts" in raw else None,
    )


def _counts(raw: dict[str, Any]) -> Counts:
    return Counts(raw["column"], raw["of"], tuple(raw.get("by", ())), dict(raw.get("where", {})))


def _path(raw: dict[str, Any], options: dict[str, str], base: Path) -> str | None:
    path = raw.get("path", options.get("path"))
    return resolve(path, base) if path else None


def _options(raw: dict[str, Any]) -> dict[str, str]:
    """Spark takes text; true is written `true` there."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in raw.get("options", {}).items()
    }


def _control(raw: dict[str, Any], base: Path) -> Control:
    start = tuple(raw.get("start", ()))
    stop_timeout = float(raw.get("stop_timeout", DEFAULT_STOP_TIMEOUT))
    settle = float(raw.get("settle_seconds", DEFAULT_SETTLE_SECONDS))
    if raw["kind"] == "process":
        pid_file = raw.get("pid_file")
        return ProcessControl(
            start=start,
            cwd=resolve(raw.get("cwd", "."), base),
            pid_file=resolve(pid_file, base) if pid_file else None,
            env=dict(raw.get("env", {})),
            stop_timeout=stop_timeout,
            settle_seconds=settle,
        )
    if raw["kind"] == "command":
        return CommandControl(
            start=start,
            stop=tuple(raw["stop"]),
            status=tuple(raw["status"]),
            running=_answer(raw["running"]) if "running" in raw else DEFAULT_RUNNING,
            stopped=_answer(raw["stopped"]) if "stopped" in raw else DEFAULT_STOPPED,
            timeout=float(raw.get("timeout", DEFAULT_COMMAND_TIMEOUT)),
            stop_timeout=stop_timeout,
            settle_seconds=settle,
        )
    return SparkRestControl(raw["url"], raw.get("query_name"), raw.get("query_id"), start, stop_timeout, settle)


def _answer(raw: dict[str, Any]) -> Answer:
    return Answer(tuple(raw.get("exit_codes", ())), raw.get("output"))
