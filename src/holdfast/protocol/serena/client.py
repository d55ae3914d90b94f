"""Client of the Serena of each worktree: probes it, keeps it running for a while, reads and writes its memories."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from holdfast.protocol.runs import SerenaAnswer
from holdfast.protocol.serena.discovery import find_serena, is_serena_project
from holdfast.protocol.serena.session import SerenaSession, SerenaTrouble, Start, Timeouts
from holdfast.text import bounded_json

MAX_RUNNING = 3
"""Serenas kept running at once; each may run language servers."""
MAX_STARTING = 2
MEMORY_TOOLS = ("list_memories", "read_memory", "write_memory", "delete_memory")
NAME_ARGUMENTS = ("memory_name", "memory_file_name")
"""Argument names for a memory in current and older Serenas."""
REPL = "serena_repl"
UNKNOWN_OPTION = "no such option"


class SerenaMemories:
    """The memories of one project, through Serena's own tools."""

    def __init__(self, session: SerenaSession, name_argument: str) -> None:
        self._session = session
        self._name_argument = name_argument

    async def read(self, name: str) -> str | None:
        # Listed first, so that a missing memory need not be guessed from the wording of an error.
        return await self._call("read_memory", name) if name in await _names(self._session) else None

    async def write(self, name: str, text: str) -> None:
        await self._call("write_memory", name, content=text)

    async def delete(self, name: str) -> None:
        if name in await _names(self._session):
            await self._call("delete_memory", name)

    async def _call(self, tool: str, name: str, **arguments: str) -> str:
        return await self._session.call(tool, **{self._name_argument: name}, **arguments)


class Serena:
    """The Serenas of this daemon, started only from the user's own configuration or a trusted project's."""

    def __init__(self, home: Path, env: Mapping[str, str] | None = None, timeouts: Timeouts | None = None) -> None:
        self._home = home
        self._env = dict(os.environ if env is None else env)
        self._patience = timeouts or Timeouts()
        self._sessions: dict[Start, SerenaSession] = {}
        self._opening: dict[Start, asyncio.Lock] = {}
        self._starting = asyncio.Semaphore(MAX_STARTING)

    async def probe(self, worktree: Path, trusted: bool) -> SerenaAnswer:
        """Return whether a Serena is configured for a worktree, and whether it answers."""
        start, detail = await self._look(worktree, trusted)
        if start is None:
            return SerenaAnswer(configured=False, answers=False, detail=detail)
        try:
            _, detail = await self._answering(start)
        except SerenaTrouble as trouble:
            return SerenaAnswer(configured=True, answers=False, detail=trouble.message)
        return SerenaAnswer(configured=True, answers=True, detail=detail)

    async def memories(self, worktree: Path, trusted: bool) -> SerenaMemories | None:
        """Return the worktree's memories; None if no Serena keeps them. Raises SerenaTrouble if it should but fails."""
        start, _ = await self._look(worktree, trusted)
        if start is None or not start.launch.takes_options or not start.with_project:
            return None
        session, _ = await self._answering(start)
        if not all(tool in session.tools for tool in MEMORY_TOOLS):
            return None
        argument = next((name for name in NAME_ARGUMENTS if name in session.tools["write_memory"]), None)
        return SerenaMemories(session, argument) if argument else None

    async def close(self) -> None:
        """Stop every Serena that was started."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(session.close() for session in sessions))

    async def _look(self, worktree: Path, trusted: bool) -> tuple[Start | None, str]:
        def look() -> tuple[Start | None, str]:
            found = find_serena(worktree, trusted, self._env)
            if found.launch is None:
                return None, found.detail
            return Start(found.launch, worktree, with_project=trusted and is_serena_project(worktree)), found.detail

        return await asyncio.to_thread(look)

    async def _answering(self, start: Start) -> tuple[SerenaSession, str]:
        """Return a Serena that has just answered, and its answer."""
        session = await self._session(start)
        try:
            return session, await _probe(session)
        except SerenaTrouble:
            # It may have died since it was last used: start a new one before giving up.
            session = await self._session(start)
            return session, await _probe(session)

    async def _session(self, start: Start) -> SerenaSession:
        """Return the running session, or a new one."""
        async with self._opening.setdefault(start, asyncio.Lock()):
            session = self._sessions.pop(start, None)
            if session is None or not session.alive:
                session = await self._open(start)
            self._sessions[start] = session  # last: the order is by last use
        await self._stop_least_recently_used()
        return session

    async def _open(self, start: Start) -> SerenaSession:
        async with self._starting:
            session = SerenaSession(start, self._home, self._env, self._patience)
            try:
                await session.ready()
            except asyncio.CancelledError:
                await session.close()
                raise
            except SerenaTrouble as trouble:
                if start.older or not start.launch.takes_options or UNKNOWN_OPTION not in trouble.message.lower():
                    raise
            else:
                return session
        return await self._open(replace(start, older=True))

    async def _stop_least_recently_used(self) -> None:
        unused = [start for start, session in self._sessions.items() if session.alive and not session.busy]
        ended = [start for start, session in self._sessions.items() if not session.alive]
        for start in ended:
            del self._sessions[start]
        for start in unused[: max(0, len(self._sessions) - MAX_RUNNING)]:
            await self._sessions.pop(start).close()


async def _probe(session: SerenaSession) -> str:
    """Ask Serena a harmless question and describe its answer. Raises SerenaTrouble if there is none."""
    if REPL in session.tools and "list_memories" not in session.tools:
        return "Serena answers, with its REPL interface."
    if "list_memories" not in session.tools:
        return "Serena answers; it offers no memories."
    try:
        count = len(await _names(session))
    except SerenaTrouble:
        if not session.alive:
            raise
        # A refusal is an answer too: if no project is open, opening one is up to the agent.
        return "Serena answers; no project is open in it."
    return f"Serena answers; it lists {count} {'memory' if count == 1 else 'memories'}."


async def _names(session: SerenaSession) -> list[str]:
    """The names of the memories; Serena lists them as an object, older versions as an array."""
    said = await session.call("list_memories")
    try:
        listed = bounded_json.loads(said)
    except ValueError:
        raise SerenaTrouble(f"Serena listed its memories in an unknown format: {said[:200]}") from None
    names = listed.get("memories", []) if isinstance(listed, dict) else listed
    return [str(name).removesuffix(".md") for name in names] if isinstance(names, list) else []
