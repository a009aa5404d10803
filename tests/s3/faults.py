"""An HTTP proxy in front of the S3 server that makes it slow, silent or rude, request by request.

    with Faults(server.port) as proxy:
        proxy.fail(3)                                   # the next three requests are answered 503 SlowDown
        proxy.fail(5, when=b"x-amz-copy-source")        # the next five copies
        proxy.hang()                                    # every request from now on is taken and never answered
        proxy.cut(1, after=True)                        # carried out, but the connection is cut before the answer

One thread a connection; bytes are passed on as they are, so signatures stay good: the Host header is the proxy's own on
both sides.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from collections import Counter
from typing import Any

_SLOW = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
_ERROR = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"


class Faults:
    def __init__(self, port: int) -> None:
        self._behind = port
        self._lock = threading.Lock()
        self._rules: list[dict[str, Any]] = []
        self._release = threading.Event()
        self.seen: Counter[str] = Counter()  # by method
        self.lines: list[str] = []
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 256

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Faults:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.heal()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fail(self, times: int, when: bytes = b"", status: int = 503, skip: int = 0) -> None:
        """Answers itself; the server does not hear of it."""
        self._add(kind="fail", times=times, when=when, status=status, skip=skip)

    def hang(self, times: int = 1 << 30, when: bytes = b"", skip: int = 0) -> None:
        self._add(kind="hang", times=times, when=when, skip=skip)

    def cut(self, times: int, when: bytes = b"", after: bool = False, skip: int = 0) -> None:
        self._add(kind="cut after" if after else "cut", times=times, when=when, skip=skip)

    def heal(self) -> None:
        """Everything is passed on again; what hangs is let go, unanswered."""
        with self._lock:
            self._rules.clear()
        self._release.set()
        self._release = threading.Event()

    def _add(self, **rule: Any) -> None:
        with self._lock:
            self._rules.append(rule)

    def _rule_for(self, head: bytes) -> dict[str, Any]:
        with self._lock:
            line = head.partition(b"\r\n")[0].decode("latin-1")
            self.seen[line.partition(" ")[0]] += 1
            self.lines.append(line)
            for rule in self._rules:
                if rule["times"] <= 0 or rule["when"].lower() not in head.lower():
                    continue
                if rule["skip"] > 0:
                    rule["skip"] -= 1
                    continue
                rule["times"] -= 1
                return dict(rule)
        return {"kind": "pass"}

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._behind)) as server:
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            there, here = client.makefile("rb"), server.makefile("rb")
            while (head := _head(there)) is not None:
                if b"expect: 100-continue" in head.lower():
                    client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:"))
                body = _body(there, head)
                rule = self._rule_for(head)
                if rule["kind"] == "cut":
                    return
                if rule["kind"] == "hang":
                    self._release.wait(600)
                    return
                if rule["kind"] == "fail":
                    said = _SLOW if rule["status"] == 503 else _ERROR
                    if head.startswith(b"HEAD"):
                        said = b""
                    client.sendall(
                        b"HTTP/1.1 %d No\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n%b"
                        % (rule["status"], len(said), said)
                    )
                    continue
                server.sendall(head + body)
                answer = _head(here)
                if answer is None:
                    return
                bytes_ = b"" if head.startswith(b"HEAD") or b" 204 " in answer[:16] else _body(here, answer)
                if rule["kind"] == "cut after":
                    return
                client.sendall(answer + bytes_)


def _head(stream: Any) -> bytes | None:
    lines = []
    try:
        while (line := stream.readline()) not in (b"\r\n", b""):
            lines.append(line)
    except OSError:
        return None
    return b"".join([*lines, b"\r\n"]) if lines and line else None


def _body(stream: Any, head: bytes) -> bytes:
    """As it was sent, chunks and all."""
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        parts = []
        while True:
            size = stream.readline()
            chunk = stream.read(int(size.partition(b";")[0], 16) + 2)
            parts += [size, chunk]
            if chunk == b"\r\n":
                return b"".join(parts)
    return bytes(stream.read(int(fields.get(b"content-length", 0))))
