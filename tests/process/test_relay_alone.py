"""An agent is told its tools at once, also while no daemon is there; what a daemon says differently reaches it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION
from tests.catalogue import ENVELOPE, FILE, TOOLSETS, ask, legacy, make, modern
from tests.installation import Installation
from tests.process.agent import Agent
from tests.process.fake_daemon import FakeDaemon, FakeServer
from tests.process.relay_process import RelayProcess, eventually
from tests.shared_daemon import Guest

from holdfast.relay.answers import Answers
from holdfast.relay.session import DISCOVER, LISTS, RelaySession
from holdfast.version import __version__

Json = dict[str, Any]

DAEMONS_TOOLS = ["remember"]
"""What the fake daemon lists, which is not what the package ships."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def beginning(era: str) -> list[Json]:
    """What a client of that era asks first."""
    messages = legacy(*LISTS, "ping") if era == "legacy" else modern(DISCOVER, *LISTS)
    lines: list[Json] = [{"jsonrpc": "2.0", "id": message["method"], **message} for message in messages]
    if era == "legacy":
        lines.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return lines


def names(body: Json) -> list[str]:
    return [tool["name"] for tool in body["result"]["tools"]]


def test_the_package_ships_what_a_daemon_of_this_version_answers(shared_embedded: Guest, project: Path) -> None:
    assert make(shared_embedded, project) == json.loads(FILE.read_text()), "a tool has changed: run `make catalogue`"


@pytest.mark.parametrize("recognised", [True, False], ids=["recognised", "anonymous"])
@pytest.mark.parametrize("toolsets", ["auto", "all", *TOOLSETS, "teams,bridge"])
def test_a_shipped_answer_is_word_for_word_the_daemons(
    shared_embedded: Guest, project: Path, toolsets: str, recognised: bool
) -> None:
    shipped = Answers(str(shared_embedded.home), __version__, toolsets, str(project), recognised=recognised)
    session = shared_embedded.caller("s") if recognised else None
    for protocol in (*HANDSHAKE_PROTOCOL_VERSIONS, "1999-01-01"):
        told = ask(
            shared_embedded, project, *legacy(*LISTS, "ping", protocol=protocol), toolsets=toolsets, session=session
        )
        assert told == {method: shipped.shipped((method, "legacy", protocol)) for method in told}
    told = ask(shared_embedded, project, *modern(DISCOVER, *LISTS), toolsets=toolsets, session=session)
    assert told == {method: shipped.shipped((method, "modern", LATEST_MODERN_VERSION)) for method in told}


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"toolsListChanged": True, "promptsListChanged": False},
        {"resourcesListChanged": True, "resourceSubscriptions": ["holdfast://briefing"]},
        {"promptsListChanged": True, "resourceSubscriptions": []},
    ],
    ids=["nothing", "flags", "resources", "no-resources"],
)
def test_a_stream_is_acknowledged_in_the_daemons_own_words(shared_embedded: Guest, project: Path, wanted: Json) -> None:
    listen = {"method": "subscriptions/listen", "params": {"notifications": wanted, "_meta": ENVELOPE}}
    line = {"jsonrpc": "2.0", "id": "s", **listen}
    alone = RelaySession(find=lambda asked: None)
    alone.alone()
    alone.from_client(json.dumps(line).encode(), 0.0)
    with Agent(shared_embedded, project, era="modern", session="listener") as agent:
        agent.init("get_state")  # the daemon is there
        agent.send(line)
        assert json.loads(bytes(alone.to_client)) == agent.receive()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_tools_are_told_where_there_has_never_been_a_daemon(home: Path, era: str) -> None:
    with RelayProcess(home) as relay:  # what it starts instead of a daemon serves nobody
        asked = beginning(era)
        relay.write(*asked)
        answers = [relay.read() for line in asked if "id" in line]
        assert [body["id"] for body in answers] == [line["id"] for line in asked if "id" in line]
        assert "thought" in names(next(body for body in answers if body["id"] == "tools/list"))


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_tools_are_told_while_a_daemon_is_not_ready(home: Path, era: str) -> None:
    home.mkdir()
    with FakeDaemon(home, server=Mute()) as daemon:
        daemon.greeting = lambda hello: {"holdfast": "welcome", "version": __version__, "pid": 1, "ready": False}
        with RelayProcess(home) as relay:
            relay.write(*beginning(era))
            seen = [relay.read()["id"] for _ in range(4)]
            assert "tools/list" in seen
            eventually(lambda: "tools/list" in daemon.server.methods(), "the daemon is asked the same")


def test_a_daemon_that_was_not_ready_when_the_agent_shook_hands_serves_its_calls(home: Path) -> None:
    home.mkdir()
    with FakeDaemon(home) as daemon:
        daemon.greeting = lambda hello: {"holdfast": "welcome", "version": __version__, "pid": 1, "ready": False}
        with RelayProcess(home) as relay:
            eventually(lambda: daemon.server.hellos, "the relay has met the daemon")
            relay.write(*beginning("legacy")[:2])
            relay.read_until_answer("initialize")
            call = {"name": "remember", "arguments": {"text": "early"}}
            relay.write({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": call})
            assert relay.read_until_answer("c")[-1]["result"]["content"][0]["text"] == "early"
            assert daemon.server.methods().count("initialize") == 1


def test_tools_are_told_when_what_takes_the_connection_does_not_greet(home: Path) -> None:
    home.mkdir()
    with FakeDaemon(home) as daemon:
        daemon.greeting = lambda hello: None
        with RelayProcess(home) as relay:
            relay.write(*beginning("legacy")[:3])
            assert [relay.read()["id"], relay.read()["id"]] == ["initialize", "tools/list"]


def test_a_daemon_that_serves_is_asked_and_nobody_answers_for_it(home: Path) -> None:
    home.mkdir()
    with FakeDaemon(home), RelayProcess(home) as relay:
        relay.write(*beginning("legacy")[:3])
        assert relay.read()["id"] == "initialize"
        assert names(relay.read()) == DAEMONS_TOOLS


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_what_a_daemon_lists_differently_is_announced_and_then_listed(home: Path, era: str) -> None:
    with RelayProcess(home) as relay:
        asked = beginning(era)
        if era == "modern":
            wanted = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
            asked.append({"jsonrpc": "2.0", "id": "stream", "method": "subscriptions/listen", "params": wanted})
        relay.write(*asked)
        told = relay.read_until_answer("tools/list")
        assert "thought" in names(told[-1])
        with FakeDaemon(home) as daemon:
            while relay.read().get("method") != "notifications/tools/list_changed":
                continue
            relay.write({**asked[2], "id": "again"} if era == "legacy" else {**asked[1], "id": "again"})
            assert names(relay.read_until_answer("again")[-1]) == DAEMONS_TOOLS
            if era == "legacy":
                assert daemon.server.methods()[:2] == ["initialize", "notifications/initialized"]
                assert daemon.server.methods().count("initialize") == 1


def test_a_call_made_before_the_daemon_is_there_takes_effect_once(home: Path) -> None:
    with RelayProcess(home) as relay:
        call = {"name": "remember", "arguments": {"text": "early"}}
        relay.write(*beginning("legacy"), {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": call})
        relay.read_until_answer("tools/list")
        with FakeDaemon(home) as daemon:
            assert relay.read_until_answer("c")[-1]["result"]["content"][0]["text"] == "early"
            assert daemon.server.effects == {"early": 1}


def test_what_a_daemon_listed_in_a_project_is_told_there_the_next_time_no_daemon_is_ready(home: Path) -> None:
    home.mkdir()
    with FakeDaemon(home), RelayProcess(home) as relay:
        relay.write(*beginning("legacy"))
        relay.read_until_answer("ping")
        assert relay.hang_up() == 0
    with RelayProcess(home) as relay:
        relay.write(*beginning("legacy"))
        assert names(relay.read_until_answer("tools/list")[-1]) == DAEMONS_TOOLS
    with RelayProcess(home, env={"CLAUDE_PROJECT_DIR": "/another"}) as relay:
        relay.write(*beginning("legacy"))
        assert "thought" in names(relay.read_until_answer("tools/list")[-1])


def test_a_relay_that_is_killed_has_kept_what_its_daemon_listed(home: Path) -> None:
    home.mkdir()
    with FakeDaemon(home), RelayProcess(home) as relay:
        relay.write(*beginning("legacy"))
        relay.read_until_answer("ping")
        eventually(lambda: list((home / "answers").glob("*.json")), "the answers are kept while the relay runs")
        relay.process.kill()


def test_a_home_that_cannot_be_written_costs_a_note_and_no_answer(home: Path) -> None:
    home.mkdir()
    (home / "answers").write_text("in the way")
    with FakeDaemon(home), RelayProcess(home) as relay:
        relay.write(*beginning("legacy"))
        assert names(relay.read_until_answer("tools/list")[-1]) == DAEMONS_TOOLS
        relay.read_until_answer("ping")
        assert relay.hang_up() == 0
        eventually(lambda: "cannot keep the list of tools" in relay.errors(), "it is said")


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_thought_on_a_machine_without_a_daemon_is_recorded_after_tools_were_told(
    embedded: Installation, project: Path, era: str
) -> None:
    with Agent(embedded, project, era=era, session="first-ever") as agent:
        assert "thought" in [tool["name"] for tool in agent.request("tools/list")["tools"]]
        assert agent.think("the first one")["thoughtNumber"] == 1
        assert not [body for body in agent.seen if "list_changed" in body.get("method", "")]


def test_a_project_with_teams_of_its_own_has_their_tools_listed_after_the_first_time(
    embedded: Installation, project: Path
) -> None:
    embedded.home.mkdir(mode=0o700)
    (embedded.home / "teams.json").write_text(json.dumps({"teams": {"home": {"path": str(project)}}}))
    with Agent(embedded, project, session="first") as agent:
        agent.request("tools/list")
        agent.init("get_state")
        now = [tool["name"] for tool in agent.request("tools/list")["tools"]]
        assert "teams_ask" in now
        assert [body["method"] for body in agent.seen] == ["notifications/tools/list_changed"]
    embedded.run("stop")
    with Agent(embedded, project, session="second") as agent:
        assert [tool["name"] for tool in agent.request("tools/list")["tools"]] == now


class Mute(FakeServer):
    """A daemon that reads everything and is not ready to answer."""

    def life(self) -> Any:
        """A connection on which nothing is answered."""
        return MuteLife(self)


class MuteLife:
    """Notes what it reads."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server

    def answer(self, body: Json) -> list[bytes]:
        """No line at all."""
        self._server.seen.append(body)
        return []
