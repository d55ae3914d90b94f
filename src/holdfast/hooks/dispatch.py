"""Answers agents' hooks: asks each room, and merges what they say into one reply. The hook client only carries it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.agents import Agent
from holdfast.agents.hook_events import HookAnswer, combined
from holdfast.agents.registry import AGENTS, DEFAULT
from holdfast.capability import Hook, HookCall, Phase
from holdfast.capability.briefing import Covered
from holdfast.errors import HoldfastError
from holdfast.lazy_dataclass import dataclass
from holdfast.text import bounded_json
from holdfast.text.quoting import error_text

MAX_PID_DIGITS = 10
MAX_PAYLOAD = 16 * 1024 * 1024
REPEATED_S = 15.0
"""How long after an event another of the agent's settings may still bring it; agents wait less for their hooks."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HookContext:
    """What a hook client sends beside the payload."""

    pid: str = ""
    """The agent's process, as its relay's parent."""
    managed: bool = False
    briefing: str | None = None
    """HOLDFAST_BRIEFING where the agent runs."""
    agent: str = DEFAULT
    by: str = ""
    """Which of the agent's settings named the hook."""


@dataclass(slots=True)
class _Brought:
    """An event that was answered, and the settings by which it came."""

    at: float
    by: set[str]


@dataclass(frozen=True, slots=True)
class HookReply:
    """How the hook process ends, and what it prints."""

    exit_code: int = 0
    stdout: bytes = b""

    def encode(self) -> bytes:
        """Return it as the hook client reads it."""
        return b"exit %d\n" % self.exit_code + self.stdout


class Hooks:
    """Answers hook events. An event that no room handles, or a payload that cannot be read, lets the agent continue."""

    def __init__(self, hooks: Iterable[Hook], agents: Mapping[str, Agent] = AGENTS) -> None:
        ordered = sorted(hooks, key=lambda hook: hook.order)
        self._by_phase = {phase: [hook for hook in ordered if hook.phase is phase] for phase in Phase}
        self._agents = agents
        self._brought: dict[bytes, _Brought] = {}

    async def serve(self, first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a hook client: its first line names the event, the rest is the payload (none too long is answered)."""
        payload = bytearray()
        while data := await reader.read(64 * 1024):
            payload += data
            if len(payload) > MAX_PAYLOAD:
                return
        agent = str(first.get("agent") or DEFAULT)
        context = HookContext(
            str(first.get("pid", "")),
            bool(first.get("managed")),
            first.get("briefing"),
            agent,
            str(first.get("by", "")),
        )
        reply = await self.handle(str(first.get("event", "")), context, bytes(payload))
        writer.write(reply.encode())
        await writer.drain()

    async def handle(self, event: str, context: HookContext, payload: bytes) -> HookReply:
        """Answer one event, whose payload comes as the agent wrote it."""
        agent = self._agents.get(context.agent)
        hooks = None if agent is None else agent.hooks
        if hooks is None:
            logger.warning("a %s hook was called by an agent whose hooks are not known: %.40r", event, context.agent)
            return HookReply()
        try:
            data = bounded_json.loads(payload)
        except ValueError:
            logger.warning("a %s hook brought a payload that is not JSON", event)
            return HookReply()
        if not isinstance(data, dict) or self._is_repeated(event, context, payload):
            return HookReply()
        pid = int(context.pid) if context.pid.isdecimal() and len(context.pid) <= MAX_PID_DIGITS else None
        call = HookCall(hooks.event(event, data, is_managed=context.managed), pid, context.briefing, Covered())
        for hook in self._by_phase[Phase.PREPARE]:
            await hook.handle(call)
        others = asyncio.ensure_future(self._answers(call))
        try:
            summaries = await self._summaries(call, others)
            answers = [*summaries, *(await others)[0]]
        finally:
            others.cancel()
        return HookReply(stdout=hooks.output(event, combined(answers)))

    def _is_repeated(self, event: str, context: HookContext, payload: bytes) -> bool:
        """Whether another of the agent's settings brought the event already; from the same one it is another event."""
        now = time.monotonic()
        self._brought = {key: one for key, one in self._brought.items() if now - one.at < REPEATED_S}
        key = hashlib.sha256(f"{context.agent} {event} {context.pid}\n".encode() + payload).digest()
        known = self._brought.get(key)
        if known is None or context.by in known.by:
            self._brought[key] = _Brought(now, {context.by})
            return False
        known.by.add(context.by)
        return True

    async def _answers(self, call: HookCall) -> tuple[list[HookAnswer], set[str]]:
        """Return the answers, and the kinds of items that a briefing need not repeat."""
        answers: list[HookAnswer] = []
        covered: set[str] = set()
        for hook in self._by_phase[Phase.ANSWER]:
            answer = await _answer_of(hook, call)
            if answer:
                answers.append(answer)
                covered |= hook.covers if answer.context else set()
        return answers, covered

    async def _summaries(
        self, call: HookCall, others: Awaitable[tuple[list[HookAnswer], set[str]]]
    ) -> list[HookAnswer]:
        """Ask for summaries of all rooms, concurrently with the answers."""
        always = frozenset().union(*(hook.always_covers for hook in self._by_phase[Phase.ANSWER]))

        async def pending() -> set[str]:
            return (await others)[1]

        beside = replace(call, covered=Covered(always, pending))
        summaries = [await _answer_of(hook, beside) for hook in self._by_phase[Phase.SUMMARY]]
        return [answer for answer in summaries if answer]


async def _answer_of(hook: Hook, call: HookCall) -> HookAnswer | None:
    """Ask one room. If it fails, the user is told why and the agent continues."""
    try:
        return await hook.handle(call)
    except HoldfastError as error:
        logger.warning("a hook (%s) could not be answered: %s", call.event.kind, error)
        return HookAnswer(notice=error_text(f"Holdfast: {error}"))
