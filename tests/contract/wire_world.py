"""All of Holdfast on one store, without a daemon: relays speak to its wire, which can be built anew at any time."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.agents.echo import registered
from tests.contract.conftest import Place
from tests.repository import Repository

from holdfast.app import App, build
from holdfast.config import read_settings
from holdfast.identity.caller import Hello
from holdfast.store import Store, Tx
from holdfast.teams.service import Teams
from holdfast.version import __version__
from holdfast.wire.mcp.relayed import serve_relay
from holdfast.wire.mcp.server import Wire
from holdfast.wire.mcp.transports import OpenTransports

Json = dict[str, Any]
State = dict[str, list[str]]

NOT_STATE = {"requests"}
"""Tables that a repetition may change. `requests` counts every call that came, also one that was repeated."""

PATIENCE_S = 60.0
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test-agent", "version": "1.0"},
}


class Relayed:
    """The daemon's end of one relay: requests with the relay's keys, and their answers."""

    def __init__(self, relay: str, keys: Callable[[], int], reader: asyncio.StreamReader, writer: Any) -> None:
        self.relay = relay
        self._keys = keys
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)

    async def request(self, method: str, params: Json) -> Json:
        """Send a request and wait for its answer."""
        serial = next(self._ids)
        self.send({"jsonrpc": "2.0", "id": serial, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer: Json = json.loads(await self._reader.readline())
                if answer.get("id") == serial and "method" not in answer:
                    return answer

    def send(self, message: Json) -> None:
        """Write one line."""
        self._writer.write(json.dumps(message).encode() + b"\n")

    def new_key(self) -> str:
        """A key that no other call has."""
        return f"{self.relay}:{self._keys()}"

    async def answer(self, tool: str, arguments: Json, key: str | None = None) -> Json:
        """The whole answer to a call."""
        meta = {"holdfast/key": key or self.new_key()}
        return await self.request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})

    async def call(self, tool: str, arguments: Json, key: str | None = None) -> Json:
        """The structured reply to a call, which must succeed."""
        answer = await self.answer(tool, arguments, key)
        assert "error" not in answer and not answer["result"].get("isError"), answer
        return dict(answer["result"]["structuredContent"])

    async def use(self, tool: str, **arguments: Any) -> Json:
        """Call a tool under a key of its own."""
        return await self.call(tool, arguments)


@dataclass
class Life:
    """Services as one daemon has them; nothing but the store outlives it."""

    app: App
    wire: Wire
    links: OpenTransports
    keys: Callable[[], int]

    @asynccontextmanager
    async def relay(
        self, name: str, cwd: Path, session: str | None = None, *, client: str = "test-agent"
    ) -> AsyncIterator[Relayed]:
        """A relay of this name that shook hands, in this directory, for a client that calls itself so."""
        env = {} if session is None else {"CLAUDE_CODE_SESSION_ID": session}
        hello = Hello(name, __version__, os.getpid(), os.getppid(), str(cwd), "all", MappingProxyType(env))
        link = self.links.open_relay(hello)
        assert link.identity is not None
        await self.app.connections.attach(link.identity, hello.pid)
        ours, theirs = socket.socketpair()
        serving = asyncio.create_task(serve_relay(self.wire, link, *await asyncio.open_connection(sock=theirs)))
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 26)
        relayed = Relayed(name, self.keys, reader, writer)
        try:
            await relayed.request("initialize", HANDSHAKE | {"clientInfo": {"name": client, "version": "1.0"}})
            relayed.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield relayed
        finally:
            writer.close()
            await asyncio.gather(serving, return_exceptions=True)
            self.links.close_relay(link)


@dataclass
class World:
    """A store with a project of two teams on it, and one life of Holdfast after the other."""

    place: Place
    store: Store
    project: Repository
    other: Path
    _counter: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)

    @property
    def home(self) -> Path:
        return self.place.home / "home"

    async def life(self) -> Life:
        """Holdfast as it is after a start."""
        app = build(self.store, read_settings({}, home=str(self.home)), "this-machine")
        teams = app.service(Teams)
        await app.connections.reconnects.start()
        await teams.refresh()
        teams._runner.use(teams.config)
        return Life(app, app.wire(), app.transports, self._counter)

    @asynccontextmanager
    async def working_life(self) -> AsyncIterator[Life]:
        """One whose agents work."""
        life = await self.life()
        runner = life.app.service(Teams)._runner
        working = asyncio.create_task(runner.run())
        try:
            yield life
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await life.app.close()

    async def state(self) -> State:
        """Every row of every table."""
        return await self.store.read(_state)


@asynccontextmanager
async def new_world(place: Place, project: str = "project", **more: Any) -> AsyncIterator[World]:
    """A world on a new store of this engine; the project's directory has this name, teams.json more teams."""
    store = place.open()
    world = World(place, store, Repository(place.home / project), place.home / "other")
    world.other.mkdir()
    world.home.mkdir(mode=0o700)
    teams = {
        name: {"project": str(path), "agent": "echo", "delivery": "hook"}
        for name, path in (("mine", world.project.path), ("theirs", world.other))
    }
    (world.home / "teams.json").write_text(json.dumps({"teams": {**teams, **more}}))
    try:
        with registered():
            yield world
    finally:
        await store.close()


def _state(tx: Tx) -> State:
    if tx.engine == "sqlite":
        # What is in a virtual table is in the tables behind it.
        names = tx.all(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
        )
    else:
        names = tx.all("SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename")
    tables = [row["name"] for row in names if row["name"] not in NOT_STATE]
    return {name: sorted(_text(row) for row in tx.all(f"SELECT * FROM {name}")) for name in tables}


def _text(row: Json) -> str:
    return repr({name: bytes(cell) if isinstance(cell, memoryview) else cell for name, cell in row.items()})
