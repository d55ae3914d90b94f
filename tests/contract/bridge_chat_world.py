"""Chats on a store, a scripted Bot API, and a receiver of signed webhooks, for the tests of all of them."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests import bot_api as bot_api_module
from tests.bot_api import OWNER, TOKEN, BotApi, Kind, bot_api
from tests.contract.conftest import Place

from holdfast.bridge.chat import Transport
from holdfast.bridge.chat.intake import Account, Answers, Intake
from holdfast.bridge.chat.lease import Lease
from holdfast.bridge.chat.pace import Pace
from holdfast.bridge.chat.permissions import PermissionDesk
from holdfast.bridge.chat.polling import Poller
from holdfast.bridge.chat.sender import Sender
from holdfast.bridge.chat.telegram import Telegram
from holdfast.bridge.chat.webhook_out import DELIVERY, SIGNATURE, TIMESTAMP, genuine
from holdfast.bridge.model import UpdateKind
from holdfast.bridge.queries import updates as update_queries
from holdfast.store import Row, Store, Tx
from holdfast.teams.permissions import Permissions
from holdfast.teams.team import Chat, Team

SECRET = "a secret of the webhook"  # noqa: S105
FAST = (1000, 1.0)
PATIENCE_S = 60.0
LONGEST_JUMP_S = 5.0
"""Longer pauses are those of who renews a lease: with these jumped over, it would do nothing else."""

T = TypeVar("T")


def target(name: str, chat: str, *, topic: int | None = None, users: tuple[int, ...] = (OWNER,)) -> Team:
    return Team(name, Path("/nowhere"), chat=Chat(chat, topic, users))


TEAMS = {
    "homelab": target("homelab", "-100"),
    "felt": target("felt", "-200", topic=5),
    "sentry": target("sentry", "-200", topic=6),
    "quiet": Team("quiet", Path("/nowhere")),
}


async def eventually(seen: Callable[[], Any]) -> None:
    """Wait until something shows; a slow machine is no failure."""
    deadline = time.monotonic() + PATIENCE_S
    while not seen():
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(0.01)


async def came(look: Callable[[], Awaitable[T]]) -> T:
    """What a look shows, as soon as it shows anything."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := await look()):
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(0.01)
    return found


class Jumping:
    """Time that passes as soon as somebody waits for it, for the store, the sender and the Bot API alike."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def monotonic(self) -> float:
        return time.monotonic() + self._place.shift / 1000

    async def sleep(self, seconds: float) -> None:
        if seconds > LONGEST_JUMP_S:
            await asyncio.sleep(seconds)
        else:
            self._place.shift += math.ceil(seconds * 1000)
            await asyncio.sleep(0)


class World:
    """One daemon's chats."""

    def __init__(
        self,
        store: Store,
        api: BotApi,
        holder: str = "one",
        teams: dict[str, Team] | None = None,
        jumping: Jumping | None = None,
    ) -> None:
        self.store = store
        self.api = api
        self.holder = holder
        self.jumping = jumping
        self.teams = dict(TEAMS) if teams is None else teams
        self.now = 0.0
        self.served = True
        self.edited: dict[str, Team] = {}
        """What was changed in teams.json and not read yet."""
        self.telegram = Telegram(TOKEN, api=api.url, per_chat=FAST, per_group=FAST)
        self.permissions = Permissions(store)
        self.desk = PermissionDesk(store, self.permissions, lambda: self.teams)
        account = Account("telegram", self.telegram.account, lambda: self.telegram.username)
        answers = Answers(self.telegram.answer_press, self.telegram.refuse)
        self.intake = Intake(
            store,
            account,
            lambda: self.teams,
            self.desk,
            answers,
            lambda target: self.served,
            self.refresh,
            lambda: self.now,
        )
        lease = Lease(store, "telegram:poll", self.telegram.account, holder)
        self.poller = Poller(self.telegram, self.intake, lease, self.nap)
        self.sender = self.sends(self.telegram)

    def sends(self, transport: Transport) -> Sender:
        """What sends over a transport, in this world's time."""
        if self.jumping is None:
            return Sender(self.store, transport, lambda: self.teams, self.holder)
        time, sleep = self.jumping.monotonic, self.jumping.sleep
        return Sender(self.store, transport, lambda: self.teams, self.holder, pace=Pace(time, sleep), sleep=sleep)

    async def refresh(self) -> None:
        self.teams |= self.edited

    async def nap(self, seconds: float) -> None:
        """A pause that no test has to sit out."""
        await asyncio.sleep(0)

    async def poll(self, offset: int | None = None) -> int | None:
        """Ask for updates once."""
        return await self.poller.step(offset)

    async def tell(self, target: str, *contents: str, kind: UpdateKind = UpdateKind.REPLY) -> None:
        """Something happens at a target."""

        def write(tx: Tx) -> None:
            for content in contents:
                update_queries.add(tx, target, kind, content)

        await self.store.write(write)

    async def rows(self, sql: str, **params: Any) -> list[Row]:
        return await self.store.read(lambda tx: tx.all(sql, **params))

    async def queued(self, target: str) -> list[str]:
        """The texts that were queued for a target, in order."""
        sql = "SELECT text FROM bridge_messages WHERE target = :target ORDER BY seq"
        return [row["text"] for row in await self.rows(sql, target=target)]


@asynccontextmanager
async def world(place: Place, *, jumping: bool = False) -> AsyncIterator[World]:
    """Chats on a fresh store with a Bot API of their own; with `jumping`, no pause of a few seconds takes any time."""
    store = place.open()
    jumps = Jumping(place) if jumping else None
    try:
        with pytest.MonkeyPatch.context() as patch:
            if jumps is not None:
                patch.setattr(bot_api_module, "time", jumps)
            async with bot_api() as api:
                made = World(store, api, jumping=jumps)
                try:
                    yield made
                finally:
                    await made.telegram.close()
    finally:
        await store.close()


@dataclass
class Receiver:
    """Somebody who receives signed webhooks, and misbehaves when told to."""

    port: int = 0
    faults: list[Kind] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    deliveries: list[str] = field(default_factory=list)
    """The ids of all attempts, also of those that failed."""
    forged: int = 0
    open: int = 0
    """Connections at present."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers["content-length"]))
        if not genuine(SECRET, headers[TIMESTAMP.lower()], body, headers[SIGNATURE.lower()]):
            self.forged += 1
        self.deliveries.append(headers[DELIVERY.lower()])
        fault = self.faults.pop(0) if self.faults else None
        if fault is Kind.LOST:
            return False
        status = {Kind.FLOOD: 429, Kind.ERROR: 502, Kind.REFUSED: 422}.get(fault or Kind.SLOW, 200)
        if status == 200:
            self.received.append(json.loads(body))
        more = "Retry-After: 3\r\n" if fault is Kind.FLOOD else ""
        answer = f"HTTP/1.1 {status} X\r\n{more}Content-Length: 2\r\n\r\nok".encode()
        writer.write(answer[:-12] if fault is Kind.CUT else answer)
        await writer.drain()
        return fault is not Kind.CUT


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver for as long as the block lasts."""
    made = Receiver()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
