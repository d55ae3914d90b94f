"""Permission requests of managed agents, shown in their chat once and answered from there."""

from __future__ import annotations

from holdfast.bridge.chat import queries as chat_queries
from holdfast.bridge.chat.commands import Command, permission_buttons
from holdfast.bridge.model import UpdateKind
from holdfast.bridge.queries import updates
from holdfast.bridge.service import Targets
from holdfast.errors import HoldfastError
from holdfast.store import Store, Tx
from holdfast.store.wakeups import Wakeups
from holdfast.teams.config_fields import shown
from holdfast.teams.model import PermissionRequest
from holdfast.teams.permissions import Permissions, shown_input

FITS = 3_000
"""Characters of a request that always fit into one chat message; longer ones are decided in a terminal."""
IN_TERMINAL = "It is too long to show here. Answer in the terminal: `holdfast approve` shows all of it."
LOOK_S = 5.0
ONCE = "permission"
"""The name under which the store remembers that a request was shown."""


class PermissionDesk:
    """Shows permission requests in the chats, and passes the owners' decisions on."""

    def __init__(self, store: Store, requests: Permissions, targets: Targets) -> None:
        self._store = store
        self._requests = requests
        self._targets = targets

    async def run(self) -> None:
        with Wakeups(self._store) as news:
            while True:
                news.clear()
                await self.show()
                await news.wait(LOOK_S)

    async def show(self) -> None:
        """Put every open request into its team's chat, once."""
        for request in await self._requests.open():
            team = self._targets().get(request.team)
            if team is not None and team.chat is not None:
                await self._show(request)

    async def _show(self, request: PermissionRequest) -> None:
        request_id = request.id

        def known(tx: Tx) -> bool:
            return chat_queries.was_received(tx, ONCE, request_id, 0)

        def write(tx: Tx) -> None:
            if chat_queries.receive(tx, ONCE, request_id, 0):
                updates.add(
                    tx,
                    request.team,
                    UpdateKind.MESSAGE,
                    asked(request),
                    buttons=permission_buttons(request_id, may_approve=fits(request)),
                    chat_only=True,
                )

        if not await self._store.read(known):
            await self._store.write(write)

    async def decide(self, target: str, command: Command) -> str | None:
        """Pass the owner's decision on; returns the answer, None if no request was named.

        It may be passed on again after a crash: the second time it is refused as decided, and nothing happens twice.
        """
        if command.name not in ("approve", "deny") or not command.argument:
            return None
        request_id, allowed = command.argument, command.name == "approve"
        # Only requests of this chat's own team: somebody who may command one team must not decide for another.
        asked_here = [one for one in await self._requests.open() if one.team == target and one.id == request_id]
        if not asked_here:
            return "No such request is waiting here: it was decided, expired after five minutes, or never existed."
        (request,) = asked_here
        if allowed and not fits(request):
            return IN_TERMINAL
        try:
            decided = await self._requests.decide(request_id, allowed, request.digest)
        except HoldfastError as error:
            return str(error)
        return f"{'Approved' if allowed else 'Denied'}: {decided.tool}"


def asked(request: PermissionRequest) -> str:
    """Render a request with its whole input, or say where to read it."""
    tool, given = shown(request.tool, FITS), _input(request)
    if not fits(request):
        return f"May it use **{tool}**?\n{IN_TERMINAL}\n/deny {request.id}"
    return f"May it use **{tool}**?\n```\n{given}\n```\n/approve {request.id}\n/deny {request.id}"


def fits(request: PermissionRequest) -> bool:
    return len(_input(request)) + len(request.tool) <= FITS


def _input(request: PermissionRequest) -> str:
    # A fence in the input would end ours; in JSON this escape means the same character.
    return shown_input(request.input).replace("`", "\\u0060")
