"""A job's config file: how its Spark runs and where a new checkpoint starts reading.

    master: local[2]
    startingOffsets: earliest
    options: {maxOffsetsPerTrigger: 500}

It is read at every start and never written by the job; `startingOffsets` is in it because that is the one thing an
operator changes between two starts. What a job reads and writes is in the registry, not here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from wizard.errors import BadInput
from wizard.strict_yaml import Document, load_file

AVAILABLE_NOW = "availableNow"


@dataclass(frozen=True)
class SparkConfig:
    master: str | None = None
    driver_memory: str | None = None
    packages: tuple[str, ...] = ()
    shuffle_partitions: int | None = None
    trigger: str = "10 seconds"
    starting_offsets: str | None = None
    stop_timeout: float = 60.0
    log_level: str = "WARN"
    options: dict[str, str] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)


_KINDS: dict[str, tuple[type, ...]] = {
    "master": (str,),
    "driverMemory": (str,),
    "packages": (list,),
    "shufflePartitions": (int,),
    "trigger": (str,),
    "startingOffsets": (str, dict),
    "stopTimeout": (int, float),
    "logLevel": (str,),
    "options": (dict,),
    "conf": (dict,),
    "parameters": (dict,),
}


def load_config(path: str) -> SparkConfig:
    document = load_file(path)
    raw = document.data if document.data is not None else {}
    if not isinstance(raw, dict):
        raise BadInput(f"{document.where(())}: not a mapping; write lines such as `master: local[2]`")
    for name, value in raw.items():
        if name not in _KINDS:
            raise BadInput(f"{document.where((name,))}: unknown setting {name!r}; use one of {', '.join(_KINDS)}")
        if not isinstance(value, _KINDS[name]) or isinstance(value, bool):
            wanted = " or ".join(kind.__name__ for kind in _KINDS[name])
            raise BadInput(f"{document.where((name,), value=True)}: {name} must be {wanted}, not {value!r}")
    starting = raw.get("startingOffsets")
    return SparkConfig(
        master=raw.get("master"),
        driver_memory=raw.get("driverMemory"),
        packages=tuple(str(each) for each in raw.get("packages", [])),
        shuffle_partitions=raw.get("shufflePartitions"),
        trigger=raw.get("trigger", SparkConfig.trigger),
        starting_offsets=json.dumps(starting) if isinstance(starting, dict) else starting,
        stop_timeout=float(raw.get("stopTimeout", SparkConfig.stop_timeout)),
        log_level=raw.get("logLevel", SparkConfig.log_level),
        options=_texts(raw, "options", document),
        conf=_texts(raw, "conf", document),
        parameters=_texts(raw, "parameters", document),
    )


def _texts(raw: dict[str, Any], name: str, document: Document) -> dict[str, str]:
    """Spark's options are text: `true` in the file must reach it as "true", not as "True"."""
    texts: dict[str, str] = {}
    for key, value in raw.get(name, {}).items():
        if isinstance(value, dict | list) or value is None:
            raise BadInput(f"{document.where((name, key))}: {name}.{key} must be one text, number or true/false")
        texts[key] = value if isinstance(value, str) else json.dumps(value)
    return texts
