"""What the daemon does when an agent's hook calls: all thinking is here, the hook client only carries."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast import bounded_json
from holdfast.briefing.hooks import EVENTS, BriefingHooks
from holdfast.briefing.sources import Beside
from holdfast.connections.service import Connections
from holdfast.errors import HoldfastError
from holdfast.hook_answers import Answer, combined
from holdfast.quoting import error_text
from holdfast.wire.links import Links

LONGEST_PID = 10
MAX_PAYLOAD = 16 * 1024 * 1024
MAX_ID = 128
MANAGED = "holdfast_managed"
"""In a payload: whether Holdfast runs the agent itself, which gets its messages another way."""

Handler = Callable[[str, dict[str, Any]], Awaitable[Answer | None]]
"""One capability's answer to an event with its payload; None for nothing to say."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Capability:
    """One capability's answers, and the kinds of a briefing's items that they make superfluous."""

    handler: Handler
    covers: frozenset[str] = frozenset()
    """Superfluous where it said something."""
    always_covers: frozenset[str] = frozenset()
    """Superfluous even where it said nothing: then there is nothing to say, or the user wants nothing said."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a hook client tells beside the payload."""

    pid: str = ""
    """The agent's process, as its relay's parent."""
    managed: bool = False
    briefing: str | None = None
    """HOLDFAST_BRIEFING where the agent runs."""


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

    def __init__(
        self,
        links: Links,
        connections: Connections,
        capabilities: Sequence[Capability] = (),
        briefing: BriefingHooks | None = None,
    ) -> None:
        self._links = links
        self._connections = connections
        self._capabilities = capabilities
        self._briefing = briefing

    async def handle(self, event: str, told: Told, payload: bytes) -> HookReply:
        """One event, with what the hook client tells and the raw payload."""
        try:
            data = bounded_json.loads(payload)
        except ValueError:
            logger.warning("a %s hook brought a payload that is not JSON", event)
            return HookReply()
        if not isinstance(data, dict):
            return HookReply()
        data[MANAGED] = told.managed
        if event == "SessionStart":
            await self._session_start(told.pid, data)
        others = asyncio.ensure_future(self._capable(event, data))
        try:
            briefed = await self._briefed(event, told, data, others)
            answers = [answer for answer in (briefed, *(await others)[0]) if answer]
        finally:
            others.cancel()
        if not answers:
            return HookReply()
        return HookReply(stdout=json.dumps(combined(event, answers)).encode() + b"\n")

    async def _capable(self, event: str, data: dict[str, Any]) -> tuple[list[Answer], set[str]]:
        """The capabilities' answers, and the kinds of items that a briefing needs not tell beside them."""
        answers: list[Answer] = []
        covered: set[str] = set()
        for capability in self._capabilities:
            answer = await _asked(capability.handler, event, data)
            if answer:
                answers.append(answer)
                covered |= capability.covers if _speaks(answer) else set()
        return answers, covered

    async def _briefed(
        self, event: str, told: Told, data: dict[str, Any], others: Awaitable[tuple[list[Answer], set[str]]]
    ) -> Answer | None:
        """The briefing; what it tells is looked for while the others make up their minds."""
        if self._briefing is None or told.managed or event not in EVENTS:
            return None
        always = frozenset().union(*(capability.always_covers for capability in self._capabilities))

        async def perhaps() -> set[str]:
            return (await others)[1]

        pid = int(told.pid) if told.pid.isdecimal() and len(told.pid) <= LONGEST_PID else None
        brief = partial(self._briefing.handle, pid=pid, wanted=told.briefing, beside=Beside(always, perhaps))
        return await _asked(brief, event, data)

    async def _session_start(self, pid: str, data: dict[str, Any]) -> None:
        """After /clear or an in-process resume the relay still has the old session id: tell it the new one."""
        session = data.get("session_id")
        if not pid.isdigit() or not isinstance(session, str) or not 0 < len(session) <= MAX_ID:
            return
        for identity in self._links.rebind(int(pid), session):
            if identity not in self._links.attached():
                await self._connections.detach(identity)


def _speaks(answer: Answer) -> bool:
    return bool(answer.get("hookSpecificOutput", {}).get("additionalContext"))


async def _asked(handler: Handler, event: str, data: dict[str, Any]) -> Answer | None:
    """A capability that cannot answer says so to the user, and the agent goes on."""
    try:
        return await handler(event, data)
    except HoldfastError as error:
        logger.warning("a %s hook could not be answered: %s", event, error)
        return {"systemMessage": error_text(f"Holdfast: {error}")}
