"""Permissions: what a managed agent wants to do and its policy does not settle waits for somebody's word."""

from __future__ import annotations

import json
import time
from typing import Any

from holdfast.errors import Conflict, NotFound
from holdfast.store import Row, Store, Tx
from holdfast.store.wakeups import Wakeups

WAIT_MS = 5 * 60_000
SHOWN = 2000


class Permissions:
    """Requests in the event log, decided by `holdfast approve` and `holdfast deny`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def request(self, ask_id: str, team: str, tool: str, given: dict[str, Any]) -> bool:
        """Whether the agent may; no word within five minutes is a no."""

        def write(tx: Tx) -> str:
            request_id = tx.new_id()
            tx.run(
                "INSERT INTO permissions (id, ask_id, team, tool, input, created_at, expires_at)"
                " VALUES (:id, :ask, :team, :tool, :input, :now, :expires)",
                id=request_id,
                ask=ask_id,
                team=team,
                tool=tool[:200],
                input=json.dumps(given, ensure_ascii=False)[:SHOWN],
                now=tx.now(),
                expires=tx.now() + WAIT_MS,
            )
            tx.emit("teams.permission_requested", request_id, {"team": team, "tool": tool[:200]})
            return request_id

        request_id = await self._store.write(write)
        return await self._decision(request_id)

    async def decide(self, request_id: str, allowed: bool) -> Row:
        """Somebody's word."""

        def write(tx: Tx) -> Row:
            row = tx.one("SELECT id, team, tool, allowed, expires_at FROM permissions WHERE id = :id", id=request_id)
            if row is None:
                raise NotFound(f"There is no request {request_id[:64]}.", recovery="`holdfast approve` lists them.")
            if row["allowed"] is not None or row["expires_at"] <= tx.now():
                raise Conflict("That request was decided already, or nobody waits for it any more.")
            tx.run(
                "UPDATE permissions SET allowed = :allowed, decided_at = :now WHERE id = :id",
                allowed=int(allowed),
                now=tx.now(),
                id=request_id,
            )
            tx.emit("teams.permission_decided", request_id, {"allowed": allowed})
            return row

        return await self._store.write(write)

    async def open(self) -> list[Row]:
        """Requests that wait for a word."""
        return await self._store.read(
            lambda tx: tx.all(
                "SELECT id, team, tool, input, created_at FROM permissions"
                " WHERE allowed IS NULL AND expires_at > :now ORDER BY row_id",
                now=tx.now(),
            )
        )

    async def _decision(self, request_id: str) -> bool:
        deadline = time.monotonic() + WAIT_MS / 1000
        with Wakeups(self._store) as news:
            while time.monotonic() < deadline:
                news.clear()
                row = await self._store.read(
                    lambda tx: tx.one("SELECT allowed FROM permissions WHERE id = :id", id=request_id)
                )
                if row is not None and row["allowed"] is not None:
                    return bool(row["allowed"])
                await news.wait(2.0)
        return False
