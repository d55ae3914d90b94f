"""Permissions: what a managed agent wants to do and its policy does not settle waits for its owner's decision."""

from __future__ import annotations

import json
import time
from typing import Any

from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.store import Store, Tx
from holdfast.store.wakeups import Wakeups
from holdfast.teams.config_fields import shown
from holdfast.teams.model import PermissionRequest
from holdfast.teams.queries import permissions as queries
from holdfast.text import bounded_json

WAIT_MS = 5 * 60_000
LONGEST = 10_000
"""Characters of a tool's input that a person can be asked to read; what is longer is denied unseen."""
LONGEST_NAME = 200
TOO_LONG = (
    f"It is too long to be shown to a person, who would have to allow it: keep its input under {LONGEST} characters."
)


class Permissions:
    """Requests in the event log, decided by `holdfast approve` and `holdfast deny`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def request(self, ask_id: str, team: str, tool: str, given: dict[str, Any]) -> bool | str:
        """Ask the owner whether the agent may, or return why that cannot even be asked.

        No decision within five minutes, or before the agent's ask is over, means no."""
        text = written(given)
        if text is None or len(tool) > LONGEST_NAME:
            await self._store.write(lambda tx: tx.emit("teams.permission_refused", ask_id, {"team": team}))
            return TOO_LONG

        def add(tx: Tx) -> str | None:
            return None if queries.is_over(tx, ask_id) else queries.add(tx, ask_id, team, tool, text, WAIT_MS)

        request_id = await self._store.write(add)
        return False if request_id is None else await self._decision(request_id, text)

    async def decide(self, request_id: str, allowed: bool, digest: str | None = None) -> PermissionRequest:
        """Store the owner's decision. Allowing needs the `digest` of what they were shown."""

        def write(tx: Tx) -> PermissionRequest:
            found = queries.request(tx, request_id)
            if found is None:
                raise NotFound(f"There is no request {request_id[:64]}.", recovery="`holdfast approve` lists them.")
            if found.allowed is not None or found.expires_at <= tx.now():
                raise Conflict("That request was decided already, or nobody waits for it any more.")
            if allowed and digest != found.digest:
                raise BadInput("digest", "is not that of the request", recovery="Look at it again: `holdfast approve`.")
            queries.decide(tx, request_id, allowed)
            return found

        return await self._store.write(write)

    async def open(self) -> list[PermissionRequest]:
        """Requests that wait for a decision, the oldest first."""
        return await self._store.read(queries.undecided)

    async def _decision(self, request_id: str, text: str) -> bool:
        def look(tx: Tx) -> bool | None:
            found = queries.request(tx, request_id)
            if found is None or (found.allowed is None and found.expires_at <= tx.now()):
                return False  # its ask is over
            return None if found.allowed is None else bool(found.allowed) and found.input == text

        deadline = time.monotonic() + WAIT_MS / 1000
        with Wakeups(self._store) as news:
            while time.monotonic() < deadline:
                news.clear()
                decision = await self._store.read(look)
                if decision is not None:
                    return decision
                await news.wait(2.0)
        return False


def written(given: dict[str, Any]) -> str | None:
    """Return a tool's input as stored: whole, because what is shown to a person is what runs; None if too long."""
    try:
        text = json.dumps(given)  # in ASCII, so that any text fits
    except RecursionError:
        return None
    return text if len(text) <= LONGEST else None


def shown_input(text: str) -> str:
    """Return a request's whole input for a person: one line per field, with control characters escaped."""
    try:
        whole = json.dumps(bounded_json.loads(text), ensure_ascii=False, indent=1)
    except ValueError:
        whole = text  # stored before inputs were kept whole, or nested too deeply for lines to help
    return "\n".join(shown(line, len(line)) for line in whole.split("\n"))
