"""What the daemon does when an agent's hook calls: all thinking is here, the hook client only carries."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.connections.service import Connections
from holdfast.errors import HoldfastError
from holdfast.hook_answers import Answer, combined
from holdfast.wire.links import Links

MAX_PAYLOAD = 16 * 1024 * 1024
MAX_ID = 128
MANAGED = "holdfast_managed"
"""In a payload: whether Holdfast runs the agent itself, which gets its messages another way."""

Handler = Callable[[str, dict[str, Any]], Awaitable[Answer | None]]
"""One capability's answer to an event with its payload; None for nothing to say."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HookReply:
    """How the hook process ends, and what it prints."""

    exit_code: int = 0
    stdout: bytes = b""

    def encode(self) -> bytes:
        """As the hook client reads it."""
        return b"exit %d\n" % self.exit_code + self.stdout


class Hooks:
    """Answers hook events. An event nobody handles, or a payload nobody can read, lets the agent go on."""

    def __init__(self, links: Links, connections: Connections, handlers: Sequence[Handler] = ()) -> None:
        self._links = links
        self._connections = connections
        self._handlers = handlers

    async def handle(self, event: str, pid: str, payload: bytes, *, managed: bool = False) -> HookReply:
        """One event, with the agent's process id (as its relay's parent) and the raw payload."""
        try:
            data = json.loads(payload)
        except (ValueError, RecursionError):
            logger.warning("a %s hook brought a payload that is not JSON", event)
            return HookReply()
        if not isinstance(data, dict):
            return HookReply()
        data[MANAGED] = managed
        if event == "SessionStart":
            await self._session_start(pid, data)
        answers = [answer for handler in self._handlers if (answer := await _asked(handler, event, data))]
        if not answers:
            return HookReply()
        return HookReply(stdout=json.dumps(combined(event, answers)).encode() + b"\n")

    async def _session_start(self, pid: str, data: dict[str, Any]) -> None:
        """After /clear or an in-process resume the relay still has the old session id: tell it the new one."""
        session = data.get("session_id")
        if not pid.isdigit() or not isinstance(session, str) or not 0 < len(session) <= MAX_ID:
            return
        for identity in self._links.rebind(int(pid), session):
            if identity not in self._links.attached():
                await self._connections.detach(identity)


async def _asked(handler: Handler, event: str, data: dict[str, Any]) -> Answer | None:
    """A capability that cannot answer says so to the user, and the agent goes on."""
    try:
        return await handler(event, data)
    except HoldfastError as error:
        logger.warning("a %s hook could not be answered: %s", event, error)
        return {"systemMessage": f"Holdfast: {error}"}
