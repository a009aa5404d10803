"""The commands; thin. Each imports what it needs when it runs, so that a diagnosis starts at once."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from wizard import __version__, auditing, walking
from wizard.errors import BadInput, ExitCode, RunbookError

if TYPE_CHECKING:
    from wizard.diagnosis.diagnose import Diagnosis
    from wizard.diagnosis.explain import Explanation
    from wizard.jobs.model import Job, Registry


def main() -> None:
    """One line for every error, the exit code of the design, no traceback."""
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        _say("runbook: interrupted; nothing was in flight")
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        _say(f"runbook: {error.format_message()}")
        code = ExitCode.BAD_INPUT
    except RunbookError as error:
        _say(f"runbook: {' '.join(str(error).split())}")
        code = error.exit_code
    except (BrokenPipeError, SystemExit):
        # The reader went away (`runbook status | head`): not an error, and Python must not complain at exit.
        # click turns a write that met the closed pipe into SystemExit(1), and nothing else into SystemExit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ExitCode.OK
    except KeyboardInterrupt:
        _say("runbook: interrupted; nothing was in flight")
        code = ExitCode.INTERRUPTED
    except Exception as error:
        if os.environ.get("RUNBOOK_DEBUG"):
            raise
        words = " ".join(str(error).split())[:300]
        _say(f"runbook: an error of runbook's own: {type(error).__name__}: {words}; RUNBOOK_DEBUG=1 shows where")
        code = ExitCode.ERROR
    sys.exit(int(code or 0))


def _say(line: str) -> None:
    from wizard.secrets import mask

    print(mask(line), file=sys.stderr)


def _common(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that mean the same everywhere."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Data on stdout as JSON, narration on stderr."),
        click.option("--plain", is_flag=True, help="Line mode; the default without a terminal."),
        click.option("--no-input", is_flag=True, help="Never ask."),
        click.option("--jobs", "jobs_file", metavar="FILE", help="The registry; default ./jobs.yaml."),
    ):
        function = option(function)
    return function


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, prog_name="runbook")
@click.option("--jobs", "jobs_file", metavar="FILE", help="The registry; default ./jobs.yaml.")
@click.pass_context
def cli(context: click.Context, jobs_file: str | None) -> int | None:
    """Resume, replay, backfill or reset a Spark Structured Streaming job, and prove every step.

    Without a command: the fleet, at a terminal.
    """
    if context.invoked_subcommand is not None:
        if jobs_file:
            raise BadInput(
                f"--jobs belongs behind the command: runbook {context.invoked_subcommand} … --jobs {jobs_file}"
            )
        return None
    from wizard.text import can_be_drawn_on

    if not can_be_drawn_on():
        click.echo(context.get_help())
        return None
    from wizard.jobs.finding import find_registry
    from wizard.tui.ways_in import open_tui

    return open_tui(str(find_registry(jobs_file)))


@cli.command()
@click.argument("job", required=False)
@click.option("--checkpoint", metavar="URL", help="A checkpoint directory, without a registry.")
@click.option("--sink", metavar="URL", help="Its output, to be checked against it.")
@click.option("--sink-format", metavar="KIND", help="The kind of the sink; told by its files otherwise.")
@click.option("--spark-version", metavar="X.Y", help="The Spark that will start; inferred otherwise.")
@click.option("--log", "log_file", metavar="FILE", help="A driver log, explained with it.")
@_common
def diagnose(
    job: str | None, checkpoint: str | None, sink: str | None, sink_format: str | None, spark_version: str | None,
    log_file: str | None, as_json: bool, plain: bool, no_input: bool, jobs_file: str | None,
) -> None:  # fmt: skip
    """Evidence, findings and the verdict on the four paths, for JOB or a checkpoint."""
    from wizard.diagnosis.diagnose import Subject
    from wizard.diagnosis.diagnose import diagnose as run
    from wizard.diagnosis.subject import direct_consumers, subject_of

    if (job is None) == (checkpoint is None):
        raise BadInput("name a job of the registry, or give --checkpoint URL; one of the two")
    if job is not None:
        if sink or sink_format or spark_version:
            raise BadInput(
                f"--sink, --sink-format and --spark-version go with --checkpoint; {job}'s are in the registry"
            )
        registry = _registry(jobs_file)
        from wizard.jobs.tried import tried

        found = _one(registry, job)
        subject = subject_of(found, direct_consumers(registry)[job], tried(registry, found))
    else:
        subject = Subject(str(checkpoint), sink, sink_format, spark_version)
    result = run(subject, _explained(log_file) if log_file else None)
    if job is None and not result.checkpoint.exists:
        raise BadInput(f"{checkpoint}: there is no such directory; give the job's checkpointLocation")
    _print_diagnosis(result, as_json)


def _print_diagnosis(result: Diagnosis, as_json: bool) -> None:
    if as_json:
        # Names on a disk may hold bytes that are not text; they come out escaped.
        print(json.dumps(result.as_dict(), ensure_ascii=True, default=str))
        return
    from wizard.diagnosis.report import lines
    from wizard.text import Paint, width_of

    _out("\n".join(lines(result, Paint(), width_of(sys.stdout))))


def _out(text: str) -> None:
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")


@cli.command()
@click.argument("jobs", nargs=-1)
@_common
def status(jobs: tuple[str, ...], as_json: bool, plain: bool, no_input: bool, jobs_file: str | None) -> None:
    """One line a job: where it stands, and what is wrong."""
    from wizard.diagnosis.status import status_lines, status_of
    from wizard.diagnosis.subject import direct_consumers, subject_of
    from wizard.engine.undo import NOTHING_KEPT, kept_of_all
    from wizard.jobs.tried import tried
    from wizard.text import Paint

    registry = _registry(jobs_file)
    named = {name: _one(registry, name) for name in jobs or registry.jobs}
    consumers, kept = direct_consumers(registry), functools.cache(lambda: kept_of_all(registry))
    found = [
        status_of(
            name, subject_of(job, consumers[name], tried(registry, job)), lambda job: kept().get(job, NOTHING_KEPT)
        )
        for name, job in named.items()
    ]
    if as_json:
        print(json.dumps([one.as_dict() for one in found]))
    else:
        _out("\n".join(status_lines(found, Paint())))


@cli.command()
@click.argument("file", metavar="FILE|-")
@_common
def explain(file: str, as_json: bool, plain: bool, no_input: bool, jobs_file: str | None) -> None:
    """A driver log or a stack trace: what it means, and the path it calls for."""
    from wizard.text import Paint, width_of

    found = _explained(file)
    if as_json:
        print(json.dumps(found.as_dict()))
        return
    from wizard.diagnosis.explain_report import explanation_lines

    _out("\n".join(explanation_lines(found, Paint(), width_of(sys.stdout))))


def _explained(file: str) -> Explanation:
    from wizard.diagnosis.explain import explain as run

    if file == "-":
        return run(sys.stdin.buffer)
    try:
        with open(file, "rb") as stream:  # noqa: PTH123
            return run(stream)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}; give a driver log, or - for standard input") from None


@cli.command()
@click.argument("files", metavar="[FILE|ID]...", nargs=-1)
@click.option("--graph", is_flag=False, flag_value="text", metavar="[text|mermaid]", help="Draw the runbooks too.")
@_common
def lint(
    files: tuple[str, ...], graph: str | None, as_json: bool, plain: bool, no_input: bool, jobs_file: str | None
) -> int:
    """The registry, and runbooks: schema, proof, shared or nested or changing paths."""
    from wizard.lint import drawn, lint_all
    from wizard.text import Paint, plural

    if graph and graph not in ("text", "mermaid"):  # `--graph reset`: what follows was not a way to draw but a runbook
        files, graph = (graph, *files), "text"
    problems, checked = lint_all(files, jobs_file)
    graphs = drawn(files, graph) if graph else []
    errors = sum(problem.severity == "error" for problem in problems)
    if as_json:
        print(json.dumps({"checked": checked, "problems": [
            {"code": p.code, "severity": p.severity, "message": p.message, "where": p.where} for p in problems
        ], **({"graphs": graphs} if graph else {})}))  # fmt: skip
    else:
        paint, tell = Paint(), _say if graph else _out  # a drawing is the data then, and goes alone into a file
        for problem in problems:
            colour = "red" if problem.severity == "error" else "yellow"
            tell(f"{problem.where}: {paint(f'{problem.severity} {problem.code}', colour, 'bold')} {problem.message}")
        if graph:
            _out("\n".join(graphs).rstrip("\n"))
        else:
            counted = plural(errors, "error"), plural(len(problems) - errors, "warning")
            _out(f"{plural(len(checked), 'file')} checked, {', '.join(counted)}")
    return ExitCode.BAD_INPUT if errors else ExitCode.OK


@cli.command()
@click.option("--to", "root", metavar="DIR", default="demo", show_default=True, help="Where to build it.")
@click.option("--scenario", metavar="NAME", help="What to break; `--list` shows the names.")
@click.option("--list", "listed", is_flag=True, help="The scenarios, and nothing else.")
@click.option("--count", "counted", is_flag=True, help="Source and output rows of the demo as it is now.")
@click.option("--finish", is_flag=True, help="After a walk: stop the jobs, let them catch up, count the rows.")
@click.option("--json", "as_json", is_flag=True, help="Data on stdout as JSON, narration on stderr.")
def demo(root: str, scenario: str | None, listed: bool, counted: bool, finish: bool, as_json: bool) -> int:
    """The sensor pipeline on local Spark, with something to fix."""
    from wizard.demo import DEFAULT_SCENARIO, finish_demo, list_scenarios, run_demo, show_counts

    if listed:
        return list_scenarios(as_json)
    if counted:
        return show_counts(root, as_json)
    if finish:
        return finish_demo(root, as_json)
    return run_demo(root, scenario or DEFAULT_SCENARIO, as_json)


@cli.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, metavar="PORT", help="On loopback."
)
@click.option("--jobs", "jobs_file", metavar="FILE", help="The registry; default ./jobs.yaml.")
def serve(port: int, jobs_file: str | None) -> int:
    """The TUI in a browser, on loopback, behind a token."""
    from wizard.tui.ways_in import serve_tui

    return serve_tui(_registry(jobs_file).path, "127.0.0.1", port)


def _registry(jobs_file: str | None) -> Registry:
    from wizard.jobs.registry import find_registry, load_registry

    return load_registry(find_registry(jobs_file))


def _one(registry: Registry, name: str) -> Job:
    from wizard.jobs.registry import get_job

    return get_job(registry, name)


walking.add_to(cli)
auditing.add_to(cli)


if __name__ == "__main__":
    main()
