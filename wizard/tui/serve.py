"""The same UI in a browser: textual-serve, bound to this machine, for whoever has the token.

textual-serve starts the command anew for each browser tab, and lets anybody in who reaches its port. Here every request
needs the token: it comes once in the address that is printed, and from then on in a cookie that no other site can send.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import secrets
import shlex
import socket
import sys
from typing import Any

from wizard.errors import BadInput

COOKIE = "runbook-token"
# The page of textual-serve asks a font of a third party: that would be told of this page, and without a network the page
# would wait for it. No other page may hold this one in a frame.
_CLOSED = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' data: blob:; connect-src 'self' ws:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


def serve(registry_file: str, host: str, port: int, token: str | None = None) -> None:
    """Serves until it is interrupted."""
    refuse_unless_loopback(host)
    port = port or free_port(host)
    server = _server(registry_file, host, port, token or secrets.token_urlsafe(24))
    refuse_if_taken(host, port)
    print(f"runbook is at {server.public_url}/?token={server.token}", file=sys.stderr, flush=True)
    print("for this machine only; Ctrl+C ends it", file=sys.stderr, flush=True)
    server.serve()


def refuse_unless_loopback(host: str) -> None:
    """Whoever has this screen can reset jobs: it never listens to a network."""
    try:
        addresses = {ipaddress.ip_address(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except (OSError, ValueError):
        raise BadInput(f"--host {host}: no such address; write 127.0.0.1") from None
    if not all(address.is_loopback for address in addresses):
        raise BadInput(f"--host {host} is not this machine alone; write 127.0.0.1, and reach it through ssh -L")


def refuse_if_taken(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BadInput(f"--port {port}: {error.strerror}; give another one") from None


def free_port(host: str) -> int:
    """For `--port 0`: the address that is printed, and is compared with what a browser asks for, has to name it."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def command(registry_file: str) -> str:
    return shlex.join([sys.executable, "-m", "wizard.tui.serve", registry_file])


def _server(registry_file: str, host: str, port: int, token: str) -> Any:
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError:
        raise BadInput("textual-serve is not installed; pip install 'runbook[serve]'") from None

    class Guarded(Server):
        def __init__(self) -> None:
            super().__init__(command(registry_file), host=host, port=port, title="runbook")
            self.token = token

        def initialize_logging(self) -> None:
            """Warnings alone: its log of every request would write the token down."""
            logging.basicConfig(level="WARNING")

        async def on_startup(self, app: web.Application) -> None:
            """Says nothing: its own words name an address that nobody gets in at."""

        async def _make_app(self) -> web.Application:
            app = await super()._make_app()

            async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
                return await self._guard(request, handler)

            async def close_off(request: web.Request, response: web.StreamResponse) -> None:
                response.headers.update(_CLOSED)

            app.middlewares.append(web.middleware(guard))
            app.on_response_prepare.append(close_off)
            return app

        async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
            own = (f"http://{host}:{port}", f"http://localhost:{port}")
            if request.headers.get("Origin", own[0]) not in own or request.host not in (each[7:] for each in own):
                raise web.HTTPForbidden(text="this is not the address runbook serves at")
            if hmac.compare_digest(request.query.get("token", "").encode(), self.token.encode()):
                # To the one address that the page itself names: a cookie of `localhost` is not sent there.
                named = request.host == own[0][7:]
                entered = web.HTTPFound("/" if named else f"{own[0]}/?token={self.token}")
                if named:
                    entered.set_cookie(COOKIE, self.token, httponly=True, samesite="Strict")
                return entered
            if not hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self.token.encode()):
                raise web.HTTPForbidden(text="open the address that `runbook serve` printed, with its token")
            response: web.StreamResponse = await handler(request)
            return response

    return Guarded()


if __name__ == "__main__":
    from wizard.tui.ways_in import open_tui

    sys.exit(open_tui(sys.argv[1]))
