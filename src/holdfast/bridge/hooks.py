"""What the bridge does on an agent's hook: detect a restart, deliver waiting messages, enforce a STOP.

What no hook reports, such as an interrupted turn or an idle agent, is read from the transcript.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from holdfast.agents.hook_events import HookAnswer, HookEvent, HookKind, ToolUse
from holdfast.agents.registry import settings_of, transcripts_of
from holdfast.bridge import hook_delivery, idle
from holdfast.bridge.model import MAX_ID, Message, Priority
from holdfast.bridge.queries import idle as idle_queries
from holdfast.bridge.queries import incarnations, queue, tasks
from holdfast.bridge.queries.incarnations import HookedSession
from holdfast.bridge.service import Targets
from holdfast.bridge.turn_state import TurnState, TurnStates
from holdfast.bridge.wording import copy_heading, heading
from holdfast.files.in_time import ProjectTooSlow, in_time
from holdfast.identity.senders import teams_around
from holdfast.lazy_dataclass import dataclass
from holdfast.process.alive import exists, mark_of
from holdfast.store import Store, Tx, leases
from holdfast.teams.team import Delivery, Team

MAX_SESSIONS = 1_000
MOST_BLOCKS = 7
"""How often in a row an agent that is about to stop is given another message; agents ignore more."""
QUIET_S = 15 * 60.0
"""How long an agent without a connection counts as alive after its last hook, unless its process is gone; and how long
its model may take to answer: a prompt that its user takes back before that leaves no trace."""

WRITTEN_S = 2.5
"""How long to wait until a delivery shows up in the agent's transcript."""
LOOK_AGAIN_S = 0.05
NEVER = float("-inf")
BETWEEN_TURNS = ("startup", "resume", "clear")
"""How a conversation starts when no turn is under way; a compaction may come in the middle of one."""
INTERRUPTED, NOTHING_UNDER_WAY = "The turn was interrupted.", "Nothing was under way."

Alive = Callable[[str], bool]
"""Whether a session has an open connection."""

_HOLDFAST = re.compile(r"(?:.*_)?holdfast")
"""How agents may name this server."""


@dataclass(slots=True)
class HookSession:
    """What is remembered about a session that calls its hooks. It is lost with the daemon, which does no harm."""

    id: str
    target: str
    began: float
    heard: float
    beside: str | None = None
    """The session that was alive when this one began."""
    blocks: int = 0
    halted: str | None = None
    """The STOP of the turn under way, even after the agent finished the message."""
    outlived: str | None = None
    """The STOP that ended the last turn: subagents in the background may outlive it."""
    in_turn: bool | None = None
    """Whether a turn is under way; None until an event shows it."""
    transcript: str = ""
    process: tuple[int, str | None] | None = None
    """The agent's process and its start time; None if this machine does not show it."""


class BridgeHooks:
    """Answers hooks of agents in a target's project, except those that Holdfast runs itself."""

    def __init__(
        self,
        store: Store,
        targets: Targets,
        alive: Alive,
        *,
        clock: Callable[[], float] = time.monotonic,
        written_s: float | None = None,
    ) -> None:
        self._store = store
        self._targets = targets
        self._alive = alive
        self._clock = clock
        self._written_s = WRITTEN_S if written_s is None else written_s
        self._sessions: OrderedDict[str, HookSession] = OrderedDict()
        self._at_work: dict[str, HookedSession] = {}
        self._noticed: dict[str, float] = {}
        """Since when sessions are known to be connected, for those that called no hook of this daemon."""
        self._turns = TurnStates()
        self._events: dict[HookKind, Callable[[HookSession, HookEvent], Awaitable[HookAnswer | None]]] = {
            HookKind.STARTED: self._session_start,
            HookKind.PROMPTED: self._prompt,
            HookKind.AFTER_TOOL: self._after_tool,
            HookKind.STOPPING: self._stop,
            HookKind.ENDED: self._session_end,
        }

    async def handle(self, event: HookEvent, pid: int | None = None) -> HookAnswer | None:
        """Return what the hook of an agent, whose process that is, is to print, if anything."""
        if event.is_managed or not _is_id(event.session_id):
            return None
        session = await self._session(event.session_id, event.cwd)
        if session is None:
            return None
        session.heard, session.transcript = self._clock(), event.transcript or session.transcript
        session.process = (pid, mark_of(pid)) if pid is not None and exists(pid) else None
        if event.kind in (HookKind.BEFORE_TOOL, HookKind.AFTER_TOOL):
            session.in_turn = True
        if event.kind is HookKind.BEFORE_TOOL:
            return await self._before_tool(session, event)
        answer = self._events.get(event.kind)
        # Messages are for the agent, not for its subagents.
        return None if answer is None or event.is_subagent else await answer(session, event)

    async def keep(self) -> None:
        """Renew the leases of live agents, requeue what killed ones had, and end each STOP that has nothing to halt.

        Where an agent's process is not known, its leases expire.
        """
        for session in list(self._sessions.values()):
            if self._was_killed(session):
                await self._leave(session)
        now, held_until, at_work, stopped = await self._store.read(
            lambda tx: (tx.now(), queue.hook_leases(tx), incarnations.at_work(tx), queue.stopped(tx))
        )
        self._at_work = {one.target: one for one in at_work}
        self._noticed = {one.session_id: self._noticed.get(one.session_id, self._clock()) for one in at_work}
        self._turns.forget({one.transcript for one in at_work} | {one.transcript for one in self._sessions.values()})
        for session_id, _ in held_until:
            await self._end_interrupted(session_id)
        due = [session_id for session_id, until in held_until if leases.due(until, now, hook_delivery.HOLD_MS)]
        living = [session_id for session_id in due if self._lives(session_id)]
        if living:
            await self._store.write(lambda tx: hook_delivery.prolong(tx, living))
        for target in stopped:
            await self._end_idle_stop(target)

    def attended(self, target: str) -> bool:
        """Whether an agent that gets messages by hooks is at work for a target."""
        by_hooks = any(session.target == target and self._lives(session.id) for session in self._sessions.values())
        return by_hooks or (target in self._at_work and self._alive(self._at_work[target].session_id))

    async def idle(self, target: str) -> str | None:
        """Return the session that is at work for a target if it and every other one there is idle at its terminal."""
        known = self._at_work.get(target)
        here = [one.id for one in self._sessions.values() if one.target == target and self._lives(one.id)]
        if known is None or not (known.session_id in here or self._alive(known.session_id)):
            return None
        for session_id in {known.session_id, *here}:
            if not await self._is_idle(target, session_id):
                return None
        return known.session_id

    async def _is_idle(self, target: str, session_id: str) -> bool:
        """Whether a session called no hook for as long as its target says, and no turn of it is under way."""
        session, team = self._sessions.get(session_id), self._targets().get(target)
        heard = session.heard if session is not None else self._noticed.get(session_id, self._clock())
        quiet = self._clock() - heard
        if team is None or quiet < team.idle_seconds:
            return False
        in_turn = session.in_turn if session is not None else None
        if in_turn is False:
            return True
        state = await self._turn_state(target, session_id)
        if state is TurnState.INTERRUPTED or (state is TurnState.OVER and in_turn is None):
            return True
        return state in (TurnState.OVER, TurnState.MODEL) and quiet >= QUIET_S

    async def _turn_state(self, target: str, session_id: str) -> TurnState | None:
        session, known = self._sessions.get(session_id), self._at_work.get(target)
        transcript = session.transcript if session is not None else ""
        if not transcript and known is not None and known.session_id == session_id:
            transcript = known.transcript
        if not transcript.startswith("/"):
            return None
        try:
            return await in_time(self._turns.read, transcript)
        except ProjectTooSlow:  # what cannot be read now proves nothing
            return None

    async def _end_interrupted(self, session_id: str) -> None:
        """Requeue the messages of a turn that its user interrupted: no hook tells that it ended."""
        session = self._sessions.get(session_id)
        target = next((one.target for one in self._at_work.values() if one.session_id == session_id), None)
        target = session.target if session is not None else target
        if target is None or not await self._is_idle(target, session_id):
            return

        def write(tx: Tx) -> None:
            tx.lock(f"bridge:{target}")
            mine = hook_delivery.held(tx, target, session_id)
            hook_delivery.interrupt_turn(tx, mine, {one.id for one in mine}, INTERRUPTED)

        if session is not None:
            session.in_turn = False
        await self._store.write(write)

    async def _end_idle_stop(self, target: str) -> None:
        """End a waiting STOP if every agent of its target is known here, and none is in a turn."""
        here = {session.id: session for session in self._sessions.values() if session.target == target}

        def write(tx: Tx) -> str | None:
            tx.lock(f"bridge:{target}")
            at_work = queue.front(tx, target).out or any(map(self._may_be_in_turn, here.values()))
            if at_work or incarnations.incarnation(tx, target) not in here:
                return None
            last_seq = queue.last_seq(tx, target)
            stop = hook_delivery.end_stops(tx, target, None, NOTHING_UNDER_WAY, last_seq=last_seq)
            return hook_delivery.text_of(tx, stop) if stop else None

        if not any(map(self._may_be_in_turn, here.values())) and (text := await self._store.write(write)):
            for session in here.values():
                # A turn that continues anyway, such as a background subagent's, is halted until the next prompt.
                if not session.in_turn:
                    session.halted = session.outlived = text

    async def _session_start(self, session: HookSession, event: HookEvent) -> HookAnswer | None:
        """Note the session; unless the one before still lives, this is a restart."""
        source = event.source[:40]
        if source in BETWEEN_TURNS:
            session.in_turn, session.began = False, self._clock()
        known = await self._store.read(lambda tx: incarnations.incarnation(tx, session.target))
        session.beside = known if known is not None and known != session.id and self._alive(known) else None

        def write(tx: Tx) -> str | None:
            tx.lock(f"bridge:{session.target}")
            living = session.beside is not None and incarnations.incarnation(tx, session.target) == session.beside
            found = incarnations.seen(
                tx, session.target, session.id, f"hook:{source}", known_is_alive=living, transcript=session.transcript
            )
            return hook_delivery.opening(tx, session.target, session.id, source, found)

        text = await self._store.write(write)
        return HookAnswer(text) if text else None

    async def _prompt(self, session: HookSession, event: HookEvent) -> HookAnswer | None:
        """Deliver the next message with the prompt; first again what the last turn did not end.

        A STOP from before the prompt is over: there is no turn left that it could halt.
        """
        session.halted = None
        # A background subagent's report is a prompt too, but does not mean that the turn was interrupted.
        if not event.is_report:
            session.outlived = None
        begins = not event.is_report and not self._others_in_turn(session)
        stopped = INTERRUPTED if session.in_turn else NOTHING_UNDER_WAY
        session.in_turn = session.in_turn if event.is_command else True
        gone = session.beside if session.beside is not None and self._is_gone(session.beside, session.began) else None
        look = await self._look(session, event.transcript)
        copied = await self._store.read(lambda tx: idle_queries.answered(tx, session.target))
        known = {one.message.id: copy_heading(one.message) for one in copied}
        known_already = await asyncio.to_thread(transcripts_of().reached, event.transcript, known)
        by = hook_delivery.holder(session.id)

        def write(tx: Tx) -> tuple[list[str], Message | None]:
            tx.lock(f"bridge:{session.target}")
            told: list[str] = []
            if incarnations.incarnation(tx, session.target) in (None, session.id, gone):
                found = incarnations.seen(tx, session.target, session.id, "hook:prompt", transcript=session.transcript)
                task = tasks.of_target(tx, session.target) if found else None
                told += [hook_delivery.resuming(task, found.old)] if found and task else []
            idle.end(tx, session.target, session.id)
            mine = hook_delivery.held(tx, session.target, session.id)
            if not event.is_report:
                hook_delivery.interrupt_turn(tx, mine, look.seen, INTERRUPTED)
            if begins and all(one.lease_by == by for one in queue.leased(tx, session.target)):
                hook_delivery.end_stops(tx, session.target, session.id, stopped, last_seq=look.last_seq)
                mine = hook_delivery.held(tx, session.target, session.id)
            missed = next((message for message in mine if message.id not in look.seen), None)
            # The agent's own commands may not call its model at all.
            if event.is_command:
                return told, None
            if copied and incarnations.incarnation(tx, session.target) == session.id:  # another agent's was not copied
                told += idle.tell(tx, session.target, known_already)
            message = missed or hook_delivery.hand_over(tx, session.target, session.id)
            told += [hook_delivery.text_of(tx, message, sum(map(len, told)))] if message else []
            return told, message

        told, message = await self._store.write(write)
        if message is not None and message.priority == Priority.STOP:
            session.halted = told[-1]
        return HookAnswer("\n\n".join(told)) if told else None

    async def _before_tool(self, session: HookSession, event: HookEvent) -> HookAnswer | None:
        """Deny every tool to the agent and its subagents until a STOP's turn ends."""
        if event.tool is not None and _ends_a_stop(event.tool):
            return None
        found = await self._store.read(
            lambda tx: _with_text(tx, hook_delivery.stop_for(tx, session.target, session.id))
        )
        if found is None:
            halted = session.halted or (session.outlived if event.is_subagent else None)
            return HookAnswer(denied=halted) if halted else None
        stop, text = found
        if event.is_subagent:
            return HookAnswer(denied=text)
        if stop.lease_by is not None:
            session.halted = text
            return HookAnswer(denied=text)
        handed = await self._cut_in(session, Priority.STOP)
        return HookAnswer(denied=handed) if handed else None

    async def _after_tool(self, session: HookSession, event: HookEvent) -> HookAnswer | None:
        """Deliver an urgent message in the middle of a turn."""
        if not await self._store.read(lambda tx: hook_delivery.cuts_in(tx, session.target)):
            return None
        text = await self._cut_in(session, Priority.URGENT)
        return HookAnswer(text) if text else None

    async def _stop(self, session: HookSession, event: HookEvent) -> HookAnswer | None:
        """End the turn's messages, and deliver the next one as a reason to go on."""
        blocks = session.blocks if event.already_sent_on is True else 0
        look = await self._look(session, event.transcript)

        def write(tx: Tx) -> tuple[Message, str] | None:
            tx.lock(f"bridge:{session.target}")
            mine = hook_delivery.held(tx, session.target, session.id)
            over = [message for message in mine if message.id in look.seen]
            missed = [message for message in mine if message.id not in look.seen]
            halted = hook_delivery.end_turn(tx, over, event.last_words, halted=session.halted is not None)
            if halted or blocks >= MOST_BLOCKS:
                return None
            again = missed[0] if missed else None
            return _with_text(tx, again or hook_delivery.hand_over(tx, session.target, session.id))

        found = await self._store.write(write) if look.held or look.waits else None
        session.halted, session.outlived, session.blocks = None, session.halted or session.outlived, 0
        session.in_turn = found is not None
        if found is None:
            return None
        message, text = found
        session.blocks = blocks + 1
        if message.priority == Priority.STOP:
            session.halted = text
        return HookAnswer(keep_going=text)

    async def _session_end(self, session: HookSession, event: HookEvent) -> HookAnswer | None:
        await self._leave(session)
        return None

    async def _leave(self, session: HookSession) -> None:
        session.heard, session.in_turn, session.halted, session.process = NEVER, False, None, None
        await self._store.write(lambda tx: hook_delivery.leave(tx, session.target, session.id))

    async def _cut_in(self, session: HookSession, least: Priority) -> str | None:
        """Deliver a message that cannot wait for the end of the turn."""

        def write(tx: Tx) -> tuple[Message, str] | None:
            return _with_text(tx, hook_delivery.hand_over(tx, session.target, session.id, least))

        found = await self._store.write(write)
        if found is None:
            return None
        message, text = found
        if message.priority == Priority.STOP:
            session.halted = text
        return text

    async def _look(self, session: HookSession, transcript: str) -> _Look:
        """Read a session's messages, which of them reached the agent, and whether more are waiting."""

        def read(tx: Tx) -> tuple[list[Message], bool, int]:
            mine = hook_delivery.held(tx, session.target, session.id)
            return mine, bool(queue.pending(tx, session.target, 1)), queue.last_seq(tx, session.target)

        mine, waits, last_seq = await self._store.read(read)
        headings = {message.id: heading(message) for message in mine}
        deadline = time.monotonic() + self._written_s
        reached = transcripts_of().reached
        seen = await asyncio.to_thread(reached, transcript, headings)
        while len(seen) < len(headings) and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_AGAIN_S)
            seen = await asyncio.to_thread(reached, transcript, headings)
        return _Look(held=bool(mine), seen=seen, waits=waits, last_seq=last_seq)

    async def _session(self, session_id: str, cwd: str) -> HookSession | None:
        """Return the known session, or begin one. It stays with its first target, wherever its agent goes meanwhile."""
        teams = {name: team for name, team in self._targets().items() if team.delivery is not Delivery.RUN}
        session = self._sessions.get(session_id)
        if session is None or session.target not in teams:
            target = await in_time(_target_at, cwd, tuple(teams.values())) if teams else None
            if target is None:
                return None
            session = self._sessions.get(session_id)  # another hook may have begun it meanwhile
            if session is None or session.target not in teams:
                now = self._clock()
                session = self._sessions[session_id] = HookSession(session_id, target, began=now, heard=now)
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(session_id)
        return session

    def _lives(self, session_id: str) -> bool:
        session = self._sessions.get(session_id)
        if session is None or self._clock() - session.heard >= QUIET_S or self._was_killed(session):
            return self._alive(session_id)
        return True

    def _was_killed(self, session: HookSession) -> bool:
        """Whether a session's process is gone, whatever was heard of it before."""
        if session.process is None or self._alive(session.id):
            return False
        pid, mark = session.process
        return not exists(pid) or mark_of(pid) != mark

    def _may_be_in_turn(self, session: HookSession) -> bool:
        return session.in_turn is not False and self._lives(session.id)

    def _others_in_turn(self, session: HookSession) -> bool:
        """Whether another agent of the target may be in a turn; one that was silent since this one began is gone."""
        others = [one for one in self._sessions.values() if one.target == session.target and one is not session]
        return any(self._may_be_in_turn(one) and not self._is_gone(one.id, session.began) for one in others)

    def _is_gone(self, session_id: str, since: float) -> bool:
        """Whether a session has no connection, and has made no hook call since then or was killed."""
        session = self._sessions.get(session_id)
        silent = session is None or session.heard <= since or self._was_killed(session)
        return silent and not self._alive(session_id)


@dataclass(frozen=True, slots=True)
class _Look:
    """The messages of a session at the time of an event."""

    held: bool
    seen: frozenset[str]
    """Those of the messages that reached the agent."""
    waits: bool
    last_seq: int
    """The number of the last message that had been sent by then."""


def _target_at(cwd: str, teams: Iterable[Team]) -> str | None:
    """Find the target whose project contains a directory; for nested projects, the nearest.

    Unless a team's delivery is "hook", it gets messages through hooks only if all of the bridge's hooks are installed:
    with only some of them, a message could be delivered and the end of its turn never seen.
    """
    by_name = {team.name: team for team in teams}
    names = teams_around(by_name, Path(cwd)) if cwd.startswith("/") else ()
    if not names:
        return None
    team = by_name[names[-1]]
    if team.delivery is Delivery.HOOK:
        return team.name
    here, project = Path(os.path.realpath(cwd)), Path(os.path.realpath(team.project))
    inside = (one for one in (here, *here.parents) if one.is_relative_to(project))
    return team.name if any(settings_of().hooks_installed(one, "bridge") for one in inside) else None


def _with_text(tx: Tx, message: Message | None) -> tuple[Message, str] | None:
    return None if message is None else (message, hook_delivery.text_of(tx, message))


def _is_id(session_id: str) -> bool:
    return 0 < len(session_id) <= MAX_ID and session_id.isprintable()


def _ends_a_stop(tool: ToolUse) -> bool:
    return tool.server_tool == "finish_message" and _HOLDFAST.fullmatch(tool.server) is not None
