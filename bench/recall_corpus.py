"""A corpus of sessions by the real Claude Code: they read, edit and run, fail, and are compacted.

The model is scripted, everything else is real: the files, the programs that fail, the transcript, the compaction, and
the context that Claude Code sends after it.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agents.scripted_model import Reply, Request, ScriptedModel, reply, text, use

from bench.recall_plans import Action, Plan
from bench.teams import environment

IS_COMPACTION = "CRITICAL: Respond with TEXT ONLY"
AFTERWARDS = "Go on."
"""What the user says after the compaction; the request that carries it shows what the agent still knows."""
ENDING = "That is done."


class NotCompacted(Exception):
    """Claude Code did not do what the corpus needs."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session of the corpus."""

    name: str
    session_id: str
    project: Path
    transcript: Path
    """As it was before the last compaction."""
    context: str
    """All text that the model was given after it."""


def make(plan: Plan, place: Path) -> Session:
    """Run a plan from its first turn to what is sent after the last compaction."""
    project, config = place / "p", place / "c"
    _lay_out(plan, project)
    session_id = str(uuid.uuid4())
    player = _Player(plan, project)
    with ScriptedModel(player) as model:
        asyncio.run(_converse(plan, project, environment(model, config), session_id))
        context = _text_of(model.requests[-1].body)
    (whole,) = (config / "projects").glob(f"*/{session_id}.jsonl")
    return Session(plan.name, session_id, project, _before_compaction(whole), context)


async def _converse(plan: Plan, project: Path, env: dict[str, str], session_id: str) -> None:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

    options = ClaudeAgentOptions(
        cwd=project,
        env=env,
        session_id=session_id,
        permission_mode="bypassPermissions",
        system_prompt={"type": "preset", "preset": "claude_code"},
        setting_sources=[],
    )
    async with ClaudeSDKClient(options) as client:
        for number, turn in enumerate(plan.turns, 1):
            await _say(client, turn.request)
            if number in plan.compacts_after:
                await _say(client, "/compact")
        await _say(client, "/compact")
        await _say(client, AFTERWARDS)


async def _say(client: Any, words: str) -> None:
    from claude_agent_sdk import ResultMessage

    await client.query(words)
    async for message in client.receive_response():
        if isinstance(message, ResultMessage) and message.is_error:
            raise NotCompacted(f"{words[:60]!r} failed: {message.result}")


class _Player:
    """The model: one tool per request until the turn's are done; of a compaction it makes a generic summary."""

    def __init__(self, plan: Plan, project: Path) -> None:
        self._project = project
        self._left: Iterator[tuple[Action, ...]] = iter([turn.actions for turn in plan.turns])
        self._turn: list[Action] = []
        self._used: Counter[str] = Counter()

    def __call__(self, request: Request) -> Reply:
        last = request.user_turns[-1] if request.user_turns else ""
        if IS_COMPACTION in last:
            return text(self._summary(len(request.messages)))
        if not request.tool_results and last != AFTERWARDS:
            self._turn = list(next(self._left))
        if not self._turn:
            return text(ENDING)
        # Tools of one message run side by side; an edit waits for what was read before it.
        size = next((at for at, action in enumerate(self._turn) if at and action.tool == "Edit"), len(self._turn))
        batch, self._turn = self._turn[:size], self._turn[size:]
        self._used.update(action.tool for action in batch)
        return reply(*(use(action.tool, self._arguments(action)) for action in batch))

    def _arguments(self, action: Action) -> dict[str, Any]:
        path = str(self._project / action.subject)
        if action.tool == "Bash":
            program = f"fail_{action.subject.lower()}.py"
            return {"command": f"{sys.executable} -I {program}", "description": "Run it"}
        if action.tool == "Write":
            return {"file_path": path, "content": f"# {action.subject}\n"}
        if action.tool == "Edit":
            return {"file_path": path, "old_string": "value = 1", "new_string": "value = 2"}
        return {"file_path": path}

    def _summary(self, messages: int) -> str:
        """As the peer's own benchmark imagines a compaction: the roles and the tools, and no fact."""
        tools = ", ".join(f"{name}×{times}" for name, times in self._used.most_common()) or "no tool use"
        return (
            f"<summary>The earlier {messages} messages of this session have been summarized to free context."
            f" They covered work across multiple files and tools.\nTool usage: {tools}\nSpecific file paths, error"
            " codes, and decisions from those turns are not retained in this summary.</summary>"
        )


def _lay_out(plan: Plan, project: Path) -> None:
    """The files that the plan reads and edits, and a program for each error."""
    project.mkdir(parents=True)
    for action in (action for turn in plan.turns for action in turn.actions):
        if action.tool == "Bash":
            program = project / f"fail_{action.subject.lower()}.py"
            program.write_text(_failing(action.subject))
        elif action.tool in ("Read", "Edit"):
            path = project / action.subject
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {action.subject}\nvalue = 1\n" + "".join(f"line_{n} = {n}\n" for n in range(40)))


def _failing(error: str) -> str:
    arguments = "'utf-8', b'x', 0, 1, 'no'" if error == "UnicodeDecodeError" else "'no heron'"
    return f"def look():\n    raise {error}({arguments})\n\n\nlook()\n"


def _before_compaction(whole: Path) -> Path:
    """A copy of a transcript up to its last compaction, under the same name."""
    lines = whole.read_bytes().splitlines(keepends=True)
    boundaries = [number for number, line in enumerate(lines) if b'"subtype":"compact_boundary"' in line]
    if not boundaries:
        raise NotCompacted(f"{whole.name} holds no compaction")
    place = whole.parent / "before"
    place.mkdir()
    copy = place / whole.name
    copy.write_bytes(b"".join(lines[: boundaries[-1]]))
    return copy


def _text_of(value: Any) -> str:
    """Every text in the messages and the system prompt of a request."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_text_of(one) for one in value)
    if isinstance(value, dict):
        members = ("system", "messages", "content", "text", "input", "file_path", "command")
        return "\n".join(_text_of(value[name]) for name in members if name in value)
    return ""
