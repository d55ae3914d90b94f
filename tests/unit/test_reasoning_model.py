"""The rules of a session, as tables of cases and as laws."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import BadInput
from holdfast.identity.project import Root, RootSource
from holdfast.reasoning.model import (
    Branch,
    Draft,
    Session,
    Status,
    branch_start,
    check_revision,
    expected_total,
    first_free,
    next_number,
    of_another_project,
    other_root,
)

LAW = settings(deadline=None, derandomize=True)
"""The same cases in every run, however slow the machine is."""


def session(
    name: str = "s", *, count: int = 0, damage: str | None = None, root: str | None = None, key: str = "k"
) -> Session:
    return Session(
        id=name,
        title=name,
        tags=(),
        domain=None,
        status=Status.ACTIVE,
        pinned=False,
        root_uri=root,
        project_key=key,
        thought_count=count,
        branch_count=0,
        head_hash="",
        damage=damage,
        created_at=0,
        updated_at=0,
    )


@pytest.mark.parametrize(
    ("count", "damage", "highest", "number"),
    [(0, None, 0, 1), (47, None, 0, 48), (3, "lost 2", 4, 5), (9, "lost 9", 4, 10), (0, "lost all", 0, 1)],
)
def test_the_next_number_follows_the_count_and_in_a_damaged_session_the_highest(
    count: int, damage: str | None, highest: int, number: int
) -> None:
    assert next_number(session(count=count, damage=damage), highest) == number


@LAW
@given(st.one_of(st.none(), st.integers(1, 10**9)), st.integers(1, 10**9))
def test_the_expected_total_is_never_below_the_number(total: int | None, number: int) -> None:
    expected = expected_total(Draft("x", True, total=total), number)
    assert expected == (None if total is None else max(total, number))


KNOWN = Branch("alt", 2, 3)


@pytest.mark.parametrize(
    ("branch_id", "branch_from", "known", "start"),
    [
        (None, None, None, None),
        (None, 2, None, 2),
        ("alt", 2, None, 2),
        ("alt", None, KNOWN, 2),
        ("alt", 2, KNOWN, 2),
        ("new", 47, None, 47),
    ],
)
def test_a_branch_leaves_from_the_thought_it_named_first(
    branch_id: str | None, branch_from: int | None, known: Branch | None, start: int | None
) -> None:
    assert branch_start(Draft("x", True, branch_id=branch_id, branch_from=branch_from), known, 47) == start


@pytest.mark.parametrize(
    ("branch_id", "branch_from", "known", "message"),
    [
        (None, 48, None, "branchFromThought: 48 does not exist; valid range is 1-47"),
        ("alt", None, None, "branchFromThought: is missing, and branch alt is new"),
        ("alt", 999, None, "branchFromThought: 999 does not exist; valid range is 1-47"),
        ("alt", 0, None, "branchFromThought: 0 does not exist; valid range is 1-47"),
        ("alt", -1, None, "branchFromThought: -1 does not exist"),
        ("alt", 3, KNOWN, "branch alt leaves from thought 2"),
    ],
)
def test_a_branch_that_makes_no_sense_is_refused_by_name(
    branch_id: str | None, branch_from: int | None, known: Branch | None, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        branch_start(Draft("x", True, branch_id=branch_id, branch_from=branch_from), known, 47)


@LAW
@given(st.integers(-(10**6), 10**6), st.integers(0, 1000))
def test_a_revision_is_accepted_exactly_within_the_range(revises: int, last: int) -> None:
    draft = Draft("x", True, revises=revises)
    if 1 <= revises <= last:
        check_revision(draft, last)
    else:
        with pytest.raises(BadInput, match="revisesThought"):
            check_revision(draft, last)


@LAW
@given(st.lists(st.booleans(), max_size=20))
def test_recovery_takes_the_first_session_nobody_holds_and_reports_the_held_before_it(held: list[bool]) -> None:
    sessions = [session(str(place)) for place in range(len(held))]
    pick = first_free(sessions, lambda found: held[int(found.id)])
    free = held.index(False) if False in held else None
    assert pick.session == (None if free is None else sessions[free])
    assert list(pick.held) == sessions[:free]


ROOT = Root("file:///p", "k", RootSource.BOUND)


@pytest.mark.parametrize(
    ("root", "session_root", "key", "elsewhere", "foreign"),
    [
        (ROOT, "file:///p", "k", None, False),
        (ROOT, "file:///w", "k", "file:///w", False),
        (ROOT, "file:///x", "other", "file:///x", True),
        (ROOT, None, "k", None, False),
        (None, "file:///x", "other", None, False),
        (Root("file:///p", None, RootSource.BOUND), "file:///x", "k", "file:///x", True),
    ],
)
def test_a_root_is_another_one_by_its_uri_and_a_project_by_its_key(
    root: Root | None, session_root: str | None, key: str, elsewhere: str | None, foreign: bool
) -> None:
    found = session(root=session_root, key=key)
    assert other_root(found, root) == elsewhere
    assert of_another_project(found, root) is foreign
