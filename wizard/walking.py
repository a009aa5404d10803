"""The commands that walk: resume, replay, backfill, reset, triage; continue, undo, purge. Thin, like the rest of the CLI."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from wizard.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from wizard.engine.operator import Operator
    from wizard.jobs.model import Registry

PATHS = {
    "triage": "Evidence first; which of the four paths is safe for JOB.",
    "resume": "Start JOB again from the same checkpoint.",
    "replay": "Take checkpoint and output of JOB back to the end of a batch, then run on.",
    "backfill": "Fill a bounded hole in JOB's output beside the live stream.",
    "reset": "Stop JOB, empty its output, delete its checkpoint, start from the earliest offsets, prove it.",
}


def _seconds(context: click.Context, option: click.Parameter, value: float) -> float:
    if not 0 <= value < float("inf"):  # nan is neither, and would be waited for without end
        raise BadInput(f"--wait {value:g}: give a number of seconds, 0 or more")
    return value


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What every command takes that asks or acts."""
    for option in (
        click.option("--answers", metavar="FILE", help="Answers given beforehand, by step."),
        click.option("--confirm", metavar="NAME", help="Confirms destructive steps; must be the job's name."),
        click.option("--wait", "patience", type=float, callback=_seconds, default=120.0, show_default=True, metavar="SECONDS",
                     help="How long to wait for a batch before asking."),
        click.option("--json", "as_json", is_flag=True, help="Events on stdout as JSON lines, narration on stderr."),
        click.option("--plain", is_flag=True, help="Line mode; the default without a terminal."),
        click.option("--no-input", is_flag=True, help="Never ask; what is not answered beforehand stops the walk."),
        click.option("--jobs", "jobs_file", metavar="FILE", help="The registry; default ./jobs.yaml."),
    ):  # fmt: skip
        function = option(function)
    return function


def add_to(cli: click.Group) -> None:
    for name, says in PATHS.items():
        cli.add_command(_path_command(name, says))
    for command in (rehearse, continue_, undo, purge):
        cli.add_command(command)


def _path_command(name: str, says: str) -> click.Command:
    @click.command(name, help=says)
    @click.argument("job")
    @click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
    @click.option("--plan", "plan_file", metavar="FILE", help="Save the dry run here; without --dry-run, carry it out.")
    @options
    def walk(job: str, dry_run: bool, plan_file: str | None, plain: bool, jobs_file: str | None, **how: Any) -> int:
        registry = _registry(jobs_file)
        if dry_run:
            return _dry_run(registry, job, name, plan_file, **how)
        if not plain and _terminal(how):
            from wizard.tui.ways_in import walk_in_tui

            return int(walk_in_tui(registry, job, name, how["patience"], plan_file))
        from wizard.engine.start import begin

        patience = how.pop("patience")
        return begin(registry, job, name, operator(**how), patience=patience, plan_file=plan_file).exit_code

    return walk


def _dry_run(registry: Registry, job: str, name: str, plan_file: str | None, patience: float, **how: Any) -> int:
    from wizard.engine.dry_run import dry_run, save_plan

    preview = dry_run(registry, job, name, operator(**how), patience=patience)
    if plan_file:
        save_plan(preview.plan, plan_file)
        print(f"plan saved: runbook {name} {job} --plan {plan_file}", file=sys.stderr)
    return ExitCode.OK if preview.ending.outcome in ("resolved", "chosen") else ExitCode.STOPPED


@click.command()
@click.argument("path", type=click.Choice([*(name for name in PATHS if name != "triage"), "twice"]))
@click.argument("job")
@options
def rehearse(path: str, job: str, plain: bool, jobs_file: str | None, patience: float, **how: Any) -> int:
    """Walk PATH for JOB for real, on a clone; report what came out; touch nothing live.

    `twice` walks nothing: it writes the newest batch a second time on a clone, and counts the rows.
    """
    if path == "twice":
        return _twice(_registry(jobs_file), job, patience, how["as_json"])
    from wizard.engine.rehearse import rehearse as run

    report = run(_registry(jobs_file), job, path, operator(**how), patience=patience)
    if how["as_json"]:
        print(json.dumps({"event": "report", **report.as_dict()}, default=str))
    else:
        print("\n".join(report.lines()), file=sys.stderr)
    return int(report.exit_code)


def _twice(registry: Registry, job: str, patience: float, as_json: bool) -> int:
    from wizard.engine.twice import try_twice
    from wizard.jobs.registry import check_job

    check_job(registry, job)
    seen = try_twice(registry, job, patience=patience)
    if as_json:
        print(json.dumps({"job": job, "truth": seen.truth, "evidence": list(seen.evidence), **seen.data}, default=str))
    else:
        print("\n".join([f"{job}, a batch twice: {seen.truth}", *(f"    {line}" for line in seen.evidence)]))
    return int({"holds": ExitCode.OK, "fails": ExitCode.VERIFICATION_FAILED}.get(seen.truth, ExitCode.STOPPED))


gone = click.option("--gone", metavar="HOST", help="The host that RUN was walked on is gone: take over what it holds.")


@click.command("continue")
@click.argument("run")
@gone
@options
def continue_(run: str, gone: str | None, plain: bool, jobs_file: str | None, patience: float, **how: Any) -> int:
    """Pick up RUN where it was left: every finished step is verified again, one in doubt is settled."""
    from wizard.engine.start import pick_up

    registry = _registry(jobs_file)
    _take_over(registry, run, gone)
    if not plain and _terminal(how):
        from wizard.tui.ways_in import continue_in_tui

        return int(continue_in_tui(registry, run, patience))
    return pick_up(registry, run, operator(**how), patience=patience).exit_code


@click.command()
@click.argument("run")
@gone
@options
def undo(run: str, gone: str | None, plain: bool, jobs_file: str | None, patience: float, **how: Any) -> int:
    """Put checkpoint, output, configuration and job back as they were before RUN."""
    from wizard.engine.undo import undo as take_back

    registry = _registry(jobs_file)
    _take_over(registry, run, gone)
    take_back(registry, run, operator(**how))
    return ExitCode.OK


def _take_over(registry: Registry, run: str, gone: str | None) -> None:
    if gone is not None:
        from wizard.engine.lock import break_those_of
        from wizard.engine.runs import find_run

        break_those_of(gone, registry.runs, find_run(registry.runs, run).id, registry.jobs)


@click.command()
@click.argument("run")
@options
def purge(run: str, plain: bool, jobs_file: str | None, patience: float, confirm: str | None, **how: Any) -> int:
    """Delete for good what RUN put in quarantine."""
    from wizard.engine.undo import purge as delete
    from wizard.text import size

    files, weight = delete(_registry(jobs_file), run, confirm)
    if how["as_json"]:
        print(json.dumps({"event": "purged", "run": run, "files": files, "bytes": weight}))
    else:
        print(f"{files} files ({size(weight)}) deleted for good")
    return ExitCode.OK


def operator(*, answers: str | None, confirm: str | None, as_json: bool, no_input: bool) -> Operator:
    from wizard.engine.operator import Nobody, Prepared, load_answers
    from wizard.line_mode import JsonLines, Narrator, Terminal

    narrator = Narrator(sys.stderr if as_json else sys.stdout)
    lines = JsonLines()

    def tell(event: dict[str, Any]) -> None:
        for teller, stream in ((narrator, narrator.stream), *(((lines, sys.stdout),) if as_json else ())):
            try:
                teller(event)
            except BrokenPipeError:
                # Whoever read along has gone (`| head`). A walk does not end half-way for that; the journal tells it.
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

    asker: Operator = Nobody(tell) if no_input else Terminal(tell, narrator.stream)
    return Prepared(load_answers(answers) if answers else {}, confirm, asker)


def _terminal(how: dict[str, Any]) -> bool:
    """The TUI is for a person at a terminal; answers given beforehand mean that nobody is."""
    if how["as_json"] or how["no_input"] or how["answers"] or how["confirm"]:
        return False
    from wizard.text import can_be_drawn_on

    return can_be_drawn_on()


def _registry(jobs_file: str | None) -> Registry:
    from wizard.jobs.registry import find_registry, load_registry

    try:
        return load_registry(find_registry(jobs_file))
    except OSError as error:
        raise BadInput(f"{jobs_file}: {error.strerror}") from None
