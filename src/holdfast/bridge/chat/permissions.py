"""Permission requests of managed agents, shown in their chat once and answered from there."""

from __future__ import annotations

import json
from typing import Protocol

from holdfast.bridge import update_queries
from holdfast.bridge.chat import Targets
from holdfast.bridge.chat import queries as chat_queries
from holdfast.bridge.chat.commands import Command, permission_buttons
from holdfast.bridge.model import UpdateKind
from holdfast.errors import HoldfastError
from holdfast.store import Row, Store, Tx
from holdfast.store.wakeups import Wakeups

SHOWN = 1_000
LOOK_S = 5.0
ONCE = "permission"
"""Under which the store remembers that a request was shown."""


class Requests(Protocol):
    """What the chats ask of the teams' permissions."""

    async def open(self) -> list[Row]:
        """Requests that wait for a word."""
        ...

    async def decide(self, request_id: str, allowed: bool) -> Row:
        """Somebody's word."""
        ...


class PermissionDesk:
    """Brings requests to the chats, and the owners' words back."""

    def __init__(self, store: Store, requests: Requests, targets: Targets) -> None:
        self._store = store
        self._requests = requests
        self._targets = targets

    async def run(self) -> None:
        """Show what is asked, until cancelled."""
        with Wakeups(self._store) as news:
            while True:
                news.clear()
                await self.show()
                await news.wait(LOOK_S)

    async def show(self) -> None:
        """Put every open request into its team's chat, unless it was there before."""
        for request in await self._requests.open():
            team = self._targets().get(request["team"])
            if team is not None and team.chat is not None:
                await self._show(request)

    async def _show(self, request: Row) -> None:
        request_id = str(request["id"])

        def known(tx: Tx) -> bool:
            return chat_queries.was_received(tx, ONCE, request_id, 0)

        def write(tx: Tx) -> None:
            if chat_queries.receive(tx, ONCE, request_id, 0):
                update_queries.add(
                    tx,
                    request["team"],
                    UpdateKind.MESSAGE,
                    asked(request),
                    None,
                    permission_buttons(request_id),
                    chat_only=True,
                )

        if not await self._store.read(known):
            await self._store.write(write)

    async def decide(self, target: str, command: Command) -> str | None:
        """Pass on the owner's word; what came of it, None where no request was named.

        It may be passed on again after a crash: the second time it is refused as decided, and nothing happens twice.
        """
        if command.name not in ("approve", "deny") or not command.argument:
            return None
        request_id, allowed = command.argument, command.name == "approve"
        # Only what this chat's own team asks: somebody who may order one team about must not decide for another.
        asked_here = [row for row in await self._requests.open() if row["team"] == target and row["id"] == request_id]
        if not asked_here:
            return "Nobody here waits for that (any more): it was decided, ran out after five minutes, or never was."
        try:
            decided = await self._requests.decide(request_id, allowed)
        except HoldfastError as error:
            return str(error)
        return f"{'Approved' if allowed else 'Denied'}: {decided['tool']}"


def asked(request: Row) -> str:
    """A request in words."""
    given = str(request["input"])
    try:
        given = json.dumps(json.loads(given), ensure_ascii=False, indent=1)
    except ValueError:
        # It was cut to what is kept of it, so it is no JSON any more; its beginning says enough.
        given = f"{given}…"
    given = given.replace("```", "'''")
    cut = given if len(given) <= SHOWN else f"{given[:SHOWN]}…"
    return f"May it use **{request['tool']}**?\n```\n{cut}\n```\n/approve {request['id']}\n/deny {request['id']}"
