"""Polls session and state files on a short interval, for agents without hooks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import asdict

from holdfast.bridge.model import Task, Work, is_same_work
from holdfast.bridge.queries import tasks
from holdfast.bridge.queries.incarnations import present
from holdfast.bridge.service import Bridge, Targets
from holdfast.bridge.session_files import SessionFile, read_small, session_in, state_in
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx
from holdfast.teams.team import Delivery, Team

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What a target's files say at one read; None for what cannot be read."""

    session: SessionFile | None = None
    state: Work | None = None
    state_at: int = 0
    """When the state file was written, in milliseconds."""


class Watch:
    """Reads the files of every target that has any, and accepts what two reads in a row agree on.

    Who was at work last is in the store, so a restart of Holdfast itself is not mistaken for one.
    """

    def __init__(self, store: Store, bridge: Bridge, targets: Targets) -> None:
        self._store = store
        self._bridge = bridge
        self._targets = targets
        self._last: dict[str, Glimpse] = {}
        self._saved: dict[str, Work] = {}
        self._refused: dict[str, SessionFile] = {}

    async def step(self) -> None:
        targets = self._targets()
        watched = {name: team for name, team in targets.items() if team.session_file or team.state_file}
        now = await asyncio.to_thread(lambda: {name: _glimpse(team) for name, team in watched.items()})
        before, self._last = self._last, now
        for name, glimpse in now.items():
            last = before.get(name, Glimpse())
            # Where Holdfast runs every turn, the conversation's own session is the one at work.
            is_run = targets[name].delivery is Delivery.RUN
            if not is_run and glimpse.session is not None and glimpse.session == last.session:
                await self._session(targets, name, glimpse.session)
            if glimpse.state is not None and glimpse.state == last.state and self._saved.get(name) != glimpse.state:
                await self._state(name, glimpse.state, glimpse.state_at)
                self._saved[name] = glimpse.state

    async def _session(self, targets: Mapping[str, Team], name: str, said: SessionFile) -> None:
        if not self._is_for(targets, name, said):
            return
        now = await self._store.read(lambda tx: present(tx, name))
        # An agent with hooks identifies itself, by another id than the one in its file.
        if now is None or (now.session_id != said.id and not now.source.startswith("hook")):
            await self._bridge.seen(name, said.id, "file")

    def _is_for(self, targets: Mapping[str, Team], name: str, said: SessionFile) -> bool:
        """Whether a file is the target's own, and not written over by another chat or project."""
        chat = targets[name].chat
        other_chat = chat is not None and said.chat_id is not None and said.chat_id != chat.id
        other_project = said.project is not None and said.project != name and said.project in targets
        if not other_chat and not other_project:
            return True
        if self._refused.get(name) != said:
            self._refused[name] = said
            whose = f"chat {said.chat_id}" if other_chat else f"project {said.project}"
            logger.warning("the session file of %s is of %s, and was not believed", name, whose)
        return False

    async def _state(self, name: str, said: Work, written_at: int) -> None:
        saved = Task(**asdict(said) | {"target": name})

        def write(tx: Tx) -> None:
            known = tasks.of_target(tx, name)
            # save_task may have saved more since: an older file, or one already read, changes nothing.
            told_at = tasks.last_told_of_target(tx, name) if known is None else known.updated_at
            if told_at <= written_at and (known is None or not is_same_work(known, saved)):
                tasks.save_for_target(tx, saved)

        await self._store.write(write)


def _glimpse(team: Team) -> Glimpse:
    session = read_small(team.session_file) if team.session_file else None
    state = read_small(team.state_file) if team.state_file else None
    return Glimpse(
        session=session_in(session.content) if session else None,
        state=state_in(state.content) if state else None,
        state_at=state.at if state else 0,
    )
