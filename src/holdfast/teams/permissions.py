"""Permissions: what a managed agent wants to do and its policy does not settle waits for somebody's word."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

from holdfast import bounded_json
from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.store import Row, Store, Tx
from holdfast.store.wakeups import Wakeups
from holdfast.teams.fields import shown

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
        """Whether the agent may, or why it cannot even be asked; no word within five minutes is a no."""
        text = written(given)
        if text is None or len(tool) > LONGEST_NAME:
            await self._store.write(lambda tx: tx.emit("teams.permission_refused", ask_id, {"team": team}))
            return TOO_LONG

        def write(tx: Tx) -> str:
            request_id = tx.new_id()
            tx.run(
                "INSERT INTO permissions (id, ask_id, team, tool, input, created_at, expires_at)"
                " VALUES (:id, :ask, :team, :tool, :input, :now, :expires)",
                id=request_id,
                ask=ask_id,
                team=team,
                tool=tool,
                input=text,
                now=tx.now(),
                expires=tx.now() + WAIT_MS,
            )
            tx.emit("teams.permission_requested", request_id, {"team": team, "tool": tool})
            return request_id

        request_id = await self._store.write(write)
        return await self._decision(request_id, text)

    async def decide(self, request_id: str, allowed: bool, digest: str | None = None) -> Row:
        """Somebody's word. To allow, `digest` says what they were shown."""

        def write(tx: Tx) -> Row:
            row = tx.one(
                "SELECT id, team, tool, input, allowed, expires_at FROM permissions WHERE id = :id", id=request_id
            )
            if row is None:
                raise NotFound(f"There is no request {request_id[:64]}.", recovery="`holdfast approve` lists them.")
            if row["allowed"] is not None or row["expires_at"] <= tx.now():
                raise Conflict("That request was decided already, or nobody waits for it any more.")
            if allowed and digest != digest_of(row["tool"], row["input"]):
                raise BadInput("digest", "is not that of the request", recovery="Look at it again: `holdfast approve`.")
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
        """Requests that wait for a word, each with the digest of what it asks for."""
        rows = await self._store.read(
            lambda tx: tx.all(
                "SELECT id, team, tool, input, created_at FROM permissions"
                " WHERE allowed IS NULL AND expires_at > :now ORDER BY row_id",
                now=tx.now(),
            )
        )
        return [{**row, "digest": digest_of(row["tool"], row["input"])} for row in rows]

    async def _decision(self, request_id: str, text: str) -> bool:
        deadline = time.monotonic() + WAIT_MS / 1000
        with Wakeups(self._store) as news:
            while time.monotonic() < deadline:
                news.clear()
                row = await self._store.read(
                    lambda tx: tx.one("SELECT allowed, input FROM permissions WHERE id = :id", id=request_id)
                )
                if row is not None and row["allowed"] is not None:
                    return bool(row["allowed"]) and row["input"] == text
                await news.wait(2.0)
        return False


def digest_of(tool: str, text: str) -> str:
    """What stands for a request's content: whoever allows it names this."""
    return hashlib.sha256(f"{tool}\0{text}".encode()).hexdigest()


def written(given: dict[str, Any]) -> str | None:
    """A tool's input as it is kept: whole, because what is shown to a person is what runs; None if it is too long."""
    try:
        text = json.dumps(given)  # in ASCII, so that any text fits
    except RecursionError:
        return None
    return text if len(text) <= LONGEST else None


def shown_input(text: str) -> str:
    """A request's whole input as it can be put before a person: one line per field, nothing that steers a terminal."""
    try:
        whole = json.dumps(bounded_json.loads(text), ensure_ascii=False, indent=1)
    except ValueError:
        whole = text  # from before it was kept whole, or nested so deeply that lines would not help
    return "\n".join(shown(line, len(line)) for line in whole.split("\n"))
