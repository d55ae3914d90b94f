"""Serena for every worktree: asked whether it answers, kept warm for a while, its memories read and written."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from holdfast import bounded_json
from holdfast.protocol.runs import SerenaAnswer
from holdfast.protocol.serena.found import find_serena, is_serena_project
from holdfast.protocol.serena.session import Patience, SerenaSession, SerenaTrouble, Start

MOST_WARM = 3
"""Serenas kept running at once; each may hold language servers."""
MOST_STARTING = 2
MEMORY_TOOLS = ("list_memories", "read_memory", "write_memory", "delete_memory")
NAME_ARGUMENTS = ("memory_name", "memory_file_name")
"""What Serena calls a memory's name today, and called it before."""
REPL = "serena_repl"
UNKNOWN_OPTION = "no such option"


class SerenaMemories:
    """The memories of one project, through Serena's own tools."""

    def __init__(self, session: SerenaSession, name_argument: str) -> None:
        self._session = session
        self._name_argument = name_argument

    async def read(self, name: str) -> str | None:
        """A memory's text; None when there is none."""
        # Listed first: whether one is missing is not read from the wording of an error.
        return await self._call("read_memory", name) if name in await _names(self._session) else None

    async def write(self, name: str, text: str) -> None:
        """Give a memory this text."""
        await self._call("write_memory", name, content=text)

    async def delete(self, name: str) -> None:
        """Remove a memory, if it is there."""
        if name in await _names(self._session):
            await self._call("delete_memory", name)

    async def _call(self, tool: str, name: str, **arguments: str) -> str:
        return await self._session.call(tool, **{self._name_argument: name}, **arguments)


class Serena:
    """The Serenas that this daemon talks to, started from the user's own configuration or a trusted project's alone."""

    def __init__(self, home: Path, env: Mapping[str, str] | None = None, patience: Patience | None = None) -> None:
        self._home = home
        self._env = dict(os.environ if env is None else env)
        self._patience = patience or Patience()
        self._sessions: dict[Start, SerenaSession] = {}
        self._opening: dict[Start, asyncio.Lock] = {}
        self._starting = asyncio.Semaphore(MOST_STARTING)

    async def probe(self, worktree: Path, trusted: bool) -> SerenaAnswer:
        """Whether a Serena is configured for a worktree, and whether it answers."""
        start, detail = await self._look(worktree, trusted)
        if start is None:
            return SerenaAnswer(configured=False, answers=False, detail=detail)
        try:
            _, detail = await self._answering(start)
        except SerenaTrouble as trouble:
            return SerenaAnswer(configured=True, answers=False, detail=trouble.message)
        return SerenaAnswer(configured=True, answers=True, detail=detail)

    async def memories(self, worktree: Path, trusted: bool) -> SerenaMemories | None:
        """The worktree's memories; None where no Serena can keep them, SerenaTrouble where one should and fails."""
        start, _ = await self._look(worktree, trusted)
        if start is None or not start.launch.takes_options or not start.with_project:
            return None
        session, _ = await self._answering(start)
        if not all(tool in session.tools for tool in MEMORY_TOOLS):
            return None
        argument = next((name for name in NAME_ARGUMENTS if name in session.tools["write_memory"]), None)
        return SerenaMemories(session, argument) if argument else None

    async def close(self) -> None:
        """End every Serena that was started."""
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
        """A Serena that has just answered, and what."""
        session = await self._session(start)
        try:
            return session, await _greet(session)
        except SerenaTrouble:
            # It may have died since it was last used: one that is newly started has the last word.
            session = await self._session(start)
            return session, await _greet(session)

    async def _session(self, start: Start) -> SerenaSession:
        """The warm one, or a new one."""
        async with self._opening.setdefault(start, asyncio.Lock()):
            session = self._sessions.pop(start, None)
            if session is None or not session.alive:
                session = await self._open(start)
            self._sessions[start] = session  # at the end: the order is that of the last use
        await self._end_longest_unused()
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

    async def _end_longest_unused(self) -> None:
        unused = [start for start, session in self._sessions.items() if session.alive and not session.busy]
        ended = [start for start, session in self._sessions.items() if not session.alive]
        for start in ended:
            del self._sessions[start]
        for start in unused[: max(0, len(self._sessions) - MOST_WARM)]:
            await self._sessions.pop(start).close()


async def _greet(session: SerenaSession) -> str:
    """What Serena answers to a harmless question; SerenaTrouble when it does not."""
    if REPL in session.tools and "list_memories" not in session.tools:
        return "Serena answers, with its REPL interface."
    if "list_memories" not in session.tools:
        return "Serena answers; it offers no memories."
    try:
        count = len(await _names(session))
    except SerenaTrouble:
        if not session.alive:
            raise
        # A refusal is an answer as well: where no project is open in it, opening one is the agent's step.
        return "Serena answers; no project is open in it."
    return f"Serena answers; it lists {count} {'memory' if count == 1 else 'memories'}."


async def _names(session: SerenaSession) -> list[str]:
    """The names of the memories; Serena lists them as an object today and as an array before."""
    said = await session.call("list_memories")
    try:
        listed = bounded_json.loads(said)
    except ValueError:
        raise SerenaTrouble(f"Serena lists its memories in an unknown way: {said[:200]}") from None
    names = listed.get("memories", []) if isinstance(listed, dict) else listed
    return [str(name).removesuffix(".md") for name in names] if isinstance(names, list) else []
