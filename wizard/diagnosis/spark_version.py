"""Which Spark wrote a checkpoint: told by the registry, else inferred from what each release first wrote, and marked so."""

from __future__ import annotations

from dataclasses import dataclass

from wizard.checkpoint.reader import Checkpoint
from wizard.errors import BadInput

# The first release that pins each conf, from offsets written by real releases.
_FIRST_PINNED: tuple[tuple[tuple[int, int], str], ...] = (
    ((4, 3), "spark.sql.dropDuplicates.deterministicKeyOrder.enabled"),
    ((4, 2), "spark.sql.streaming.stateStore.rowChecksum.enabled"),
    ((4, 0), "spark.sql.streaming.stateStore.encodingFormat"),
    ((3, 5), "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan"),
    ((3, 4), "spark.sql.streaming.statefulOperator.useStrictDistribution"),
    ((3, 2), "spark.sql.streaming.stateStore.rocksdb.formatVersion"),
    ((3, 0), "spark.sql.streaming.join.stateFormatVersion"),
    ((2, 4), "spark.sql.streaming.aggregation.stateFormatVersion"),
    ((2, 3), "spark.sql.streaming.stateStore.providerClass"),
)


@dataclass(frozen=True, slots=True)
class SparkVersion:
    release: tuple[int, int] | None
    inferred: bool
    """An inferred release is the one that first wrote what was seen; a later one of the same kind may have."""

    def at_least(self, major: int, minor: int) -> bool | None:
        """None where it is not known. What was inferred proves a lower bound only."""
        if self.release is None:
            return None
        if self.release >= (major, minor):
            return True
        return None if self.inferred and self.release >= (4, 0) else False

    def __str__(self) -> str:
        if self.release is None:
            return "unknown"
        text = f"{self.release[0]}.{self.release[1]}"
        return f"{text} or later (inferred from what it wrote)" if self.inferred else text


def spark_version(declared: str | None, checkpoint: Checkpoint) -> SparkVersion:
    if declared:
        parts = declared.split(".")
        try:
            return SparkVersion((int(parts[0]), int(parts[1])), inferred=False)
        except (IndexError, ValueError):
            raise BadInput(f"{declared!r} is not a Spark version; write it as 4.2 or 4.2.0") from None
    return SparkVersion(_infer(checkpoint), inferred=True)


def too_old(version: SparkVersion, checkpoint: Checkpoint) -> tuple[str, str] | None:
    """The log that a release which was named cannot read, and what it says of it."""
    offsets, commit = checkpoint.latest_offsets, checkpoint.latest_commit
    if version.inferred or version.release is None:
        return None
    if offsets is not None and offsets.version == 2 and version.release < (4, 2):
        return f"offsets/{offsets.batch}", "maximum supported log version is v1, but encountered v2"
    if commit is not None and commit.version > 1 and version.release < ((4, 0) if commit.version == 2 else (4, 2)):
        newest = 1 if version.release < (4, 0) else 2
        error = f"maximum supported log version is v{newest}, but encountered v{commit.version}"
        return f"commits/{commit.batch}", error
    return None


def _infer(checkpoint: Checkpoint) -> tuple[int, int] | None:
    latest, commit = checkpoint.latest_offsets, checkpoint.latest_commit
    if latest is None:
        return None
    seen = [release for release, conf in _FIRST_PINNED if conf in latest.confs][:1]
    if commit is not None and commit.version == 3:
        seen.append((4, 3))
    if latest.version == 2:
        seen.append((4, 2))
    if checkpoint.state_checksums and checkpoint.state.format == 1:
        seen.append((4, 1))
    if any(not operator.inferred for operator in checkpoint.operators) or checkpoint.state.format == 2:
        seen.append((4, 0))
    if not seen and not checkpoint.continuous:
        seen.append((2, 2) if checkpoint.has_commits_dir else (2, 1))
    return max(seen, default=None)
