"""The official MCP client on every transport and in both eras, as agents would use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.installation import HOLDFAST, Installation

MODES = {"legacy": "legacy", "modern": "2026-07-28"}


@dataclass(frozen=True)
class Way:
    """One way to reach Holdfast: a transport and an era."""

    transport: str
    era: str

    def __str__(self) -> str:
        return f"{self.transport}-{self.era}"

    @asynccontextmanager
    async def connect(
        self,
        holdfast: Installation,
        *,
        cwd: str = "/",
        env: dict[str, str] | None = None,
        roots: Sequence[str] | None = None,
        headers: dict[str, str] | None = None,
        updated: Callable[[str], None] = lambda uri: None,
    ) -> AsyncIterator[Session]:
        """A new client, which knows nothing of earlier ones; `updated` is told of changed resources (legacy era)."""

        async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
            return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in roots or ()])  # type: ignore[arg-type]

        async def on_message(message: IncomingMessage) -> None:
            if isinstance(message, types.ResourceUpdatedNotification):
                updated(str(message.params.uri))

        async with AsyncExitStack() as stack:
            if self.transport == "stdio":
                transport: Any = stdio_client(
                    StdioServerParameters(
                        command=str(HOLDFAST), args=["mcp"], env={**holdfast.settings, **(env or {})}, cwd=cwd
                    )
                )
            else:
                http = await stack.enter_async_context(
                    httpx2.AsyncClient(
                        headers={"Authorization": f"Bearer {holdfast.key()}", **(headers or {})}, timeout=60
                    )
                )
                transport = streamable_http_client(f"{holdfast.address()}/mcp", http_client=http)
            client = Client(
                transport,
                mode=MODES[self.era],
                list_roots_callback=list_roots if roots is not None else None,
                message_handler=on_message,
                client_info=types.Implementation(name="test-agent", version="1.0"),
            )
            yield Session(await stack.enter_async_context(client))

    @asynccontextmanager
    async def at_work(self, holdfast: Installation, project: Path) -> AsyncIterator[Session]:
        """A client of a project. Over HTTP nothing but the agent tells which one that is, so it binds it first."""
        headers = {}
        if self.transport == "http":
            async with self.connect(holdfast) as client:
                bound = await client.init("bind_root", mcpRootUri=project.as_uri())
                made = bound["connection"]
                headers = {"Holdfast-Session": made["session_id"], "Holdfast-Token": made["reconnect_token"]}
        async with self.connect(holdfast, cwd=str(project), headers=headers) as client:
            yield client


class Session:
    """A connected client with the tools' replies unpacked."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured reply; an error fails the test with its text."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The text of the error that the call must give."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        assert isinstance(result.content[0], types.TextContent)
        return result.content[0].text

    async def init(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Call `init`."""
        return await self.call("init", operation=operation, **arguments)

    async def think(self, thought: str, **arguments: Any) -> dict[str, Any]:
        """Call `thought`."""
        return await self.call("thought", thought=thought, nextThoughtNeeded=True, **arguments)


WAYS = [Way(transport, era) for transport in ("stdio", "http") for era in ("legacy", "modern")]

ENGINES_AND_WAYS = pytest.mark.parametrize(
    ("shared", "way"),
    [
        pytest.param("sqlite", Way("stdio", "legacy"), id="sqlite-stdio-legacy"),
        pytest.param("postgres", Way("stdio", "modern"), id="postgres-stdio-modern"),
        pytest.param("postgres", Way("http", "legacy"), id="postgres-http-legacy"),
        pytest.param("sqlite", Way("http", "modern"), id="sqlite-http-modern"),
    ],
    indirect=True,
)
"""Every transport with every era, and every engine with each of both: the store does not know who asks."""
