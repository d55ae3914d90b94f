"""One long-lived relay process, and a daemon that dies at ever another byte: the agent never notices."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.process.fake_daemon import Cut, FakeDaemon
from tests.process.relay_process import RelayProcess

Json = dict[str, Any]

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PARAMS = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "t", "version": "1"},
}
# Bytes from one cut to the next; every single one is tried without a process in tests/unit/test_relay_session.py.
STEPS = [pytest.param(17, id="small"), pytest.param(3, id="whole", marks=pytest.mark.long)]


def call(id: int | str, text: str, meta: Json) -> Json:
    params = {"name": "remember", "arguments": {"text": text}, "_meta": meta}
    return {"method": "tools/call", "params": params, "jsonrpc": "2.0", "id": id}


def begin(relay: RelayProcess, era: str) -> Json:
    """Do what a client of that era does first; what its calls carry."""
    if era == "modern":
        listen = {"notifications": {"toolsListChanged": True}, "_meta": MODERN}
        relay.write({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": listen})
        assert relay.read()["method"] == "notifications/subscriptions/acknowledged"
        return MODERN
    relay.write({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": PARAMS})
    assert relay.read()["result"]["protocolVersion"] == "2025-11-25"
    relay.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return {}


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("direction", ["received", "sent"])
@pytest.mark.parametrize("step", STEPS)
def test_an_agent_never_notices_that_a_daemon_dies(tmp_path: Path, era: str, direction: str, step: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with FakeDaemon(home) as daemon, RelayProcess(home) as relay:
        meta = begin(relay, era)
        at, died = 1, 0
        while True:
            cut = Cut(received=at) if direction == "received" else Cut(sent=at)
            daemon.cuts.append(cut)
            connections = daemon.connections
            daemon.drop_connections()
            texts = {f"{at}-{part}": f"{direction} {at} {part}" for part in ("a", "b")}
            relay.write(*(call(id, text, meta) for id, text in texts.items()))
            answers: dict[str, str] = {}
            while len(answers) < len(texts):
                body = relay.read()
                if "id" in body:
                    assert body["id"] in texts
                    assert body["id"] not in answers
                    answers[body["id"]] = body["result"]["content"][0]["text"]
                else:
                    assert body["method"] == "notifications/progress"
            assert answers == texts
            lives = daemon.connections - connections
            assert lives in (1, 2)
            if lives == 1 and not daemon.cuts:
                break
            died += 1
            at += step
        assert died > 20
        assert daemon.server.effects == Counter(
            f"{direction} {n} {part}" for n in range(1, at + 1, step) for part in ("a", "b")
        )
        assert relay.hang_up() == 0
        assert relay.rest() == []
        assert relay.errors() == ""
