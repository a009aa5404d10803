"""What lint says of a registry that can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from wizard.catalogue.live.binding import look
from wizard.catalogue.world import World
from wizard.jobs.registry import Problem, lint_registry, load_registry

FIXTURES = Path(__file__).parent.parent.parent / "fixtures/registry"


def told(problems: list[Problem]) -> list[str]:
    return [f"{p.where.rpartition('yaml:')[2]} {p.code} {p.severity} {', '.join(p.jobs)}" for p in problems]


def lint(tmp_path: Path, *jobs: str, runs: str = "./runs") -> list[str]:
    """Each job is `checkpoint sink`; only errors."""
    lines = ["version: 1", f'runs: "{runs}"', "jobs:"]
    for number, job in enumerate(jobs):
        checkpoint, sink = job.split(" ")
        lines.append(f'  j{number}: {{checkpoint: "{checkpoint}", source: {{format: json, path: ./in}},')
        lines.append(f'    sink: {{format: delta, path: "{sink}", key: [id]}}}}')
    path = tmp_path / "jobs.yaml"
    path.write_text("\n".join(lines))
    return [problem.code for problem in lint_registry(path) if problem.severity == "error"]


def test_a_good_registry_is_clean() -> None:
    assert lint_registry(FIXTURES / "good.yaml") == []


def test_paths_that_clash_or_change_are_told_where_they_are_written() -> None:
    assert told(lint_registry(FIXTURES / "bad-paths.yaml")) == [
        "7:33 J107 error a",
        "10:17 J101 error shares-checkpoint, a",
        "15:17 J102 error in-output, shares-checkpoint",
        "17:33 J104 error in-output, a",
        "22:33 J105 error output-in-output, shares-checkpoint",
        "25:17 J101 error same-store, output-in-output",
        "27:33 J106 error same-store",
        "29:3 J401 warning nested-checkpoint",
        "30:17 J103 error nested-checkpoint, output-in-output",
        "32:33 J106 error nested-checkpoint",
    ]


def test_keys_that_identify_no_row_are_told() -> None:
    assert told(lint_registry(FIXTURES / "bad-keys.yaml")) == [
        "6:5 J201 error no-key",
        "11:43 J201 error empty-key",
        "16:43 J202 error repeated",
        "21:43 J203 error offset-only",
        "26:43 J203 error two-topics",
        "31:43 J203 error coarse",
        "36:43 J204 warning untraced",
        "41:43 J205 warning of-the-run",
    ]


def test_circles_configs_and_controls_are_told() -> None:
    problems = lint_registry(FIXTURES / "bad-graph.yaml")
    assert told(problems) == [
        "3:3 J401 warning a",
        "6:5 J501 error a, b, c",
        "7:20 J301 error a",
        "12:69 J302 error b",
    ]
    assert "a → b → c → a" in problems[1].message


def test_the_other_place_is_named_with_its_line() -> None:
    problem = lint_registry(FIXTURES / "bad-paths.yaml")[1]
    assert problem.message == (
        "the checkpoint of shares-checkpoint is also the checkpoint of a (line 5); give each job its own"
    )


def test_a_symlink_does_not_hide_a_shared_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert lint(tmp_path, "./real/c ./o0", "./link/c ./o1") == ["J101"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/c", "s3a://b/c/"),
        ("s3://b/c", "s3n://b//x/../c"),
        ("gs://b/c", "gcs://b/c"),
        ("file:///x/c", "/x/./c"),
        ("file:/x/c", "//x/c/"),
        ("memory://x/c", "memory:///x/c"),
        ("hdfs://u:p@n:8020/c", "hdfs://n:8020/c"),
    ],
)
def test_two_spellings_of_one_place_are_one_place(tmp_path: Path, one: str, other: str) -> None:
    assert lint(tmp_path, f"{one} ./o0", f"{other} ./o1") == ["J101"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("/a/b", "/a/bc"), ("s3://b/c", "s3://b2/c"), ("s3://b/c", "gs://b/c"), ("abfss://a@x/c", "abfss://b@x/c")],
)
def test_look_alikes_are_two_places(tmp_path: Path, one: str, other: str) -> None:
    assert lint(tmp_path, f"{one} ./o0", f"{other} ./o1") == []
    assert lint(tmp_path, f"{one} {other}") == []


@pytest.mark.parametrize(
    ("jobs", "code"),
    [
        (["./out/_ckpt ./out"], "J102"),
        (["./c ./c/out"], "J102"),
        (["./c ./c"], "J102"),
        (["./c ./o", "./o/x ./o1"], "J102"),
        (["./c ./o", "./c1 ./o/"], "J104"),
        (["./c ./o", "./c/d ./o1"], "J103"),
        (["./runs/c ./o"], "J107"),
        (["./c ./runs"], "J107"),
    ],
)
def test_places_that_contain_each_other_are_refused(tmp_path: Path, jobs: list[str], code: str) -> None:
    assert lint(tmp_path, *jobs) == [code]


def test_a_runs_directory_inside_a_checkpoint_is_refused(tmp_path: Path) -> None:
    assert lint(tmp_path, "./c ./o", runs="./c/runs") == ["J107"]


@pytest.mark.parametrize(
    "part",
    ["{date}", "{{ ds }}", "%Y-%m-%d", "$(date)", "${ds}", "$DAY", "2026-11-18", "20261118", "2026/11/18", "18-11-2026", "20261118123456", "2026-11",
     "yyyy-MM-dd", "<date>", "dt=today", "c-1763452800", "temporary-9f1c2b3a-0d4e-4f5a-8b6c-7d8e9f0a1b2c",
     "tmpk3j9x_2a", "tmp.Xy12Zw", "tmp-4f2a9c"],
)  # fmt: skip
def test_a_path_that_changes_from_day_to_day_is_refused(tmp_path: Path, part: str) -> None:
    part = part.replace(" ", "")
    assert lint(tmp_path, f"./c/{part}/x ./o") == ["J106"]
    assert lint(tmp_path, f"./c s3://bucket/{part}") == ["J106"]


@pytest.mark.parametrize(
    "part",
    ["v2", "temperature_raw", "template", "tmp", "sensor_2026", "a%20b", "%d0%b0", "kafka-3.9.0", "us-east-1",
     "123456789012", "updated", "yy"],
)  # fmt: skip
def test_a_path_that_stays_is_not(tmp_path: Path, part: str) -> None:
    assert lint(tmp_path, f"./c/{part}/x ./o") == []


def test_what_a_path_shares_with_the_registry_is_as_stable_as_the_registry(tmp_path: Path) -> None:
    home = tmp_path / "tmpk3j9x_2a" / "2026-11-18"
    home.mkdir(parents=True)
    assert lint(home, f"{home}/c ./o") == []
    assert lint(home, f"{home}/c/2026-11-19 ./o") == ["J106"]


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ("./data/in", ["J108"]),  # a reset would take it away with the checkpoint
        ("./data", ["J108"]),
        ("./data-in", []),
        (".", ["J108"]),  # it would read what is put aside
        ("./runs/x", []),
        ("./data/*", []),
    ],
)
def test_a_source_is_not_where_a_walk_takes_things_away_or_puts_them(
    source: str, codes: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        f"version: 1\njobs:\n  a:\n    checkpoint: ./data\n    source: {{format: json, path: '{source}'}}\n"
        "    sink: {format: delta, path: s3://lake/out, key: [id]}\n"
    )
    assert [p.code for p in lint_registry(path) if p.severity == "error"] == codes


def test_two_jobs_writing_one_table_are_told(tmp_path: Path) -> None:
    text = "version: 1\njobs:\n"
    for name, user in (("a", "u:p@"), ("b", "v:q@")):
        text += (
            f"  {name}:\n    checkpoint: ./{name}\n    source: {{format: json, path: ./in}}\n    output_mode: update\n"
            f'    sink: {{format: jdbc, key: [id], options: {{url: "jdbc:x://{user}h/d", dbtable: t}}}}\n'
        )
    path = tmp_path / "jobs.yaml"
    path.write_text(text.replace("v:q@", "u:q@"))
    assert [p.code for p in lint_registry(path) if p.severity == "error"] == ["J104"]


@pytest.mark.parametrize(
    ("url", "table", "same"),
    [
        ("jdbc:postgresql://u:p@DB:5432/sensors", "public.hourly", True),
        ("jdbc:postgresql://db/sensors?user=etl&ssl=true", "HOURLY", True),
        ("jdbc:postgresql://db/sensors?currentSchema=public", '\\"hourly\\"', True),
        ("jdbc:postgresql://db/sensors", '\\"Hourly\\"', False),
        ("jdbc:postgresql://db/sensors", "gold.hourly", False),
        ("jdbc:postgresql://db/sensors?currentSchema=gold", "hourly", False),
        ("jdbc:postgresql://db:5433/sensors", "hourly", False),
        ("jdbc:postgresql://db/other", "hourly", False),
    ],
)
def test_one_table_of_postgresql_is_known_however_it_is_written(
    url: str, table: str, same: bool, tmp_path: Path
) -> None:
    """Emptying it for one job would empty it for the other."""
    text = "version: 1\njobs:\n"
    for name, at, what in (("a", "jdbc:postgresql://db/sensors", "hourly"), ("b", url, table)):
        text += (
            f"  {name}:\n    checkpoint: ./{name}\n    source: {{format: json, path: ./in}}\n    output_mode: update\n"
            f'    sink: {{format: jdbc, key: [id], options: {{url: "{at}", dbtable: "{what}"}}}}\n'
            "    control: {kind: process, start: [run], settle_seconds: 0.01}\n"
        )
    path = tmp_path / "jobs.yaml"
    path.write_text(text)
    assert [p.code for p in lint_registry(path) if p.severity == "error"] == ["J104"] * same
    registry = load_registry(path)
    alone = look("checkpoint.exclusive", World(registry, registry.jobs["a"], "run", str(tmp_path / "runs/run")))
    assert (alone.truth == "fails") == same, alone.evidence


@pytest.mark.parametrize(
    ("key", "source", "mode", "codes"),
    [
        ("[partition, offset]", "{format: kafka, options: {subscribe: t}}", "append", []),
        ("[topic, partition, offset]", "{format: kafka, options: {subscribe: 't,u'}}", "append", []),
        ("[partition, offset]", "{format: kafka, options: {subscribePattern: 't.*'}}", "append", ["J203 warning"]),
        ("[partition]", "{format: log, path: ./log}", "append", ["J203 error"]),
        ("[topic, partition]", "{format: kafka}", "append", ["J203 error"]),
        ("[hour]", "{format: kafka}", "complete", []),
        ("[region]", "{format: json, path: ./in}", "append", ["J203 error"]),
        ("[event_id]", "{format: json, path: ./in}", "append", []),
    ],
)
def test_a_key_is_judged_by_what_is_read_and_how_it_is_written(
    tmp_path: Path, key: str, source: str, mode: str, codes: list[str]
) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        f"version: 1\njobs:\n  a:\n    checkpoint: ./c\n    source: {source}\n    output_mode: {mode}\n"
        f"    sink: {{format: delta, path: ./o, key: {key}, partition_by: [region]}}\n"
        "    control: {kind: process, start: [x]}\n"
    )
    assert [f"{problem.code} {problem.severity}" for problem in lint_registry(path)] == codes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("startingOffsets: latest\n", True),
        ('{"source": {"startingOffsets": "latest"}}', True),
        ("spark.source.startingOffsets=latest\n", True),
        ("startingOffsets latest\n", True),
        ("# startingOffsets: latest\n", False),
        ("startingOffsetsByTimestamp: 1\n", False),
        ("my-startingOffsets: 1\n", False),
        ("", False),
    ],
)
def test_the_option_is_found_in_any_kind_of_config_file(tmp_path: Path, text: str, found: bool) -> None:
    (tmp_path / "app.conf").write_text(text)
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "version: 1\njobs:\n  a:\n    checkpoint: ./c\n    source: {format: json, path: ./in}\n"
        "    sink: {format: delta, path: ./o, key: [id]}\n    control: {kind: process, start: [x]}\n"
        "    config: {file: app.conf, starting_offsets: startingOffsets}\n"
    )
    assert [problem.code for problem in lint_registry(path)] == ([] if found else ["J302"])


def test_a_hundred_jobs_in_one_place_are_as_many_problems_and_no_more(tmp_path: Path) -> None:
    assert lint(tmp_path, *(f"./c ./o{number}" for number in range(100))) == ["J101"] * 99
