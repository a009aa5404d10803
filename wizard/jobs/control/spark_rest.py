"""`kind: spark-rest`: asks a live driver's UI whether the query is active.

Spark's REST API proper has nothing on Structured Streaming (seen on 4.2.0: `/streaming/…` is for DStreams, `/sql` lists
batches, of which an idle query has none), so the page of the tab Structured Streaming is read: `/StreamingQuery/`, whose
tables of active and completed queries were seen on 4.2.0 alone; any other form is unknown. A driver without that page
answers any path with its list of jobs and code 200; hence the title is looked at, and the rows are counted.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

from wizard.errors import RunbookError
from wizard.jobs.control.command import run_to_success
from wizard.jobs.control.interface import Controller, NotSupported, Say, Status, one_line, silent
from wizard.jobs.model import SparkRestControl
from wizard.store import open_store

TIMEOUT_SECONDS = 10.0
_LIMIT = 20_000_000
_METADATA_LIMIT = 100_000
# A page holds 100 rows unless told.
_PAGE = "/StreamingQuery/?active.pageSize=100000&completed.pageSize=100000"
_HEADINGS = {"active": "Active Streaming Queries", "completed": "Completed Streaming Queries"}


@dataclass(frozen=True)
class Query:
    active: bool
    name: str
    status: str
    id: str
    run_id: str


class SparkRestController(Controller):
    def __init__(
        self, job: str, control: SparkRestControl, checkpoint: str, cwd: Path, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self.job = job
        self.control = control
        self.checkpoint = checkpoint
        self.cwd = cwd
        self.timeout = timeout

    def status(self) -> Status:
        url = self.control.url.rstrip("/") + _PAGE
        evidence = {"url": one_line(self.control.url), "wanted": self._wanted()}
        try:
            queries = parse(fetch(url, self.timeout))
        except (OSError, http.client.HTTPException, ValueError) as error:
            # Unreachable is not stopped: the driver may be busy, moved to the next port, or behind a broken network.
            return Status("unknown", f"{one_line(self.control.url)}: {_reason(error, self.timeout)}", evidence)
        ids = {self.control.query_id, self._checkpoint_id()} - {None}
        found = [query for query in queries if query.id in ids or (query.name == self.control.query_name is not None)]
        # One that was started again is in both tables.
        newest = next(iter(sorted(found, key=lambda query: not query.active)), None)
        if newest is None:
            says = f"the driver at {one_line(self.control.url)} knows no query {self._wanted()}; is it the right one?"
            return Status("unknown", says, evidence)
        evidence |= {"name": newest.name, "id": newest.id, "run_id": newest.run_id, "status": newest.status}
        says = f"the driver says that query {newest.name or newest.id} is {newest.status}"
        return Status("running" if newest.active else "stopped", says, evidence)

    def start(self) -> None:
        if not self.control.start:
            raise NotSupported(f"a driver's REST API cannot start {self.job}; start it by hand, or add control.start")
        self.refuse_unless_stopped(self.job)
        run_to_success(self.job, "control.start", self.control.start, self.cwd, self.control.stop_timeout)

    def stop(self, timeout: float | None = None, say: Say = silent) -> None:
        if self.status().state != "stopped":
            raise NotSupported(
                f"a driver's REST API cannot stop {self.job}; stop it by hand, or use control of kind command"
            )

    def _wanted(self) -> str:
        return one_line(" or ".join(filter(None, (self.control.query_name, self.control.query_id))))

    def _checkpoint_id(self) -> str | None:
        """A query that runs on this checkpoint is the job's, whatever its name."""
        try:
            content = open_store(self.checkpoint).read("metadata", _METADATA_LIMIT)
            metadata = json.loads(content.data) if content.readable else None
        except (RunbookError, ValueError):
            return None
        found = metadata.get("id") if isinstance(metadata, dict) else None
        return found if isinstance(found, str) else None


def fetch(url: str, timeout: float) -> str:
    """The page. `timeout` is for all of it: a server that sends a byte now and then is too slow as well."""
    deadline = time.monotonic() + timeout
    # A proxy could not reach this machine's loopback; one that is set for everything else is left to apply.
    handlers = [urllib.request.ProxyHandler({})] if _is_loopback(urlsplit(url).hostname or "") else []
    with urllib.request.build_opener(*handlers).open(url, timeout=timeout) as answer:
        page = bytearray()
        while chunk := answer.read1(65536):
            page += chunk
            if time.monotonic() > deadline:
                raise TimeoutError
            if len(page) > _LIMIT:
                raise ValueError("the answer is too large")
        if answer.length:  # read1 does not mind
            raise ValueError("the answer was cut short")
    return page.decode("utf-8", "replace")


def parse(page: str) -> list[Query]:
    """The queries on the page; ValueError when it is not that page, or not all of it."""
    if not page.rstrip().endswith("</html>"):
        raise ValueError("the answer is no whole page")
    reader = _Tables()
    reader.feed(page)
    if not re.search(r"Streaming Query\s*\Z", reader.title):
        raise ValueError("there is no tab Structured Streaming; no query was started there, or its UI is off")
    return [query for kind in _HEADINGS for query in _queries(reader, kind)]


def _queries(reader: _Tables, kind: str) -> Iterator[Query]:
    rows = [row for row in reader.tables.get(f"{kind}-table", []) if row]
    told = re.search(rf"{_HEADINGS[kind]} \((\d+)\)", reader.text)
    if len(rows) != (int(told[1]) if told else 0) or any(len(row) < 4 for row in rows):
        raise ValueError("the tab Structured Streaming has a form that is not known here")
    for name, status, query_id, run_id, *_ in rows:
        yield Query(kind == "active", name, status, query_id, run_id)


class _Tables(HTMLParser):
    """The title, the text of the page, and the cells of each table that has an id."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.text = ""
        self.tables: dict[str, list[list[str]]] = {}
        self._table: str | None = None
        self._in: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._table = dict(attrs).get("id") or ""
            self.tables.setdefault(self._table, [])
        elif self._table is not None and tag == "tr":
            self.tables[self._table].append([])
        elif self._table is not None and tag == "td" and self.tables[self._table]:
            self.tables[self._table][-1].append("")
        if tag in ("title", "td", "h5"):
            self._in = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._table = None
        if tag == self._in:
            self._in = None

    def handle_data(self, data: str) -> None:
        if self._in == "title":
            self.title += data
        elif self._in == "h5":
            self.text += data
        elif self._in == "td" and self._table is not None and self.tables[self._table][-1:]:
            row = self.tables[self._table][-1]
            row[-1] = (row[-1] + data).strip()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _reason(error: Exception, timeout: float) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"answered {error.code} {one_line(str(error.reason))}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no answer in {timeout:g} s"
    if isinstance(cause, socket.gaierror):
        return "no such host"
    if isinstance(cause, OSError) and cause.strerror:
        return one_line(cause.strerror)
    return one_line(str(cause)) or type(error).__name__
