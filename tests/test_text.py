"""Text for people."""

from __future__ import annotations

import pytest

from wizard.text import ago, batches, columns, fold, moment, plural, printable, size, some, span


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (86_400, "1 d"), (86_400 * 730, "2 y")],
)
def test_a_span_is_said_in_one_unit(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_a_time_is_said_from_now() -> None:
    assert [ago(None), ago(1_000, 61_000), ago(2_000, 1_000)] == ["–", "1 min ago", "in the future"]


@pytest.mark.parametrize(
    ("count", "said"), [(None, "–"), (0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (2.5e12, "2.5 TB")]
)
def test_a_size_is_said_in_decimal_units(count: int | None, said: str) -> None:
    assert size(count) == said


def test_one_is_singular() -> None:
    assert [batches([4]), batches([4, 5])] == ["batch 4", "batches 4, 5"]
    assert [plural(1, "file"), plural(0, "file"), plural(2, "entry", "entries")] == ["1 file", "0 files", "2 entries"]


def test_many_are_cut_short_and_counted() -> None:
    assert some(range(7)) == "0, 1, 2, 3, 4, … (7 in all)"
    assert some(range(5)) == "0, 1, 2, 3, 4"


def test_a_terminal_gets_no_escape_of_a_file() -> None:
    assert printable("a\x1b[31mb\nc\udce9") == "a\\x1b[31mb\\nc\\udce9"


def test_columns_line_up_and_the_last_is_left_alone() -> None:
    assert columns([["a", "bb", "c"], ["aaa", "b", "c "]]) == ["a    bb  c", "aaa  b   c "]
    assert columns([]) == []


def test_a_time_of_the_stream_is_said_in_full_and_any_number_is_one() -> None:
    assert [moment(1_704_067_275_000), moment(2**62)] == ["2024-01-01 00:01:15 UTC", f"{2**62} ms"]


def test_a_long_text_is_folded_under_its_beginning_and_no_path_is_broken() -> None:
    text = "Restore the file s3://bucket/a/very/long/path/that/fits/nowhere and then resume."
    assert fold(text, 4, 34) == [
        "Restore the file",
        "    s3://bucket/a/very/long/path/that/fits/nowhere",
        "    and then resume.",
    ]
    assert fold(text, 4, None) == fold(text, 30, 40) == [text]
