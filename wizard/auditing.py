"""`runbook audit`: list, show, verify, export. Thin, like the rest of the CLI."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from wizard.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from wizard.engine.runs import Run

FORMATS = ("html", "md", "json")


def add_to(cli: click.Group) -> None:
    cli.add_command(audit)


def options(function: Callable[..., int]) -> Callable[..., Any]:
    """What each of them takes; and a run that cannot be read is one line, not a traceback."""

    @click.option("--jobs", "jobs_file", metavar="FILE", help="The registry; default ./jobs.yaml.")
    @click.option("--no-input", is_flag=True, help="Never ask; nothing here does.")
    @click.option("--plain", is_flag=True, help="Line mode; there is no other here.")
    @wraps(function)
    def told(jobs_file: str | None, no_input: bool, plain: bool, **given: Any) -> int:
        from wizard.jobs.registry import find_registry, load_registry

        try:
            return function(load_registry(find_registry(jobs_file)).runs, **given)
        except OSError as error:
            raise BadInput(f"{error.filename or 'the runs'}: cannot be read ({error.strerror or error})") from None

    return told


_as_json = click.option("--json", "as_json", is_flag=True, help="Data on stdout as JSON.")


@click.group()
def audit() -> None:
    """What was walked, by whom, on what evidence; and whether the record can be believed."""


@audit.command("list")
@click.option("--job", metavar="JOB", help="Only runs of this job.")
@click.option("--who", metavar="NAME", help="Only runs this person began, answered in, picked up or took back.")
@click.option("--runbook", metavar="ID", help="Only walks of this runbook.")
@click.option("--verdict", metavar="VERDICT", help="Only runs that stand so: resolved, aborted, in_doubt, …")
@click.option("--since", metavar="TIME", help="Begun at or after: 2026-11-18, 2026-11-18T03:15 (UTC), or 6h, 2d ago.")
@click.option("--until", metavar="TIME", help="Begun at or before; a day counts to its end.")
@_as_json
@options
def list_(
    runs: str, job: str | None, who: str | None, runbook: str | None, verdict: str | None, since: str | None,
    until: str | None, as_json: bool,
) -> int:  # fmt: skip
    """The runs, one line each, newest first."""
    from wizard.audit.listing import Wanted, lines, moment_of, summaries, verdict_of
    from wizard.text import Paint

    found = summaries(runs, Wanted(
        job, who, runbook, verdict_of(verdict) if verdict else None,
        moment_of(since, "--since") if since else None, moment_of(until, "--until", end=True) if until else None,
    ))  # fmt: skip
    if as_json:
        print(json.dumps([one.as_dict() for one in found]))
    elif found:
        _print(lines(found, Paint()))
    else:
        print(f"no such run in {runs}", file=sys.stderr)
    return ExitCode.OK


@audit.command()
@click.argument("run")
@_as_json
@options
def show(runs: str, run: str, as_json: bool) -> int:
    """RUN as a person would tell it: asked, answered, seen before, done, seen after."""
    from wizard.audit.exporting import export
    from wizard.audit.listing import summary_of
    from wizard.audit.telling import lines
    from wizard.audit.verifying import verify
    from wizard.engine.runs import find_run
    from wizard.text import Paint

    found = find_run(runs, run)
    if as_json:
        print(export(runs, found, "json"))
    else:
        _print(lines(found, summary_of(runs, found), verify(found), Paint()))
    return ExitCode.OK


@audit.command()
@click.argument("run", nargs=-1)
@click.option("--head", metavar="HASH", help="The journal head that was printed when the walk ended; for one RUN.")
@_as_json
@options
def verify(runs: str, run: tuple[str, ...], head: str | None, as_json: bool) -> int:
    """Whether the record of RUN (of every run, without one) was changed since; names the first bad entry."""
    from wizard.audit.verifying import Known, head_of, lines
    from wizard.audit.verifying import verify as check
    from wizard.text import Paint

    if head is not None and len(run) != 1:
        raise BadInput("--head belongs to one run; name it")
    known: Known = {}
    results = [check(found, head_of(head) if head else None, known) for found in _runs(runs, run)]
    if as_json:
        print(json.dumps([result.as_dict() for result in results]))
    else:
        for result in results:
            _print(lines(result, Paint()))
        if not results:
            print(f"no run in {runs}", file=sys.stderr)
    return ExitCode.OK if all(result.sound for result in results) else ExitCode.VERIFICATION_FAILED


def _runs(runs: str, names: tuple[str, ...]) -> Iterable[Run]:
    from wizard.engine.runs import all_runs, find_run

    return [find_run(runs, name) for name in names] if names else all_runs(runs)


@audit.command()
@click.argument("run")
@click.option("--format", "form", type=click.Choice(FORMATS), default="html", show_default=True)
@click.option("--to", "file", metavar="FILE", help="Where to write it; standard output otherwise.")
@options
def export(runs: str, run: str, form: str, file: str | None) -> int:
    """RUN as a page (HTML), for the post-mortem (Markdown), or for machines (JSON)."""
    from wizard import durable
    from wizard.audit.exporting import export as written
    from wizard.engine.runs import find_run

    text = written(runs, find_run(runs, run), form).rstrip("\n")
    if file is None:
        _print([text])
        return ExitCode.OK
    try:
        durable.write(file, (text + "\n").encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise BadInput(f"{file}: cannot be written ({error.strerror or error})") from None
    print(f"written: {file}", file=sys.stderr)
    return ExitCode.OK


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")
