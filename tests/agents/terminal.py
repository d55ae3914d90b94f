"""The real Claude Code at a terminal, where somebody types: it stays open and idle between its turns."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import termios
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
from tests.agents.claude_code import CLAUDE, environment
from tests.agents.scripted_model import ScriptedModel
from tests.installation import wait_until

ENTER, ESCAPE = b"\r", b"\x1b"


class Terminal:
    """Claude Code in a project, on a pseudo-terminal of its own; it ends with the block."""

    def __init__(
        self,
        model: ScriptedModel,
        project: Path,
        config: Path,
        *,
        mcp_config: Mapping[str, Any],
        allowed_tools: str = "mcp__holdfast,Bash,Write",
        started_by: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """With `started_by`, this command starts Claude Code, in an environment that also has `variables`."""
        self.session = str(uuid.uuid4())
        self.config = config
        self._model = model
        self._shown = bytearray()
        config.mkdir(parents=True, exist_ok=True)
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "projects": {str(project): trusted},
            "customApiKeyResponses": {"approved": ["sk-test"], "rejected": []},
        }
        (config / ".claude.json").write_text(json.dumps(known))
        options = ["--session-id", self.session, "--permission-mode", "default", "--allowed-tools", allowed_tools]
        options += ["--strict-mcp-config", "--mcp-config", json.dumps(mcp_config)]
        env = {**environment(model, config.parent), "CLAUDE_CONFIG_DIR": str(config), "TERM": "xterm-256color"}
        env |= {"PATH": f"{CLAUDE.parent}:{env['PATH']}", **(variables or {})}
        argv = [*started_by] or [str(CLAUDE), *options]
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            os.chdir(project)
            os.execve(argv[0], argv, env)  # noqa: S606 - what a terminal does
        termios.tcsetwinsize(self._screen, (50, 200))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        wait_until(lambda: b"? for shortcuts" in self._shown or "❯".encode() in self._shown, "its prompt is shown")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._reader.join()
        os.close(self._screen)

    def kill(self) -> None:
        """End Claude Code as a crash does: no hook is called any more. May be called again."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def type(self, words: str) -> None:
        """Type a prompt, and send it off once the model has been asked."""
        before = len(self._model.requests)
        os.write(self._screen, words.encode())
        wait_until(lambda: words.split()[-1].encode() in self._shown, "the words are shown")
        os.write(self._screen, ENTER)
        wait_until(lambda: len(self._model.requests) > before, "the model is asked")

    def interrupt(self) -> None:
        """Press Escape in the middle of a turn."""
        os.write(self._screen, ESCAPE)
        wait_until(lambda: "[Request interrupted by user" in self.transcript(), "the transcript tells it")

    def runs(self, command: str) -> bool:
        """Whether a shell command is at work for it."""
        return any(_command(one) == command for one in psutil.Process(self.pid).children(recursive=True))

    def transcript(self) -> str:
        return "".join(one.read_text() for one in self.config.glob(f"projects/*/{self.session}.jsonl"))

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # it has ended
            while shown := os.read(self._screen, 65536):
                self._shown += shown


def _command(process: psutil.Process) -> str | None:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has ended
        return None
