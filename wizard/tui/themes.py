"""Dark, light and high contrast. No theme is needed to understand a screen: every colour comes with a mark or a word."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="runbook-dark", dark=True, primary="#5b9bd5", secondary="#8fb8de", accent="#c9a0f0", warning="#e0b040",
    error="#e06060", success="#6fbf73", foreground="#e0e0e0", background="#14171a", surface="#1b1f23", panel="#262b30",
)  # fmt: skip
LIGHT = Theme(
    name="runbook-light", dark=False, primary="#1a5fa8", secondary="#3f77b0", accent="#6a3d9a", warning="#8a5a00",
    error="#b00020", success="#1b6e2f", foreground="#1a1a1a", background="#fafafa", surface="#ffffff", panel="#e8eaed",
)  # fmt: skip
CONTRAST = Theme(
    name="runbook-contrast", dark=True, primary="#ffff00", secondary="#00ffff", accent="#00ffff", warning="#ffff00",
    error="#ff8080", success="#80ff80", foreground="#ffffff", background="#000000", surface="#000000", panel="#202020",
    variables={"text-muted": "#ffffff", "text-disabled": "#d0d0d0", "footer-key-foreground": "#ffff00",
               "border": "#ffffff", "block-cursor-foreground": "#000000", "block-cursor-background": "#ffff00"},
)  # fmt: skip
THEMES = (DARK, LIGHT, CONTRAST)
