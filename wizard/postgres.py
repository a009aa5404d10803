"""A PostgreSQL table as Spark's JDBC options name it, and one way to ask it that ends in time.

    table = Table.of({"url": "jdbc:postgresql://db:5432/sensors", "dbtable": "gold.hourly", "user": "etl"})
    with session(table) as asked:
        found = resolve(asked, table.identifier)

A session is one transaction. It reads unless it is told to write, and what the database says against it is one line.
"""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from wizard.errors import BadInput, RunbookError
from wizard.secrets import mask

if TYPE_CHECKING:
    from psycopg import Connection

SECONDS = 8.0
"""No question waits longer."""

Name = tuple[str, ...]
"""A table's name, with its schema before it where one is given."""

_URL = re.compile(r"jdbc:postgresql:(?://(?P<hosts>[^/?]*)/)?/?(?P<database>[^?/]*)(?:\?(?P<query>.*))?", re.IGNORECASE)
_LOOPBACK = dict.fromkeys(("127.0.0.1", "::1", "localhost.localdomain"), "localhost")
_PART = re.compile(r'"((?:[^"]|"")+)"|([A-Za-z_][A-Za-z0-9_$]*)')
# pgjdbc's names that libpq has too, in libpq's spelling. Keys and certificates are files of other formats there.
_PASSED = {"user": "user", "password": "password", "sslmode": "sslmode", "sslrootcert": "sslrootcert"}


class TooSlow(RunbookError):
    """The question was not answered in time; the database itself may be well."""


@dataclass(frozen=True)
class Table:
    """Where the output is. Without `batch_column` its rows do not say which batch they came from."""

    identifier: Name
    server: str  # fit to be shown
    connection: dict[str, Any] = field(repr=False)  # holds the password
    batch_column: str | None = None
    query_column: str | None = None
    batch_table: Name | None = None  # query_id, batch_id: what the writer says it has written, batches without rows too

    @property
    def shown(self) -> str:
        return f"{self.server} {dotted(self.identifier)}"

    @property
    def place(self) -> str:
        """The same for every way of writing the same table: one name, one schema, one server."""
        hosts = self.connection["host"].lower().split(",")
        ports = self.connection["port"].split(",")
        at = sorted(f"{_LOOPBACK.get(host, host)}:{port}" for host, port in zip(hosts, ports, strict=True))
        path = self.connection.get("options", "").partition("search_path=")[2].split(",")[0]
        schema, table = ("", *self.identifier)[-2:]
        return f"{','.join(at)}/{self.connection['dbname']}/{dotted((schema or path or 'public', table))}"

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Table:
        """BadInput where the options do not name one table of a PostgreSQL database."""
        told = {name.lower(): value for name, value in options.items()}  # as Spark takes them
        for name in ("url", "dbtable"):
            if not told.get(name):
                raise BadInput(f"the output has no {name} in its options; add it, as Spark is given it")
        connection, server = _server(told)
        tables = told.get("batch_table")
        return cls(
            identifier=table_name(told["dbtable"], "dbtable"),
            server=server,
            connection=connection,
            batch_column=told.get("batch_column") or None,
            query_column=told.get("query_column") or None,
            batch_table=table_name(tables, "batch_table") if tables else None,
        )


def is_postgres(options: Mapping[str, str]) -> bool:
    """Whether this is a database that can be looked into at all."""
    urls = [value for name, value in options.items() if name.lower() == "url"]
    return bool(urls) and urls[0].lower().startswith("jdbc:postgresql:")


def table_name(text: str, what: str) -> Name:
    """As PostgreSQL reads it: unquoted names are lower case, quoted ones as they are written."""
    parts, rest = [], text.strip()
    while found := _PART.match(rest):
        parts.append(found[1].replace('""', '"') if found[1] else found[2].lower())
        rest = rest[found.end() :].lstrip()
        if not rest.startswith("."):
            break
        rest = rest[1:].lstrip()
    if rest or not 1 <= len(parts) <= 2:
        raise BadInput(f"{what} must name one table, such as gold.hourly, and not a query or another database")
    return tuple(parts)


def dotted(name: Name) -> str:
    """As it would be typed."""
    return ".".join(
        part if re.fullmatch(r"[a-z_][a-z0-9_$]*", part) else '"' + part.replace('"', '""') + '"' for part in name
    )


def table_place(options: Mapping[str, str]) -> str | None:
    """Which table a job writes, to be compared with another's; None where that is no table of PostgreSQL."""
    try:
        return Table.of(options).place if is_postgres(options) else None
    except BadInput:
        return None


@contextmanager
def session(table: Table, *, seconds: float | None = SECONDS, write: bool = False) -> Iterator[Connection[Any]]:
    """One transaction, kept when the block ends well. `seconds` limits each statement; None lets it take its time."""
    psycopg = _psycopg()
    try:
        connection = psycopg.connect(**table.connection, connect_timeout=int(SECONDS / 2), application_name="runbook")
    except psycopg.Error as error:
        raise RunbookError(f"the database {table.server} does not answer: {_words(error)}") from None
    levels = psycopg.IsolationLevel
    connection.read_only = not write
    connection.isolation_level = levels.READ_COMMITTED if write else levels.REPEATABLE_READ
    # The server's own limit is of no use where the server hangs.
    gave_up = threading.Event()
    line = socket.socket(
        fileno=os.dup(connection.fileno())
    )  # of our own: the number of a closed one is given away again
    watch = threading.Timer(seconds + 0.5, _hang_up, (line, gave_up)) if seconds else None
    try:
        with connection:
            if watch is not None:
                watch.daemon = True
                watch.start()
            connection.execute(
                "SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true)",
                (str(int((seconds or 0) * 1000)), str(int(SECONDS * 1000))),
            )
            yield connection
    except psycopg.errors.LockNotAvailable:
        raise RunbookError(
            f"{table.shown} is locked by somebody else and was not free within {SECONDS:g} s; see pg_stat_activity"
        ) from None
    except psycopg.errors.QueryCanceled:
        raise TooSlow(f"{table.shown} did not answer within {seconds or 0:g} s") from None
    except psycopg.Error as error:
        if gave_up.is_set():
            raise TooSlow(f"{table.shown} did not answer within {seconds:g} s") from None
        raise RunbookError(f"{table.shown}: {_words(error)}") from None
    finally:
        if watch is not None:
            watch.cancel()
        line.close()


@dataclass(frozen=True)
class Found:
    """A table that is there."""

    oid: int
    schema: str
    name: str
    owner: str

    @property
    def identifier(self) -> Name:
        return self.schema, self.name


def resolve(asked: Connection[Any], name: Name) -> Found | None:
    """The table of that name, found as the database finds it; None where there is none."""
    row = asked.execute(
        "SELECT c.oid, n.nspname, c.relname, pg_get_userbyid(c.relowner) FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
        (quoted(name).as_string(asked),),
    ).fetchone()
    return Found(*row) if row else None


def columns(asked: Connection[Any], found: Found) -> dict[str, str]:
    """Name → type, in the table's order; a column that is computed from others is left out."""
    rows = asked.execute(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
        (found.oid,),
    )
    return dict(rows.fetchall())


def quoted(name: Name | str) -> Any:
    """An identifier that no name can break out of."""
    from psycopg.sql import Identifier

    return Identifier(*([name] if isinstance(name, str) else name))


def count(table: Table) -> int | None:
    """How many rows; None where that takes too long to be counted."""
    from psycopg.sql import SQL

    try:
        with session(table) as asked:
            row = asked.execute(SQL("SELECT count(*) FROM {}").format(quoted(table.identifier))).fetchone()
    except TooSlow:
        return None
    return int(row[0]) if row else None


def _server(told: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """What libpq needs, from Spark's options and the URL in them; and the URL as it may be shown."""
    parsed = _URL.fullmatch(told["url"].strip())
    if parsed is None:
        raise BadInput("only jdbc:postgresql://HOST:PORT/DATABASE can be looked into; the url of the output is another")
    asked = dict(parse_qsl(parsed["query"] or "", keep_blank_values=True))
    hosts = [each.rpartition("@")[2] for each in (parsed["hosts"] or "localhost").split(",")]
    places = [re.fullmatch(r"(\[[^\]]+\]|[^:]*)(?::(\d+))?", host) for host in hosts]
    if not all(places):
        raise BadInput("the url of the output names no host; write jdbc:postgresql://HOST:PORT/DATABASE")
    user = asked.get("user") or told.get("user")
    connection: dict[str, Any] = {
        "host": ",".join(place[1].strip("[]") or "localhost" for place in places if place),
        "port": ",".join(place[2] or "5432" for place in places if place),
        "dbname": unquote(parsed["database"]) or user or "",
    }
    for theirs, ours in _PASSED.items():
        if value := asked.get(theirs) or told.get(theirs):
            connection[ours] = value
    if asked.get("ssl", told.get("ssl", "false")).lower() in ("", "true") and "sslmode" not in connection:
        connection["sslmode"] = "verify-full"  # what pgjdbc makes of it
    if schema := asked.get("currentSchema") or told.get("currentschema"):
        connection["options"] = f"-c search_path={schema.replace(' ', '')}"
    return connection, f"jdbc:postgresql://{','.join(hosts)}/{parsed['database']}"


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise BadInput("looking into PostgreSQL needs psycopg; pip install 'runbook[sql]'") from None
    return psycopg


def _hang_up(line: socket.socket, gave_up: threading.Event) -> None:
    gave_up.set()
    with suppress(OSError):  # the other end was quicker
        line.shutdown(socket.SHUT_RDWR)


def _words(error: Exception) -> str:
    return mask(" ".join(str(error).split()))[:300]
