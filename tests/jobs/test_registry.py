"""The registry: where it is found, what it becomes, and how a file of the wrong form is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from wizard.errors import BadInput
from wizard.jobs.form import schema
from wizard.jobs.registry import (
    Answer,
    CommandControl,
    Config,
    ProcessControl,
    Sink,
    Source,
    SparkRestControl,
    check_job,
    find_registry,
    get_job,
    lint_registry,
    load_registry,
)

ROOT = Path(__file__).parent.parent.parent
FIXTURES = ROOT / "fixtures/registry"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "jobs.yaml"
    path.write_text(text, "utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        load_registry(path)
    message = str(caught.value)
    assert message.isprintable(), "one line"
    return message.removeprefix(f"{path}:")


def job(extra: str = "", sink: str = "{format: delta, path: ./out, key: [id]}") -> str:
    return (
        "version: 1\njobs:\n  a:\n    checkpoint: ./ckpt\n    source: {format: json, path: ./in}\n"
        f"    sink: {sink}\n{extra}"
    )


def test_a_good_registry_becomes_jobs_with_paths_beside_the_file() -> None:
    registry = load_registry(FIXTURES / "good.yaml")
    assert registry.runs == str(FIXTURES / "runs")
    assert list(registry.jobs) == ["sensor-raw-ingest", "sensor-clean", "sensor-hourly"]
    ingest = registry.jobs["sensor-raw-ingest"]
    assert ingest.checkpoint == str(FIXTURES / "checkpoints/sensor-raw-ingest")
    assert ingest.source == Source(
        "kafka", None, {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "sensor-raw"}
    )
    assert ingest.sink == Sink("delta", str(FIXTURES / "lake/raw/sensor_readings"), ("partition", "offset"))
    assert (ingest.output_mode, ingest.spark_version) == ("append", "4.2.0")
    assert ingest.config == Config(str(FIXTURES / "conf/sensor-raw-ingest.yaml"), "startingOffsets")


def test_each_kind_of_control_becomes_its_own_class() -> None:
    jobs = load_registry(FIXTURES / "good.yaml").jobs
    assert jobs["sensor-raw-ingest"].control == ProcessControl(
        start=("python", "jobs/ingest.py"), cwd=str(FIXTURES), pid_file=str(FIXTURES / "ingest.pid"), stop_timeout=30
    )
    assert jobs["sensor-clean"].control == CommandControl(
        start=("systemctl", "start", "sensor-clean"),
        stop=("systemctl", "stop", "sensor-clean"),
        status=("systemctl", "is-active", "sensor-clean"),
        running=Answer((0,)),
        stopped=Answer((3,), "^inactive"),
        settle_seconds=20,
    )
    assert jobs["sensor-hourly"].control == SparkRestControl("http://driver:4040", "sensor-hourly")
    assert [jobs[name].settle_seconds for name in jobs] == [10, 20, 10]


def test_several_sources_keep_their_order_and_urls_are_left_as_they_are() -> None:
    hourly = load_registry(FIXTURES / "good.yaml").jobs["sensor-hourly"]
    assert [source.format for source in hourly.sources] == ["parquet", "delta"]
    assert hourly.sources[1].path == "s3a://lake/dimensions/sensors"
    assert hourly.checkpoint == "s3a://lake/checkpoints/sensor-hourly"
    assert hourly.sink.idempotent is True


@pytest.mark.parametrize("url", ["memory://x/y", "file:/a/b", "file:///a/b", "s3://b/k/", "simplecache::s3://b/k"])
def test_any_url_is_left_as_it_is(tmp_path: Path, url: str) -> None:
    path = write(tmp_path, job(sink=f'{{format: delta, path: "{url}", key: [id]}}'))
    assert load_registry(path).jobs["a"].sink.path == url


def test_option_values_become_the_text_spark_takes(tmp_path: Path) -> None:
    path = write(tmp_path, job(sink="{format: delta, options: {path: ./o, m: 10, b: true}, key: [id]}"))
    sink = load_registry(path).jobs["a"].sink
    assert sink.options == {"path": "./o", "m": "10", "b": "true"}
    assert sink.path == str(tmp_path / "o")


def test_passwords_are_in_no_repr_and_in_no_masked_options() -> None:
    registry = load_registry(FIXTURES / "good.yaml")
    assert "hunter2" not in repr(registry)
    hourly = registry.jobs["sensor-hourly"]
    assert hourly.sink.options["password"] == "hunter2"
    assert hourly.masked_options()["sink"]["password"] == "***"
    assert hourly.masked_options()["sink"]["user"] == "etl"


def test_a_start_command_is_shown_without_its_password(tmp_path: Path) -> None:
    control = "    control: {kind: process, start: [run, --db-password, hunter2, 'url=x://u:p@h']}\n"
    loaded = load_registry(write(tmp_path, job(control))).jobs["a"]
    assert loaded.masked_start() == ("run", "--db-password", "***", "url=x://u:***@h")


def test_every_problem_of_form_is_told_with_its_line_and_column() -> None:
    told = [f"{p.where.rpartition('yaml:')[2]} {p.code} {p.message}" for p in lint_registry(FIXTURES / "bad-form.yaml")]
    assert told == [
        "1:10 J002 version cannot be 2; write 1",
        "2:1 J003 the registry has no key run; did you mean runs?",
        "4:3 J002 job a lacks checkpoint; add it",
        "5:5 J003 job a has no key checkpont; did you mean checkpoint?",
        "7:48 J002 sink.key of job a must be a list; write [id]",
        '8:20 J002 spark_version of job a must be text; quote it: "4.2"',
        "9:18 J002 output_mode of job a cannot be apend; did you mean append?",
        "10:37 J002 control.start of job a is a shell string; write a list: "
        '["spark-submit", "--conf", "a b", "job.py", "--password", "***"]',
        "11:3 J002 job Bad Name has both source and sources; keep one",
        "11:3 J004 the job name 'Bad Name' cannot be a directory name; "
        "use a-z, 0-9, '.', '_' and '-', for example bad-name",
        "12:17 J002 checkpoint of job Bad Name cannot be ~/checkpoints/b; "
        "write a path (~ is not expanded) or a URL such as s3a://bucket/checkpoints/ingest",
        "15:11 J002 sink of job Bad Name lacks path; add where the output is",
        "16:5 J002 job c is empty; write a mapping",
        "17:3 J002 job d lacks source; add it, or sources for several",
        '22:22 J002 control.start[1] of job d must be text; quote it: "10"',
        "23:13 J002 control.stop of job d is empty; write the program and its arguments as a list",
        "25:25 J002 control.running.output of job d is no regular expression "
        "(missing ), unterminated subpattern at position 0); correct it",
        "26:30 J002 control.stopped.exit_codes[0] of job d cannot be 256; exit codes are 0 to 255",
        "31:5 J002 control of job e lacks query_name and query_id; add one, so that the query is known",
        "31:38 J002 control.url of job e cannot be driver:4040; write it like http://driver:4040",
    ]


def test_loading_raises_the_first_of_them_in_one_line() -> None:
    assert refusal(FIXTURES / "bad-form.yaml") == "1:10: version cannot be 2; write 1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "1:1: the registry must be a mapping; it is a list now"),
        ("version: 1\njobs: {}\n", "2:7: jobs is empty; add a job"),
        ("version: 1\njobs: [a]\n", "2:7: jobs must be a mapping; it is a list now"),
        ("jobs: {a: 1}\n", "1:1: the registry lacks version; add it"),
        (job('  "b\\n": 1\n'), "7:3: the job name 'b\\n' cannot be a directory name"),
        (job('  "../b": 1\n'), "7:3: the job name '../b' cannot be a directory name"),
        (job(f"  {'b' * 101}: 1\n"), "7:3: the job name 'bbb"),
        (job('    "x\\e[31m": 1\n'), "7:5: job a has no key x\\x1b[31m; write one of checkpoint"),
        (job(sink='{format: delta, path: "a\\0b", key: [id]}'), "6:33: sink.path of job a cannot be"),
        (job(sink='{format: delta, path: "", key: [id]}'), "6:11: sink of job a lacks path"),
        (job(sink="{format: delta, path: a, options: {path: b}}"), "6:52: sink.options.path of job a is not the path"),
        (job("    control: {kind: shell, start: [x]}\n"), "7:21: control.kind of job a cannot be shell; write one of"),
        (
            job("    control: {kind: process, start: x, settle_seconds: 0}\n"),
            '7:37: control.start of job a is a shell string; write a list: ["x"]',
        ),
        (
            job("    control: {kind: process, start: ['']}\n"),
            "7:38: control.start[0] of job a cannot be empty; name the program",
        ),
        (job("    control: stop it\n"), "7:14: control of job a must be a mapping; it is text now"),
        (
            job("    control: {kind: process, start: [x], stop: [z]}\n"),
            "7:42: control of job a has no key stop; write one of cwd, env,",
        ),
        (job("    settle_seconds: 5\n"), "7:5: job a has no key settle_seconds"),
        (job("    spark_version: four\n"), '7:20: spark_version of job a cannot be four; write it like "4.2.0"'),
        (
            job(
                "    control: {kind: command, start: [x], stop: [x], status: [x],\n"
                "      running: {exit_codes: [0]}, stopped: {exit_codes: [3, 0]}}\n"
            ),
            "8:44: control.stopped of job a is the same answer as running",
        ),
        (job("    checkpoint: ./b\n"), "7:5: the key checkpoint is there twice (first on line 4); take one out"),
        ("version: 1\njobs: &a {x: *a}\n", "2:7: the anchor &a is not allowed"),
    ],
)
def test_a_wrong_form_is_refused_with_its_place_and_the_fix(tmp_path: Path, text: str, told: str) -> None:
    assert refusal(write(tmp_path, text)).startswith(told)


def test_the_value_of_an_option_is_in_no_message(tmp_path: Path) -> None:
    path = write(tmp_path, job(sink="{format: delta, path: ./o, key: [id], options: {password: [hunter2]}}"))
    assert "hunter2" not in refusal(path)


def test_lint_goes_on_past_a_job_of_the_wrong_form(tmp_path: Path) -> None:
    path = write(tmp_path, job("  b:\n    chekpoint: ./x\n", sink="{format: delta, path: ./out}"))
    assert [problem.code for problem in lint_registry(path)] == ["J401", "J201", "J002", "J002", "J002", "J003"]


def test_lint_of_what_is_no_yaml_is_one_problem(tmp_path: Path) -> None:
    path = write(tmp_path, "a: b: c\n")
    (problem,) = lint_registry(path)
    assert (problem.code, problem.where) == ("J001", f"{path}:1:5")
    assert lint_registry(tmp_path / "missing.yaml")[0].code == "J001"


def test_an_unknown_job_is_told_with_the_known_ones() -> None:
    registry = load_registry(FIXTURES / "bad-graph.yaml")
    with pytest.raises(BadInput, match="no job zzz; write one of a, b, c"):
        get_job(registry, "zzz")


def test_only_the_job_at_fault_is_refused_before_a_change() -> None:
    registry = load_registry(FIXTURES / "bad-keys.yaml")
    check_job(registry, "untraced")  # a warning keeps nobody from going on
    with pytest.raises(BadInput, match=r"bad-keys.yaml:6:5: the sink of no-key has no key"):
        check_job(registry, "no-key")


def test_the_registry_is_looked_for_in_four_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUNBOOK_JOBS", raising=False)
    with pytest.raises(BadInput, match=r"no jobs.yaml here; write one .* --jobs FILE or \$RUNBOOK_JOBS"):
        find_registry(None)
    for name in ("demo/jobs.yaml", "jobs.yaml", "env.yaml", "explicit.yaml"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("")
        if name == "env.yaml":
            monkeypatch.setenv("RUNBOOK_JOBS", name)
        assert find_registry(name if name == "explicit.yaml" else None) == Path(name)
    with pytest.raises(BadInput, match=r"nope.yaml: no such file, named by --jobs"):
        find_registry("nope.yaml")
    monkeypatch.setenv("RUNBOOK_JOBS", "gone.yaml")
    with pytest.raises(BadInput, match=r"gone.yaml: no such file, named by \$RUNBOOK_JOBS"):
        find_registry(None)


def test_the_schema_is_a_schema_and_describes_every_field() -> None:
    Draft202012Validator.check_schema(schema())
    for name, part in schema()["$defs"].items():
        for field, said in part.get("properties", {}).items():
            described = said is True or "description" in said or "$ref" in said or name in ("answer", "control")
            assert described, f"{name}.{field}"


def test_reading_a_registry_imports_nothing_heavy_and_importing_it_not_even_jsonschema() -> None:
    program = "import sys, json, wizard.jobs.registry, wizard.jobs.graph; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT, env={**os.environ}
    )
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert loaded & {"pyspark", "textual", "rich", "deltalake", "jsonschema", "fsspec", "pyarrow"} == set()


def test_the_example_in_the_docs_is_clean(tmp_path: Path) -> None:
    page = (ROOT / "docs/registry.md").read_text("utf-8")
    example = re.search(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert example
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/sensor-raw-ingest.yaml").write_text("startingOffsets: earliest\n")
    assert lint_registry(write(tmp_path, example[1])) == []


def test_the_docs_list_every_code_and_every_field() -> None:
    page = (ROOT / "docs/registry.md").read_text("utf-8")
    source = "".join(path.read_text("utf-8") for path in (ROOT / "wizard/jobs").glob("*.py"))
    assert set(re.findall(r"^\| (J\d{3}) ", page, re.MULTILINE)) == set(re.findall(r'"(J\d{3})"', source))
    fields = {field for part in schema()["$defs"].values() for field in part.get("properties", {})}
    assert {field for field in fields if f"`{field}`" not in page} == set()
