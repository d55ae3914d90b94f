"""The hash chain: nothing of a thought can change without its hash changing."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.reasoning.hash_chain import genesis, seal
from holdfast.reasoning.model import Thought

LAW = settings(deadline=None, derandomize=True)
"""The same cases in every run, however slow the machine is."""

THOUGHT = Thought("s", 1, "content", True, None, None, False, None, None, False, None, None, 1000)

CHANGES = {
    "session_id": "other",
    "number": 2,
    "content": "Content",
    "next_needed": False,
    "total": 3,
    "revises": 1,
    "is_revision": True,
    "branch_id": "alt",
    "branch_from": 1,
    "needs_more": True,
    "requested_number": 1,
    "connection_id": "c",
    "created_at": 1001,
}


def test_every_stored_field_has_a_change_to_be_noticed() -> None:
    assert set(CHANGES) == {field.name for field in fields(Thought)}


@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_of_any_field_changes_the_hash(name: str) -> None:
    changed = replace(THOUGHT, **{name: CHANGES[name]})  # type: ignore[arg-type]
    assert seal("p", changed) != seal("p", THOUGHT)


def test_the_hash_depends_on_the_thought_before() -> None:
    assert seal(genesis("one"), THOUGHT) != seal(genesis("two"), THOUGHT)


def test_the_hash_of_a_thought_is_the_same_in_every_release() -> None:
    text = (
        '{"branch_from":null,"branch_id":null,"connection_id":null,"content":"content","created_at":1000,'
        '"is_revision":false,"needs_more":false,"next_needed":true,"number":1,"requested_number":null,"revises":null,'
        '"session_id":"s","total":null}'
    )
    start = hashlib.sha256(b"s").hexdigest()
    assert genesis("s") == start
    assert seal(start, THOUGHT) == hashlib.sha256(f"{start}\n{text}".encode()).hexdigest()


@LAW
@given(st.text(), st.text())
def test_different_contents_have_different_hashes(one: str, other: str) -> None:
    same = seal("p", replace(THOUGHT, content=one)) == seal("p", replace(THOUGHT, content=other))
    assert same is (one == other)
