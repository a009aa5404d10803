"""`kind: spark-rest`: on a real driver, and on servers that misbehave as no driver should."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from wizard.jobs.control.interface import NotSupported
from wizard.jobs.control.spark_rest import SparkRestController
from wizard.jobs.model import SparkRestControl


def asks(url: str, checkpoint: str = "/nowhere", timeout: float = 5, **wanted: str) -> SparkRestController:
    control = SparkRestControl(url, **(wanted or {"query_name": "hourly"}))  # type: ignore[arg-type]
    return SparkRestController("clean", control, checkpoint, Path("/"), timeout)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(body: bytes = b"", code: int = 200, drip: float = 0, length: int | None = None) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            try:
                for start in range(0, len(body), 1 if drip else max(len(body), 1)):
                    self.wfile.write(body[start : start + 1] if drip else body)
                    time.sleep(drip)
            except (BrokenPipeError, ConnectionResetError):
                return  # the reader had enough

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def page(active: str = "", completed: str = "", title: str = "app - Streaming Query") -> bytes:
    return f"<html><head><title>{title}</title></head><body>{active}{completed}</body></html>".encode()


def table(kind: str, *rows: tuple[str, str, str], count: int | None = None) -> str:
    cells = "".join(f"<tr><td>{n}</td><td>{s}</td><td>{i}</td><td><a>run</a></td></tr>" for n, s, i in rows)
    number = len(rows) if count is None else count
    return f"<h5><a>{kind.capitalize()} Streaming Queries ({number})</a></h5><table id='{kind}-table'>{cells}</table>"


def test_nobody_there_is_unknown() -> None:
    status = asks(f"http://127.0.0.1:{free_port()}").status()
    assert status.state == "unknown"
    assert status.says.endswith(": Connection refused")
    assert asks("http://no-such-host.invalid:4040").status().state == "unknown"
    assert asks("http://127.0.0.1:99999999").status().state == "unknown"


@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        (b"no", 404, "answered 404 Not Found"),
        (b"no", 500, "answered 500 Internal Server Error"),
        (b"", 200, "the answer is no whole page"),
        (b'{"not": "a page"}', 200, "the answer is no whole page"),
        (b"\xff\xfe\x00", 200, "the answer is no whole page"),
        (page(table("completed", ("hourly", "FINISHED", "i")))[:-1], 200, "the answer is no whole page"),
        # What a driver answers to a path it does not know: its jobs, with code 200.
        (page(title="app - Spark Jobs"), 200, "there is no tab Structured Streaming"),
        (page(table("active", ("hourly", "RUNNING", "i"), count=2)), 200, "has a form that is not known here"),
        (page("<h5>Active Streaming Queries (1)</h5>"), 200, "has a form that is not known here"),
        (page(table("active", ("other", "RUNNING", "i"))), 200, "knows no query hourly; is it the right one?"),
        (page(), 200, "knows no query hourly; is it the right one?"),
    ],
)
def test_an_answer_that_is_not_about_our_query_is_unknown(body: bytes, code: int, told: str) -> None:
    with serving(body, code) as url:
        status = asks(url).status()
    assert status.state == "unknown"
    assert told in status.says


def test_a_server_that_is_too_slow_is_unknown_in_time() -> None:
    began = time.monotonic()
    with serving(page(table("active", ("hourly", "RUNNING", "i"))), drip=0.05) as url:
        status = asks(url, timeout=0.4).status()
    assert (status.state, status.says) == ("unknown", f"{url}: no answer in 0.4 s")
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        assert (
            asks(f"http://127.0.0.1:{mute.getsockname()[1]}", timeout=0.3).status().says.endswith("no answer in 0.3 s")
        )
    assert time.monotonic() - began < 10


def test_a_page_cut_short_is_unknown() -> None:
    whole = page(table("active"), table("completed", ("hourly", "FINISHED", "i")))
    with serving(whole, length=len(whole) + 100) as url:
        assert asks(url).status().says == f"{url}: the answer was cut short"


def test_a_query_that_runs_again_is_running_though_it_also_ended_once() -> None:
    with serving(
        page(table("active", ("hourly", "RUNNING", "i")), table("completed", ("hourly", "FAILED", "i")))
    ) as url:
        assert asks(url).status().state == "running"


def test_the_id_in_the_checkpoint_is_the_jobs_query_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"of-the-checkpoint"}')
    with serving(page(table("active", ("renamed", "RUNNING", "of-the-checkpoint")))) as url:
        assert asks(url, str(tmp_path)).status().state == "running"
        assert asks(url).status().state == "unknown"


def test_a_proxy_of_the_environment_is_not_asked_about_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with serving(page(table("active", ("hourly", "RUNNING", "i")))) as url:
        assert asks(url).status().state == "running"
        assert asks(url.replace("127.0.0.1", "localhost")).status().state == "running"


def test_a_password_in_the_address_is_shown_nowhere() -> None:
    status = asks(f"http://etl:hunter2@127.0.0.1:{free_port()}").status()
    assert "hunter2" not in status.says + json.dumps(status.evidence)


def test_what_the_api_cannot_do_is_said_and_not_tried() -> None:
    with serving(page(table("active", ("hourly", "RUNNING", "i")))) as url:
        with pytest.raises(NotSupported, match="a driver's REST API cannot start clean; start it by hand, or add"):
            asks(url).start()
        with pytest.raises(NotSupported, match="a driver's REST API cannot stop clean; stop it by hand, or use"):
            asks(url).stop()


DRIVER = """
import sys
from pyspark.sql import SparkSession
port, root = sys.argv[1:]
spark = (SparkSession.Builder().master("local[1]").config("spark.ui.port", port).config("spark.driver.host", "127.0.0.1")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.showConsoleProgress", "false").getOrCreate())
spark.sparkContext.setLogLevel("OFF")
rows = spark.readStream.format("rate").load()
idle = spark.readStream.schema("a int").json(root + "/empty")
def start(frame, name):
    return frame.writeStream.format("noop").queryName(name).option("checkpointLocation", f"{root}/{name}").start()
input()
queries = {"idle": start(idle, "idle"), "busy": start(rows, "busy"),
           "broken": start(rows.selectExpr("raise_error('boom') as x"), "broken")}
print({name: query.id for name, query in queries.items()}, flush=True)
input()
queries["busy"].stop(); queries["idle"].stop()
print("stopped", flush=True)
input()
"""


@pytest.mark.spark
def test_a_real_driver_tells_running_from_stopped_and_a_dead_one_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    def state(name: str) -> str:
        return asks(url, query_name=name).status().state

    def settled(name: str, wanted: str) -> str:
        """The UI hears of a query's end through Spark's listener bus, a moment later."""
        deadline = time.monotonic() + 15
        while (seen := state(name)) != wanted and time.monotonic() < deadline:
            time.sleep(0.1)
        return seen

    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(port), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert driver.stdin and driver.stdout
        deadline = time.monotonic() + 120
        # Until it is up it refuses, then says in a line of text that it is starting.
        while "no tab Structured Streaming" not in (status := asks(url).status()).says:
            assert (status.state, time.monotonic() < deadline) == ("unknown", True)
            time.sleep(0.1)
        driver.stdin.write("\n")
        driver.stdin.flush()
        ids: dict[str, str] = json.loads(driver.stdout.readline().replace("'", '"'))
        assert settled("busy", "running") == "running"
        assert settled("idle", "running") == "running"
        assert settled("broken", "stopped") == "stopped"
        assert state("never-heard-of") == "unknown"
        assert asks(url, query_id=ids["busy"]).status().evidence["name"] == "busy"
        assert asks(url, str(tmp_path / "idle"), query_name="x").status().evidence["id"] == ids["idle"]
        assert asks(url, query_name="broken").status().evidence["status"] == "FAILED"
        driver.stdin.write("\n")
        driver.stdin.flush()
        assert driver.stdout.readline() == "stopped\n"
        assert [settled(name, "stopped") for name in ("busy", "idle")] == ["stopped", "stopped"]
        driver.communicate("", timeout=60)
        assert [state(name) for name in ("busy", "idle", "broken")] == ["unknown"] * 3
    finally:
        driver.kill()
        driver.communicate()
