"""Files made to hurt are refused quickly, in little memory, and with a line to look at."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SECONDS, BYTES = 2.0, 200 * 1024 * 1024

# Measured in a process of its own, start-up included; the limits make a runaway die instead of taking the machine along.
# The peak is VmHWM: ru_maxrss of a child begins at what its parent held, which here is whatever ran before.
DRIVER = """
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
from wizard.runbook.lint import lint_runbook
problems = lint_runbook(sys.argv[1])
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "seconds": usage.ru_utime + usage.ru_stime,
    "bytes": int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024,
    "problems": [[p.code, p.where, p.message] for p in problems],
}))
"""


def anchors() -> str:
    levels = ['a0: &a0 ["lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol"]']
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    return "\n".join(["runbook: 1", *levels])


def merged_anchors() -> str:
    return "runbook: 1\nid: x\nstart: a\nsteps:\n  a: &a {end: resolved}\n  b: {<<: *a}\n"


def steps(many: int) -> str:
    body = "\n".join(
        f"  s{n}: {{check: job.stopped, cases: {{holds: s{n + 1}, fails: e, unknown: e}}}}" for n in range(many)
    )
    return f"runbook: 1\nid: x\nstart: s0\nsteps:\n{body}\n  s{many}: {{end: hand_over}}\n  e: {{end: hand_over}}\n"


def cycle(many: int) -> str:
    body = "\n".join(
        f"  s{n}: {{check: job.stopped, cases: {{holds: s{(n + 1) % many}, fails: s{(n * 7) % many}, unknown: e}}}}"
        for n in range(many)
    )
    return f"runbook: 1\nid: x\nstart: s0\nsteps:\n{body}\n  e: {{end: hand_over}}\n"


def one_step(body: str) -> str:
    return f"runbook: 1\nid: x\nstart: a\nsteps:\n  a: {body}\n  e: {{end: hand_over}}\n"


def check(probe: str) -> str:
    return one_step(f"{{check: {probe}, cases: {{holds: e, fails: e, unknown: e}}}}")


def none_of_them_a_step(many: int) -> str:
    return "runbook: 1\nid: x\nstart: s0\nsteps:\n" + "".join(f" s{n}: 1\n" for n in range(many))


def nowhere(many: int) -> str:
    """Names that are near each other, to be compared with each other."""
    case = "holds: {0}h{n}, fails: {0}f{n}, unknown: {0}u{n}"
    body = "".join(
        f"  {'a' * 50}{n}: {{check: job.stopped, cases: {{{case.format('ab' * 25, n=n)}}}}}\n" for n in range(many)
    )
    return f"runbook: 1\nid: x\nstart: {'a' * 50}0\nsteps:\n{body}"


def never_allowed(many: int) -> str:
    """Each of them breaks ten demands, at the end of a long path."""
    body = "".join(
        f"  s{n}: {{do: job.resume, verify: job.running, goto: s{n + 1}, on_fail: e}}\n" for n in range(many)
    )
    return f"runbook: 1\nid: x\nstart: s0\nsteps:\n{body}  s{many}: {{end: hand_over}}\n  e: {{end: hand_over}}\n"


def inserts(many: int) -> str:
    return f"runbook: 1\nid: x\nextends: reset\ninsert: [{', '.join(['1'] * many)}]\n"


def waived_with(words: str) -> str:
    return one_step(f"{{ask: q, options: {{a: {{say: s, goto: e, waives: rows.exact, type_out: {words}}}}}}}")


HOSTILE = {
    "a gigabyte by anchors": (anchors(), "RB001", ":2:"),
    "merge keys": (merged_anchors(), "RB001", ":5:"),
    "100,000 steps": (steps(100_000), "RB001", ":1:1"),
    "as many steps as fit in the size": (steps(3_000), "RB002", ":4:1"),
    "24,000 numbers for steps": (none_of_them_a_step(24_000), "RB002", ":4:1"),
    "80,000 inserts": (inserts(80_000), "RB002", ":4:1"),
    "1,470 steps that are not there": (nowhere(490), "RB101", ":5:3"),
    "490 actions that nothing allows": (never_allowed(490), "RB201", ":5:3"),
    "a line break in a name": (one_step("{end: hand_over}").replace("a: {", '"a\\n": {'), "RB002", ":4:1"),
    "words that clear the screen": (one_step('{end: hand_over, say: "\\e[2J"}'), "RB002", ":5:23"),
    "words that read backwards": (one_step("{end: hand_over, say: 'a\u202eb'}"), "RB002", ":5:23"),
    "a waiver of a space": (waived_with("' '"), "RB002", ":5:"),
    "a waiver that cannot be typed": (waived_with("'two  spaces'"), "RB002", ":5:"),
    "a loop of 490 steps": (cycle(490), "RB104", ":5:3"),
    "a tree nested 100,000 deep": ("a: " + "[" * 100_000, "RB001", ":1:"),
    "a key of 200,000 letters": ("k" * 200_000 + ": 1", "RB001", ":1:"),
    "200,000 quotes": ('"' * 200_000, "RB001", ":1:"),
    "a duplicate step": (one_step("{end: hand_over}\n  a: {end: resolved}"), "RB001", ":6:3"),
    "a key that YAML 1.1 takes for true": ("runbook: 1\non: x\n", "RB001", ":2:1"),
    "a tag that calls code": ("runbook: !!python/object/apply:os.system [id]\n", "RB001", ":1:10"),
    "an unknown probe": (check("job.stoped"), "RB003", ":5:3"),
    "a Cyrillic o in a probe": (check("jоb.stopped"), "RB002", ":5:7"),
    "a fullwidth dot in a probe": (check("job．stopped"), "RB002", ":5:7"),
    "a zero width space in a key": (one_step('{"check​": job.stopped, cases: {}}'), "RB002", ":5:3"),
    "a Cyrillic a for a step": (check("job.stopped").replace("start: a", "start: а"), "RB002", ":3:1"),
    "two kinds in one step": (one_step("{check: job.stopped, do: job.stop}"), "RB002", ":5:3"),
    "a number for a step": (one_step("7"), "RB002", ":5:3"),
    "a list for a runbook": ("[1, 2, 3]", "RB002", ":1:1"),
    "nothing": ("", "RB001", ":1:1"),
    "bytes that are no text": ("\udcff\udcfe", "RB001", ":1:1"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_in_two_seconds_and_200_mb(
    what: str, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    text, code, where = HOSTILE[what]
    file = tmp_path / "x.yaml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = subprocess.run([sys.executable, "-c", DRIVER, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    tell(f"{what}: {seen['seconds']:.2f} s, {seen['bytes'] / 2**20:.0f} MB, {seen['problems'][0][0]}")
    assert seen["seconds"] < SECONDS
    assert seen["bytes"] < BYTES
    found = [problem for problem in seen["problems"] if problem[0] == code]
    assert found and where in found[0][1]
    assert all(len(message) < 5_000 for _, _, message in seen["problems"])


def test_a_letter_that_only_looks_right_is_named_with_what_was_probably_meant(tmp_path: Path) -> None:
    from wizard.runbook.lint import lint_text

    (problem,) = lint_text(check("jоb.stopped"), "x.yaml")
    assert "U+043E CYRILLIC SMALL LETTER O" in problem.message
    assert "did you mean 'job.stopped'?" in problem.message
