"""Read a driver log or a pasted stack trace once and say what went wrong in it.

Only lines that hold a literal of some signature, or the shape of a Java or Python trace, are looked at: one compiled
regex finds them a block at a time, so memory stays the same however long the log or a line of it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, BinaryIO, cast

from wizard.diagnosis.packed import blocks_of
from wizard.diagnosis.signatures import SIGNATURES, Signature
from wizard.secrets import mask

BLOCK = 1 << 20
LONGEST_LINE = 1 << 18  # a longer line is read in pieces
OVERLAP = 1 << 12  # what two pieces of a long line share, so that no text is cut in two
WINDOW = 1 << 12
SHOWN = 300
CHAIN = 64

_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
# What carries a log puts before each of its lines: a container runtime, kubectl, docker compose, syslog, Airflow, CI.
_SHIPPED = re.compile(
    rb"(?:\[(?:pod|container)/[^\]\s]+\] |\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d) (?:(?:stdout|stderr) [FP] )?"
    rb"|[\w.-]+ *\| |(?:<\d+>)?[A-Z][a-z]{2} [ \d]\d [\d:]{8} \S+ [\w./-]+(?:\[\d+\])?: "
    rb"|\[[\d-]+[ ,T][^\]]*\] \{[^}]*\} [A-Z]+ - )+"
)
_SHAPES = rb"(?:Exception|Error)(?=[:\r\n\"\\]|\Z)|Caused by: |Suppressed: |terminated with (?:error|exception)"
_QUERY = re.compile(rb"\[id = ([0-9a-f-]{36}), runId = ([0-9a-f-]{36})\]")
_TERMINATED = re.compile(rb"\] terminated with (?:error|exception)")
_CAUSED = re.compile(rb"^([\s>|]*)Caused by: ")
_SUPPRESSED = re.compile(rb"^([\s>|]*)Suppressed: ")
_HEADER = re.compile(
    rb"^(?:Exception in thread \"[^\"]*\" |: |[\s>|]*)(?:(?:[A-Za-z_$][\w$]*\.)*[A-Z][\w$]*(?:Exception|Error)"
    rb"|(?:[a-z_]\w*\.){2,}[A-Z][\w$]*)(?:: |:?\s*$)"
)
_LOST_TASK = re.compile(rb"Lost task .*?\): (?=(?:[a-z_]\w*\.){2,}[A-Z][\w$]*: )")


@dataclass(frozen=True)
class Match:
    """All the lines one signature matched: `line` is the first, `text` and `batch` are those of `last_line`."""

    signature: Signature
    line: int
    last_line: int
    count: int
    text: str
    batch: int | None
    query_id: str | None

    def as_dict(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in ("line", "last_line", "count", "text", "batch", "query_id")}
        return {**self.signature.as_dict(), **facts}


@dataclass(frozen=True)
class Explanation:
    """`cause` is the innermost known cause of the last failure; `innermost` its innermost text, known or not."""

    matches: tuple[Match, ...]
    cause: Match | None
    innermost: str | None
    innermost_line: int | None
    query_id: str | None
    lines: int
    bytes: int

    @property
    def unknown_cause(self) -> str | None:
        return self.innermost if self.cause is None else None

    @property
    def unknown_cause_line(self) -> int | None:
        return self.innermost_line if self.cause is None else None

    def as_dict(self) -> dict[str, Any]:
        names = ("innermost", "innermost_line", "unknown_cause", "unknown_cause_line", "query_id", "lines", "bytes")
        return {
            "cause": self.cause.as_dict() if self.cause else None,
            **{name: getattr(self, name) for name in names},
            "matches": [match.as_dict() for match in self.matches],
        }

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), ensure_ascii=False)


def explain(source: BinaryIO | bytes | str | Iterable[bytes | str]) -> Explanation:
    scan = _Scan()
    for block in _blocks(source):
        scan.feed(block)
    return scan.finish()


def _blocks(source: BinaryIO | bytes | str | Iterable[bytes | str]) -> Iterator[bytes]:
    if isinstance(source, str):
        source = source.encode(errors="replace")
    if isinstance(source, bytes):
        for at in range(0, len(source), BLOCK):
            yield source[at : at + BLOCK]
    elif hasattr(source, "read"):
        yield from blocks_of(cast("BinaryIO", source), BLOCK)
    else:
        for line in source:
            data = line.encode(errors="replace") if isinstance(line, str) else line
            yield data if data.endswith(b"\n") else data + b"\n"


@cache
def _needles() -> tuple[re.Pattern[bytes], re.Pattern[bytes], dict[bytes, tuple[Signature, ...]]]:
    """The regex over everything, the one over needles only, and whose needle each is; longest first, so that the most
    particular error class wins."""
    owners: dict[bytes, list[Signature]] = {}
    for signature in SIGNATURES:
        for needle in signature.needles:
            owners.setdefault(needle.encode(), []).append(signature)
    by_first: dict[bytes, list[bytes]] = {}
    for literal in sorted(owners, key=len, reverse=True):
        by_first.setdefault(literal[:1], []).append(re.escape(literal[1:]))
    union = b"|".join(re.escape(first) + b"(?:" + b"|".join(rest) + b")" for first, rest in by_first.items())
    return re.compile(_SHAPES + b"|" + union), re.compile(union), {k: tuple(v) for k, v in owners.items()}


@cache
def _patterns(code: str) -> tuple[re.Pattern[bytes], ...]:
    return tuple(re.compile(pattern.encode()) for pattern in _BY_CODE[code].patterns)


@dataclass
class _Hits:
    line: int
    last_line: int = 0
    count: int = 0
    text: bytes = b""
    batch: int | None = None
    query: str | None = None


@dataclass
class _Failure:
    """One trace: its links from the outermost to the innermost, each a line, its text and what it matched."""

    links: list[tuple[int, bytes, tuple[Signature, ...]]] = field(default_factory=list)
    query: str | None = None
    run: bytes | None = None
    terminated: bool = False
    suppressed: int | None = None
    logged_at: int = 0  # the log line whose trace is expected on the next line
    python: bool = False  # a Python traceback is open, whose last line is the innermost cause

    def add(self, line: int, text: bytes, found: tuple[Signature, ...], *, outer: bool = False) -> None:
        if outer:
            self.links.insert(0, (line, text, found))
        else:
            self.links.append((line, text, found))
        del self.links[1 : max(1, len(self.links) - CHAIN)]
        self.python = b"Traceback (most recent call last)" in text

    def cause(self) -> Signature | None:
        known = [s for _, _, found in reversed(self.links) for s in reversed(found) if s.severity == "error"]
        return next((s for s in known if not s.generic), known[0] if known else None)

    def matters(self) -> bool:
        cause = self.cause()
        return self.terminated or (cause is not None and not cause.generic)


class _Scan:
    def __init__(self) -> None:
        self.pre, self.needles, self.owners = _needles()
        self.tail, self.lines, self.bytes = b"", 0, 0
        self.hits: dict[str, _Hits] = {}
        self.current: _Failure | None = None
        self.best: _Failure | None = None
        self.partial = self.expect = False

    def feed(self, block: bytes) -> None:
        self.bytes += len(block)
        buffer = self.tail + block
        end = buffer.rfind(b"\n") + 1
        self.tail = buffer[end:]
        if end:
            self._text(buffer[:end])
            self.partial = False
        while len(self.tail) > LONGEST_LINE:
            self._text(self.tail[:LONGEST_LINE], upto=LONGEST_LINE - OVERLAP)
            self.tail, self.partial = self.tail[LONGEST_LINE - OVERLAP :], True

    def finish(self) -> Explanation:
        if self.tail:
            self._text(self.tail)
            self.lines += 1
        self._close()
        cause, link = self.best.cause() if self.best else None, self.best.links[-1] if self.best else None
        if self.best is None or not self.best.matters():
            # No query failed, but data was dropped without an error: that is what has to be explained.
            silent = [c for c in self.hits if _BY_CODE[c].severity == "error" and not _BY_CODE[c].generic]
            if silent:
                cause, link = _BY_CODE[min(silent, key=lambda c: self.hits[c].line)], None
        query = self.best.query if self.best else None
        matches = [self._match(code, query if cause and code == cause.code else None) for code in self.hits]
        order = ("error", "warning", "info").index
        matches.sort(
            key=lambda m: (m.signature != cause, order(m.signature.severity), m.signature.generic, -m.last_line)
        )
        return Explanation(
            tuple(matches),
            matches[0] if cause and matches else None,
            _shown(link[1]) if link else None,
            link[0] if link else None,
            query,
            self.lines,
            self.bytes,
        )

    def _match(self, code: str, query: str | None) -> Match:
        hit = self.hits[code]
        text, query = _shown(hit.text), hit.query or query
        return Match(_BY_CODE[code], hit.line, hit.last_line, hit.count, text, hit.batch, query)

    def _text(self, text: bytes, upto: int | None = None) -> None:
        if b"\0" in text:
            text = text.replace(b"\0", b" " if upto else b"")  # UTF-16 from a Windows shell reads as its ASCII
        at, counted, number = 0, 0, self.lines
        while True:
            if self.expect and upto is None:
                start, self.expect = at, False
            else:
                found = self.pre.search(text, at)
                if found is None or (upto is not None and found.start() >= upto):
                    break
                start = max(at, found.start() - WINDOW)
                start = max(start, *(text.rfind(mark, start, found.start()) + 1 for mark in (b"\n", b"\r")))
            if start >= len(text):
                break
            end = text.find(b"\n", start)
            end = len(text) if end < 0 else end
            number += text.count(b"\n", counted, start)
            counted = start
            stop = end if upto is None and end - start <= LONGEST_LINE else min(end, start + 2 * WINDOW)
            self._line(number + 1, text[start:stop].rstrip(b"\r"))
            at = max(stop, start + 1) if stop < end else end + 1
            if at > len(text):
                break
        if upto is None:
            self.lines += text.count(b"\n")

    def _line(self, number: int, line: bytes) -> None:
        if b"\x1b" in line:
            line = _ANSI.sub(b"", line)
        if shipped := _SHIPPED.match(line):
            line = line[shipped.end() :]
        if line.startswith(b"{") and (unfolded := _unfold(line)):
            for part in unfolded:
                self._plain(number, part)
            return
        self._plain(number, line)

    def _plain(self, number: int, line: bytes) -> None:
        found = self._signatures(number, line)
        query = _QUERY.search(line) if b"runId = " in line else None
        current = self.current
        if query is not None and _TERMINATED.search(line):
            run = query[2]
            known = next((f for f in (current, self.best) if f is not None and f.run == run), None)
            if known is None:
                known = self._open()
                known.query, known.run, known.terminated = query[1].decode(), run, True
            elif known is not current:
                self._close()
                self.current = known
            known.add(number, line, found, outer=bool(known.links))
            known.logged_at = number
            self.expect = line.rstrip().endswith(b"terminated with error")
        elif caused := _CAUSED.match(line):
            if current is None:
                current = self._open()
            if current.suppressed is None or len(caused[1]) < current.suppressed:
                current.suppressed = None
                current.add(number, line[caused.end() :], found)
        elif suppressed := _SUPPRESSED.match(line):
            if current is not None:
                current.suppressed = len(suppressed[1])
        elif _HEADER.match(line):
            inner = current is not None and (current.python or 0 <= number - current.logged_at <= 1)
            (current if inner and current is not None else self._open()).add(number, line.lstrip(b": \t"), found)
        elif task := _LOST_TASK.search(line):
            self._open().add(number, line[task.end() :], found)
        elif any(s.severity == "error" and not s.generic for s in found) and b" ERROR " in b" " + line:
            failure = self._open()
            failure.add(number, line, found)
            failure.logged_at = number

    def _signatures(self, number: int, line: bytes) -> tuple[Signature, ...]:
        found: list[Signature] = []
        for needle in self.needles.finditer(line):
            for signature in self.owners[needle[0]]:
                if signature in found:
                    continue
                near = line[max(0, needle.start() - WINDOW) : needle.end() + WINDOW]
                for pattern in _patterns(signature.code):
                    if match := pattern.search(near):
                        found.append(signature)
                        self._count(signature, number, line, match.groupdict())
                        break
        return tuple(found)

    def _count(self, signature: Signature, number: int, line: bytes, groups: dict[str, bytes]) -> None:
        hit = self.hits.setdefault(signature.code, _Hits(number))
        hit.last_line, hit.count, hit.text = number, hit.count + 1, line[: 8 * SHOWN]
        if groups.get("batch") and len(groups["batch"]) < 19:
            hit.batch = int(groups["batch"])
        if groups.get("query"):
            hit.query = groups["query"].decode()

    def _open(self) -> _Failure:
        self._close()
        self.current = _Failure()
        return self.current

    def _close(self) -> None:
        failure, self.current = self.current, None
        # Noise of the shutdown comes after the failure that matters, and must not hide it.
        if failure and failure.links and (self.best is None or failure.matters() or not self.best.matters()):
            self.best = failure


def _unfold(line: bytes) -> list[bytes]:
    """A JSON log line (Spark 4's structured logging, a container's) as the lines a plain log would have."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return []
    if not isinstance(record, dict):
        return []
    thrown = record.get("exception")
    text = next((record[key] for key in ("msg", "message", "log") if isinstance(record.get(key), str)), "")
    parts = [f"{record['level']} {record.get('logger', '')}: {text}" if "level" in record else text]
    if isinstance(thrown, dict):
        parts.append(f"{thrown.get('class', '')}: {thrown.get('msg', '')}")
    elif isinstance(thrown, str):
        parts.append(thrown)
    return [part.encode(errors="replace") for part in "\n".join(parts).splitlines()]


def _shown(line: bytes) -> str:
    text = "".join(c if c.isprintable() else " " for c in mask(line[: 8 * SHOWN].decode(errors="replace"))).strip()
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


_BY_CODE = {signature.code: signature for signature in SIGNATURES}
