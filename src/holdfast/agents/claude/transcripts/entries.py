"""The lines of a transcript of Claude Code, as far as a ledger looks at them: total functions of any JSON at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

Entry = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

HARNESS = re.compile(
    r"\s*(?:<(?:local-command-|command-|bash-|system-reminder|task-notification|user-prompt-submit-hook|session-start-hook"
    r"|post-tool-use-hook|ide_|tick|teammate-message|tools-used|available-deferred)|\[Request interrupted by user"
    r"|This session is being continued from a previous conversation|Caveat: The messages below were generated)"
)
"""Beginnings of messages that have the user's role but that no user wrote."""
INTERRUPTED = "[Request interrupted by user"
LOCAL_COMMANDS = frozenset(
    {
        "add-dir",
        "agents",
        "clear",
        "compact",
        "config",
        "context",
        "cost",
        "doctor",
        "effort",
        "exit",
        "export",
        "fast",
        "help",
        "hooks",
        "ide",
        "login",
        "logout",
        "mcp",
        "memory",
        "model",
        "permissions",
        "plugin",
        "quit",
        "rename",
        "resume",
        "rewind",
        "status",
        "statusline",
        "tasks",
        "theme",
        "usage",
        "vim",
    }
)
"""Commands that Claude Code runs itself; any other one is a request to the agent."""
_COMMAND = re.compile(r"<command-name>/?([^<\n]{1,200})</command-name>")


def text_member(value: Any, name: str) -> str:
    """Return a member that is a text; empty if there is none."""
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, str) else ""


def blocks(entry: Entry) -> Iterator[Entry]:
    """Yield the parts of an entry's message; a message that is one text has one."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


def text_of(block: Entry) -> str:
    """Return a tool's result as one text."""
    content = block.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(text_member(part, "text") for part in content if isinstance(part, dict))


def timestamp(entry: Entry) -> int | None:
    """Return the time at which an entry was written, in milliseconds."""
    try:
        at = datetime.fromisoformat(text_member(entry, "timestamp"))
        return None if at.tzinfo is None else (at - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None


def is_side(entry: Entry) -> bool:
    """Return whether a subagent wrote it: its actions count, its requests and replies do not."""
    return entry.get("isSidechain") is True or bool(text_member(entry, "agentId"))


def request_in(entry: Entry) -> str | None:
    """Return what the user asked in this entry; None for tool results and text that no user wrote."""
    if entry.get("isMeta") or entry.get("isCompactSummary") or entry.get("isVisibleInTranscriptOnly"):
        return None
    if is_side(entry) or text_member(entry, "teamName") or not _is_human(entry):
        return None
    texts = []
    for block in blocks(entry):
        if block.get("type") == "tool_result":
            return None
        if block.get("type") == "text":
            words = text_member(block, "text")
            texts.append((_command_in(words) or "") if HARNESS.match(words) else words)
    return "\n".join(part for part in texts if part.strip()).strip() or None


def queued_request(entry: Entry) -> str | None:
    """Return what the user asked while a turn was running; it is stored as an attachment of that turn."""
    attached = entry.get("attachment")
    if text_member(attached, "type") != "queued_command" or is_side(entry) or not isinstance(attached, dict):
        return None
    if text_member(attached, "commandMode") not in ("", "prompt") or not _is_human(attached):
        return None
    prompt = attached.get("prompt")
    words = prompt if isinstance(prompt, str) else text_of({"content": prompt})
    return None if HARNESS.match(words) else words.strip() or None


def _is_human(entry: Entry) -> bool:
    origin = text_member(entry.get("origin"), "kind")
    return origin in ("", "human")


def _command_in(words: str) -> str | None:
    name = _COMMAND.search(words)
    if name is None or name[1].strip().lower() in LOCAL_COMMANDS:
        return None
    arguments, closed, _ = words.partition("<command-args>")[2].partition("</command-args>")
    return f"/{name[1].strip()} {arguments.strip() if closed else ''}".strip()


def is_interruption(entry: Entry) -> bool:
    """Return whether the user ended the turn."""
    return any(text_member(block, "text").startswith(INTERRUPTED) for block in blocks(entry))
