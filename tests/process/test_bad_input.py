"""Bad input on the relay gets a clear error, nothing is stored, and the connection goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.process.agent import Agent
from tests.shared_daemon import Guest

from holdfast.agents.settings import CORE_TOOLS

MIB = 1024 * 1024


def _stored(agent: Agent) -> int:
    return len(agent.init("list_sessions")["sessions"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"nextThoughtNeeded": True}, ["thought", "required"]),
        ({"thought": 5, "nextThoughtNeeded": True}, ["thought", "string"]),
        ({"thought": "x"}, ["nextThoughtNeeded", "required"]),
        ({"thought": "x", "nextThoughtNeeded": "yes"}, ["nextThoughtNeeded", "boolean"]),
        ({"thought": "", "nextThoughtNeeded": True}, ["thought"]),
        ({"thought": "a\x00b", "nextThoughtNeeded": True}, ["thought", "NUL"]),
        ({"thought": "x" * (MIB + 1), "nextThoughtNeeded": True}, ["thought", "1 MiB"]),
        ({"thought": "ä" * (MIB // 2 + 1), "nextThoughtNeeded": True}, ["thought", "1 MiB"]),
        ({"thought": "x", "nextThoughtNeeded": True, "branchId": "b"}, ["branchFromThought"]),
        (
            {"thought": "x", "nextThoughtNeeded": True, "branchId": "../up", "branchFromThought": 1},
            ["branchId"],
        ),
        ({"thought": "x", "nextThoughtNeeded": True, "thoughtNumber": 0}, ["thoughtNumber"]),
        ({"thought": "x", "nextThoughtNeeded": True, "colour": "red"}, ["colour"]),
        ({"thought": "x", "nextThoughtNeeded": True, "sessionId": "'; DROP TABLE"}, ["sessionId"]),
    ],
    ids=lambda value: None,
)
def test_a_bad_thought_is_refused_by_field(
    shared_embedded: Guest, project: Path, arguments: dict[str, object], words: list[str]
) -> None:
    with Agent(shared_embedded, project) as agent:
        text = agent.refused("thought", **arguments)
        assert all(word in text for word in words), text
        assert _stored(agent) == 0
        assert agent.think("and the connection goes on")["thoughtNumber"] == 1


def test_a_whole_mebibyte_is_kept(shared_embedded: Guest, project: Path) -> None:
    with Agent(shared_embedded, project) as agent:
        agent.think("x" * MIB)
        whole = agent.call("session", operation="get", **{"from": 1, "to": 1})
        assert whole["session"]["thoughtCount"] == 1


LINES = [
    b"this is not JSON",
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"thought","arguments":{"thought":"\\ud800"}}}',
    b'{"jsonrpc":"2.0","method":"tools/call","params":' + b'{"a":' * 500 + b"1" + b"}" * 500 + b',"id":7}',
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"\xff"}}',
    b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]',
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"thought","arguments":{"totalThoughts":NaN}}}',
]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_a_line_nobody_can_read_is_answered_with_its_own_id(
    shared_embedded: Guest, project: Path, line: bytes, era: str
) -> None:
    with Agent(shared_embedded, project, era=era) as agent:
        agent.write(line + b"\n")
        message = agent.receive()
        assert message["error"]["message"]
        assert message["id"] == (7 if b'"id":7' in line else None)
        assert agent.think("goes on")["thoughtNumber"] == 1


def test_a_line_of_a_hundred_megabytes_is_refused_and_the_relay_stays_small(
    shared_embedded: Guest, project: Path
) -> None:
    import psutil

    with Agent(shared_embedded, project) as agent:
        head = b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"thought","arguments":{"thought":"'
        agent.write(head)
        for _ in range(100):
            agent.write(b"x" * 1_000_000)
        agent.write(b'","nextThoughtNeeded":true}},"id":"big"}\n')
        message = agent.answer("big")
        assert "the limit is 8388608" in message["error"]["message"]
        assert psutil.Process(agent.process.pid).memory_info().rss < 60_000_000
        assert _stored(agent) == 0


def test_an_unknown_tool_is_named_with_the_known_ones(shared_embedded: Guest, project: Path) -> None:
    with Agent(shared_embedded, project) as agent:
        message = agent.answer(agent.ask("tools/call", {"name": "thougth", "arguments": {}}))
        assert "thougth" in message["error"]["message"] and "thought" in message["error"]["message"]


def test_the_core_is_listed_in_a_few_kilobytes(shared_embedded: Guest, project: Path) -> None:
    with Agent(shared_embedded, project) as agent:
        tools = agent.request("tools/list")["tools"]
        assert {tool["name"] for tool in tools} == {*CORE_TOOLS, "reconnect_session"}
        assert len(json.dumps(tools, separators=(",", ":"))) < 6 * 1024 + 512
        for tool in tools:
            assert tool["title"].startswith(("[Briefing] ", "[Reasoning] ", "[Connection] ", "[Task] "))
            assert tool["description"] and tool["outputSchema"]["type"] == "object"
            hints = tool["annotations"]
            # What is left out is as MCP has it: not read-only, destructive, not idempotent.
            destructive = not hints.get("readOnlyHint") and hints.get("destructiveHint", True)
            assert destructive == (tool["name"] == "session")
            assert "additionalProperties" not in tool["outputSchema"]
