"""Throwaway environment of the demo: a data directory, a project, and the processes in them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import site
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
from holdfast.agents.registry import AGENTS, DEFAULT, hooks_of, settings_of, transcripts_of
from holdfast.config import Settings
from holdfast.demo.played_agent import PlayedAgent
from holdfast.doctor.mcp_client import ANY_SESSION, StdioClient
from holdfast.errors import HoldfastError, NoDaemon
from holdfast.process.alive import is_running
from holdfast.relay import place

AGENT = AGENTS[DEFAULT]
REMOVED_PREFIXES = ("HOLDFAST_", AGENT.name.upper(), "MCP_", "GIT_")
"""Prefixes of variables of the user's own Holdfast, agent and git, which must not affect the demo."""
AT_WORK = {
    "GIT_AUTHOR_NAME": "demo",
    "GIT_AUTHOR_EMAIL": "demo@localhost",
    "GIT_COMMITTER_NAME": "demo",
    "GIT_COMMITTER_EMAIL": "demo@localhost",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""Variables for those who work in the project: they can commit, and leave no files of Python's behind."""
IDLE_EXIT = "60s"
"""When the daemon exits by itself if the demo is killed and cannot stop it."""
SHORT = "/tmp"  # noqa: S108 - a directory with an unpredictable name is created in it
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
END_SECONDS = 10.0
HOOK_SECONDS = 10.0
POLL_SECONDS = 0.02

Ask = Callable[[Settings, str, dict[str, Any]], dict[str, Any]]
"""Sends a command to the daemon of a data directory; raises NoDaemon."""


class Stage:
    """One demo's data directory, project, agents and daemon; all are removed when the block ends."""

    def __init__(self, ask: Ask, environment: Mapping[str, str], *, keep: bool = False) -> None:
        self._ask = ask
        self._keep = keep
        self._agents: list[StdioClient | PlayedAgent] = []
        self._starting = False
        self.folder = _folder()
        self.home = self.folder / "home"
        self.project = self.folder / "shop"
        self.project.mkdir()
        kept = {name: value for name, value in environment.items() if not name.startswith(REMOVED_PREFIXES)}
        own = {"HOLDFAST_HOME": str(self.home), "HOLDFAST_PORT": "0", "HOLDFAST_IDLE_EXIT": IDLE_EXIT}
        # An agent's files are looked for in the user's directory: the demo has another one, but the same Python.
        there = self.folder / "user"
        user = {"HOME": str(there), "XDG_CONFIG_HOME": str(there), "PYTHONUSERBASE": site.getuserbase()}
        self._env = {**kept, **own, **user}

    def played(self, session: str | None = None) -> PlayedAgent:
        """Start an agent that is played: a process that works on the project's files and writes a transcript."""
        transcript = self.transcript(session or str(uuid.uuid4()))
        python = str(Path(sys.executable).parent)
        env = {**self._env, **AT_WORK, "PATH": f"{python}{os.pathsep}{self._env.get('PATH', os.defpath)}"}
        with _signals_deferred():
            agent = PlayedAgent(self.project, transcript, env)
            self._agents.append(agent)
        return agent

    def transcript(self, session: str) -> Path:
        """Return where the agent keeps the transcript of a session in the project."""
        transcripts, config = transcripts_of(), settings_of().config_directory(self._env)
        return transcripts.folder(config) / transcripts.folder_name(self.project) / f"{session}.jsonl"

    def git(self, *arguments: str) -> str:
        """Run git in the project; return what it prints."""
        try:
            done = subprocess.run(  # noqa: S603 - the demo's own commands
                ["git", *arguments],  # noqa: S607 - the user's git
                cwd=self.project,
                env={**self._env, **AT_WORK},
                capture_output=True,
                text=True,
                check=True,
                timeout=HOOK_SECONDS,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise HoldfastError(f"This demo needs git: {error}", recovery="Try `holdfast demo`.") from error
        return done.stdout

    def agent(self) -> tuple[StdioClient, str]:
        """Start a new agent in the project: a real relay, and the id of its agent session."""
        session = str(uuid.uuid4())
        env = {**self._env, AGENT.session_variable: session, AGENT.project_variable: str(self.project)}
        command = [sys.executable, "-P", "-m", "holdfast", "mcp"]
        with _signals_deferred():
            agent = StdioClient(command, env=env, cwd=self.project, name="demo-agent")
            self._agents.append(agent)
        self._starting = True
        agent.introduce()
        agent.request(
            "completion/complete", ANY_SESSION
        )  # a relay can answer the handshake alone; only a daemon answers this
        self._starting = False
        return agent, session

    def session_start(self, session: str) -> str:
        """Run the session-start hook as the agent would; return what it tells the agent."""
        hooks = hooks_of()
        event, payload = hooks.start_payload(session, self.project, self.transcript(session))
        client = str(Path(holdfast.relay.__file__).with_name("hook.py"))
        done = subprocess.run(  # noqa: S603 - our own hook client
            [sys.executable, "-I", "-S", client, event],
            input=payload,
            env=self._env,
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=HOOK_SECONDS,
        )
        return hooks.context_in(done.stdout)

    def daemon(self) -> int:
        """Return the process id of the running daemon."""
        return int(self._ask(Settings(home=self.home), "status", {})["pid"])

    def kill_daemon(self) -> None:
        """Kill the daemon with SIGKILL, and wait until it is gone."""
        pid = self.daemon()
        os.kill(pid, signal.SIGKILL)
        _wait_for_end(pid)

    def close(self) -> None:
        """Stop every process and remove the directory."""
        for agent in self._agents:
            agent.close()
        with contextlib.suppress(NoDaemon, ProcessLookupError):  # it has already ended
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
        """Return the daemon, even one that an agent is just starting: it would recreate the directory after us."""
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
        # A second Ctrl-C must not interrupt the cleanup.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in END_SIGNALS}
        try:
            self.close()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """Defer signals that end the demo until after the block, so that every process it starts is known and stopped."""
    received: list[int] = []
    before = {number: signal.signal(number, lambda caught, _: received.append(caught)) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for got in received:
            signal.raise_signal(got)


def _wait_for_end(pid: int) -> bool:
    """Wait a moment for a process to end; return whether it did."""
    deadline = time.monotonic() + END_SECONDS
    while is_running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _folder() -> Path:
    """Create a private directory whose path is short enough for the daemon's socket."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
        if len(os.fsencode(folder / "home" / "daemon.sock")) <= place.MAX_SOCKET_PATH:
            return folder
        folder.rmdir()
        return Path(tempfile.mkdtemp(prefix="holdfast-demo-", dir=SHORT))
    except OSError as error:
        raise HoldfastError(
            f"No directory can be created for the demo: {error.strerror}.",
            recovery="Set TMPDIR to one you may write to.",
        ) from error
