"""A real browser without a window, spoken to in its own protocol (Chrome DevTools)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60.0


def find() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab. What its websockets receive is kept as text: the terminal in the page draws it on a canvas."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._last = socket, 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.received = ""

    async def listen(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            elif told["method"] == "Network.webSocketFrameReceived":
                frame = told["params"]["response"]
                data = frame["payloadData"]
                self.received += base64.b64decode(data).decode(errors="replace") if frame["opcode"] == 2 else data

    async def call(self, method: str, **params: Any) -> Any:
        self._last += 1
        answer = self._answers[self._last] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._last, "method": method, "params": params})
        told = await asyncio.wait_for(answer, SECONDS)
        assert "error" not in told, told
        return told["result"]

    async def evaluate(self, script: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return found["result"].get("value")

    async def open(self, address: str) -> None:
        await self.call("Page.navigate", url=address)
        await self.until(lambda: self.evaluate("document.readyState === 'complete'"))

    async def press(self, key: str, text: str = "", code: int = 0) -> None:
        """A key as the keyboard gives it; with a text where it is one that writes."""
        about = {"key": key, "windowsVirtualKeyCode": code or ord(key.upper()), "text": text}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **about)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    async def click(self, x: int, y: int) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def until(self, what: Any) -> None:
        async with asyncio.timeout(SECONDS):
            while not await what():
                await asyncio.sleep(0.1)

    async def sees(self, text: str) -> None:
        async def there() -> bool:
            return text in self.received

        try:
            await self.until(there)
        except TimeoutError:
            raise AssertionError(f"{text!r} did not come; the last that did: {self.received[-500:]!r}") from None


@asynccontextmanager
async def page(program: str, profile: Path) -> AsyncIterator[Page]:
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command = [program, *flags, "--remote-debugging-port=0", f"--user-data-dir={profile}", "--window-size=1200,800"]
    with (profile.parent / "browser.log").open("wb") as log:
        browser = subprocess.Popen([*command, "about:blank"], stdout=log, stderr=log, start_new_session=True)
    try:
        port = await _port(profile, browser)
        async with aiohttp.ClientSession() as session:
            async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as told:
                address = (await told.json())["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as socket:
                made = Page(socket)
                listening = asyncio.create_task(made.listen())
                await made.call("Page.enable")
                await made.call("Network.enable")
                yield made
                listening.cancel()
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        browser.wait()


async def _port(profile: Path, browser: subprocess.Popen[bytes]) -> int:
    written = profile / "DevToolsActivePort"
    async with asyncio.timeout(SECONDS):
        while not written.exists() or not written.read_text().strip():
            assert browser.poll() is None, (profile.parent / "browser.log").read_text()[-1000:]
            await asyncio.sleep(0.1)
    return int(written.read_text().splitlines()[0])
