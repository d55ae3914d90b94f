"""What one session wrote is told to another without its secrets, by every tool, resource, prompt and hook."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.contract.conftest import Place
from tests.contract.repetition_cases import TIMEOUT_MS
from tests.contract.wire_world import Json, Life, Relayed, new_world

from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.bridge.service import Bridge
from holdfast.hooks.dispatch import HookContext
from holdfast.redaction import MASK

pytestmark = pytest.mark.anyio

PLANTED = "Br4mble-77-Thicket"
SAID = f"Log in with the password {PLANTED} and go on."


async def hook(life: Life, event: str, cwd: Path, session: str, **more: object) -> str:
    payload = {"session_id": session, "cwd": str(cwd), "hook_event_name": event, **more}
    reply = await life.app.hooks.handle(event, HookContext("1", False, "full"), json.dumps(payload).encode())
    return reply.stdout.decode() if isinstance(reply.stdout, bytes) else str(reply.stdout)


async def plant(writer: Relayed) -> str:
    """Write the secret wherever a session can write."""
    made = await writer.use("thought", thought=SAID, nextThoughtNeeded=True)
    session: str = made["sessionId"]
    await writer.use("thought", thought=f"{'x ' * 990}{SAID}", nextThoughtNeeded=True)  # the context cuts it there
    await writer.use("thought", thought=SAID, nextThoughtNeeded=True, branchId="b", branchFromThought=1)
    await writer.use("session", operation="rename", title=SAID)
    await writer.use("session", operation="tag", tags=[f"password={PLANTED}"])
    await writer.use("save_task", current_task=SAID, last_completed_step=SAID)
    await writer.use("send_message", target="theirs", message=SAID)
    await writer.use("teams_notify", toTeam="theirs", message=SAID)
    return session


async def everything_told(reader: Relayed, life: Life, session: str) -> dict[str, Json]:
    """Ask with every operation that reads, and for every resource and prompt."""
    told: dict[str, Json] = {}
    asked: list[tuple[str, Json]] = [
        ("init", {"operation": "get_state"}),
        ("init", {"operation": "list_roots"}),
        ("init", {"operation": "load_context", "sessionId": session}),
        ("init", {"operation": "list_sessions"}),
        ("session", {"operation": "list"}),
        ("session", {"operation": "get", "sessionId": session}),
        ("session", {"operation": "get", "sessionId": session, "from": 1, "to": 3}),
        ("session", {"operation": "search", "query": "password", "scope": "all"}),
        ("session", {"operation": "search", "query": PLANTED.split("-")[0], "scope": "all"}),
        *(("session", {"operation": "export", "sessionId": session, "format": form}) for form in ("markdown", "json")),
        ("session", {"operation": "export", "sessionId": session, "format": "mermaid"}),
        ("session", {"operation": "analyze", "sessionId": session}),
        ("session", {"operation": "pin", "sessionId": session}),
        ("queue_status", {}),
        ("pull_updates", {"target": "mine"}),
        ("pull_updates", {"target": "theirs"}),
        ("teams_status", {}),
        ("teams_session", {"operation": "list"}),
    ]
    for tool, arguments in asked:
        told[f"{tool} {arguments}"] = await reader.answer(tool, arguments)
    listed = (await reader.request("resources/list", {}))["result"]
    told["resources/list"] = listed
    uris = [one["uri"] for one in listed["resources"]]
    for uri in [*uris, f"holdfast://sessions/{session}", f"holdfast://sessions/{session}/thoughts/1"]:
        told[uri] = await reader.request("resources/read", {"uri": uri})
    for name in life.wire.catalog.prompts:
        told[f"prompt {name}"] = await reader.request("prompts/get", {"name": name})
    return told


def holds(answer: Any) -> bool:
    return PLANTED in json.dumps(answer, ensure_ascii=False) or PLANTED[:9] in json.dumps(answer, ensure_ascii=False)


async def test_no_reply_to_another_session_holds_a_secret_that_one_has_written(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "holdfast")
    async with new_world(place) as world, world.working_life() as life:
        async with life.relay("a", world.project.path, "session-a") as writer:
            session = await plant(writer)
            await hook(life, "SessionStart", world.project.path, "session-a", source="startup")
        async with life.relay("b", world.project.path, "session-b") as reader:
            told = await everything_told(reader, life, session)
            told["SessionStart"] = {"": await hook(life, "SessionStart", world.project.path, "b", source="startup")}
        async with life.relay("c", world.other, "session-c") as theirs:
            told["take_message"] = taken = await theirs.answer("take_message", {})
            identifier = taken["result"]["structuredContent"]["id"]
            await theirs.use("finish_message", id=identifier, outcome="done", reply=SAID)
            told["teams_ask"] = await theirs.answer(
                "teams_ask", {"team": "mine", "question": SAID, "timeout": TIMEOUT_MS}
            )
        async with life.relay("b", world.project.path, "session-b") as reader:
            told["pull_updates after"] = await reader.answer("pull_updates", {"target": "theirs"})
        assert [where for where, answer in told.items() if holds(answer)] == []
        assert sum(MASK in json.dumps(answer) for answer in told.values()) >= 10, "the walk reaches what was written"
        events = [row["data"] for row in await world.store.read(lambda tx: tx.all("SELECT data FROM events"))]
        assert not any(map(holds, events))
    assert PLANTED not in caplog.text


async def test_a_session_gets_its_own_words_back_as_it_wrote_them(place: Place) -> None:
    async with new_world(place) as world:
        life = await world.life()
        async with life.relay("a", world.project.path, "session-a") as writer:
            session = await plant(writer)
        async with life.relay("a2", world.project.path, "session-a") as again:
            context = await again.use("init", operation="load_context", sessionId=session)
            assert context["thoughts"][0]["thought"] == SAID
            for form in ("markdown", "json"):
                page = await again.use("session", operation="export", sessionId=session, format=form)
                assert page["text"].count(PLANTED) >= 2
            resource = await again.request("resources/read", {"uri": f"holdfast://sessions/{session}/thoughts/1"})
            assert PLANTED in resource["result"]["contents"][0]["text"]
        await life.app.close()


async def test_a_message_of_the_owner_reaches_its_target_as_it_was_written(place: Place) -> None:
    async with new_world(place) as world:
        life = await world.life()
        await life.app.service(Bridge).send("theirs", SAID, sender="the owner")
        async with life.relay("c", world.other, "session-c") as theirs:
            assert PLANTED in (await theirs.use("take_message"))["text"]
        await life.app.close()


async def test_a_mirrored_transcript_leaves_its_secrets_on_the_machine(place: Place) -> None:
    store = place.open()
    try:
        transcripts = TranscriptStore(store)
        key = {"project_key": "-p", "session_id": "s"}
        lines = [{"type": "user", "uuid": str(at), "message": {"content": SAID}} for at in range(3)]
        await transcripts.append(key, lines[:2])
        await transcripts.put(key, lines)
        rows = await store.read(lambda tx: tx.all("SELECT entry FROM transcript_lines ORDER BY row_id"))
        assert [PLANTED in row["entry"] for row in rows] == [place.engine == "sqlite"] * 3
    finally:
        await store.close()
