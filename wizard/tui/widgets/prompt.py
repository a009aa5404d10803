"""What the operator is asked: choices, a value to type, or a destructive step to confirm.

Nothing irreversible by accident: a prompt takes no key for its first moment, nor one that is held down; the safe choice
has the focus, and Enter in the field of a confirmation only moves on to the button that is now free to be pressed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option as Line

from wizard.tui.words import Part, says

if TYPE_CHECKING:
    from wizard.engine.operator import Confirmation, Question
    from wizard.runbook.model import Option

# A key that is held down comes again after 0.25 to 0.66 s, and then at least ten times a second: the moment is longer
# than the first of that, and begins anew with every key of the second.
DEAF_SECONDS = 0.7
_HELD_SECONDS = 0.15


class Answered(Message):
    """`given` is a Choice, or for a confirmation a bool."""

    def __init__(self, given: object) -> None:
        super().__init__()
        self.given = given


class Prompt(Vertical):
    def __init__(self) -> None:
        super().__init__(classes="prompt")
        self._listens_at = float("inf")
        self._heard_at = 0.0

    def on_mount(self) -> None:
        self.call_after_refresh(self.turn_deaf)  # a busy machine may draw it long after it was made

    def turn_deaf(self) -> None:
        self._heard_at = time.monotonic()
        self._listens_at = self._heard_at + DEAF_SECONDS

    @property
    def deaf(self) -> bool:
        return time.monotonic() < self._listens_at

    def listens(self) -> bool:
        """Whether an Enter that has come just now counts: one meant for the screen before must not answer this one."""
        if not self.deaf:
            return True
        before, self._heard_at = self._heard_at, time.monotonic()
        if self._heard_at - before < _HELD_SECONDS and self._listens_at != float("inf"):
            self._listens_at = self._heard_at + DEAF_SECONDS
        return False


class Choices(Prompt):
    """A question as a list. What was seen suggests an answer or nothing is marked; Enter without a mark does nothing."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question
        self._typing: Option | None = None

    def compose(self) -> ComposeResult:
        question = self.question
        if question.complaint:
            yield Static(says(("! ", "bold $text-error"), (question.complaint, "$text-error")), classes="complaint")
        yield Static(says(("? ", "bold $text-accent"), (question.step.question, "bold")), classes="question")
        evidence = " ".join(question.evidence)
        if question.suggested and evidence:
            yield Static(says((f"seen: {evidence}", "dim")), classes="seen")
        yield OptionList(*(Line(self._line(number, each)) for number, each in enumerate(question.step.options, 1)))
        with Vertical(classes="typed"):
            yield Static("", classes="typed-label")
            yield Input(classes="typed-value")

    def _line(self, number: int, option: Option) -> Content:
        parts: list[Part] = [(f"{number} ", "dim"), (option.name, "bold"), f": {option.say}"]
        if option.name == self.question.suggested:
            parts.append((" ← what was seen suggests this", "$text-success"))
        elif option.waives:
            parts.append((" (must be typed out)", "$text-warning"))
        return says(*parts)

    def on_mount(self) -> None:
        self.query_one(".typed").display = False
        choices = self.query_one(OptionList)
        names = [option.name for option in self.question.step.options]
        choices.highlighted = names.index(self.question.suggested) if self.question.suggested in names else None
        choices.focus()

    def on_key(self, event: events.Key) -> None:
        if event.key.isdecimal() and self._typing is None and not self.deaf:
            number = int(event.key)
            if 0 < number <= len(self.question.step.options):
                self.query_one(OptionList).highlighted = number - 1
                event.stop()
        elif event.key == "escape" and self._typing is not None:
            self._typing = None
            self.remove_class("-typing")
            self.query_one(".typed").display = False
            self.query_one(OptionList).focus()
            event.stop()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if not self.listens():
            return
        option = self.question.step.options[event.option_index]
        if option.waives or option.gives:
            self._ask_for(option)
        else:
            self._answer(option, "")

    def _ask_for(self, option: Option) -> None:
        self._typing = option
        self.add_class("-typing")
        if option.waives:
            label = says("Type this out, word for word: ", (option.type_out, "bold"), ("  (Esc goes back)", "dim"))
        else:
            label = says((option.say, "bold"), ("  (Enter gives it, Esc goes back)", "dim"))
        self.query_one(".typed-label", Static).update(label)
        self.query_one(".typed").display = True
        field = self.query_one(Input)
        field.value = ""
        field.focus()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        if self._typing is not None and event.value.strip():
            self._answer(self._typing, event.value.strip())

    def _answer(self, option: Option, typed: str) -> None:
        from wizard.engine.operator import Choice

        self.post_message(Answered(Choice(option.name, typed)))


class Confirm(Prompt):
    """A step that destroys: its name is typed, then its button pressed. The focus is on Stop."""

    BINDINGS = [
        Binding("down", "read(2)", "Read on", id="confirm.down", tooltip="The rest of what it will touch"),
        Binding(
            "up", "read(-2)", "Read back", id="confirm.up", show=False, tooltip="What it will touch, from the start"
        ),
    ]

    def __init__(self, asked: Confirmation) -> None:
        super().__init__()
        self.asked = asked
        self.add_class("-destroys")

    def compose(self) -> ComposeResult:
        asked = self.asked
        yield Static(
            says(
                ("! ", "bold $text-error"),
                (f"{asked.action} changes what is live. ", "bold"),
                "This is what it will touch:",
            )
        )
        with VerticalScroll(classes="touches", can_focus=False):
            yield Static(says("\n".join(f"• {line}" for line in asked.preview) or "• nothing"))
        yield Static(says("way back: ", asked.way_back), classes="way-back")
        yield Static(says("Type ", (asked.phrase, "bold"), " to be able to go on."))
        yield Input(classes="typed-value")  # empty: a name in grey would look as if it had been typed
        with Horizontal(classes="buttons"):
            yield Button("✗ Stop here", id="decline", variant="primary")
            yield Button("Go on: do it", id="confirm", variant="error", disabled=True)

    def on_mount(self) -> None:
        self.query_one("#decline", Button).focus()

    def action_read(self, lines: int) -> None:
        self.query_one(".touches").scroll_relative(y=lines, animate=False)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self.query_one("#confirm", Button).disabled = event.value.strip() != self.asked.phrase

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        fits = event.value.strip() == self.asked.phrase
        self.turn_deaf()  # held down, it would press the button that it has moved to
        self.query_one("#confirm" if fits else "#decline", Button).focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if not self.listens():
            return
        fits = self.query_one(Input).value.strip() == self.asked.phrase
        self.post_message(Answered(event.button.id == "confirm" and fits))
