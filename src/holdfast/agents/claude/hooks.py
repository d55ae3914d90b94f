"""Claude Code's hooks: its payloads read into `HookEvent`, and answers written as the JSON it reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.agents.hook_events import HookAnswer, HookEvent, HookKind, ShownFile, ToolKind, ToolUse
from holdfast.text import bounded_json

EVENTS = {
    "SessionStart": HookKind.STARTED,
    "UserPromptSubmit": HookKind.PROMPTED,
    "PreToolUse": HookKind.BEFORE_TOOL,
    "PostToolUse": HookKind.AFTER_TOOL,
    "PreCompact": HookKind.COMPACTING,
    "Stop": HookKind.STOPPING,
    "SessionEnd": HookKind.ENDED,
}
TOOLS = {"Bash": ToolKind.RUN, "Read": ToolKind.READ}
SERVER_PREFIX = "mcp__"
REPORT = "<task-notification>"
"""Beginning of a prompt that Claude Code writes for a background subagent."""

Payload = Mapping[str, Any]


class ClaudeHooks:
    """Reads the payloads of Claude Code's hooks and writes the answers."""

    def event(self, name: str, payload: Payload, *, is_managed: bool = False) -> HookEvent:
        """Parse a payload; a field of the wrong type counts as missing."""
        prompt, reason = _text(payload, "prompt").strip(), payload.get("reason", "other")
        sent_on = payload.get("stop_hook_active")
        return HookEvent(
            kind=EVENTS.get(name, HookKind.OTHER),
            session_id=_text(payload, "session_id"),
            cwd=_text(payload, "cwd"),
            transcript=_text(payload, "transcript_path"),
            is_subagent="agent_id" in payload,
            is_managed=is_managed,
            source=_text(payload, "source"),
            reason=str(reason),
            prompt=prompt,
            is_report=prompt.startswith(REPORT),
            is_command=prompt.startswith("/"),
            tool=_tool(payload),
            already_sent_on=sent_on if isinstance(sent_on, bool) else None,
            last_words=_text(payload, "last_assistant_message"),
        )

    def output(self, name: str, answer: HookAnswer) -> bytes:
        """Return the hook's output; empty if there is nothing to say."""
        out = self.answer(name, answer)
        return json.dumps(out).encode() + b"\n" if out else b""

    def answer(self, name: str, answer: HookAnswer) -> dict[str, Any]:
        """Return an answer as the JSON object that Claude Code reads."""
        out: dict[str, Any] = {}
        if answer.notice:
            out["systemMessage"] = answer.notice
        if answer.keep_going is not None:
            out |= {"decision": "block", "reason": answer.keep_going}
        specific = {"additionalContext": answer.context} if answer.context else {}
        if answer.denied is not None:
            specific |= {"permissionDecision": "deny", "permissionDecisionReason": answer.denied}
        if specific:
            out["hookSpecificOutput"] = {"hookEventName": name, **specific}
        return out

    def start_payload(self, session_id: str, cwd: Path, transcript: Path) -> tuple[str, str]:
        """Return the event's name and the payload that Claude Code sends when a session starts."""
        name = "SessionStart"
        payload = {"session_id": session_id, "cwd": str(cwd), "transcript_path": str(transcript), "source": "startup"}
        return name, json.dumps({**payload, "hook_event_name": name})

    def context_in(self, output: str) -> str:
        """Return the text that a hook's output gives the agent."""
        answer = bounded_json.loads(output) if output.strip() else {}
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext") or "")


HOOKS = ClaudeHooks()


def _tool(payload: Payload) -> ToolUse | None:
    name, tool_input = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(name, str):
        return None
    arguments = tool_input if isinstance(tool_input, dict) else None
    kind = ToolKind.MCP if name.startswith(SERVER_PREFIX) else TOOLS.get(name, ToolKind.OTHER)
    server, _, server_tool = name.removeprefix(SERVER_PREFIX).rpartition("__") if kind is ToolKind.MCP else ("", "", "")
    command = (arguments or {}).get("command") if kind is ToolKind.RUN else None
    return ToolUse(
        name=name,
        kind=kind,
        call_id=_text(payload, "tool_use_id"),
        arguments=arguments,
        command=command if isinstance(command, str) else None,
        shown=_shown(arguments or {}, payload.get("tool_response")) if kind is ToolKind.READ else None,
        server=server,
        server_tool=server_tool,
    )


def _shown(arguments: Mapping[str, Any], response: object) -> ShownFile | None:
    path, file = arguments.get("file_path"), response.get("file") if isinstance(response, dict) else None
    if not isinstance(path, str) or not isinstance(file, dict):
        return None
    first, shown, total = (file.get(name) for name in ("startLine", "numLines", "totalLines"))
    if not (isinstance(first, int) and isinstance(shown, int) and isinstance(total, int)):
        return ShownFile(path)
    return ShownFile(path, (first, shown, total))


def _text(payload: Payload, name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""
