"""Teams: asks that are stored before they run, and answers that wait until they are fetched."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents import Compaction, FoundSession
from holdfast.errors import BadInput, Conflict, HoldfastError, NotFound
from holdfast.identity.caller import Caller
from holdfast.identity.managed import Managed
from holdfast.identity.project import Root, path_of
from holdfast.identity.senders import OWNER, Kind, NotYours, Sender, sender_of, teams_around
from holdfast.store import Store, Tx
from holdfast.store.calls import AlreadyAnswered, CallKey, first_time, locked_answer, require_unanswered, store_answer
from holdfast.store.wakeups import Wakeups
from holdfast.teams.config import TeamsConfig
from holdfast.teams.config_file import TeamsFile
from holdfast.teams.errors import AskCycle, AskTooDeep, UnknownTeam
from holdfast.teams.maintenance import Maintenance
from holdfast.teams.model import (
    EXTERNAL,
    MAIN,
    MAX_TEXT,
    TEMPORARY,
    Ask,
    AskState,
    AskStatus,
    ChainProblem,
    Conversation,
    ConversationStatus,
    Exchange,
    chain_problem,
    extend_chain,
)
from holdfast.teams.queries import conversations as queries
from holdfast.teams.runner import Claimed, Runner, unavailable
from holdfast.teams.sessions import Sessions
from holdfast.teams.team import Team
from holdfast.text.quoting import in_quotes, named, quoted

if TYPE_CHECKING:
    from holdfast.teams.overview import Overview
    from holdfast.teams.results import ConversationHistory, Figures, TeamsStatus

POLL_SECONDS = 2.0
PROGRESS_SECONDS = 5.0
DAY_MS = 24 * 3_600_000
LATELY_MS = 7 * DAY_MS
MOST_NAMED = 20
"""How many teams the refusal of an unknown name lists; teams_status lists all."""

Progress = Callable[[float, str], Awaitable[None]]

logger = logging.getLogger(__name__)


class Teams:
    """The entry point to teams for all other packages."""

    def __init__(self, store: Store, file: TeamsFile, runner: Runner) -> None:
        self._store = store
        self._file = file
        self._runner = runner
        self.maintenance = Maintenance(store, runner)
        self._sessions = Sessions(store, runner)
        self.permissions = runner.pool.permissions
        self.can_run = runner.pool.can_run
        self._refreshing = asyncio.Lock()
        self.works_on, self.outcome = runner.works_on, runner.outcome

    @property
    def config(self) -> TeamsConfig:
        """The teams as they are configured now."""
        return self._file.config

    def targets(self) -> Mapping[str, Team]:
        """The teams by name: each is a target of the bridge."""
        return self.config.teams

    async def refresh(self) -> None:
        """Pick up changes of teams.json."""
        if self._file.is_current and not self._refreshing.locked():
            return
        async with self._refreshing:  # otherwise a read that began earlier might end later
            if await asyncio.to_thread(self._file.refresh):
                self._runner.use(self.config)

    async def projects(self) -> list[tuple[str, Path]]:
        """Return every configured team with its project, also those that cannot be served."""
        await self.refresh()
        return list((await asyncio.to_thread(self._file.projects)).items())

    async def start(self) -> None:
        """Read the teams, and requeue asks that an earlier daemon left."""
        await asyncio.to_thread(self._file.begin_confirming)
        self._runner.use(self.config)
        await self._runner.start()

    async def discover(self) -> None:
        """Relink conversations that the store lost, and warm up the most used ones, after the start."""
        linked = await self._sessions.relink()
        if linked:
            logger.warning("%d conversations were linked again from their transcripts", linked)
        await self.maintenance.warm_up()

    async def release(self, teams: Collection[str], session_ids: Collection[str]) -> None:
        """End the idle processes of these teams' agents, and delete what agents keep of these conversations."""
        await self._runner.release(teams, session_ids)

    @cached_property
    def overview(self) -> Overview:
        """What the dashboard shows of all teams."""
        from holdfast.teams.overview import Overview  # tools and hooks do not need it

        return Overview(self._store, self._runner)

    # -- asking -------------------------------------------------------------------------------------------------------

    async def ask(
        self,
        caller: Caller,
        to_team: str,
        text: str,
        *,
        from_team: str | None = None,
        thread: str | None = None,
        temporary: bool = False,
        copy_of: str | None = None,
        key: CallKey | None = None,
    ) -> str:
        """Store an ask; the answer will be stored under the returned id.

        With `copy_of` its thread begins as a copy of that session of the team's agent."""
        if not text.strip():
            raise BadInput("question", "must not be blank")
        if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT or "\0" in text:
            raise BadInput("question", "must be at most 1 MiB of text without NUL bytes")
        if temporary and thread is not None:
            raise BadInput("temporary", "does not go with threadId: a temporary conversation has a thread of its own")
        await self.refresh()  # revoked rights must not apply to this ask
        claimed: list[Claimed] = []
        speaker, managed = self.sender(caller), caller.managed
        fault = await self._fault(to_team) if to_team in self.config.teams else None

        def write(tx: Tx) -> str:
            claimed.clear()
            if (known := locked_answer(tx, key)) is not None:
                return str(known["id"])
            self._known(to_team, "team", speaker)
            if fault is not None:
                raise unavailable(to_team, fault)
            sender = self.asker(speaker, from_team)
            parent = self._runner.parent(tx, managed)
            chain = extend_chain(parent.asked if parent else [], sender, to_team)
            _refuse(chain_problem(chain, self.config.settings.max_depth), chain)
            name = f"{TEMPORARY}{tx.new_id()}" if temporary else _thread(thread)
            conversation = queries.begin(tx, sender, to_team, name, copy_of)
            if conversation.status == ConversationStatus.ARCHIVED.value:
                queries.set_status(tx, conversation.id, ConversationStatus.ACTIVE)
            made = queries.add_ask(tx, conversation.id, to_team, text, json.dumps(chain), parent.id if parent else None)
            taken = self._runner.claim(tx, made) if free else None
            if taken is not None:
                claimed.append(taken)
            store_answer(tx, key, {"id": made.id})
            return made.id

        with contextlib.suppress(HoldfastError):  # what is wrong is said when it is stored
            self._runner.look_ahead(self.asker(speaker, from_team), to_team, _thread(thread))
        with self._runner.place_for(to_team) as free:
            ask_id = await self._store.write(write)
            for one in claimed:
                self._runner.begin(one)
        if not claimed:
            self._runner.wake()
        return ask_id

    async def wait(
        self, ask_id: str, timeout_ms: int, progress: Progress | None = None, managed: Managed | None = None
    ) -> AskState:
        """Return the ask when it is done, or as it is when the time is up. Giving up loses nothing.

        A managed agent that waits frees its slot meanwhile."""
        began = told = time.monotonic()
        said = ""
        deadline = began + timeout_ms / 1000
        with Wakeups(self._store) as news, self._runner.parked(managed):
            while True:
                news.clear()
                patience = min(POLL_SECONDS, deadline - time.monotonic())
                state = await self._runner.outcome(ask_id, patience) or await self.look(ask_id)
                now = time.monotonic()
                if state.done or now >= deadline:
                    return state
                said = said or state.progress
                if progress is not None and (now - told >= PROGRESS_SECONDS or said != state.progress):
                    told, said = now, state.progress
                    await progress(now - began, said)
                if not self._runner.works_on(ask_id):
                    await news.wait(min(POLL_SECONDS, deadline - now))

    async def find(self, ask_id: str) -> Ask:
        """Return the ask with this id."""
        return (await self.look(ask_id)).ask

    async def look(self, ask_id: str) -> AskState:
        """Return the state of the ask with this id."""
        state = await self._store.read(lambda tx: queries.ask_state(tx, ask_id))
        if state is None:
            raise NotFound(
                f"There is no ask {quoted(ask_id, 64)}.", recovery='teams_session {operation: "list"} lists them.'
            )
        return self._runner.seen(state)

    async def require_own_ask(self, sender: Sender, ask_id: str) -> str:
        """Return an ask's id; raises NotYours if the caller may not act for the team that asked."""
        conversation = (await self.look(ask_id)).conversation
        asker = conversation.from_team if conversation is not None else EXTERNAL
        if sender.teams is not None and asker not in sender.teams:
            raise NotYours(
                f"The ask {quoted(ask_id, 64)} is not yours: you are {sender.label}.",
                recovery='teams_session {operation: "list"} lists your conversations.',
            )
        return ask_id

    async def cancel(self, ask_id: str) -> AskState:
        """Cancel an ask that is not done, and the asks its agent made for it; turns under way are interrupted."""
        self._runner.cancel(await self._store.write(lambda tx: queries.cancel(tx, ask_id)))
        return await self.look(ask_id)

    async def notify(
        self,
        caller: Caller,
        to_team: str,
        text: str,
        *,
        from_team: str | None,
        ttl_days: int,
        key: CallKey | None = None,
    ) -> str:
        """Store a notice for the team's next turn; return its id."""
        if not 1 <= ttl_days <= 365:
            raise BadInput("ttlDays", "must be 1 to 365")
        if not text.strip() or len(text) > 10_000 or "\0" in text:
            raise BadInput("message", "must be 1 to 10,000 characters without NUL bytes")
        speaker = self.sender(caller)

        def write(tx: Tx) -> str:
            self._known(to_team, "toTeam", speaker)
            sender = self.asker(speaker, from_team)
            return queries.add_notice(tx, sender, to_team, text, ttl_days * DAY_MS)

        return await self._store.write(first_time(key, write))

    # -- looking ------------------------------------------------------------------------------------------------------

    async def status(self, team: str | None, sender: Sender = OWNER) -> TeamsStatus:
        """Return teams with their processes and queues; a key limited to teams sees only these."""
        from holdfast.teams.results import TeamsStatus, TeamStatus

        await self.refresh()
        if team is not None:
            self._known(team, "team", sender)
            if not sender.may_see(team):
                sender.require(team, "The status")
        counts = {(name, status): count for name, status, count in await self._store.read(queries.counts)}
        names = [team] if team else self._names(sender)
        slots = [slot for slot in self._runner.pool.slots if slot.session.alive]
        processes, busy = Counter(slot.team for slot in slots), Counter(slot.team for slot in slots if slot.busy)
        off = dict(await self.settings_off(names))
        broken = {name: fault for name in names if (fault := await self._fault(name)) is not None}
        approvals = await self.permissions.open()
        return TeamsStatus(
            teams=tuple(
                TeamStatus(
                    self.config.teams[name],
                    processes=processes[name],
                    busy=busy[name],
                    waiting=counts.get((name, AskStatus.WAITING), 0),
                    running=counts.get((name, AskStatus.RUNNING), 0),
                    settings_off=off.get(name),
                    fault=broken.get(name),
                    approvals=tuple(request for request in approvals if request.team == name),
                )
                for name in names
            ),
            processes=len(slots),
            max_processes=self.config.settings.max_processes,
            faults=tuple(self.config.faults) if sender.kind is not Kind.KEY or sender.teams is None else (),
        )

    async def settings_off(self, names: Sequence[str] | None = None) -> list[tuple[str, str]]:
        """Return the teams whose agents do not use their project's settings, and why."""
        teams = [self.config.teams[name] for name in names or self.config.teams]
        reasons = await asyncio.gather(*(self._runner.pool.settings_off(team.project) for team in teams))
        return [(team.name, why) for team, why in zip(teams, reasons, strict=True) if why is not None]

    async def figures(self) -> Figures:
        """Messages, lifetimes, pairs, tokens and cost."""
        from holdfast.teams.queries.figures import figures

        return await self._store.read(figures)

    async def lately(self, root: Root | None, limit: int = 3) -> list[Exchange]:
        """Return what the team of this project was asked, and what it asked others, the latest first."""
        team = self._at(root)
        if team is None:
            return []
        return await self._store.read(lambda tx: queries.exchanges(tx, team, tx.now() - LATELY_MS, limit))

    def colleagues(self, root: Root | None) -> tuple[Team, list[Team]] | None:
        """Return the team whose project contains a directory, and those that it can ask."""
        name = self._at(root)
        if name is None:
            return None
        return self.config.teams[name], [team for team in self.config.teams.values() if team.name != name]

    async def open_asks(self) -> list[AskState]:
        """Return the asks that are not done, the oldest first."""
        return [self._runner.seen(state) for state in await self._store.read(queries.open_asks)]

    async def failed_lately(self, within_ms: int) -> list[AskState]:
        """Return asks that failed and were not followed by another one, the newest first."""
        names = list(self.config.teams)

        def read(tx: Tx) -> list[AskState]:
            failed = queries.failed_last(tx, names, tx.now() - within_ms)
            return [AskState(one, queries.conversation(tx, one.conversation_id), None) for one in failed]

        return await self._store.read(read)

    async def search(self, words: Sequence[str], limit: int) -> list[AskState]:
        """Return the newest asks of all teams with all of these words in their question or answer."""
        return await self._store.read(lambda tx: queries.search(tx, words, limit))

    async def beginning_with(self, beginning: str) -> list[str]:
        """Return at most two ids of asks that begin with this; of open asks only, if there are any."""
        return await self._store.read(
            lambda tx: (
                queries.beginning_with(tx, beginning, done=False) or queries.beginning_with(tx, beginning, done=True)
            )
        )

    async def conversations(self, team: str | None, limit: int, sender: Sender = OWNER) -> list[Conversation]:
        """Return conversations of the teams that the sender may act for, the last used first."""
        asked_for = None if sender.teams is None else sorted(sender.teams)
        return await self._store.read(lambda tx: queries.conversations(tx, team, limit, asked_for))

    async def history(self, from_team: str | None, to_team: str, thread: str | None, limit: int) -> ConversationHistory:
        """Return what was asked and answered in a conversation, the newest first."""
        from holdfast.teams.results import ConversationHistory

        def read(tx: Tx) -> ConversationHistory:
            conversation = _existing(tx, from_team, to_team, thread)
            return ConversationHistory(conversation, tuple(queries.asks_of(tx, conversation.id, None, limit)))

        return await self._store.read(read)

    async def archive(
        self,
        from_team: str | None,
        to_team: str,
        thread: str | None,
        *,
        restore: bool,
        delete_files: bool = False,
        key: CallKey | None = None,
    ) -> Conversation:
        """Archive a conversation, or restore it; its files are deleted only on request."""
        if delete_files:
            self._known(to_team, "team")
            await self._sessions.delete(await self._at_rest(from_team, to_team, thread, key))

        def write(tx: Tx) -> Conversation:
            conversation = _existing(tx, from_team, to_team, thread)
            status = ConversationStatus.ACTIVE if restore else ConversationStatus.ARCHIVED
            queries.set_status(tx, conversation.id, status)
            return _existing(tx, from_team, to_team, thread)

        return await self._store.write(first_time(key, write))

    async def compact(
        self, from_team: str | None, to_team: str, thread: str | None, key: CallKey | None = None
    ) -> Compaction:
        """Compact a conversation now."""
        conversation = await self._at_rest(from_team, to_team, thread, key)
        if not conversation.begun:
            raise Conflict("The conversation has not begun.")
        if (why := self._runner.why_not(to_team)) is not None:
            raise unavailable(to_team, why)
        return await self.maintenance.compact(conversation, key)

    async def _at_rest(
        self, from_team: str | None, to_team: str, thread: str | None, key: CallKey | None
    ) -> Conversation:
        """Return a conversation that is idle, unless the call was answered before."""

        def read(tx: Tx) -> Conversation:
            require_unanswered(tx, key, reads_only=True)
            return _idle(tx, _existing(tx, from_team, to_team, thread))

        return await self._store.read(read)

    async def fork(
        self,
        from_team: str | None,
        to_team: str,
        thread: str | None,
        new_thread: str | None,
        key: CallKey | None = None,
    ) -> Conversation:
        """Copy a conversation as it is now to a thread of its own; the original stays as it is."""
        self._known(to_team, "team")

        def read(tx: Tx) -> tuple[Conversation, str]:
            require_unanswered(tx, key, reads_only=True)
            original = _existing(tx, from_team, to_team, thread)
            if not original.begun:
                raise Conflict("The conversation has not begun.")
            return original, _free_thread(tx, original, new_thread)

        original, name = await self._store.read(read)
        copy = await self._sessions.copy(original, name)

        def write(tx: Tx) -> Conversation:
            return queries.fork(tx, original, _free_thread(tx, original, name), copy)

        try:
            return await self._store.write(first_time(key, write))
        except (AlreadyAnswered, Conflict):  # another caller was first
            await self._sessions.discard(to_team, copy)
            raise

    async def found(self) -> list[tuple[str, FoundSession]]:
        """Return sessions on disk that can be adopted, each with its team."""
        return [
            (team.name, session) for team in self.config.teams.values() for session in await self._sessions.found(team)
        ]

    async def adopt(self, to_team: str, session_id: str, from_team: str | None, thread: str | None) -> Conversation:
        """Make a session on disk the conversation of a pair."""
        self._known(to_team, "team")
        if from_team is not None:
            self._known(from_team, "fromTeam")
        if session_id not in {session.session_id for session in await self._sessions.found(self.config.teams[to_team])}:
            raise NotFound(f"There is no free session {in_quotes(session_id, 64)} in {to_team}'s project.")
        name = _thread(thread)
        sender = from_team or EXTERNAL
        if await self._store.read(lambda tx: queries.between(tx, sender, to_team, name)) is not None:
            raise Conflict("That pair has a conversation already.", recovery="Name another thread.")
        return await self._store.write(lambda tx: queries.adopt(tx, sender, to_team, name, session_id))

    async def reset(
        self, from_team: str | None, to_team: str, thread: str | None, key: CallKey | None = None
    ) -> Conversation:
        """Let the next ask begin a new session; the old one stays where it is."""

        def write(tx: Tx) -> Conversation:
            before = _idle(tx, _existing(tx, from_team, to_team, thread))
            queries.leave_session(tx, before.id, tx.new_id(), "The conversation was reset.")
            return _existing(tx, from_team, to_team, thread)

        try:
            return await self._store.write(first_time(key, write))
        finally:
            # Also for a repeated call, and after one that was cancelled: the reset may be stored.
            await self._drop_outdated(from_team, to_team, thread)

    async def _drop_outdated(self, from_team: str | None, to_team: str, thread: str | None) -> None:
        """End an idle process that is still in a session which its conversation has left."""
        now = await self._store.read(lambda tx: queries.between(tx, from_team or EXTERNAL, to_team, _thread(thread)))
        for slot in self._runner.pool.slots:
            outdated = now is not None and slot.conversation_id == now.id and slot.session.session_id != now.session_id
            if outdated and not slot.busy:
                await self._runner.pool.discard(slot)

    # -- parts --------------------------------------------------------------------------------------------------------

    def _names(self, sender: Sender) -> list[str]:
        return [name for name in self.config.teams if sender.may_see(name)]

    def _known(self, team: str, field: str, sender: Sender = OWNER) -> None:
        if team not in self.config.teams:
            if team in self.config.refused and sender.may_see(team):
                raise unavailable(team, self._runner.why_not(team) or "")
            from difflib import get_close_matches  # rarely needed, and every hook waits for the daemon to start

            names = self._names(sender)
            listed = ", ".join(names[:MOST_NAMED]) + (" …" if len(names) > MOST_NAMED else "") or "none"
            near = get_close_matches(team[:64], names, n=1)
            raise UnknownTeam(
                f"{field}: there is no team {in_quotes(team, 64)}; there are: {listed}.",
                recovery=f"Did you mean {near[0]}?" if near else None,
            )

    async def _fault(self, name: str) -> str | None:
        """Return why a team cannot be run; None if another machine that shares the store may run it."""
        team, pool = self.config.teams[name], self._runner.pool
        if pool.is_elsewhere(team) and not self._runner.is_alone:
            return None
        why = pool.why_not(team)
        if why is not None or pool.has_process(name):
            return why
        return await asyncio.to_thread(pool.missing_agent, team)

    def applies_to(self, root: Root | None) -> bool:
        """Return whether a directory is in a team's project."""
        return self._at(root) is not None

    def _at(self, root: Root | None) -> str | None:
        path = path_of(root.uri) if root is not None else None
        return next(iter(teams_around(self.config.teams, path)), None) if path is not None else None

    def sender(self, caller: Caller) -> Sender:
        """Return the sender that a caller speaks for."""
        return sender_of(caller, self.config.teams)

    def asker(self, sender: Sender, from_team: str | None) -> str:
        """Return the team whose conversations a call is about: its own, one it may act for, or the outside sender."""
        if from_team is not None:
            self._known(from_team, "fromTeam", sender)
        return sender.acting_for(from_team) or EXTERNAL


def _existing(tx: Tx, from_team: str | None, to_team: str, thread: str | None) -> Conversation:
    found = queries.between(tx, from_team or EXTERNAL, to_team, _thread(thread))
    if found is None:
        raise NotFound("There is no such conversation.", recovery='teams_session {operation: "list"} lists them.')
    return found


def _idle(tx: Tx, conversation: Conversation) -> Conversation:
    if queries.running_in(tx, conversation.id) is not None:
        raise Conflict("The conversation is being worked on.", recovery="Wait for the answer, or cancel it.")
    return conversation


def _free_thread(tx: Tx, original: Conversation, name: str | None) -> str:
    thread = _thread(name or f"fork-{original.id}-{original.message_count}")
    if queries.between(tx, original.from_team, original.to_team, thread) is not None:
        raise Conflict(f"There is a thread {named(thread)} already.", recovery="Name another with newThreadId.")
    return thread


def _thread(thread: str | None) -> str:
    if thread is not None and not (0 < len(thread) <= 64 and thread.isprintable() and not set(thread) & set('[]<>"`')):
        raise BadInput("threadId", "must be 1 to 64 printable characters without brackets and double quotes")
    return thread or MAIN


def _refuse(problem: ChainProblem | None, chain: list[str]) -> None:
    way = " → ".join(chain)
    if problem is ChainProblem.CYCLE:
        raise AskCycle(f"{way}: {chain[-1]} is waiting for this very answer.", recovery="Answer with what you know.")
    if problem is ChainProblem.DEPTH:
        raise AskTooDeep(f"{way}: asks may not go deeper.", recovery="Answer with what you know.")
