"""Kafka-shaped offsets over embedded logs: parse them, resolve them, plan the ranges of a batch.

Offsets are plain dicts, `{topic: {"0": n}}`, because that is what Spark writes to the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from wizard.errors import RunbookError
from wizard.sources.embedded_log import EmbeddedLog

Offsets = dict[str, dict[str, int]]
Logs = Mapping[str, EmbeddedLog]

_LATEST, _EARLIEST = -1, -2  # as in the JSON of Spark's Kafka source


class DataLoss(RunbookError):
    """Offsets that the checkpoint still needs are gone from the log."""


def parse_offsets(text: str, option: str, topics: Sequence[str]) -> str | Offsets:
    """`earliest`, `latest`, or the JSON of Spark's Kafka source, in which −2 is earliest and −1 latest."""
    if text.strip().lower() in ("earliest", "latest"):
        return text.strip().lower()
    expected = f'{option} must be "earliest", "latest" or JSON such as {{"{topics[0]}": {{"0": 23}}}}'
    try:
        parsed = json.loads(text)
        offsets = {str(t): {str(int(p)): int(n) for p, n in parts.items()} for t, parts in parsed.items()}
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f"{expected}, not {text!r}") from None
    if unknown := sorted(set(offsets) - set(topics)):
        raise ValueError(f"{option} names the topic {unknown[0]}, which is not subscribed to ({', '.join(topics)})")
    return offsets


def resolve(wanted: str | Offsets, logs: Logs, option: str) -> Offsets:
    """Numbers for every partition of every topic, as the logs are now."""
    resolved: Offsets = {}
    for topic, log in logs.items():
        ends = {"earliest": log.earliest(), "latest": log.latest()}
        if isinstance(wanted, str):
            resolved[topic] = {str(p): n for p, n in ends[wanted].items()}
            continue
        given = wanted.get(topic, {})
        if set(given) != {str(p) for p in log.partitions}:
            # Kafka's source refuses this too: a forgotten partition would be a silent hole.
            raise ValueError(
                f"{option} must name every partition of {topic}"
                f" (0 to {len(log.partitions) - 1}); it names {', '.join(sorted(given)) or 'none'}"
            )
        special = {_EARLIEST: ends["earliest"], _LATEST: ends["latest"]}
        resolved[topic] = {p: special[n][int(p)] if n in special else n for p, n in sorted(given.items())}
    return resolved


def limited(start: Offsets, end: Offsets, logs: Logs, limit: int) -> Offsets:
    """At most `limit` offsets past `start`, shared out in proportion to what waits in each partition, as with Kafka."""
    begin = {t: {p: start.get(t, {}).get(p, logs[t].earliest()[int(p)]) for p in parts} for t, parts in end.items()}
    waiting = {(t, p): n - begin[t][p] for t, parts in end.items() for p, n in parts.items() if n > begin[t][p]}
    total = sum(waiting.values())
    if total <= limit:
        return end
    share = {each: size * limit // total for each, size in waiting.items()}
    left = limit - sum(share.values())
    for each in sorted(waiting, key=lambda each: share[each] - waiting[each]):
        # What rounding left over: one each, so that a trigger always moves and never passes the limit.
        if left == 0:
            break
        share[each] += 1
        left -= 1
    moved: Offsets = {}
    for topic, parts in end.items():
        moved[topic] = {p: begin[topic][p] + share[topic, p] if (topic, p) in share else n for p, n in parts.items()}
    return moved


def planned_ranges(
    start: Offsets, end: Offsets, logs: Logs, fail_on_data_loss: bool
) -> Iterator[tuple[str, int, int, int]]:
    """(topic, partition, from, until) for each partition with something to read, or DataLoss."""
    for topic, parts in sorted(end.items()):
        earliest, latest = logs[topic].earliest(), logs[topic].latest()
        for name, until in sorted(parts.items(), key=lambda item: int(item[0])):
            partition = int(name)
            if partition not in earliest:
                raise DataLoss(_lost(topic, partition, "the log does not have this partition"))
            # A partition that was added since begins at 0: nothing of it was read before.
            begin = start.get(topic, {}).get(name, 0)
            if max(begin, until) > latest[partition]:
                why = (
                    f"the checkpoint stands at offset {max(begin, until)} but the log ends at {latest[partition]};"
                    " the topic was re-created or cut"
                )
                if fail_on_data_loss:
                    raise DataLoss(_lost(topic, partition, why))
                begin, until = earliest[partition], min(until, latest[partition])
            elif until < begin:
                raise DataLoss(_lost(topic, partition, f"the batch would go back from offset {begin} to {until}"))
            if begin < earliest[partition] and begin < until:
                gone = min(earliest[partition], until)
                why = (
                    f"offsets {begin} to {gone - 1} ({gone - begin} records) were dropped by retention;"
                    f" the log begins at {earliest[partition]}"
                )
                if fail_on_data_loss:
                    raise DataLoss(_lost(topic, partition, why))
                begin = gone
            if begin < until:
                yield topic, partition, begin, until


def pin_starting_offsets(path: Path, compute: Callable[[], Offsets]) -> Offsets:
    """The first offsets of this checkpoint: decided once, then read back, in the format of Spark's Kafka source."""
    if path.exists():
        version, _, text = path.read_bytes().lstrip(b"\0").decode().partition("\n")
        if version != "v1":
            raise ValueError(f"{path}: starts with {version!r}, not v1; restore the file")
        offsets: Offsets = json.loads(text)
        return offsets
    offsets = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, b"\0v1\n" + json.dumps(offsets, separators=(",", ":")).encode())
    return offsets


def check_topics(path: Path, logs: Logs) -> None:
    """DataLoss when a topic is not the one this checkpoint began with: its offsets count other records now."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, json.dumps({topic: log.id for topic, log in logs.items()}).encode())
        return
    known: dict[str, str] = json.loads(path.read_text())
    for topic, log in logs.items():
        if known.get(topic, log.id) != log.id:
            why = f"the topic was re-created (its id was {known[topic]}, now {log.id})"
            raise DataLoss(_lost(topic, 0, why))


def _write(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_bytes(data)
    draft.rename(path)


def _lost(topic: str, partition: int, why: str) -> str:
    return (
        f"Some data may have been lost: topic {topic} partition {partition}: {why}."
        ' To go on without it set the source option "failOnDataLoss" to "false"'
    )
