"""Sessions and thoughts as resources: listed, completed, read, and announced when they change, in both eras."""

from __future__ import annotations

from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from tests.installation import PATIENCE, Installation
from tests.process.clients import Session, Way
from tests.shared_daemon import Guest

pytestmark = pytest.mark.anyio


async def _begin(client: Session, root: str) -> str:
    session_id = str((await client.init("start_new", title="Watched", mcpRootUri=root))["session"]["id"])
    await client.think("the *first* thought", sessionId=session_id)
    return session_id


async def test_resources_are_listed_completed_and_read(shared_embedded: Guest, way: Way, project: Path) -> None:
    async with way.connect(shared_embedded, cwd=str(project)) as session:
        client = session.client
        session_id = await _begin(session, project.as_uri())
        uri = f"holdfast://sessions/{session_id}"
        assert uri in [str(resource.uri) for resource in (await client.list_resources()).resources]
        templates = [item.uri_template for item in (await client.list_resource_templates()).resource_templates]
        assert templates == ["holdfast://sessions/{id}", "holdfast://sessions/{id}/thoughts/{n}"]
        for address in (uri, f"{uri}/thoughts/1"):
            (content,) = (await client.read_resource(address)).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.mime_type == "text/markdown" and "first" in content.text
        reference = types.ResourceTemplateReference(type="ref/resource", uri=templates[1])
        ids = await client.complete(reference, {"name": "id", "value": session_id[:8]})
        assert ids.completion.values == [session_id]
        numbers = await client.complete(reference, {"name": "n", "value": ""}, {"id": session_id})
        assert numbers.completion.values == ["1"]
        for missing in ("holdfast://sessions/nobody", f"{uri}/thoughts/99", "holdfast://elsewhere"):
            with pytest.raises(MCPError):
                await client.read_resource(missing)


async def test_a_changed_session_is_announced(shared_embedded: Guest, way: Way, project: Path) -> None:
    told: list[str] = []
    heard = anyio.Event()

    def updated(uri: str) -> None:
        told.append(uri)
        heard.set()

    async with (
        way.connect(shared_embedded, cwd=str(project), updated=updated) as watcher,
        way.connect(shared_embedded, cwd=str(project)) as writer,
    ):
        session_id = await _begin(writer, project.as_uri())
        uri = f"holdfast://sessions/{session_id}"
        with anyio.fail_after(PATIENCE):
            if way.era == "legacy":
                await watcher.client.subscribe_resource(uri)
                while not heard.is_set():
                    # An HTTP client's stream may open after its subscription: news before that is not sent.
                    await writer.think("news", sessionId=session_id, thoughtNumber=len(told) + 2)
                    with anyio.move_on_after(1):
                        await heard.wait()
                assert told[0] == uri
            else:
                async with watcher.client.listen(resource_subscriptions=[uri]) as subscription:
                    await writer.think("news", sessionId=session_id)
                    event = await anext(aiter(subscription))
                    assert event == ResourceUpdated(uri)


async def test_subscriptions_behind_a_relay_survive_the_daemon(embedded: Installation, project: Path) -> None:
    heard = anyio.Event()
    way = Way("stdio", "legacy")
    async with way.connect(embedded, cwd=str(project), updated=lambda uri: heard.set()) as client:
        session_id = await _begin(client, project.as_uri())
        await client.client.subscribe_resource(f"holdfast://sessions/{session_id}")
        embedded.kill_daemon()
        await client.think("on a new daemon", sessionId=session_id)
        with anyio.fail_after(PATIENCE):
            await heard.wait()


async def test_the_prompt_brings_back_the_projects_context(shared_embedded: Guest, way: Way, project: Path) -> None:
    async with way.connect(shared_embedded, roots=[project.as_uri()]) as session:
        await session.think("remember the lighthouse")
        prompts = (await session.client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == ["briefing", "continue"]
        (message,) = (await session.client.get_prompt("continue")).messages
        assert isinstance(message.content, types.TextContent)
        assert "remember the lighthouse" in message.content.text


async def test_toolsets_choose_what_is_listed_and_an_unlisted_tool_still_works(
    shared_embedded: Guest, project: Path
) -> None:
    way = Way("stdio", "legacy")
    async with way.connect(shared_embedded, cwd=str(project), env={"HOLDFAST_TOOLSETS": "protocol"}) as session:
        assert "thought" not in {tool.name for tool in (await session.client.list_tools()).tools}
        assert (await session.think("unlisted, but it works"))["thoughtNumber"] == 1
    async with way.connect(shared_embedded, cwd=str(project), env={"HOLDFAST_TOOLSETS": "all"}) as session:
        names = {tool.name for tool in (await session.client.list_tools()).tools}
        assert names >= {"init", "thought", "session", "reconnect_session", "teams_ask"}
