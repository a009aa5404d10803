"""What a registry says about a job, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from wizard import problems
from wizard.secrets import mask, mask_options
from wizard.strict_yaml import Document

Severity = Literal["error", "warning"]
OutputMode = Literal["append", "update", "complete"]
DEFAULT_SETTLE_SECONDS = 10.0
DEFAULT_STOP_TIMEOUT = 60.0
DEFAULT_COMMAND_TIMEOUT = 30.0

NEED_A_PATH = frozenset(("parquet", "json", "csv", "orc", "text", "avro", "delta"))


@dataclass(frozen=True)
class Problem(problems.Problem):
    """What lint found in a registry. `jobs` are those it concerns: none when it is about the file as a whole."""

    jobs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A name in the file may hold a line break or a terminal's escape: an operator's screen gets neither.
        if not self.message.isprintable():
            plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in self.message)
            object.__setattr__(self, "message", plain)

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(frozen=True)
class Source:
    format: str
    path: str | None = None
    options: dict[str, str] = field(default_factory=dict, repr=False)  # no repr: a traceback must not show a password

    def masked_options(self) -> dict[str, str]:
        return mask_options(self.options)


@dataclass(frozen=True)
class Counts:
    """For each `by`, the sum of `column` in the output is the number of different `of` in the source rows of `where`."""

    column: str
    of: str
    by: tuple[str, ...] = ()
    where: dict[str, str | int | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Sink:
    format: str
    path: str | None = None
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    idempotent: bool | None = None  # as declared; None when the registry does not say
    options: dict[str, str] = field(default_factory=dict, repr=False)
    counts: Counts | None = None  # how an aggregate is proved

    def masked_options(self) -> dict[str, str]:
        return mask_options(self.options)


@dataclass(frozen=True)
class Config:
    file: str
    starting_offsets: str | None = None


@dataclass(frozen=True)
class ProcessControl:
    kind: ClassVar[Literal["process"]] = "process"
    start: tuple[str, ...]
    cwd: str
    pid_file: str | None = None
    env: dict[str, str] = field(default_factory=dict, repr=False)
    stop_timeout: float = DEFAULT_STOP_TIMEOUT
    settle_seconds: float = DEFAULT_SETTLE_SECONDS


@dataclass(frozen=True)
class Answer:
    """What `status` must say: one of the exit codes, or output the expression is found in; both when both are given."""

    exit_codes: tuple[int, ...] = ()
    output: str | None = None


DEFAULT_RUNNING = Answer((0,))
# As the LSB and systemd have it. `systemctl is-active` also ends with 3 while a unit is between two runs.
DEFAULT_STOPPED = Answer((3,), r"\A(?!activating|deactivating|reloading|refreshing|maintenance)")


@dataclass(frozen=True)
class CommandControl:
    kind: ClassVar[Literal["command"]] = "command"
    start: tuple[str, ...]
    stop: tuple[str, ...]
    status: tuple[str, ...]
    running: Answer
    stopped: Answer
    timeout: float = DEFAULT_COMMAND_TIMEOUT
    stop_timeout: float = DEFAULT_STOP_TIMEOUT
    settle_seconds: float = DEFAULT_SETTLE_SECONDS


@dataclass(frozen=True)
class SparkRestControl:
    kind: ClassVar[Literal["spark-rest"]] = "spark-rest"
    url: str
    query_name: str | None = None
    query_id: str | None = None
    start: tuple[str, ...] = ()
    stop_timeout: float = DEFAULT_STOP_TIMEOUT
    settle_seconds: float = DEFAULT_SETTLE_SECONDS


Control = ProcessControl | CommandControl | SparkRestControl


@dataclass(frozen=True)
class Job:
    name: str
    checkpoint: str
    sources: tuple[Source, ...]
    sink: Sink
    output_mode: OutputMode = "append"
    spark_version: str | None = None
    config: Config | None = None
    control: Control | None = None
    description: str = ""

    @property
    def source(self) -> Source:
        """The first source, which is the only one of most jobs."""
        return self.sources[0]

    @property
    def settle_seconds(self) -> float:
        """How long the checkpoint must not move for the job to count as stopped."""
        return self.control.settle_seconds if self.control else DEFAULT_SETTLE_SECONDS

    def masked_options(self) -> dict[str, dict[str, str]]:
        """The options fit to be shown: `{"source.0": {…}, "sink": {…}, "env": {…}}`."""
        shown = {f"source.{index}": source.masked_options() for index, source in enumerate(self.sources)}
        shown["sink"] = self.sink.masked_options()
        if isinstance(self.control, ProcessControl):
            shown["env"] = mask_options(self.control.env)
        return shown

    def masked_start(self) -> tuple[str, ...]:
        """The start command fit to be shown."""
        if self.control is None or not self.control.start:
            return ()
        # Masked as one text, since a flag and its secret are two arguments.
        return tuple(mask("\x1f ".join(self.control.start)).split("\x1f "))


@dataclass(frozen=True)
class Registry:
    path: str
    runs: str
    jobs: dict[str, Job]
    document: Document = field(repr=False, compare=False)
