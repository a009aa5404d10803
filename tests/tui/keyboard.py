"""Walks in the TUI with nothing but keys, as an operator does."""

from __future__ import annotations

import asyncio
import atexit
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from wizard.jobs.registry import load_registry
from wizard.tui.app import RunbookApp
from wizard.tui.background import Lookout
from wizard.tui.screens.walk import WalkScreen
from wizard.tui.widgets.ended import Ended
from wizard.tui.widgets.prompt import Choices, Confirm

PATIENCE = 20.0
MOST_ANSWERS = 40  # to one walk; an answer of `again` can be given for ever
# One for all tests: what it has loaded is loaded once.
LOOKOUT = Lookout()
atexit.register(LOOKOUT.close)


class Hands:
    def __init__(self, app: RunbookApp, pilot: Pilot[Any]) -> None:
        self.app, self.pilot = app, pilot
        self.seconds = 30.0  # the longest that anything may take

    @property
    def walk(self) -> WalkScreen:
        assert self.app.walk_screen is not None
        return self.app.walk_screen

    async def until(self, what: Callable[[], Any]) -> None:
        deadline = time.monotonic() + self.seconds
        while not what():
            assert time.monotonic() < deadline, f"still waiting; this is seen: {self.seen()}"
            await self.pilot.pause(0.02)

    def prompt(self) -> Choices | Confirm | None:
        found = list(self.walk.query("Choices, Confirm"))
        return found[0] if found and self.walk.waiting and not found[0].deaf else None  # type: ignore[return-value]

    def listening(self) -> bool:
        """Whether the end is there and takes a key."""
        return any(not end.deaf for end in self.walk.query(Ended))

    async def asked(self) -> Choices | Confirm | None:
        """The next prompt that listens, or None at the end of the walk."""
        await self.until(lambda: self.prompt() is not None or (self.walk.over and self.listening()))
        await self.pilot.pause(0.1)  # until it is drawn
        return self.prompt()

    async def answer(self, given: Any) -> None:
        prompt = self.prompt()
        assert isinstance(prompt, Choices)
        option, typed = (given, "") if isinstance(given, str) else (given["option"], given.get("typed", ""))
        if isinstance(given, dict) and "value" in given:
            import json

            typed = json.dumps(given["value"])
        names = [each.name for each in prompt.question.step.options]
        await self.pilot.press(str(names.index(option) + 1), "enter")
        if typed:
            await self.pilot.press(*_keys(typed), "enter")
        await self.until(lambda: self.prompt() is not prompt)

    async def confirm(self) -> None:
        """Types the phrase, then presses the button it has freed."""
        prompt = self.prompt()
        assert isinstance(prompt, Confirm)
        await self.pilot.press("shift+tab", *_keys(prompt.asked.phrase), "enter")
        await self.until(lambda: not prompt.deaf)
        await self.pilot.press("enter")
        await self.until(lambda: self.prompt() is not prompt)

    async def to_the_end(self, answers: dict[str, Any]) -> None:
        answered = 0
        while (prompt := await self.asked()) is not None:
            answered += 1
            assert answered < MOST_ANSWERS, f"it goes round in a circle; this is seen: {self.seen()}"
            if isinstance(prompt, Confirm):
                await self.confirm()
            else:
                await self.answer(answers[prompt.question.step.name])

    async def to_confirmation(self, answers: dict[str, Any], step: str) -> Confirm:
        """Walks on, confirming, until this step asks to be confirmed."""
        while (prompt := await self.asked()) is not None:
            if isinstance(prompt, Confirm):
                if prompt.asked.step.name == step:
                    return prompt
                await self.confirm()
            else:
                await self.answer(answers[prompt.question.step.name])
        raise AssertionError(f"the walk ended before {step}: {self.seen()}")

    def seen(self) -> str:
        """All the text on the screen."""
        return screen_text(self.app)


def screen_text(app: RunbookApp) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def _keys(text: str) -> list[str]:
    names = {" ": "space", "-": "minus", "_": "underscore", ",": "comma", ":": "colon", '"': "quotation_mark",
             "{": "left_curly_bracket", "}": "right_curly_bracket", "[": "left_square_bracket",
             "]": "right_square_bracket", ".": "full_stop"}  # fmt: skip
    return [names.get(each, each) for each in text]


@asynccontextmanager
async def at(jobs: str, first: Callable[[RunbookApp], Any], size: tuple[int, int] = (80, 24)) -> AsyncIterator[Hands]:
    app = RunbookApp(load_registry(jobs), first, patience=PATIENCE, lookout=LOOKOUT)
    async with app.run_test(size=size) as pilot:
        yield Hands(app, pilot)
    if app.walker is not None:
        app.walker.leave()
        await asyncio.to_thread(app.walker.join)
