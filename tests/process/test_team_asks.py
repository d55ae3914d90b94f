"""Asks and conversations of teams as a client sees them, with the echo agent in real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.echo import offered
from tests.agents.teams_world import write_teams
from tests.installation import PATIENCE, Installation
from tests.process.agent import Agent

NAMES = ("web", "api", "mobile")


class EchoTeams:
    """Three teams with the echo agent, each with a project of its own."""

    def __init__(self, holdfast: Installation, place: Path) -> None:
        self.holdfast = holdfast
        self.place = place
        self.teams: dict[str, dict[str, Any]] = {}
        for name in (*NAMES, "outside"):
            (place / name).mkdir()
        for name in NAMES:
            self.teams[name] = {"project": str(place / name), "agent": "echo"}
        holdfast.settings |= offered()
        self.write()
        holdfast.serve()

    def write(self) -> None:
        """Write teams.json as a person who confirms it does."""
        write_teams(self.holdfast, {}, self.teams)

    def at(self, name: str) -> Agent:
        """An agent in a team's project, or outside of all."""
        return Agent(self.holdfast, self.place / name, session=name)

    def transcripts(self) -> dict[str, str]:
        """What the echo agent keeps, by session."""
        return {path.stem: path.read_text() for path in (self.holdfast.home / "echo").glob("*.jsonl")}


@pytest.fixture
def teams(embedded: Installation, tmp_path: Path) -> Iterator[EchoTeams]:
    """Three teams on a daemon of this test's own."""
    yield EchoTeams(embedded, tmp_path)


def _ask(caller: Agent, team: str, question: str, **more: Any) -> dict[str, Any]:
    return caller.call("teams_ask", team=team, question=question, timeout=int(PATIENCE * 1000), **more)


def test_without_from_team_a_conversation_is_the_callers_own_and_no_other_is_touched(teams: EchoTeams) -> None:
    def session_of(reply: dict[str, Any]) -> str:
        assert reply["status"] == "answered", reply
        return str(reply["conversation"]["sessionId"])

    with teams.at("web") as web, teams.at("mobile") as mobile, teams.at("outside") as outside:
        theirs = {session_of(_ask(mobile, "api", "of mobile")), session_of(_ask(outside, "api", "of the owner"))}
        before = teams.transcripts()
        for operation in ("history", "compact", "fork", "archive", "restore", "reset"):
            more = {"deleteFiles": True} if operation == "archive" else {}
            assert web.refused("teams_session", operation=operation, team="api", **more).startswith("E_NOT_FOUND")
            told = web.refused("teams_session", operation=operation, team="api", fromTeam="mobile", **more)
            assert told.startswith("E_NOT_YOURS"), told
        assert teams.transcripts() == before
        mine = session_of(_ask(web, "api", "of web"))
        archived = web.call("teams_session", operation="archive", team="api", deleteFiles=True)["conversation"]
        assert (archived["fromTeam"], archived["status"]) == ("web", "archived")
        assert mine not in teams.transcripts() and teams.transcripts() == before
        assert {session_of(_ask(mobile, "api", "again")), session_of(_ask(outside, "api", "again"))} == theirs
