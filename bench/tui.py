"""Measures the TUI at a terminal of its own: first picture, a key while work goes on, a fleet of a thousand jobs.

    .venv/bin/python bench/tui.py

Every figure is taken from outside, through a pseudo-terminal: from the command, or from a key, to the text on the
screen. The empty Textual app alternates with ours, so a busy machine moves both sides. Beside the seconds stands the
processor time of the process, which a busy machine moves little. Keys are judged by the 95th of a hundred, less the
time that the kernel says the UI and this program stood in the queue for a core: on an idle machine that is nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from make_checkpoint import make
from terminal import Terminal

ROUNDS = 5
KEYS = 100
JOBS = 1000
FIRST_SECONDS, FIRST_RATIO, KEY_SECONDS = 0.5, 1.5, 0.050
EMPTY = "from textual.app import App\nfrom textual.widgets import Static\nclass A(App):\n    def compose(self):\n        yield Static('empty app')\nA().run()"
JOB = """  {name}:
    checkpoint: {checkpoint}
    source: {{format: kafka, options: {{kafka.bootstrap.servers: "localhost:1", subscribe: t}}}}
    sink: {{format: parquet, path: {sink}, key: [id]}}
    spark_version: "4.2.0"
"""


def registry(root: Path, checkpoints: list[Path]) -> Path:
    path = root / "jobs.yaml"
    jobs = [
        JOB.format(name=f"job-{n:04}", checkpoint=each, sink=root / f"out/{n}") for n, each in enumerate(checkpoints)
    ]
    path.write_text("version: 1\nruns: ./runs\njobs:\n" + "".join(jobs))
    return path


def first_picture(jobs: Path) -> None:
    """The banner is the first picture; the jobs have names when the registry has been read."""
    ours, named, empty = [], [], []
    for _ in range(ROUNDS + 1):  # the first of each only warms the disk
        terminal = Terminal(_runbook(jobs))
        ours.append((terminal.until("LOOKING"), terminal.cpu()))
        named.append((terminal.until("job-0000"), terminal.cpu()))
        terminal.end()
        terminal = Terminal([sys.executable, "-c", EMPTY])
        empty.append((terminal.until("empty app"), terminal.cpu()))
        terminal.end()
    one, names, other = (_middle(each[1:]) for each in (ours, named, empty))
    _say("an empty Textual app", f"{other[0]:.2f} s, processor {other[1]:.2f} s")
    for what, (seconds, cpu) in (("first picture", one), ("  with the names of the jobs", names)):
        against = f"{seconds:.2f} s, {seconds / other[0]:.2f}×; processor {cpu:.2f} s, {cpu / other[1]:.2f}×"
        met = seconds <= FIRST_SECONDS and seconds / other[0] <= FIRST_RATIO
        _say(what, against, f"≤ {FIRST_SECONDS} s, ≤ {FIRST_RATIO}×", met)


def _middle(taken: list[tuple[float, float]]) -> tuple[float, float]:
    return median(seconds for seconds, _ in taken), median(cpu for _, cpu in taken)


def keys_while_reading(jobs: Path) -> None:
    terminal = Terminal(_runbook(jobs))
    terminal.until("job-0000")
    times: list[tuple[float, float]] = []
    for _ in range(KEYS // 2):
        times.append(terminal.press("?", "Keys"))
        times.append(terminal.press("\x1b[11~", "fleet"))  # F1 closes it again
    terminal.end()
    _keys("a key while 50,000 files are read", times)


def keys_while_acting(root: Path) -> None:
    """A dry run of a reset: the engine reads the 50,000 files in the process of the UI, as it does before every action."""
    jobs = registry(root, [root / "checkpoint"])
    times: list[tuple[float, float]] = []
    while len(times) < KEYS:
        terminal = Terminal([*_runbook(jobs)[:1], "reset", "job-0000", "--jobs", str(jobs)])
        terminal.until("beginning")
        while len(times) < KEYS:
            times.append(terminal.press("?", "Keys"))
            times.append(terminal.press("\x1b[11~", "reset"))
            if b"Stop here" in terminal.held or b"hand_over" in terminal.held:
                break
        terminal.end()
    _keys("a key while a walk works on them", times)


def keys_in_a_fleet(jobs: Path) -> None:
    terminal = Terminal(_runbook(jobs))
    terminal.until("job-0000")
    keys = ("\x1b[6~", "\x1b[5~", "\x1b[B", "\x1b[A")  # a page down and up, a line down and up: never at an end
    times = [terminal.press(keys[n % len(keys)], "job-") for n in range(KEYS)]
    terminal.end()
    _keys(f"a page or a line in a fleet of {JOBS:,} jobs", times)


def _keys(what: str, times: list[tuple[float, float]]) -> None:
    whole, alone = (
        sorted(seconds for seconds, _ in times),
        sorted(max(0.0, seconds - queued) for seconds, queued in times),
    )
    _say(
        what,
        f"{_spread(alone)}; with the queue {_spread(whole)} at load {os.getloadavg()[0]:.1f}",
        f"95th < {KEY_SECONDS * 1000:.0f} ms",
        _nearly_all(alone) < KEY_SECONDS,
    )


def _nearly_all(times: list[float]) -> float:
    return times[int(len(times) * 0.95)]


def _spread(times: list[float]) -> str:
    return " / ".join(f"{1000 * each:.0f}" for each in (median(times), _nearly_all(times), times[-1])) + " ms"


def _runbook(jobs: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("runbook")), "--jobs", str(jobs)]


def _say(what: str, seen: str, aim: str = "", met: bool = True) -> None:
    judged = f"aim {aim} {'✓' if met else '✗ MISSED'}" if aim else ""
    print(f"{what:<42} {seen:<62} {judged}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / "one").mkdir()
        first_picture(registry(root / "one", [root / "none"]))
        (root / "large").mkdir()
        make(root / "large/checkpoint")
        # The same tree under five names: one after the other is read while keys are pressed.
        for n in range(5):
            (root / f"large/{n}").symlink_to(root / "large/checkpoint")
        keys_while_reading(registry(root / "large", [root / f"large/{n}" for n in range(5)]))
        keys_while_acting(root / "large")
        (root / "many").mkdir()
        keys_in_a_fleet(registry(root / "many", [root / f"many/{n}" for n in range(JOBS)]))


if __name__ == "__main__":
    main()
