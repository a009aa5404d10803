"""A run for people who were not there: a page of its own, Markdown for the post-mortem, JSON for machines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from wizard.audit.listing import Summary, summary_of
from wizard.audit.telling import facts, standing, story, waivers
from wizard.audit.verifying import Verified, verify
from wizard.engine.runs import Run
from wizard.secrets import mask_all

FORMAT = 1
MASKED = "Secrets are masked in `entries`; the hashes are those of the journal, which is the only thing to verify."


def export(runs: str, run: Run, form: str) -> str:
    return FORMS[form](run, summary_of(runs, run), verify(run))


def document(run: Run, summary: Summary, result: Verified) -> dict[str, Any]:
    """All there is to say about a run, as data."""
    return {
        "export": FORMAT,
        **summary.as_dict(),
        "stands": standing(run, summary),
        "unproved": waivers(run),
        "record": result.as_dict(),
        "story": [part.as_dict() for part in story(run)],
        "note": MASKED,
        "entries": mask_all(run.chain.entries),
    }


def as_json(run: Run, summary: Summary, result: Verified) -> str:
    return json.dumps(document(run, summary, result), indent=1, ensure_ascii=True)


def as_markdown(run: Run, summary: Summary, result: Verified) -> str:
    return "\n".join(_markdown(run, summary, result))


def _markdown(run: Run, summary: Summary, result: Verified) -> Iterator[str]:
    yield f"# {_plain(f'{summary.runbook} {summary.job}: {summary.verdict}')}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    for what, text in facts(run, summary, result):
        yield f"| {what} | {_plain(text)} |"
    yield ""
    yield "## What happened (UTC)"
    for part in story(run):
        yield ""
        yield f"### {part.at} {_plain(part.says)}"
        for what, lines in part.details:
            yield ""
            yield f"{what}:"
            yield ""
            yield from (f"- {_plain(line)}" for line in lines)
    yield ""


def _plain(text: str) -> str:
    """Nothing in it is markup: not what Markdown would read as such, nor the HTML it lets through."""
    text = (
        re.sub(r"([\\`*_{}\[\]()#+!|~-])", r"\\\1", text)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )
    return re.sub(r"^(\d+)\.", r"\1\\.", text)


_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --dim: #5d5d5d; --paper: #fff; --rule: #d8d8d8;
  --good: #176b2c; --bad: #b3181f; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --dim: #a3a3a3; --paper: #16181a; --rule: #3a3d40;
  --good: #6fd08c; --bad: #ff8b8b; --warn: #f0bf5c; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
th { text-align: left; vertical-align: top; padding-right: 1.5rem; color: var(--dim); font-weight: normal; }
ol { list-style: none; padding: 0; } ol > li { border-left: 4px solid var(--rule); margin: 0 0 1rem; padding: 0 0 0 1rem; }
li.good { border-color: var(--good); } li.bad { border-color: var(--bad); } li.warn { border-color: var(--warn); }
time, dt { color: var(--dim); font-size: .875rem; } h3 { font-size: 1rem; margin: 0; }
dl { margin: .25rem 0 0; } dd { margin: 0 0 .25rem 1rem; font-family: ui-monospace, monospace; font-size: .875rem; }
@media print { :root { --ink: #000; --dim: #444; --paper: #fff; --rule: #bbb; --good: #176b2c; --bad: #b3181f;
  --warn: #8a5a00; } body { max-width: none; margin: 0; font-size: 11pt; } ol > li { break-inside: avoid; } }
"""
_WORDS = {"plain": "", "good": "good: ", "bad": "bad: ", "warn": "mind: "}  # the mark for those who see no colour


def as_html(run: Run, summary: Summary, result: Verified) -> str:
    return "\n".join(_html(run, summary, result))


def _html(run: Run, summary: Summary, result: Verified) -> Iterator[str]:
    title = escape(f"{summary.runbook} {summary.job}: {summary.verdict}")
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    # Belt and braces: should anything slip through the escaping, a browser runs and loads nothing.
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<table>"
    for what, text in facts(run, summary, result):
        yield f'<tr><th scope="row">{escape(what)}</th><td>{escape(text)}</td></tr>'
    yield "</table>\n<h2>What happened (UTC)</h2>\n<ol>"
    for part in story(run):
        yield f'<li class="{part.mark}"><time>{escape(part.at)}</time><h3>{_WORDS[part.mark]}{escape(part.says)}</h3>'
        if part.details:
            yield "<dl>"
            for what, lines in part.details:
                yield f"<dt>{escape(what)}</dt>"
                yield from (f"<dd>{escape(line)}</dd>" for line in lines)
            yield "</dl>"
        yield "</li>"
    yield "</ol>\n</body>\n</html>\n"


FORMS: dict[str, Callable[[Run, Summary, Verified], str]] = {"html": as_html, "md": as_markdown, "json": as_json}
