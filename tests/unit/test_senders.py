"""Who speaks: one table of cases; what a caller says of itself changes nothing in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BadInput
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.identity.managed import Managed, read_token, token_for
from holdfast.identity.project import RootSource, locate
from holdfast.identity.senders import Kind, NotYours, identify_sender, sender_of
from holdfast.teams.team import Team

RELAY, HTTP = Transport.RELAY, Transport.HTTP
ALL = None

CASES: list[tuple[Transport, dict[str, Any], tuple[Kind, str, set[str] | None, str | None]]] = [
    (RELAY, {}, (Kind.AGENT, "", ALL, None)),
    (RELAY, {"project": "shop"}, (Kind.AGENT, "shop", ALL, None)),
    (RELAY, {"here": ["a"]}, (Kind.TEAM, "a", {"a"}, "a")),
    (RELAY, {"here": ["a", "b"]}, (Kind.TEAM, "a", {"a", "b"}, "a")),
    (RELAY, {"declared": ["b"]}, (Kind.TEAM, "b", {"b"}, "b")),
    (RELAY, {"here": ["a"], "declared": ["b"]}, (Kind.TEAM, "a", {"a"}, "a")),
    (RELAY, {"managed": "c", "here": ["a"], "declared": ["b"]}, (Kind.TEAM, "c", {"c"}, "c")),
    (HTTP, {"key": "owner"}, (Kind.OWNER, "", ALL, None)),
    (HTTP, {"key": "ci"}, (Kind.KEY, "ci", ALL, None)),
    (HTTP, {"key": "owner", "declared": ["a"]}, (Kind.TEAM, "a", {"a"}, "a")),
    (HTTP, {"key": "ci", "key_teams": frozenset({"a"})}, (Kind.KEY, "ci", {"a"}, "a")),
    (HTTP, {"key": "ci", "key_teams": frozenset({"a", "b"})}, (Kind.KEY, "ci", {"a", "b"}, None)),
    (HTTP, {"key": "ci", "key_teams": frozenset({"a", "b"}), "declared": ["b"]}, (Kind.KEY, "ci", {"a", "b"}, "b")),
    (HTTP, {"key": "ci", "key_teams": frozenset({"a"}), "declared": ["b"]}, (Kind.KEY, "ci", {"a"}, "a")),
    (HTTP, {"key": "ci", "key_teams": frozenset()}, (Kind.KEY, "ci", set(), None)),
    (HTTP, {}, (Kind.AGENT, "", set(), None)),
]


@pytest.mark.parametrize(("transport", "facts", "expected"), CASES)
def test_who_speaks_is_what_the_connection_is(
    transport: Transport, facts: dict[str, Any], expected: tuple[Kind, str, set[str] | None, str | None]
) -> None:
    sender = identify_sender(transport, **facts)
    teams = None if sender.teams is None else set(sender.teams)
    assert (sender.kind, sender.name, teams, sender.home) == expected


@given(project=st.text(max_size=300), key=st.text(min_size=1, max_size=300))
def test_a_name_from_outside_is_one_printable_line_and_never_the_owner(project: str, key: str) -> None:
    for sender in (identify_sender(RELAY, project=project), identify_sender(HTTP, key=f"{key}x")):
        assert sender.label.isprintable() and len(sender.label) <= 100
        assert not sender.label.startswith(("the owner", "team "))


def test_a_team_speaks_for_itself_alone_and_somebody_outside_may_name_one() -> None:
    team, outside = identify_sender(RELAY, here=["a"]), identify_sender(RELAY)
    assert (team.acting_for(None), team.acting_for("a")) == ("a", "a")
    with pytest.raises(NotYours, match="cannot speak for"):
        team.acting_for("b")
    assert (outside.acting_for(None), outside.acting_for("b")) == (None, "b")
    with pytest.raises(BadInput, match="fromTeam"):
        identify_sender(HTTP, key="ci", key_teams=frozenset({"a", "b"})).acting_for(None)


def test_a_caller_in_a_teams_project_stays_there_whatever_it_says(tmp_path: Path) -> None:
    for name in ("a", "b", "a/inner", "a/deep/down", "elsewhere"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    teams = {name: Team(name, tmp_path / name) for name in ("a", "b")} | {"inner": Team("inner", tmp_path / "a/inner")}

    def speaker(directory: str, bound: str | None = None, **more: Any) -> str:
        root = locate(str(tmp_path / (bound or directory)), RootSource.BOUND)
        caller = Caller(RELAY, Era.MODERN, "relay:x", directories=(str(tmp_path / directory),), root=root, **more)
        return sender_of(caller, teams).label

    assert speaker("a") == speaker("link") == speaker("a/deep/down") == "team a"
    assert speaker("a/removed/since") == speaker("link/deep/down") == "team a"
    assert speaker("a/inner") == "team inner", "the nearest of nested projects"
    assert speaker("a", bound="elsewhere") == speaker("a", bound="b") == "team a", "bind_root changes nothing"
    assert speaker("a", client_name="the owner") == "team a"
    assert speaker("elsewhere") == "an agent in elsewhere"
    assert speaker("elsewhere", bound="b") == "team b", "who says it is in a team's project is no more than that team"
    assert speaker("elsewhere", managed=Managed(1, "b")) == "team b"


@pytest.mark.parametrize(
    "forged",
    ["", "1", "7", "7:a", "7:a:", "7:a:" + "0" * 32, "x:a:b", "7:é:é", None, token_for(7, "b").replace("b", "a", 1)],
    ids=range(10),  # a word made from a secret would be another in each worker
)
def test_a_managed_agents_token_cannot_be_made_up(forged: str | None) -> None:
    assert read_token(token_for(7, "a")) == Managed(7, "a")
    assert read_token(forged) is None
    assert read_token(token_for(7, "a").replace("7", "8", 1)) is None
