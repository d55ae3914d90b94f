"""Exports hold what was thought, and nothing that was thought breaks out of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.reasoning.export import DOCUMENT, fenced, inline, label, markdown_thought, mermaid
from holdfast.reasoning.model import Thought

LAW = settings(deadline=None, derandomize=True)
"""The same cases in every run, however slow the machine is."""


def thought(number: int, content: str = "x", **fields: object) -> Thought:
    values: dict[str, object] = {
        "next_needed": True,
        "total": None,
        "revises": None,
        "is_revision": False,
        "branch_id": None,
        "branch_from": None,
        "needs_more": False,
        "requested_number": None,
        "connection_id": None,
        "created_at": 0,
    }
    return Thought("s", number, content, **(values | fields))  # type: ignore[arg-type]


@LAW
@given(st.text(alphabet=st.sampled_from("`~\n ab#"), max_size=200))
def test_no_text_can_close_the_fence_it_stands_in(text: str) -> None:
    written = fenced(text)
    fence = re.match(r"`+", written)
    assert fence is not None
    assert written == f"{fence[0]}text\n{text}\n{fence[0]}"
    assert len(fence[0]) >= 3
    assert fence[0] not in text


@LAW
@given(st.text(max_size=300))
def test_a_mermaid_label_holds_no_character_that_ends_or_changes_it(text: str) -> None:
    written = label(text)
    assert not set(written) & set("\"'`<>[](){}|&\\\n\r")
    assert re.fullmatch(r"(?:[^#]|#[0-9]+;)*", written)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain words", "plain words"),
        ("a\n# heading", r"a \# heading"),
        ("<script>", r"\<script\>"),
        ("[x](y)", r"\[x\]\(y\)"),
        ("`code` *b*", r"\`code\` \*b\*"),
    ],
)
def test_a_title_stays_one_line_without_markup(text: str, written: str) -> None:
    assert inline(text) == written


def test_a_graph_shows_lines_branches_and_revisions() -> None:
    graph = mermaid(
        [
            thought(1),
            thought(2),
            thought(3, branch_id="alt", branch_from=1),
            thought(4, branch_id="alt", branch_from=1),
            thought(5, revises=2, is_revision=True),
        ],
        (),
    )
    edges = [line.strip() for line in graph.splitlines() if "->" in line]
    assert edges == ["t1 --> t2", 't1 -->|"branch alt"| t3', "t3 --> t4", "t2 --> t5", 't5 -.->|"revises"| t2']


def test_a_later_page_of_a_graph_goes_on_where_each_line_ended() -> None:
    graph = mermaid([thought(5), thought(6, branch_id="alt", branch_from=1)], [(None, 2), ("alt", 4)])
    assert "t2 --> t5" in graph
    assert "t4 --> t6" in graph
    assert "branch" not in graph


def test_a_thought_tells_its_branch_its_revision_and_the_number_it_was_sent_with() -> None:
    text = markdown_thought(thought(7, "text", branch_id="alt", branch_from=2, revises=3, requested_number=4), DOCUMENT)
    assert text.startswith("## Thought 7, branch `alt` from 2, revises 3\n\n1970-01-01T00:00:00.000Z, sent as 4\n")
