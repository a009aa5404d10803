"""Strict YAML: what is refused, where it says so, and how fast."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml

from wizard import strict_yaml
from wizard.errors import BadInput
from wizard.strict_yaml import load, load_file


@pytest.fixture(params=["libyaml", "pure python"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every behaviour holds with the C parser and without it."""
    if request.param == "pure python":
        monkeypatch.setattr(strict_yaml, "_LOADER", yaml.SafeLoader)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")


def refusal(text: str | bytes) -> str:
    with pytest.raises(BadInput) as caught:
        load(text, "f.yaml")
    message = str(caught.value)
    assert "\n" not in message
    assert message.count("; ") == 1, "one line: what is wrong; what to do"
    return message


def test_plain_data_comes_back_with_the_place_of_every_key() -> None:
    doc = load("version: 1\njobs:\n  a:\n    sink: {path: [x, 2.5, true, null]}\n", "jobs.yaml")
    assert doc.data == {"version": 1, "jobs": {"a": {"sink": {"path": ["x", 2.5, True, None]}}}}
    assert doc.where(("jobs", "a", "sink")) == "jobs.yaml:4:5"
    assert doc.where(("jobs", "a", "sink"), value=True) == "jobs.yaml:4:11"
    assert doc.where(("jobs", "a", "sink", "path", 1)) == "jobs.yaml:4:22"
    assert doc.position(("jobs",)) == (2, 1)


def test_a_path_that_is_not_there_gives_the_place_of_what_is_nearest_above() -> None:
    doc = load("\njobs:\n  a: {b: 1}\n", "jobs.yaml")
    assert doc.where(("jobs", "a", "missing", "deeper")) == "jobs.yaml:3:3"
    assert doc.where(("nothing",)) == "jobs.yaml:2:1"


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: the key a is there twice (first on line 1)"),
        ("a:\n  - {b: 1, b: 2}\n", "f.yaml:2:12: the key b is there twice"),
        ('a: 1\n"a": 2\n', "f.yaml:2:1: the key a is there twice"),
        ("a: on\n", "f.yaml:1:4: on is true or false to YAML 1.1; quote it"),
        ("a: [x, y]\n", "f.yaml:1:8: y is true or false"),
        ("cases:\n  Yes: done\n", "f.yaml:2:3: Yes is true or false"),
        ("a: 1\nt: 1:20\n", "f.yaml:2:4: 1:20 is a number in base 60"),
        ("t: 190:20:30.15\n", "f.yaml:1:4: 190:20:30.15 is a number in base 60"),
        ("mode: 010\n", "f.yaml:1:7: 010 is an octal number"),
        ("mode: 0o10\n", "f.yaml:1:7: 0o10 is a number in another base"),
        ("m: 1_000\n", "f.yaml:1:4: 1_000 is a number to YAML 1.1 and text to YAML 1.2"),
        ("m: 1e5\n", "f.yaml:1:4: 1e5 is text to YAML 1.1 and a number to YAML 1.2"),
        ("m: .nan\n", "f.yaml:1:4: .nan is not a finite number"),
        ("m: 9223372036854775808\n", "f.yaml:1:4: 9223372036854775808 is a number too large"),
        ("a:\n  <<: {b: 1}\n", "f.yaml:2:3: the merge key <<"),
        ("a: &x 1\n", "f.yaml:1:4: the anchor &x"),
        ("a: *x\n", "f.yaml:1:4: the alias *x"),
        ("a: !!python/object/apply:os.system [id]\n", "f.yaml:1:4: the tag tag:yaml.org,2002:python/object/apply"),
        ("a: !!str 1\n", "f.yaml:1:4: the tag tag:yaml.org,2002:str"),
        ("a: !mine {b: 1}\n", "f.yaml:1:4: the tag !mine"),
        ("1: a\n", "f.yaml:1:1: the key 1 is not text; quote it"),
        ("null: a\n", "f.yaml:1:1: the key null is not text"),
        ("? [a]\n: 1\n", "f.yaml:1:3: a key that is a list or a mapping"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document"),
        ("a:\n\tb: 1\n", "f.yaml:2:1: a tab"),
        ("a: 1\nb: x\x00\n", "f.yaml:2:5: the character U+0000 is not allowed"),
        ("a: x\u2028b: 1\n", "f.yaml:1:5: the character U+2028 is not allowed"),
        ("a: \udcff\n", "f.yaml:1:4: the character U+DCFF is not allowed"),
        (b"a: 1\nb: \xff\n", "f.yaml:2:4: byte 0xff is not UTF-8"),
        ("a: b: c\n", "f.yaml:1:5: not valid YAML"),
        ("a: 1\nb: 'x\nc: 2\n", "f.yaml:2:4: not valid YAML (while scanning a quoted scalar"),
        ('a: "\\ud800"\n', "f.yaml:1:"),
        ('a: "\\U00110000"\n', "f.yaml:1:"),
        ("", "f.yaml:1:1: the file is empty"),
        ("# only a comment\n", "f.yaml:1:1: the file is empty"),
        ("---\n", "f.yaml:1:1: the file is empty"),
        ("- " * 51 + "a\n", "f.yaml:1:101: nested more than 50 deep"),
    ],
)
def test_it_refuses_and_says_where(text: str | bytes, starts: str) -> None:
    assert refusal(text).startswith(starts)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('a: "on"', "on"),
        ("a: 'no'", "no"),
        ("a: online", "online"),
        ("a: 4.2.0", "4.2.0"),
        ("a: localhost:9092", "localhost:9092"),
        ("a: 2026-11-18", "2026-11-18"),
        ('a: "010"', "010"),
        ("a: -7", -7),
        ("a: 0", 0),
        ("a: 9223372036854775807", 2**63 - 1),
        ("a: 0.5", 0.5),
        ("a:", None),
        ("a: TRUE", True),
        ("a: |\n  on\n  1:20\n", "on\n1:20\n"),
        ('a: "tab\\tnul\\0"', "tab\tnul\0"),
        ("a: <<", "<<"),
        ('"<<": x\na: ok', "ok"),
        ("\ufeffa: bom", "bom"),
        ("a: grün", "grün"),
    ],
)
def test_it_reads_what_is_written(text: str, value: Any) -> None:
    assert load(text, "f.yaml").data["a"] == value


def test_fifty_levels_are_allowed() -> None:
    assert load("- " * 50 + "a\n", "f.yaml").data


def test_a_key_with_a_line_break_still_gives_a_one_line_message() -> None:
    assert refusal('"a\\nb": 1\n"a\\nb": 2\n').startswith("f.yaml:2:1: the key 'a\\nb' is there twice")


def test_an_anchor_bomb_is_refused_at_its_first_anchor_in_no_time_and_no_memory() -> None:
    levels = [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 10)]
    bomb = "l0: &l0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "\n".join(levels * 5000)
    bomb = bomb[: strict_yaml.MAX_BYTES]
    tracemalloc.start()
    began = time.monotonic()
    assert refusal(bomb).startswith("f.yaml:1:5: the anchor &l0")
    assert time.monotonic() - began < 2
    assert tracemalloc.get_traced_memory()[1] < 200_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("hostile", ["[" * 1_000_000, "{a: " * 1_000_000, "? " * 1_000_000, "- " * 1_000_000])
def test_deep_nesting_is_refused_without_being_walked(hostile: str) -> None:
    began = time.monotonic()
    refusal(hostile)
    assert time.monotonic() - began < 5


def test_a_number_made_to_be_slow_is_not() -> None:
    began = time.monotonic()
    assert load("a: 1" + "_" * 100_000 + "x", "f.yaml").data
    assert time.monotonic() - began < 2


def test_a_hundred_thousand_entries_are_read() -> None:
    doc = load("".join(f"k{i}: v{i}\n" for i in range(100_000)), "f.yaml")
    assert len(doc.data) == 100_000
    assert doc.where(("k99999",)) == "f.yaml:100000:1"


def test_size_is_looked_at_before_anything_is_parsed(tmp_path: Path) -> None:
    assert refusal(b"a" * (strict_yaml.MAX_BYTES + 1)).startswith("f.yaml:1:1: larger than 5,000,000 bytes")
    endless = tmp_path / "big.yaml"
    with endless.open("wb") as file:
        file.truncate(50_000_000_000)  # sparse: only a reader that looks first survives it
    with pytest.raises(BadInput, match="larger than"):
        load_file(endless)


def test_a_file_that_is_not_there_says_so_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nope\.yaml: cannot be read \(No such file or directory\); check the path"):
        load_file(tmp_path / "nope.yaml")
