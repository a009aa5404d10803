"""What a log means, as a person reads it."""

from __future__ import annotations

from wizard.diagnosis.explain import Explanation, Match
from wizard.text import SEVERITIES, Paint, fold, printable, size

_OTHERS = 8


def explanation_lines(found: Explanation, paint: Paint, width: int | None = None) -> list[str]:
    scope = f"{found.lines} lines, {size(found.bytes)}"
    cause = found.cause
    if cause is not None:
        sign = cause.signature
        path = "no path needed" if sign.path == "none" else f"path: {sign.path}"
        out = [paint(f"{sign.code}: {sign.title} ({path})", "bold", "red"), ""]
        told = (("seen", printable(seen(found, cause))), ("means", sign.meaning), ("do", sign.remedy))
        for label, text in told:
            first, *more = fold(text, 9, width)
            out += [f"  {label:<6} {first}", *more]
    elif found.unknown_cause is not None:
        out = [
            paint("a failure with no known signature", "bold", "yellow"),
            "",
            f"  seen   {printable(found.unknown_cause)}",
        ]
    elif found.matches:
        out = [paint("no failure, but something worth knowing", "bold", "yellow")]
    else:
        out = [paint("no known failure in this log", "bold", "green")]
    others = [match for match in found.matches if match is not cause]
    if others:
        out += ["", paint("Also in the log", "bold"), *(_line(match, paint) for match in others[:_OTHERS])]
    return [*out, "", paint(f"read {scope}", "dim")]


def seen(found: Explanation, cause: Match) -> str:
    """Where the log says it best: the innermost exception, else the last line that matched."""
    if found.innermost is not None:
        return f"line {found.innermost_line}: {found.innermost}"
    return f"line {cause.last_line}: {cause.text}"


def _line(match: Match, paint: Paint) -> str:
    mark, colour = SEVERITIES[match.signature.severity]
    times = f" ({match.count} times)" if match.count > 1 else ""
    return f"  {paint(f'{mark} {match.signature.code}', colour)}  line {match.line}{times}: {match.signature.title}"
