"""The place where the demo plays: a home and a project that are thrown away, and the processes in them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import holdfast.relay
from holdfast.config import Settings
from holdfast.errors import HoldfastError, NoDaemon
from holdfast.processes import is_running
from holdfast.relay import place
from holdfast.stdio_client import ANY_SESSION, StdioClient

NOT_OURS = ("HOLDFAST_", "CLAUDE", "MCP_")
"""Variables of the user's own Holdfast and agent, which have no business here."""
ALONE_S = "60s"
"""After how long the daemon ends itself if the demo is killed and cannot end it."""
SHORT = "/tmp"  # noqa: S108 - a directory with a name that cannot be foreseen is made in it
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
END_SECONDS = 10.0
HOOK_SECONDS = 10.0
POLL_SECONDS = 0.02

Ask = Callable[[Settings, str, dict[str, Any]], dict[str, Any]]
"""Has the daemon of a home do a command; raises NoDaemon."""


class Stage:
    """One demo's home, project, agents and daemon; nothing of it is left when the block ends."""

    def __init__(self, ask: Ask, environment: Mapping[str, str], *, keep: bool = False) -> None:
        self._ask = ask
        self._keep = keep
        self._agents: list[StdioClient] = []
        self._starting = False
        self.folder = _folder()
        self.home = self.folder / "home"
        self.project = self.folder / "shop"
        self.project.mkdir()
        kept = {name: value for name, value in environment.items() if not name.startswith(NOT_OURS)}
        own = {"HOLDFAST_HOME": str(self.home), "HOLDFAST_PORT": "0", "HOLDFAST_IDLE_EXIT": ALONE_S}
        self._env = {**kept, **own}

    def agent(self) -> tuple[StdioClient, str]:
        """A new agent in the project: a real relay, and the id of the agent's own session."""
        session = str(uuid.uuid4())
        env = {**self._env, "CLAUDE_CODE_SESSION_ID": session, "CLAUDE_PROJECT_DIR": str(self.project)}
        command = [sys.executable, "-P", "-m", "holdfast", "mcp"]
        with _signals_held_back():
            agent = StdioClient(command, env=env, cwd=self.project, name="demo-agent")
            self._agents.append(agent)
        self._starting = True
        agent.introduce()
        agent.request("completion/complete", ANY_SESSION)  # a relay can shake hands alone; this only a daemon answers
        self._starting = False
        return agent, session

    def session_start(self, session: str) -> str:
        """What the session-start hook, as it is registered in Claude Code, puts before the agent."""
        payload = {"session_id": session, "cwd": str(self.project), "hook_event_name": "SessionStart"}
        client = str(Path(holdfast.relay.__file__).with_name("hook.py"))
        done = subprocess.run(  # noqa: S603 - our own hook client
            [sys.executable, "-I", "-S", client, "SessionStart"],
            input=json.dumps({**payload, "source": "startup", "transcript_path": ""}),
            env=self._env,
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=HOOK_SECONDS,
        )
        answer = json.loads(done.stdout) if done.stdout.strip() else {}
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext") or "")

    def daemon(self) -> int:
        """The process id of the daemon that serves now."""
        return int(self._ask(Settings(home=self.home), "status", {})["pid"])

    def kill_daemon(self) -> None:
        """End the daemon with SIGKILL, and wait until it is gone."""
        pid = self.daemon()
        os.kill(pid, signal.SIGKILL)
        _wait_for_end(pid)

    def close(self) -> None:
        """End every process and throw the place away."""
        for agent in self._agents:
            agent.close()
        with contextlib.suppress(NoDaemon, ProcessLookupError):  # it has ended by itself meanwhile
            self._stop_daemon()
        if not self._keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _stop_daemon(self) -> None:
        pid = self._served()
        if pid is None:
            return
        self._ask(Settings(home=self.home), "stop", {"why": "the demo is over"})
        if not _wait_for_end(pid):
            os.kill(pid, signal.SIGKILL)
            _wait_for_end(pid)

    def _served(self) -> int | None:
        """The daemon, also one that an agent has begun to start: it would make the place again after we are gone."""
        deadline = time.monotonic() + END_SECONDS
        while True:
            try:
                return self.daemon()
            except NoDaemon:
                begun = self._starting and (self.home / "daemon.log").exists()
                if not begun or time.monotonic() > deadline:
                    return None
            time.sleep(POLL_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A second Ctrl-C must not leave half of it behind.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDINGS}
        try:
            self.close()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def _signals_held_back() -> Iterator[None]:
    """Let a signal that ends the demo come after the block: a process that it starts must be known to be ended."""
    met: list[int] = []
    before = {number: signal.signal(number, lambda caught, _: met.append(caught)) for number in ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for got in met:
            signal.raise_signal(got)


def _wait_for_end(pid: int) -> bool:
    """Whether a process ends within a moment."""
    deadline = time.monotonic() + END_SECONDS
    while is_running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _folder() -> Path:
    """A new directory of this user's, with a path so short that the daemon's socket fits in it."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
        if len(os.fsencode(folder / "home" / "daemon.sock")) <= place.MAX_SOCKET_PATH:
            return folder
        folder.rmdir()
        return Path(tempfile.mkdtemp(prefix="holdfast-demo-", dir=SHORT))
    except OSError as error:
        raise HoldfastError(
            f"No directory can be made for the demo: {error.strerror}.", recovery="Set TMPDIR to one you may write to."
        ) from error
