"""A runbook drawn: as text for a terminal, as Mermaid for a page."""

from __future__ import annotations

import textwrap
from collections import deque

from wizard.catalogue import CATALOGUE, Catalogue
from wizard.runbook.model import Ask, Check, Do, End, Runbook, Step
from wizard.runbook.resolve import targets

WIDTH = 120
# Whatever could end a quoted label or be read as markup in it; Mermaid takes a character by its number.
_ESCAPED = str.maketrans({character: f"#{ord(character)};" for character in '"#<>&`;|\\{}[]'})


def draw_text(runbook: Runbook, catalogue: Catalogue = CATALOGUE) -> str:
    """Every step once, in the order a walk meets them, with where each of its outcomes leads."""
    lines = [f"{runbook.id}: {runbook.title}" if runbook.title else runbook.id]
    width = max((len(label) for step in runbook.steps.values() for label, _ in targets(step)), default=0)
    for step in _in_order(runbook):
        lines += ["", *_wrapped(f"{step.name}  {_headline(step, catalogue)}")]
        onward = list(targets(step))
        for place, (label, target) in enumerate(onward):
            branch = "└" if place == len(onward) - 1 else "├"
            lines.append(f"  {branch} {label:<{width}} → {target}")
    return "\n".join(lines) + "\n"


def draw_mermaid(runbook: Runbook, catalogue: Catalogue = CATALOGUE) -> str:
    lines = ["flowchart TD", f"  %% {runbook.id}: {' '.join(runbook.title.split())}"]
    for step in _in_order(runbook):
        lines.append(f"  {_id(step.name)}{_shape(step, catalogue)}")
        lines += [f'  {_id(step.name)} -->|"{label}"| {_id(target)}' for label, target in targets(step)]
    destroying = [
        _id(step.name)
        for step in runbook.steps.values()
        if isinstance(step, Do) and catalogue.actions[step.action].destroys
    ]
    if destroying:
        lines += ["  classDef destroys stroke:#b00020,stroke-width:3px", f"  class {','.join(destroying)} destroys"]
    return "\n".join(lines) + "\n"


def _in_order(runbook: Runbook) -> list[Step]:
    """Depth first along the first outcome, so that the way things should go reads top to bottom; ends come last."""
    ahead, seen = deque([runbook.start]), dict[str, Step]()
    while ahead:
        name = ahead.popleft()
        if name not in seen:
            seen[name] = runbook.steps[name]
            ahead.extendleft(reversed([target for _, target in targets(seen[name])]))
    return sorted(seen.values(), key=lambda step: isinstance(step, End))


def _headline(step: Step, catalogue: Catalogue) -> str:
    match step:
        case Ask():
            return f"ask “{step.question}”"
        case Check():
            return f"check {step.probe}"
        case Do():
            destroys = ", destroys" if catalogue.actions[step.action].destroys else ""
            confirmed = ", confirmed" if step.confirm else ""
            return f"do {step.action} (verify {step.verify}{destroys}{confirmed})"
        case End():
            return f"end {step.outcome}" + (f" {step.path}" if step.path else "")


def _wrapped(line: str) -> list[str]:
    """A long question goes on under itself; a name is never cut."""
    return textwrap.wrap(line, WIDTH, subsequent_indent="  │   ", break_long_words=False, break_on_hyphens=False)


def _id(name: str) -> str:
    return f"s_{name}"  # Mermaid takes `end` and a few more words for its own


def _shape(step: Step, catalogue: Catalogue) -> str:
    said = " ".join(_headline(step, catalogue).split()).translate(_ESCAPED)
    match step:
        case Ask():
            return f'[/"{said}"/]'
        case Check():
            return f'{{"{said}"}}'
        case Do():
            return f'["{said}"]'
        case End():
            return f'(["{said}"])'
