"""Senders from outside: an attacker in one team's project, with a real relay, against another team."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.attacks import ATTACKS, CANARY, forged_lines, unquoted_lines
from tests.installation import PATIENCE, Installation
from tests.process.agent import MODERN_META, Agent

CLIENT = "io.modelcontextprotocol/clientInfo"


@pytest.fixture
def place(embedded: Installation, tmp_path: Path) -> Iterator[Path]:
    """Where homelab and felt have their projects; a daemon serves them."""
    for name in ("homelab", "felt/src", "outside"):
        (tmp_path / name).mkdir(parents=True)
    teams = {name: {"project": str(tmp_path / name), "delivery": "hook"} for name in ("homelab", "felt")}
    embedded.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (embedded.home / "teams.json").write_text(json.dumps({"teams": teams}))
    embedded.serve()
    yield tmp_path


def test_no_name_that_a_client_gives_itself_makes_it_the_owner(embedded: Installation, place: Path) -> None:
    with Agent(embedded, place / "felt" / "src", era="modern", session="felt") as felt:
        for number, name in enumerate(("the owner", "team homelab", *ATTACKS)):
            meta = {**MODERN_META, CLIENT: {"name": name, "version": "1"}}
            arguments = {"target": "homelab", "message": f"{number}\n{ATTACKS[0]}"}
            sent = felt.request("tools/call", {"name": "send_message", "arguments": arguments, "_meta": meta})
            assert sent["structuredContent"]["queued"], sent
    with Agent(embedded, place / "homelab", session="homelab") as homelab:
        while "id" in (taken := homelab.call("take_message")):
            assert taken["from"] == "team felt"
            assert 'from "team felt", delivered by Holdfast' in taken["text"].splitlines()[0]
            assert CANARY in taken["text"] and not forged_lines(taken["text"])
            homelab.call("finish_message", id=taken["id"], outcome="done")


def test_an_agent_cannot_touch_what_is_another_teams(embedded: Installation, place: Path) -> None:
    with Agent(embedded, place / "outside", session="phone") as owner, Agent(embedded, place / "felt") as felt:
        secret = owner.call("send_message", target="homelab", message="The code is 4711.")["id"]
        felt.init("bind_root", mcpRootUri=(place / "outside").as_uri())
        for tool, arguments in (
            ("save_task", {"current_task": "Send me the code."}),
            ("take_message", {}),
        ):
            assert felt.refused(tool, target="homelab", **arguments).startswith("E_NOT_YOURS")
        assert felt.refused("finish_message", id=secret, outcome="done").startswith("E_NOT_YOURS")
        assert felt.call("pull_updates", target="homelab")["updates"] == []
        assert set(felt.call("queue_status")["targets"]["homelab"]) == {"pending", "in_progress"}
        mine = felt.call("send_message", target="homelab", message="Which port?")["id"]
        with Agent(embedded, place / "homelab", session="homelab") as homelab:
            homelab.call("save_task", current_task="Send the code.")
            for reply in ("4711", "port 80"):
                taken = homelab.call("take_message")["id"]
                homelab.call("finish_message", id=taken, outcome="done", reply=reply)
        (answer,) = felt.call("pull_updates", target="homelab")["updates"]
        assert (answer["message_id"], answer["content"]) == (mine, "port 80"), "what became of its own message alone"
        whole = owner.call("pull_updates", target="homelab")["updates"]
        assert [one["type"] for one in whole] == ["task", "reply", "reply"], "the owner's session sees all of it"
        assert owner.call("take_message", target="felt")["target"] == "felt"


def test_a_forged_environment_makes_no_managed_agent(embedded: Installation, place: Path) -> None:
    for forged in ("1", "1:homelab:00000000000000000000000000000000"):
        with Agent(embedded, place / "felt", env={"HOLDFAST_MANAGED": forged, "HOLDFAST_TEAM": "homelab"}) as felt:
            assert felt.refused("take_message", target="homelab").startswith("E_NOT_YOURS")
            assert felt.call("take_message")["target"] == "felt"
            refused = felt.refused("teams_notify", toTeam="homelab", message="Hello.", fromTeam="homelab")
            assert refused.startswith("E_NOT_YOURS")


def test_a_refusal_quotes_what_it_refuses(embedded: Installation, place: Path) -> None:
    with Agent(embedded, place / "felt") as felt:
        for attack in ATTACKS:
            for tool, arguments in (
                ("take_message", {"target": attack}),
                ("pull_updates", {"target": attack}),
                ("save_task", {"current_task": "x", "target": attack}),
                ("finish_message", {"id": attack, "outcome": "done"}),
                ("send_message", {"target": "homelab", "message": "x", "id": attack}),
                ("teams_ask", {"team": attack, "question": "x"}),
                ("teams_ask", {"team": "homelab", "question": "x", "threadId": attack[:64]}),
                ("teams_notify", {"toTeam": "homelab", "message": "x", "fromTeam": attack}),
                ("teams_session", {"operation": "result", "askId": attack}),
                ("teams_session", {"operation": attack}),
                ("session", {"operation": "get", "sessionId": attack}),
                ("init", {"operation": "bind_root", "mcpRootUri": attack}),
                ("queue_status", {attack: 1}),
            ):
                text = felt.refused(tool, **arguments)
                assert not unquoted_lines(text), (tool, text)
                assert text.replace("\n", "").isprintable(), (tool, text)
            unknown = felt.call("send_message", target=attack, message="x")
            assert not unknown["queued"] and unknown["reason"].isprintable()


def test_a_key_that_is_limited_to_teams_acts_for_these_alone(embedded: Installation, place: Path) -> None:
    made = embedded.run("key", "create", "ci", "--scope", "admin", "--team", "felt")
    assert made.returncode == 0, made.stderr
    assert "limited to felt" in embedded.run("key", "list").stdout
    headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
    with Agent(embedded, place / "outside") as owner:
        for target in ("felt", "homelab"):
            owner.call("send_message", target=target, message=f"for {target}", id=target)
    with httpx2.Client(base_url=embedded.address(), headers=headers, timeout=PATIENCE) as client:
        messages = client.get("/api/bridge/messages").json()["messages"]
        assert [one["target"] for one in messages] == ["felt"]
        assert client.get("/api/bridge/messages", params={"target": "homelab"}).status_code == 403
        sent = client.post("/api/bridge/messages", json={"target": "homelab", "message": "hello"})
        assert sent.json()["queued"], "everybody may send"
        for path in ("/api/teams", "/api/teams/stats", "/api/usage", "/api/briefing"):
            assert client.get(path).status_code in (403, 404), path
        assert client.get("/api/teams/conversations").json() == {"conversations": []}

        def call(tool: str, **arguments: object) -> dict[str, object]:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            params = {"name": tool, "arguments": arguments, "_meta": MODERN_META}
            told = {
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": tool,
            }
            reply = client.post("/mcp", json={**body, "params": params}, headers=told)
            text = reply.text.rpartition("data: ")[2] if "event-stream" in reply.headers["content-type"] else reply.text
            return dict(json.loads(text)["result"])

        assert call("take_message")["structuredContent"]["id"] == "felt"  # type: ignore[index]
        seen = [call("teams_status"), call("queue_status"), call("teams_ask", team="nobody", question="x")]
        for told in (*seen, client.get("/api/bridge/targets").json()):
            assert "felt" in str(told) and "homelab" not in str(told), told
        assert "E_NOT_YOURS" in str(call("teams_status", team="homelab"))
        assert call("save_task", current_task="x")["structuredContent"]["target"] == "felt"  # type: ignore[index]
        for tool, arguments in (
            ("take_message", {"target": "homelab"}),
            ("save_task", {"target": "homelab", "current_task": "x"}),
            ("teams_notify", {"toTeam": "felt", "message": "x", "fromTeam": "homelab"}),
            ("init", {"operation": "list_sessions"}),
            ("thought", {"thought": "x", "nextThoughtNeeded": False}),
        ):
            refused = call(tool, **arguments)
            assert refused["isError"] and "E_NOT_YOURS" in json.dumps(refused), (tool, refused)


def test_a_key_that_is_not_the_owners_reads_no_secret_over_rest(embedded: Installation, place: Path) -> None:
    made = embedded.run("key", "create", "reader")
    secret = "Tr0ub4dor&3x9-prod"  # noqa: S105 - planted
    text = f"The password is {secret}, use it for the migration."
    with Agent(embedded, place / "felt", session="felt") as felt:
        felt.call("send_message", target="homelab", message=text)
        felt.think(text)
    with Agent(embedded, place / "homelab", session="homelab") as homelab:
        homelab.call("save_task", current_task=text)
        taken = homelab.call("take_message")
        homelab.call("finish_message", id=taken["id"], outcome="done", reply=text)

    def read(key: str, path: str, **params: str) -> str:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx2.get(embedded.address() + path, params=params, headers=headers, timeout=PATIENCE).text

    paths = [*json.loads(read(embedded.key(), "/api/openapi.json"))["paths"]]
    bridge = [("/api/bridge/messages", {}), ("/api/bridge/updates", {"target": "homelab"})]
    for path, params in bridge:
        assert secret in read(embedded.key(), path, **params), path
    for path, params in (*bridge, *((one, {"root": (place / "felt").as_uri()}) for one in paths if "{" not in one)):
        assert secret not in read(made.stdout.strip(), path, **params), path
