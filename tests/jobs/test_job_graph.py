"""Who reads what whom writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from wizard.errors import BadInput
from wizard.jobs.graph import consumers, cycles, producers, readers
from wizard.jobs.registry import Registry, load_registry

FIXTURES = Path(__file__).parent.parent.parent / "fixtures/registry"


def registry(tmp_path: Path, **jobs: tuple[str, str]) -> Registry:
    """Each job is (what it reads, what it writes)."""
    lines = ["version: 1", "jobs:"]
    for name, (reads, writes) in jobs.items():
        lines.append(f'  {name}: {{checkpoint: "./c/{name}", source: {{format: json, path: "{reads}"}},')
        lines.append(f'    sink: {{format: json, path: "{writes}", key: [id]}}}}')
    path = tmp_path / "jobs.yaml"
    path.write_text("\n".join(lines))
    return load_registry(path)


def test_consumers_are_found_through_others_nearest_first() -> None:
    good = load_registry(FIXTURES / "good.yaml")
    assert consumers(good, "sensor-raw-ingest") == ("sensor-clean", "sensor-hourly")
    assert consumers(good, "sensor-hourly") == ()
    assert producers(good, "sensor-hourly") == ("sensor-clean", "sensor-raw-ingest")


def test_a_diamond_names_each_job_once(tmp_path: Path) -> None:
    made = registry(tmp_path, a=("in", "a"), far=("b1", "d"), b1=("a", "b1"), b2=("a", "b2"))
    assert consumers(made, "a") == ("b1", "b2", "far")


def test_a_circle_ends_and_does_not_name_the_job_itself(tmp_path: Path) -> None:
    made = registry(tmp_path, a=("c", "a"), b=("a", "b"), c=("b", "c"), d=("a", "d"))
    assert consumers(made, "a") == ("b", "d", "c")
    assert producers(made, "a") == ("c", "b")
    assert cycles(made) == [("a", "b", "c")]


def test_a_job_that_reads_its_own_output_is_a_circle(tmp_path: Path) -> None:
    assert cycles(registry(tmp_path, a=("x", "x/out"))) == [("a",)]


@pytest.mark.parametrize(
    ("reads", "consumer"),
    [
        ("lake/a", True),
        ("./lake/x/../a/", True),
        ("lake/a/day=1", True),
        ("lake", True),
        ("lake/*", True),
        ("lake/{a,b}/part-*", True),
        ("lake/ab", False),
        ("lake/b*", False),
        ("s3://lake/a", False),
    ],
)
def test_a_path_is_followed_up_down_and_through_globs(tmp_path: Path, reads: str, consumer: bool) -> None:
    made = registry(tmp_path, a=("in", "lake/a"), b=(reads, "out"))
    assert consumers(made, "a") == (("b",) if consumer else ())


@pytest.mark.parametrize(
    ("options", "consumer"),
    [
        ("subscribe: 'x, t'", True),
        ("subscribe: u", False),
        ("subscribePattern: 't.*'", True),
        ("subscribePattern: 'u.*'", False),
        ("assign: '{\"t\": [0, 1]}'", True),
        ("subscribe: t, kafka.bootstrap.servers: 'h1:1,h2:1'", True),
        ("subscribe: t, kafka.bootstrap.servers: 'other:1'", False),
    ],
)
def test_a_kafka_topic_makes_a_consumer_too(tmp_path: Path, options: str, consumer: bool) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "version: 1\njobs:\n"
        "  a: {checkpoint: ./a, source: {format: json, path: in},\n"
        "    sink: {format: kafka, key: [id], options: {topic: t, kafka.bootstrap.servers: 'h1:1'}}}\n"
        f"  b: {{checkpoint: ./b, source: {{format: kafka, options: {{{options}}}}},\n"
        "    sink: {format: json, path: out, key: [id]}}\n"
    )
    assert consumers(load_registry(path), "a") == (("b",) if consumer else ())


def test_a_long_chain_needs_no_recursion(tmp_path: Path) -> None:
    made = registry(tmp_path, **{f"j{number}": (f"d{number}", f"d{number + 1}") for number in range(1500)})
    assert len(consumers(made, "j0")) == 1499
    assert cycles(made) == []
    assert readers(made)["j7"] == ("j8",)


def test_an_unknown_job_is_bad_input() -> None:
    with pytest.raises(BadInput, match="no job nope"):
        consumers(load_registry(FIXTURES / "good.yaml"), "nope")
