"""The starting offsets are read, and set, where the registry says they are; nothing else in the file changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from wizard.catalogue.effects import Write, load
from wizard.catalogue.live import config as live
from wizard.catalogue.live.aside import set_aside
from wizard.catalogue.world import World
from wizard.errors import BadInput
from wizard.jobs.registry import lint_registry, load_registry

JOBS = """\
version: 1 # ours
runs: ./runs
jobs:
  ingest:
    checkpoint: ./ck/ingest # here
    source: {format: kafka, options: {subscribe: t, "kafka.bootstrap.servers": h}}
    sink: {format: parquet, path: ./out/ingest/, key: [topic, partition, offset]}
    config: {file: conf.yaml, starting_offsets: SETTING}
  typed:
    checkpoint: ./ck/typed
    sources:
      - {format: parquet, path: ./elsewhere}
      - format: parquet
        options: {path: "./out/ingest"} # what ingest writes
    sink: {format: parquet, path: ./out/typed, key: [id]}
"""


def world_of(tmp_path: Path, conf: str, setting: str = "startingOffsets", jobs: str = JOBS) -> World:
    (tmp_path / "jobs.yaml").write_text(jobs.replace("SETTING", setting))
    (tmp_path / "conf.yaml").write_text(conf)
    registry = load_registry(tmp_path / "jobs.yaml")
    return World(registry, registry.jobs["ingest"], "run 2026-11-18", str(tmp_path / "runs/one"))


@pytest.mark.parametrize(
    ("conf", "setting", "truth"),
    [
        ("startingOffsets: earliest\n", "startingOffsets", "holds"),
        ("startingOffsets: latest\n", "startingOffsets", "fails"),
        ('startingOffsets: {t: {"0": 7}}\n', "startingOffsets", "fails"),
        ('startingOffsets: {t: {"0": -2, "1": -2}}\n', "startingOffsets", "holds"),
        ("""startingOffsets: '{"t": {"0": -2, "1": -1}}'\n""", "startingOffsets", "fails"),
        ("master: x\n", "startingOffsets", "fails"),
        ("options: {startingOffsets: earliest}\n", "options.startingOffsets", "holds"),
        ("a.b: earliest\n", "a.b", "holds"),
        ("startingOffsets: [\n", "startingOffsets", "unknown"),
    ],
)
def test_where_a_new_query_begins_is_told_from_the_file(tmp_path: Path, conf: str, setting: str, truth: str) -> None:
    assert live.offsets_earliest(world_of(tmp_path, conf, setting)).truth == truth


@pytest.mark.parametrize(
    ("option", "truth"), [("startingversion: '7'", "unknown"), ("StartingTimestamp: x", "unknown"), ("a: b", "holds")]
)
def test_a_delta_source_begins_with_the_table_unless_it_is_told_a_version_in_any_case(
    tmp_path: Path, option: str, truth: str
) -> None:
    jobs = JOBS.replace("{format: kafka, options: {subscribe: t,", f"{{format: delta, path: ./in, options: {{{option},")
    assert live.offsets_earliest(world_of(tmp_path, "startingOffsets: x\n", jobs=jobs)).truth == truth


def test_where_the_registry_does_not_say_it_is_unknown_and_for_files_it_is_so_by_nature(tmp_path: Path) -> None:
    world = world_of(tmp_path, "a: b\n", jobs=JOBS.replace(", starting_offsets: SETTING", ""))
    assert live.offsets_earliest(world).truth == "unknown"
    plan = live.config_earliest(world)
    assert plan.effects == () and "where the job has them" in plan.notes[-1]
    world.job = world.registry.jobs["typed"]
    seen = live.offsets_earliest(world)
    assert seen.truth == "holds" and "every file" in seen.evidence[0]
    assert live.config_earliest(world).effects == ()


def test_setting_the_earliest_changes_that_value_alone_and_undo_gives_the_old_bytes_back(tmp_path: Path) -> None:
    conf = "# how it runs\nmaster: 'local[2]'\nstartingOffsets: {t: {\"0\": 7}}  # since the move\n"
    world = world_of(tmp_path, conf)
    (effect,) = live.config_earliest(world).effects
    assert isinstance(effect, Write) and not effect.ours
    effect = load(effect.as_dict())
    for _ in range(2):
        effect.do(world)
        assert (tmp_path / "conf.yaml").read_text() == conf.replace('{t: {"0": 7}}', "earliest")
    assert live.offsets_earliest(world).truth == "holds" and live.config_earliest(world).effects == ()
    for _ in range(2):
        effect.undo(world)
        assert (tmp_path / "conf.yaml").read_text() == conf


def test_the_switch_renames_the_jobs_paths_and_what_its_readers_read_and_nothing_else(tmp_path: Path) -> None:
    world = world_of(tmp_path, "startingOffsets: earliest\n")
    assert live.registry_switched(world).truth == "fails"
    with pytest.raises(BadInput):
        live.registry_switch(world)
    beside = set_aside(world)
    world.memory["beside"] = beside.as_memory()
    assert live.registry_switched(world).truth == "fails"
    (effect,) = live.registry_switch(world).effects
    before = (tmp_path / "jobs.yaml").read_text()
    effect.do(world)
    expected = before.replace("./ck/ingest ", f"./ck/ingest{beside.suffix} ")
    expected = expected.replace("./out/ingest/,", f"./out/ingest{beside.suffix},")
    expected = expected.replace('"./out/ingest"', f'"./out/ingest{beside.suffix}"')
    assert (tmp_path / "jobs.yaml").read_text() == expected
    assert live.registry_switched(world).truth == "holds"
    new = load_registry(tmp_path / "jobs.yaml")
    assert new.jobs["ingest"].sink.path == new.jobs["typed"].sources[1].path == beside.sink
    assert [p for p in lint_registry(tmp_path / "jobs.yaml") if p.severity == "error"] == []
    # A second one replaces the first one's suffix.
    world = World(new, new.jobs["ingest"], "two", world.place)
    assert set_aside(world).sink == str(tmp_path / "out/ingest") + set_aside(world).suffix != beside.sink
    effect.undo(world)
    assert (tmp_path / "jobs.yaml").read_text() == before


def test_a_reader_of_more_than_this_output_is_not_pointed_elsewhere(tmp_path: Path) -> None:
    world = world_of(tmp_path, "a: b\n", jobs=JOBS.replace('"./out/ingest"', '"./out/*"'))
    world.memory["beside"] = set_aside(world).as_memory()
    with pytest.raises(BadInput, match=r"typed reads .*a path of its own first"):
        live.registry_switch(world)
