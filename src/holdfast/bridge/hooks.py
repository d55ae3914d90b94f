"""What the bridge does when an agent's hook calls: it notices a restart, hands over what waits, and holds a STOP."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.bridge import agent_queries, delivery, queries
from holdfast.bridge.model import Message, Priority
from holdfast.bridge.receipt import reached
from holdfast.bridge.service import Targets
from holdfast.bridge.wording import heading
from holdfast.hook_answers import Answer
from holdfast.protocol.in_time import in_time
from holdfast.store import Store, Tx
from holdfast.teams.team import Delivery, Team

MAX_ID = 128
MAX_PROMPT = 1_000
MOST_VISITS = 1_000
MOST_BLOCKS = 7
"""How often in a row an agent that wants to stop is sent on; it would not obey more often itself."""
QUIET_S = 15 * 60.0
"""How long an agent without a connection counts as alive after its last hook."""

WRITTEN_S = 2.5
"""How long an agent may take to write down what it was told; it does so a moment after it went on."""
LOOK_AGAIN_S = 0.05
REPORT = "<task-notification>"
"""How a prompt begins that Claude Code writes for a subagent in the background."""

Payload = Mapping[str, Any]
Alive = Callable[[str], bool]
"""Whether a session has an open connection."""

_ENDS_A_STOP = re.compile(r"mcp__(?:.*_)?holdfast__finish_message")


@dataclass(slots=True)
class Visit:
    """What is remembered of a session that calls its hooks. It is lost with the daemon, and nothing hangs on it."""

    session: str
    target: str
    began: float
    heard: float
    beside: str | None = None
    """The session that was alive when this one began."""
    blocks: int = 0
    halted: str | None = None
    """The STOP of the turn under way, also after the agent finished it."""
    outlived: str | None = None
    """The STOP that ended the last turn: subagents in the background may go on after their agent."""
    prompted: str | None = None
    """The prompt that was answered last, while nothing else came after it."""


class BridgeHooks:
    """Answers the hooks of the agents at work in a target's project, unless Holdfast itself runs them."""

    def __init__(
        self,
        store: Store,
        targets: Targets,
        alive: Alive,
        *,
        clock: Callable[[], float] = time.monotonic,
        written_s: float = WRITTEN_S,
    ) -> None:
        self._store = store
        self._targets = targets
        self._alive = alive
        self._clock = clock
        self._written_s = written_s
        self._visits: OrderedDict[str, Visit] = OrderedDict()
        self._at_work: dict[str, str] = {}
        self._events: dict[str, Callable[[Visit, Payload], Awaitable[Answer | None]]] = {
            "SessionStart": self._session_start,
            "UserPromptSubmit": self._prompt,
            "PostToolUse": self._after_tool,
            "Stop": self._stop,
            "SessionEnd": self._session_end,
        }

    async def handle(self, event: str, payload: dict[str, Any]) -> Answer | None:
        """What the hook is to print; None when there is nothing to say."""
        session = payload.get("session_id")
        if payload.get("holdfast_managed") or not _is_id(session):
            return None
        visit = await self._visit(str(session), payload.get("cwd"))
        if visit is None:
            return None
        visit.heard = self._clock()
        if event != "UserPromptSubmit":
            visit.prompted = None
        if event == "PreToolUse":
            return await self._before_tool(visit, payload)
        answer = self._events.get(event)
        # A subagent works for its agent: a message is for that one.
        return None if answer is None or "agent_id" in payload else await answer(visit, payload)

    async def keep(self) -> None:
        """Prolong what living agents are at work on; what a dead one had comes back by itself."""
        now, held_until, self._at_work = await self._store.read(
            lambda tx: (tx.now(), delivery.hook_leases(tx), delivery.at_work(tx))
        )
        due = [session for session, until in held_until.items() if until - now < delivery.HOLD_MS // 2]
        living = [session for session in due if self._lives(session)]
        if living:
            await self._store.write(lambda tx: delivery.prolong(tx, living))

    def attended(self, target: str) -> bool:
        """Whether an agent is at work for a target that gets its messages with its hooks."""
        visiting = any(visit.target == target and self._lives(visit.session) for visit in self._visits.values())
        return visiting or (target in self._at_work and self._alive(self._at_work[target]))

    # -- events -------------------------------------------------------------------------------------------------------

    async def _session_start(self, visit: Visit, payload: Payload) -> Answer | None:
        """Another session than the last one took its place, unless that one is still there."""
        source = _text(payload, "source")[:40]
        known = await self._store.read(lambda tx: agent_queries.incarnation(tx, visit.target))
        visit.beside = known if known is not None and known != visit.session and self._alive(known) else None

        def write(tx: Tx) -> str | None:
            tx.lock(f"bridge:{visit.target}")
            living = visit.beside is not None and agent_queries.incarnation(tx, visit.target) == visit.beside
            found = agent_queries.seen(tx, visit.target, visit.session, f"hook:{source}", known_is_alive=living)
            return delivery.opening(tx, visit.target, visit.session, source, restarted=found is not None)

        text = await self._store.write(write)
        return _told("SessionStart", text) if text else None

    async def _prompt(self, visit: Visit, payload: Payload) -> Answer | None:
        """The next message comes with the prompt. What the last turn had, and did not end, is the next again."""
        prompt = _text(payload, "prompt").strip()
        which = _text(payload, "prompt_id") or prompt[:MAX_PROMPT]
        repeated = visit.prompted == which
        visit.prompted, visit.halted = which, None
        # What a subagent in the background reports is a prompt too, but no sign that somebody broke the turn off.
        reported = prompt.startswith(REPORT)
        if not reported:
            visit.outlived = None
        gone = visit.beside if visit.beside is not None and self._is_gone(visit.beside, visit.began) else None
        look = await self._look(visit, payload)

        def write(tx: Tx) -> tuple[list[str], Message | None]:
            tx.lock(f"bridge:{visit.target}")
            told: list[str] = []
            if agent_queries.incarnation(tx, visit.target) in (None, visit.session, gone):
                found = agent_queries.seen(tx, visit.target, visit.session, "hook:prompt")
                task = agent_queries.task(tx, visit.target) if found else None
                told += [delivery.resuming(task, found.old)] if found and task else []
            mine = delivery.held(tx, visit.target, visit.session)
            if not reported:
                delivery.interrupt_turn(tx, mine, look.seen, "The turn was interrupted.")
            missed = next((message for message in mine if message.id not in look.seen), None)
            # A command of the agent's own may not ask its model at all.
            if prompt.startswith("/") or (missed is not None and repeated):
                return told, None
            message = missed or delivery.hand_over(tx, visit.target, visit.session)
            told += [delivery.text_of(tx, message)] if message else []
            return told, message

        told, message = await self._store.write(write)
        if message is not None and message.priority == Priority.STOP:
            visit.halted = told[-1]
        return _told("UserPromptSubmit", "\n\n".join(told)) if told else None

    async def _before_tool(self, visit: Visit, payload: Payload) -> Answer | None:
        """A STOP denies every tool until the turn ends, to the agent and to its subagents."""
        if _ENDS_A_STOP.fullmatch(_text(payload, "tool_name")):
            return None
        found = await self._store.read(lambda tx: _with_text(tx, delivery.stop_for(tx, visit.target, visit.session)))
        if found is None:
            halted = visit.halted or (visit.outlived if "agent_id" in payload else None)
            return _denied(halted) if halted else None
        stop, text = found
        if "agent_id" in payload:
            return _denied(text)
        if stop.lease_by is not None:
            visit.halted = text
            return _denied(text)
        handed = await self._cut_in(visit, Priority.STOP)
        return _denied(handed) if handed else None

    async def _after_tool(self, visit: Visit, payload: Payload) -> Answer | None:
        """What is urgent comes in the middle of a turn."""
        if not await self._store.read(lambda tx: delivery.cuts_in(tx, visit.target)):
            return None
        text = await self._cut_in(visit, Priority.URGENT)
        return _told("PostToolUse", text) if text else None

    async def _stop(self, visit: Visit, payload: Payload) -> Answer | None:
        """The turn ends: so does what came in it, and the next message is a reason to go on."""
        blocks = visit.blocks if payload.get("stop_hook_active") is True else 0
        look = await self._look(visit, payload)
        said = _text(payload, "last_assistant_message")

        def write(tx: Tx) -> tuple[Message, str] | None:
            tx.lock(f"bridge:{visit.target}")
            mine = delivery.held(tx, visit.target, visit.session)
            over = [message for message in mine if message.id in look.seen]
            missed = [message for message in mine if message.id not in look.seen]
            halted = delivery.end_turn(tx, over, said, halted=visit.halted is not None)
            if halted or blocks >= MOST_BLOCKS:
                return None
            again = missed[0] if missed else None
            return _with_text(tx, again or delivery.hand_over(tx, visit.target, visit.session))

        found = await self._store.write(write) if look.held or look.waits else None
        visit.halted, visit.outlived, visit.blocks = None, visit.halted or visit.outlived, 0
        if found is None:
            return None
        message, text = found
        visit.blocks = blocks + 1
        if message.priority == Priority.STOP:
            visit.halted = text
        return {"decision": "block", "reason": text}

    async def _session_end(self, visit: Visit, payload: Payload) -> Answer | None:
        """What the session still had goes back to the queue."""
        self._visits.pop(visit.session, None)
        await self._store.write(lambda tx: delivery.leave(tx, visit.target, visit.session))
        return None

    # -- what they share ----------------------------------------------------------------------------------------------

    async def _cut_in(self, visit: Visit, least: Priority) -> str | None:
        """Hand over what cannot wait for the end of the turn."""

        def write(tx: Tx) -> tuple[Message, str] | None:
            return _with_text(tx, delivery.hand_over(tx, visit.target, visit.session, least))

        found = await self._store.write(write)
        if found is None:
            return None
        message, text = found
        if message.priority == Priority.STOP:
            visit.halted = text
        return text

    async def _look(self, visit: Visit, payload: Payload) -> _Look:
        """What a session has, what of it reached the agent, and whether more waits."""

        def read(tx: Tx) -> tuple[list[Message], bool]:
            mine = delivery.held(tx, visit.target, visit.session)
            return mine, bool(queries.pending(tx, visit.target, 1))

        mine, waits = await self._store.read(read)
        headings = {message.id: heading(message) for message in mine}
        transcript, deadline = payload.get("transcript_path"), time.monotonic() + self._written_s
        seen = await asyncio.to_thread(reached, transcript, headings)
        while len(seen) < len(headings) and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_AGAIN_S)
            seen = await asyncio.to_thread(reached, transcript, headings)
        return _Look(held=bool(mine), seen=seen, waits=waits)

    async def _visit(self, session: str, cwd: object) -> Visit | None:
        """The session's visit. It stays with the target where it began, wherever its agent goes meanwhile."""
        teams = {name: team for name, team in self._targets().items() if team.delivery is not Delivery.RUN}
        visit = self._visits.get(session)
        if visit is None or visit.target not in teams:
            target = await in_time(_target_at, cwd, tuple(teams.values())) if teams and isinstance(cwd, str) else None
            if target is None:
                return None
            now = self._clock()
            visit = self._visits[session] = Visit(session, target, began=now, heard=now)
            if len(self._visits) > MOST_VISITS:
                self._visits.popitem(last=False)
        self._visits.move_to_end(session)
        return visit

    def _lives(self, session: str) -> bool:
        visit = self._visits.get(session)
        return self._alive(session) or (visit is not None and self._clock() - visit.heard < QUIET_S)

    def _is_gone(self, session: str, since: float) -> bool:
        """Whether nothing was heard of a session since, and nothing is connected for it."""
        visit = self._visits.get(session)
        return not self._alive(session) and (visit is None or visit.heard <= since)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a session has when an event of it comes."""

    held: bool
    seen: frozenset[str]
    """The messages of those that reached the agent."""
    waits: bool


def _target_at(cwd: str, teams: Iterable[Team]) -> str | None:
    """The target in whose project a directory is; the nearest, where one project is inside another.

    Unless a team is to get its messages with hooks, it gets them only where all of these are: hooks that are there for
    something else could hand a message over, and never see its turn end.
    """
    if not cwd.startswith("/"):
        return None
    try:
        here = Path(os.path.realpath(cwd))
    except ValueError:  # no path can have such characters
        return None
    homes = {Path(os.path.realpath(team.project)): team for team in teams}
    folders = [here, *here.parents]
    project = next((folder for folder in folders if folder in homes), None)
    if project is None:
        return None
    if homes[project].delivery is Delivery.HOOK:
        return homes[project].name
    from holdfast import claude_settings

    inside = folders[: folders.index(project) + 1]
    return homes[project].name if any(claude_settings.is_installed(one, "bridge") for one in inside) else None


def _with_text(tx: Tx, message: Message | None) -> tuple[Message, str] | None:
    return None if message is None else (message, delivery.text_of(tx, message))


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID and value.isprintable()


def _text(payload: Payload, name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _told(event: str, text: str) -> Answer:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _denied(reason: str) -> Answer:
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}
