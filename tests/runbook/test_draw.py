"""A runbook drawn: nothing left out, nothing that breaks the page it is put on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import walker
from shipped import FILES, NAMES, ROOT, data

from wizard.runbook.draw import draw_mermaid, draw_text
from wizard.runbook.lint import proved
from wizard.runbook.load import read
from wizard.runbook.model import Runbook

# The part of Mermaid's grammar that is used: https://mermaid.js.org/syntax/flowchart.html
LABEL = r"(?:[^\"#<>&`;|\\{}\[\]]|#\d+;)+"
SHAPES = ((r"\[/", r"/\]"), (r"\{", r"\}"), (r"\[", r"\]"), (r"\(\[", r"\]\)"))
NODE = re.compile("  (s_[a-z0-9_]+)(?:" + "|".join(f'{left}"({LABEL})"{right}' for left, right in SHAPES) + ")")
EDGE = re.compile(r'  (s_[a-z0-9_]+) -->\|"([a-z0-9_]+)"\| (s_[a-z0-9_]+)')
OTHER = re.compile(r"  (?:%% [^\n]*|classDef destroys [a-z0-9:#,-]+|class ((?:s_[a-z0-9_]+,?)+) destroys)")


def parsed(mermaid: str) -> tuple[dict[str, str], set[tuple[str, str, str]], set[str]]:
    """Nodes with their labels, edges, and the nodes marked as destroying; or an assertion about the line that is wrong."""
    first, *lines = mermaid.splitlines()
    assert first == "flowchart TD"
    nodes: dict[str, str] = {}
    edges: set[tuple[str, str, str]] = set()
    marked: set[str] = set()
    for line in lines:
        if node := NODE.fullmatch(line):
            assert node[1] not in nodes, line
            nodes[node[1]] = next(label for label in node.groups()[1:] if label)
        elif edge := EDGE.fullmatch(line):
            edges.add((edge[1], edge[2], edge[3]))
        else:
            other = OTHER.fullmatch(line)
            assert other, line
            marked |= set((other[1] or "").split(",")) - {""}
    assert {end for one, _, other in edges for end in (one, other)} | marked <= set(nodes)
    return nodes, edges, marked


@pytest.mark.parametrize("name", NAMES)
def test_the_mermaid_of_a_shipped_runbook_is_well_formed_and_whole(name: str) -> None:
    steps = data(name)["steps"]
    nodes, edges, marked = parsed(draw_mermaid(proved(FILES[name])))
    assert set(nodes) == {f"s_{step}" for step in steps}
    assert edges == {(f"s_{one}", label, f"s_{to}") for one, body in steps.items() for label, to in walker.ways(body)}
    assert marked == {f"s_{step}" for step, body in steps.items() if "confirm" in body}


@pytest.mark.parametrize("name", NAMES)
def test_the_text_of_a_shipped_runbook_is_whole_and_fits_a_terminal(name: str) -> None:
    steps = data(name)["steps"]
    text = draw_text(proved(FILES[name]))
    assert max(map(len, text.splitlines())) <= 120
    drawn: set[tuple[str, str, str]] = set()
    for block in text.split("\n\n")[1:]:
        step = block.split()[0]
        drawn |= {(step, label, to) for label, to in re.findall(r"^  [├└] (\w+) +→ (\w+)$", block, re.MULTILINE)}
        for word in (steps[step].get("ask") or steps[step].get("check") or steps[step].get("do") or "").split():
            assert word in block
    assert drawn == {(one, label, to) for one, body in steps.items() for label, to in walker.ways(body)}


def test_the_way_it_should_go_reads_from_top_to_bottom() -> None:
    text = draw_text(proved(FILES["reset"]))
    order = ["rebuild", "fence", "truncate", "delete", "earliest", "start", "exact", "done"]
    places = [text.index(f"\n{step}  ") for step in order]
    assert places == sorted(places)


def hostile(question: str, tmp_path: Path) -> Runbook:
    text = (
        "runbook: 1\nid: end\nstart: end\nsteps:\n"
        f"  end: {{ask: {question}, options: {{end: {{say: Well., goto: graph}}}}}}\n"
        "  graph: {end: hand_over}\n"
    )
    runbook = read(text, "end.yaml").runbook
    assert runbook is not None
    return runbook


@pytest.mark.parametrize(
    "question",
    [
        r'"Say \"yes\"?"',
        '"<script>alert(1)</script>"',
        '"#quot; &amp; `code` a|b; [x] {y} \\\\"',
        r'"one\n\nclass s_x destroys\n%%{init: {}}%%"',
    ],
)
def test_no_words_of_a_runbook_get_out_of_their_label(question: str, tmp_path: Path) -> None:
    nodes, edges, marked = parsed(draw_mermaid(hostile(question, tmp_path)))
    assert (set(nodes), edges, marked) == ({"s_end", "s_graph"}, {("s_end", "end", "s_graph")}, set())


def test_a_question_of_one_long_word_is_not_cut(tmp_path: Path) -> None:
    assert "x" * 500 in draw_text(hostile("x" * 500, tmp_path))


def test_the_page_shows_triage_as_it_is() -> None:
    page = (ROOT / "docs" / "runbooks.md").read_text("utf-8")
    assert f"```mermaid\n{draw_mermaid(proved(FILES['triage']))}```" in page
