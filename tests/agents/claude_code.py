"""The real Claude Code, run once per call against a scripted model.

The binary is the one inside the `claude-agent-sdk` wheel, so nothing is downloaded. A run sees an environment of its
own: no setting, key or server of the user's reaches it, and nothing it starts outlives it.

    run = run_claude(model, project, "Think.", home=home, mcp_config=config, allowed_tools=["mcp__holdfast"])
    again = run_claude(model, project, "Go on.", home=home, mcp_config=config, resume=run.session_id)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import claude_agent_sdk
import psutil
from tests.agents.scripted_model import Request, Script, ScriptedModel
from tests.installation import kill_all, wait_until

CLAUDE = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"

RUN_LIMIT = 120.0
"""Seconds after which a run is ended; a scripted one takes two."""

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClaudeRun:
    """What one run of Claude Code left behind."""

    exit_code: int
    events: list[Event]
    stderr: str

    @property
    def ending(self) -> Event:
        """The last event, which says how the run ended."""
        return next((event for event in reversed(self.events) if event["type"] == "result"), {})

    @property
    def result(self) -> str:
        """The agent's last words."""
        return str(self.ending.get("result", ""))

    @property
    def is_error(self) -> bool:
        """True when the run failed; an error of the API ends with exit code 0 and subtype "success"."""
        return self.exit_code != 0 or bool(self.ending.get("is_error", True))

    @property
    def session_id(self) -> str:
        """The id under which this conversation can be resumed."""
        return str(self.ending["session_id"])

    @property
    def mcp_servers(self) -> dict[str, str]:
        """The MCP servers and their state at the start of the run."""
        start = next(event for event in self.events if event["type"] == "system" and event["subtype"] == "init")
        return {server["name"]: server["status"] for server in start["mcp_servers"]}


def run_claude(
    model: ScriptedModel,
    cwd: Path,
    prompt: str,
    *,
    home: Path,
    mcp_config: Mapping[str, Any] | None = None,
    resume: str | None = None,
    session_id: str | None = None,
    allowed_tools: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    limit: float = RUN_LIMIT,
    options: Sequence[str] = (),
) -> ClaudeRun:
    """Run `claude -p` in `cwd` to its end. Runs that share a `home` can resume each other's sessions."""
    cwd.mkdir(parents=True, exist_ok=True)
    home.mkdir(parents=True, exist_ok=True)
    command = [str(CLAUDE), "-p", "--output-format", "stream-json", "--verbose", *options]
    command += ["--strict-mcp-config", "--mcp-config", json.dumps(mcp_config or {"mcpServers": {}})]
    if resume is not None:
        command += ["--resume", resume]
    if session_id is not None:
        command += ["--session-id", session_id]
    if allowed_tools:
        command += ["--allowed-tools", ",".join(allowed_tools)]
    with subprocess.Popen(
        command,
        cwd=cwd,
        env={**environment(model, home), **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(prompt, timeout=limit)
        finally:
            # A tool's shell outlives a killed Claude Code, so it is always the whole group that ends.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return ClaudeRun(process.returncode, [json.loads(line) for line in stdout.splitlines() if line], stderr)


def play_claude(script: Script, cwd: Path, prompt: str, **options: Any) -> tuple[ClaudeRun, list[Request]]:
    """Run `claude -p` against a model that plays `script`; also what the model was asked."""
    with ScriptedModel(script) as model:
        run = run_claude(model, cwd, prompt, **options)
    return run, model.requests


def environment(model: ScriptedModel, home: Path) -> dict[str, str]:
    """What Claude Code sees: no setting, key or server of the user's."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "sk-test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    if os.geteuid() == 0:
        environment["IS_SANDBOX"] = "1"  # without it, root may not run unattended
    return environment


def written_down(config: Path, words: str) -> None:
    """Wait until a transcript has these words: Claude Code writes them a moment late, and a crash would be earlier."""
    transcripts = config / "projects"
    wait_until(lambda: any(words in one.read_text() for one in transcripts.glob("*/*.jsonl")), "it is on disk")


def kill_claude(project: Path) -> None:
    """End Claude Code in a project as a crash does: no hook is called any more."""
    agents = claude_in(project)
    assert agents
    kill_all(agents)


def claude_in(project: Path) -> list[psutil.Process]:
    """The processes of Claude Code at work in a project."""
    return [process for process in psutil.process_iter() if _is_claude_in(process, project)]


def _is_claude_in(process: psutil.Process, project: Path) -> bool:
    try:
        return process.cmdline()[:1] == [str(CLAUDE)] and process.cwd() == str(project.resolve())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
