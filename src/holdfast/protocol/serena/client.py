"""Client of the Serena of each worktree: probes it, keeps it running for a while, reads and writes its memories.

Each runs as a guarded process, with a timeout on every wait, and is shut down when idle.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import secrets
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from holdfast.errors import HoldfastError
from holdfast.lazy_dataclass import dataclass
from holdfast.process import guard_process
from holdfast.process.child_environment import command_environment
from holdfast.process.guard import guarded
from holdfast.protocol.runs import SerenaAnswer
from holdfast.protocol.serena.discovery import Launch, find_serena, is_serena_project
from holdfast.text import bounded_json
from holdfast.text.quoting import in_quotes

if TYPE_CHECKING:
    from mcp.client.client import Client

OPTIONS = (
    *("--transport", "stdio", "--agent-interface", "tools"),
    *("--enable-web-dashboard", "false", "--open-web-dashboard", "false", "--enable-gui-log-window", "false"),
    *("--log-level", "WARNING"),
)
OLDER_OPTIONS = ("--transport", "stdio", "--enable-web-dashboard", "false", "--enable-gui-log-window", "false")
"""For a Serena that predates the two interfaces."""

MAX_STDERR_CHARS = 500
HOME_VARIABLE = "SERENA_HOME"
MAX_RUNNING = 3
"""Serenas kept running at once; each may run language servers."""
MAX_STARTING = 2
MEMORY_TOOLS = ("list_memories", "read_memory", "write_memory", "delete_memory")
NAME_ARGUMENTS = ("memory_name", "memory_file_name")
"""Argument names for a memory in current and older Serenas."""
REPL = "serena_repl"
UNKNOWN_OPTION = "no such option"


class SerenaTrouble(HoldfastError):
    """Serena is configured but does not work as it should."""

    code = "E_SERENA"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each step may take, in seconds."""

    start: float = 45.0
    call: float = 15.0
    idle: float = 60.0
    """How long the process may be idle before it is stopped."""


@dataclass(frozen=True, slots=True)
class Start:
    """What to start, and where."""

    launch: Launch
    worktree: Path
    with_project: bool
    """Whether Serena may open the project, whose settings it then follows."""
    older: bool = False

    @property
    def command(self) -> list[str]:
        if not self.launch.takes_options:
            return [*self.launch.argv]
        project = ("--project", str(self.worktree)) if self.with_project else ()
        return [*self.launch.argv, *(OLDER_OPTIONS if self.older else OPTIONS), *project]


class SerenaSession:
    """A running Serena. One task owns the connection from start to end, as the SDK requires."""

    def __init__(self, start: Start, home: Path, env: Mapping[str, str], timeouts: Timeouts) -> None:
        self._start = start
        self._home = home
        own_home = {HOME_VARIABLE: env[HOME_VARIABLE]} if HOME_VARIABLE in env else {}
        self._env = command_environment(env) | own_home | dict(start.launch.env)
        self._patience = timeouts
        self._jobs: asyncio.Queue[tuple[str, dict[str, Any], asyncio.Future[str]]] = asyncio.Queue()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting = 0
        self._ending = False
        self.last_words = ""
        self.tools: dict[str, frozenset[str]] = {}
        """The tools it offers, each with the names of its arguments."""
        self._task = asyncio.create_task(self._live(), name=f"serena {start.worktree}")
        self._task.add_done_callback(_collect)

    @property
    def alive(self) -> bool:
        """Whether it can be called."""
        return not self._task.done()

    @property
    def busy(self) -> bool:
        """Whether a call is waiting for its answer."""
        return self._waiting > 0

    async def ready(self) -> None:
        """Wait until it has answered for the first time."""
        await self._until(self._ready)
        if not self._ready.done():
            raise self._trouble("did not start")

    async def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool and return its answer. Raises SerenaTrouble, also for the tool's own error."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._jobs.put_nowait((tool, arguments, answer))
        self._waiting += 1
        try:
            await self._until(answer)
        finally:
            self._waiting -= 1
        if not answer.done():
            answer.cancel()
            raise self._trouble(f"did not answer {tool}")
        return answer.result()

    async def close(self) -> None:
        """Stop it, with everything it started."""
        if not self._ending:  # a second cancel would interrupt the shutdown under way
            self._task.cancel()
        await asyncio.wait({self._task})

    async def _until(self, future: asyncio.Future[Any]) -> None:
        """Wait for an answer, or for the end of the process that would give it."""
        waited: set[asyncio.Future[Any]] = {future, self._task}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)

    async def _live(self) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(self._patience.start):
                        client = await stack.enter_async_context(self._client(stderr))
                        offered = (await client.list_tools()).tools
                    self.tools = {tool.name: frozenset(tool.input_schema.get("properties", {})) for tool in offered}
                    self._ready.set_result(None)
                    await self._serve(client)
            finally:
                self.last_words = _stderr_tail(stderr)

    async def _serve(self, client: Client) -> None:
        while True:
            try:
                tool, arguments, answer = await asyncio.wait_for(self._jobs.get(), self._patience.idle)
            except TimeoutError:
                return
            async with asyncio.timeout(self._patience.call):
                result = await client.call_tool(tool, arguments)
            reply = "\n".join(block.text for block in result.content if block.type == "text")
            if answer.done():
                continue
            if result.is_error:
                answer.set_exception(SerenaTrouble(f"Serena refused {tool}: {in_quotes(reply, MAX_STDERR_CHARS)}"))
            else:
                answer.set_result(reply)

    @asynccontextmanager
    async def _client(self, stderr: TextIO) -> AsyncIterator[Client]:
        # The SDK takes a second to import: keep that out of the daemon's start and its event loop.
        await asyncio.to_thread(importlib.import_module, "mcp.client.client")
        from mcp.client.client import Client

        async with AsyncExitStack() as stack:
            if self._start.launch.url is not None:
                import httpx2
                from mcp.client.streamable_http import streamable_http_client

                http = await stack.enter_async_context(
                    httpx2.AsyncClient(headers=dict(self._start.launch.headers), timeout=self._patience.call)
                )
                client = Client(streamable_http_client(self._start.launch.url, http_client=http))
            else:
                client = Client(self._process(stderr))
            yield await stack.enter_async_context(client)

    @asynccontextmanager
    async def _process(self, stderr: TextIO) -> AsyncIterator[Any]:
        from mcp.client.stdio import StdioServerParameters, stdio_client

        command = guarded(self._start.command)
        folder = self._home / "serena"
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True, mode=0o700)
        # The guard holds a lock while any process of Serena runs; nothing else takes this one.
        lock = {guard_process.LOCK_VARIABLE: str(folder / f"{secrets.token_hex(8)}.lock")}
        where = self._start.worktree if self._start.with_project else self._home
        server = StdioServerParameters(command=command[0], args=command[1:], env=self._env | lock, cwd=where)
        async with stdio_client(server, errlog=stderr) as streams:
            try:
                yield streams
            finally:
                self._ending = True
                # Ask the guard first, so that it has cleaned up before the SDK's own timeout ends.
                _end_guard(stderr)

    def _trouble(self, problem: str) -> SerenaTrouble:
        error = None if self._task.cancelled() or not self._task.done() else self._task.exception()
        reason = self.last_words or (_reason(error) if error is not None else "")
        why = in_quotes(reason, MAX_STDERR_CHARS) if reason else ""
        return SerenaTrouble(f"Serena {problem}{': ' + why if why else ''}.")


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
            serena = find_serena(worktree, trusted, self._env)
            if serena.launch is None:
                return None, serena.detail
            return Start(serena.launch, worktree, with_project=trusted and is_serena_project(worktree)), serena.detail

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
    """Return the names of the memories; Serena lists them as an object, older versions as an array."""
    reply = await session.call("list_memories")
    try:
        listed = bounded_json.loads(reply)
    except ValueError:
        raise SerenaTrouble(f"Serena listed its memories in an unknown format: {reply[:200]}") from None
    names = listed.get("memories", []) if isinstance(listed, dict) else listed
    return [str(name).removesuffix(".md") for name in names] if isinstance(names, list) else []


def _collect(task: asyncio.Task[None]) -> None:
    """Retrieve the task's error, which callers get; without callers it does not matter."""
    if not task.cancelled():
        task.exception()


def _end_guard(stderr: TextIO) -> None:
    words = os.pread(stderr.fileno(), 200, 0).decode("utf-8", "replace").split()
    if len(words) < 3 or words[0] != guard_process.REPORT or not words[1].isdigit():
        return
    pid = int(words[1])
    with suppress(ChildProcessError, ProcessLookupError):
        # Only while it is our child: once its exit was collected, the pid may belong to another process.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        os.kill(pid, signal.SIGTERM)


def _stderr_tail(stderr: TextIO) -> str:
    """Return the end of its stderr, in one line."""
    size = os.fstat(stderr.fileno()).st_size
    text = os.pread(stderr.fileno(), 8 * MAX_STDERR_CHARS, max(0, size - 8 * MAX_STDERR_CHARS)).decode(
        "utf-8", "replace"
    )
    lines = [line.strip() for line in text.splitlines() if not line.startswith(guard_process.REPORT)]
    return " ".join(" ".join(lines).split())[-MAX_STDERR_CHARS:]


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
