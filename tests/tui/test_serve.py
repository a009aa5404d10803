"""`runbook serve` listens to this machine alone, and a real browser gets in with the token and not without."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import browser
import pytest
from server import cannot
from stand import JOB, Stand

from wizard.errors import BadInput
from wizard.tui.serve import refuse_if_taken, refuse_unless_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_an_address_that_others_can_reach_is_refused(host: str) -> None:
    with pytest.raises(BadInput, match=r"127\.0\.0\.1"):
        refuse_unless_loopback(host)


def test_this_machine_is_not_refused() -> None:
    refuse_unless_loopback("127.0.0.1")


def test_a_port_that_is_taken_is_told_in_a_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadInput, match="another one"):
            refuse_if_taken("127.0.0.1", taken.getsockname()[1])


REFUSED = """new Promise(done => {
  document.addEventListener("securitypolicyviolation", event => done(event.effectiveDirective));
  const link = document.createElement("link");
  link.rel = "stylesheet"; link.href = "https://elsewhere.example/x.css";
  document.head.append(link);
})"""


@contextmanager
def served(stand: Stand) -> Iterator[tuple[str, list[str]]]:
    """The address with the token that the command printed, and in the end all else that it said."""
    command = [Path(sys.executable).with_name("runbook"), "serve", "--port", "0", "--jobs", stand.jobs]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    said: list[str] = []
    try:
        found = re.search(r"http://\S+", server.stderr.readline())
        assert found is not None
        yield found.group(), said
    finally:
        server.terminate()
        said += server.communicate(timeout=20)


async def refused(address: str, **headers: str) -> bool:
    async with aiohttp.ClientSession() as session:
        for _ in range(100):
            try:
                async with session.get(address, headers=headers, allow_redirects=False) as told:
                    return told.status == 403
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)  # the address is printed a moment before it answers
    raise AssertionError(f"nobody answers at {address}")


def test_who_has_no_token_or_comes_from_elsewhere_is_refused(stand: Stand) -> None:
    with served(stand) as (address, _):
        home = address.partition("?")[0]

        async def go() -> None:
            assert await refused(home) and await refused(f"{home}ws") and await refused(f"{home}?token=guess")
            assert await refused(address, Origin="http://elsewhere.example")
            assert await refused(address, Host="elsewhere.example")
            assert not await refused(address)
            assert await refused(f"{home}static/js/textual.js") and await refused(f"{home}nothing/here")
            async with (
                aiohttp.ClientSession() as session,
                session.get(address.replace("127.0.0.1", "localhost"), allow_redirects=False) as told,
            ):
                # What the page fetches is at the other name, for which a cookie of this one is not sent.
                assert told.headers["Location"] == address and "Set-Cookie" not in told.headers
                assert told.headers["Content-Security-Policy"].startswith("default-src 'self' ")

        asyncio.run(go())


def test_a_browser_shows_the_fleet_and_takes_keys_and_without_the_token_shows_nothing(
    stand: Stand, tmp_path: Path
) -> None:
    program = browser.find()
    if program is None:
        cannot("no browser is installed; on Debian: apt install chromium")
    assert program is not None
    (tmp_path / "profile").mkdir()

    async def go(address: str) -> None:
        async with browser.page(program, tmp_path / "profile") as page:
            assert not await refused(address)  # until it answers
            await page.open(address.partition("?")[0])
            assert "with its token" in str(await page.evaluate("document.body.innerText"))
            assert page.received == ""
            await page.open(address)
            await page.sees("LOOKING")
            await page.sees(JOB)
            assert await page.evaluate(REFUSED) == "style-src-elem"  # what is not from here is not fetched
            assert "token" not in str(await page.evaluate("location.href"))  # not in the history of the browser either
            await page.click(600, 400)  # into the terminal, below the rows
            await page.press("/", "/")
            for letter in "zzz":
                await page.press(letter, letter)
            await page.sees("no job matches")
            page.received = ""
            await page.press("Escape", code=27)
            await page.sees(JOB)
            await asyncio.sleep(0.3)  # an Escape and what follows at once are one key to a terminal
            await page.press("Enter", "\r", code=13)
            await page.sees(f"job {JOB}")
            await page.sees("resume")

    with served(stand) as (address, said):
        asyncio.run(go(address))
    token = address.partition("=")[2]
    assert token and token not in "".join(said)
    deadline = time.monotonic() + 20
    while left := [path for path in Path("/proc").glob("[0-9]*/cmdline") if stand.jobs.encode() in _read(path)]:
        assert time.monotonic() < deadline, left  # the UI of a tab ends with it
        time.sleep(0.1)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
