"""JSON from outside is read to a depth at which nothing that handles it runs out of stack."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.growth import SOURCES

from holdfast.agents.claude.transcripts.files import TranscriptFiles, read_sidecar, sidecar_of
from holdfast.agents.claude.transcripts.merge import lines_in
from holdfast.setup.json_file import SettingsUnusable, parsed
from holdfast.teams.permissions import shown_input
from holdfast.text import bounded_json

OWN_TEXT = {
    "briefing.queries.breaks": "a column",
    "handoff.signing": "catches it, and takes no value that is nested",
    "handoff.tables": "catches it, and takes no value that is nested",
    "text.bounded_json": "what the others use",
    "bridge.queries.tasks": "a column",
    "bridge.queries.updates": "a column",
    "briefing.queries.agent_sessions": "a column",
    "briefing.queries.recent": "a column",
    "briefing.ledger.model": "a column",
    "cli.control": "the daemon's answer",
    "client": "the daemon's answer",
    "connections.queries.keys": "a column",
    "connections.signing_keys": "a file of the data directory",
    "demo.played_agent": "what the demo sends to its own process",
    "forgetting.model": "a file of the data directory",
    "history.queries": "a column",
    "relay.statusline": "catches it; and the daemon's answer",
    "process.home_lock": "a file of the data directory",
    "protocol.memories": "a column",
    "reasoning.queries.sessions": "a column",
    "relay.answers": "a file of the package or of the data directory",
    "relay.ends": "one word, which nests nothing",
    "relay.lines": "has a limit of its own",
    "relay.link": "the daemon's answer",
    "setup.originals": "a file of the data directory",
    "doctor.mcp_client": "the answer of Holdfast's own relay",
    "store.calls": "a column",
    "store.events": "a column",
    "store.high_water": "a file of the data directory",
    "store.loss_notices": "a file of the data directory",
    "daemon.upgrade": "the daemon's answer",
    "agents.claude.transcripts.queries": "a column",
    "teams.confirmation": "a file of the data directory; catches it",
    "teams.model": "a column",
    "teams.config": "has a limit of its own",
}
"""Modules that use `json` itself, and why they may: what Holdfast wrote is nested no deeper than it was written."""


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_json_from_outside_is_read_with_a_limit() -> None:
    found = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Attribute(ast.Name("json"), "loads" | "load" | "JSONDecoder"):
                    found.add(".".join(path.relative_to(SOURCES).with_suffix("").parts))
                case ast.ImportFrom(module="json"):
                    raise AssertionError(f"{path}: import json itself, so that this test sees what is used of it")
    assert sorted(found - OWN_TEXT.keys()) == [], "use bounded_json, or say whose text it is"
    assert sorted(OWN_TEXT.keys() - found) == [], "no longer there"


@pytest.mark.parametrize("text", [str, str.encode])
def test_what_is_nested_too_deeply_is_no_json(text: Callable[[str], str | bytes]) -> None:
    assert bounded_json.loads(text(_nested(bounded_json.MAX_DEPTH)))
    for depth in (bounded_json.MAX_DEPTH + 1, 900, 100_000):
        with pytest.raises(bounded_json.JsonTooDeep, match="200 levels"):
            bounded_json.loads(text(_nested(depth)))
    assert len(bounded_json.loads(text("[" + "[],{}," * 1_000 + "0]"))) == 2_001


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_a_transcript_with_a_line_that_is_nested_too_deeply_is_levelled(depth: int) -> None:
    """One such line kept its conversation from every further turn."""
    deep = f'{{"uuid": "2", "a": {_nested(depth)}}}'
    lines = lines_in(f'{{"uuid": "1"}}\n{deep}\n{{"uuid": "3"}}\n')
    assert [line.text for line in lines] == ['{"uuid": "1"}', deep, '{"uuid": "3"}'], "it stays in its file"
    assert [line.is_stored for line in lines] == [True, False, True]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_what_lies_beside_a_transcript_and_is_not_the_agents_is_replaced(tmp_path: Path, content: bytes) -> None:
    files = TranscriptFiles(tmp_path)
    path = files.file_of("project", "session", "subagents/one")
    path.parent.mkdir(parents=True)
    files.main_file("project", "session").write_text("")
    path.write_text('{"uuid": "1"}\n')
    sidecar_of(path).write_bytes(content)
    assert read_sidecar(path) is None
    lines = files.read("session")["subagents/one"]
    files.write("project", "session", "subagents/one", [*lines, *lines_in('{"type": "agent_metadata", "a": 1}\n')])
    assert read_sidecar(path) == {"a": 1}


def test_a_request_that_is_nested_too_deeply_is_shown_as_it_is() -> None:
    assert shown_input(_nested(900)) == _nested(900)


@pytest.mark.parametrize("text", [_nested(900), f'{{"a": {"1" * 5_000}}}'])
def test_settings_that_python_cannot_read_are_named(text: str) -> None:
    with pytest.raises(SettingsUnusable, match=r"settings\.json"):
        parsed(Path("settings.json"), text)
