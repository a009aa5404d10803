"""A value of a YAML file changed in place leaves every other byte alone."""

from __future__ import annotations

import pytest

from wizard.errors import BadInput
from wizard.jobs.edit import set_value


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ("a: 1\nb: latest # why\nc: 2\n", "b", "a: 1\nb: earliest # why\nc: 2\n"),
        ('a: "latest"   # why\n', "a", 'a: "earliest"   # why\n'),
        ("a: 'latest'\n", "a", "a: 'earliest'\n"),
        ("a:\nb: 2\n", "a", "a: earliest\nb: 2\n"),
        ("a: {x: latest, w: 2} # why\n", "a.x", "a: {x: earliest, w: 2} # why\n"),
        ("o:\n  # above\n  x: latest\n  w: 2\n", "o.x", "o:\n  # above\n  x: earliest\n  w: 2\n"),
        ('b: {t: {"0": 23}} # why\nc: 1\n', "b", "b: earliest # why\nc: 1\n"),
        ('b: # why\n  t: {"0": 23}\n\n# next\nc: 1\n', "b", "b: earliest  # why\n\n# next\nc: 1\n"),
        ("b: |\n  one\n  two\n\nc: 1\n", "b", "b: earliest\n\nc: 1\n"),
        ("a: 1 # why\n# end\n", "b", "a: 1 # why\nb: earliest\n# end\n"),
        ("a: 1", "b", "a: 1\nb: earliest"),
        ("a: 1\r\nc: 2\r\n", "b", "a: 1\r\nc: 2\r\nb: earliest\r\n"),
        ("o:\n  x: 1 # why\nz: 2\n", "o.w", "o:\n  x: 1 # why\n  w: earliest\nz: 2\n"),
        ("o: {x: 1}\n", "o.w", "o: {x: 1, w: earliest}\n"),
        ("o: {}\n", "o.w", "o: {w: earliest}\n"),
        ("a: 1\n", "o.w", "a: 1\no: {w: earliest}\n"),
        ('{"a": 1}\n', "b", '{"a": 1, "b": "earliest"}\n'),
        ("\ufeffa: latest\n", "a", "\ufeffa: earliest\n"),
        ("é: ü # ö\na: latest # ö\n", "a", "é: ü # ö\na: earliest # ö\n"),
        ("s:\n  - {p: x}\n  - p: w # why\n", "s.1.p", "s:\n  - {p: x}\n  - p: earliest # why\n"),
    ],
)
def test_only_the_value_changes(before: str, path: str, after: str) -> None:
    parts = tuple(int(part) if part.isdigit() else part for part in path.split("."))
    assert set_value(before, "conf.yaml", parts, "earliest") == after
    assert set_value(after, "conf.yaml", parts, "earliest") == after


@pytest.mark.parametrize(
    "value", ["on", "010", "a: b", "x #y", "- z", '"', "it's", "", "./a b/c", "{x}", "1", "ä\u00a0"]
)
def test_a_value_comes_back_as_it_was_meant_however_it_must_be_quoted(value: str) -> None:
    from wizard.strict_yaml import load

    for before in ("a: b\nc: d\n", "{a: b, c: d}\n", "a: 'b'\nc: d\n"):
        assert load(set_value(before, "f", ("a",), value), "f").data == {"a": value, "c": "d"}


@pytest.mark.parametrize(("text", "path"), [("a: text\n", ("a", "b")), ("a: [1]\n", ("a", 3)), ("- 1\n", ("a",))])
def test_what_has_no_place_for_the_value_is_refused_in_one_line(text: str, path: tuple[str | int, ...]) -> None:
    with pytest.raises(BadInput, match=r"\Aconf.yaml:1:1: .*by hand\Z"):
        set_value(text, "conf.yaml", path, "earliest")
