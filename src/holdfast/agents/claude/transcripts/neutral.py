"""Lines of Claude Code's transcripts as neutral entries: total functions of any JSON object at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from holdfast.agents.claude.transcripts import entries
from holdfast.agents.claude.transcripts.entries import INTERRUPTED, text_member
from holdfast.agents.transcript_entries import (
    Answered,
    Asked,
    Called,
    Compacted,
    Ended,
    Entry,
    Part,
    QueueChange,
    Queued,
    Refused,
    Said,
    Spoken,
    TodoChanged,
    TodoItem,
    TodosWritten,
)
from holdfast.agents.transcript_position import CallKind

Line = entries.Entry

KINDS = {
    "Bash": CallKind.RUN,
    "BashOutput": CallKind.OUTPUT,
    "Read": CallKind.READ,
    "NotebookRead": CallKind.READ,
    "Write": CallKind.CHANGE,
    "Edit": CallKind.CHANGE,
    "MultiEdit": CallKind.CHANGE,
    "NotebookEdit": CallKind.CHANGE,
    "ExitPlanMode": CallKind.PLAN,
    "AskUserQuestion": CallKind.QUESTION,
    "TaskCreate": CallKind.TODO,
}
_SERVER_READS = re.compile(r"mcp__.*__read_(?:text_|media_)?file")
_MODIFYING = re.compile(r"(?:write|edit|create|create_text)_file|replace_\w+|insert_(?:before|after)_\w+")
"""Names of MCP servers' tools that change a file."""
_PATHS = ("file_path", "notebook_path", "path", "relative_path")
_WITHOUT_PATH = frozenset({"TodoWrite", "TaskUpdate"})
_QUEUE = {"enqueue": QueueChange.ADDED, "remove": QueueChange.REMOVED, "popAll": QueueChange.EMPTIED}
_ENDS = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})
"""Stop reasons of a message that also end the turn."""
_REFUSED = ("The user doesn't want to", "Permission to use ", "Permission for this ")
_USER_SAID = re.compile(r"the user said:\s*([\s\S]+)")
_MISUSED = "<tool_use_error>"
"""Beginning of the result that Claude Code writes for a call that it did not make."""
MAX_ANSWERS = 50
MAX_VALUES = 50
MAX_TOKENS = 1_000_000_000
_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
"""What a reply says of its tokens; together they are the context."""


def kind_of(tool: str) -> CallKind:
    """Return the kind of a tool, by its name."""
    known = KINDS.get(tool)
    if known is not None:
        return known
    if _SERVER_READS.fullmatch(tool):
        return CallKind.READ
    server, _, name = tool.rpartition("__")
    is_change = server.startswith("mcp__") and _MODIFYING.fullmatch(name) is not None
    return CallKind.CHANGE if is_change else CallKind.OTHER


def entry_of(line: Line, *, is_side: bool = False) -> Entry:
    """Return a line as a neutral entry; `is_side` for a line in a subagent's own transcript."""
    kind, side = line.get("type"), is_side or entries.is_side(line)
    has_location = kind in ("user", "assistant")
    return Entry(
        tuple(_parts(line, kind, side=side)),
        at=entries.timestamp(line),
        is_side=side,
        cwd=text_member(line, "cwd") if has_location else "",
        branch=text_member(line, "gitBranch") if has_location else "",
        context=_context(line) if kind == "assistant" and not side else None,
    )


def _parts(line: Line, kind: object, *, side: bool) -> Iterator[Part]:
    if kind == "user":
        yield from _from_user(line, side=side)
    elif kind == "assistant":
        yield from _from_agent(line, side=side)
    elif kind == "attachment":
        request = None if side else entries.queued_request(line)
        if request is not None:
            yield Asked(request)
    elif kind == "queue-operation":
        words = text_member(line, "content")
        change = _QUEUE.get(text_member(line, "operation"), QueueChange.TAKEN)
        yield Queued(change, "" if entries.HARNESS.match(words) else words)
    elif kind == "system" and not side:
        if line.get("subtype") == "compact_boundary":
            yield Compacted(_tokens(line.get("compactMetadata"), "preTokens") or None)
        elif line.get("subtype") in ("turn_duration", "stop_hook_summary"):
            yield Ended()


def _context(line: Line) -> int | None:
    """Return how large the context was with this reply; None if it does not tell, as an error does not."""
    message = line.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    return sum(_tokens(usage, name) for name in _USAGE) or None


def _tokens(value: object, name: str) -> int:
    number = value.get(name) if isinstance(value, dict) else None
    return min(number, MAX_TOKENS) if isinstance(number, int) and number > 0 else 0


def _from_user(line: Line, *, side: bool) -> Iterator[Part]:
    request = None if side else entries.request_in(line)
    if request is not None:
        yield Asked(request)
        return
    for block in entries.blocks(line):
        if block.get("type") == "tool_result":
            yield _answered(line, block)
    if not side and entries.is_interruption(line):
        yield Ended(by_user=True)


def _from_agent(line: Line, *, side: bool) -> Iterator[Part]:
    failed = line.get("isApiErrorMessage") is True
    reason = text_member(line.get("message"), "stop_reason") or None
    for block in entries.blocks(line):
        if block.get("type") == "tool_use":
            yield from _called(block)
        elif block.get("type") == "text" and not side and not failed:
            # Some versions do not say why; then the last message counts as the end until a tool is called.
            yield Said(text_member(block, "text").strip(), ends_turn=reason is None or reason in _ENDS)


def _called(block: Line) -> Iterator[Part]:
    tool, tool_input = text_member(block, "name"), block.get("input")
    arguments: Line = tool_input if isinstance(tool_input, dict) else {}
    todos = arguments.get("todos")
    if tool == "TodoWrite" and isinstance(todos, list):
        yield TodosWritten(tuple(TodoItem(text_member(one, "content"), text_member(one, "status")) for one in todos))
    elif tool == "TaskUpdate":
        changed = (text_member(arguments, name) for name in ("taskId", "status", "subject"))
        yield TodoChanged(*changed)
    kind = kind_of(tool)
    has_path = kind not in (CallKind.RUN, CallKind.PLAN, CallKind.TODO) and tool not in _WITHOUT_PATH
    text = {CallKind.PLAN: "plan", CallKind.TODO: "subject"}.get(kind)
    yield Called(
        text_member(block, "id"),
        tool,
        kind,
        command=text_member(arguments, "command") if kind is CallKind.RUN else "",
        path=_path_in(arguments) if has_path else "",
        replaced=(str(arguments.get("old_string")), str(arguments.get("new_string"))) if tool == "Edit" else None,
        text=text_member(arguments, text) if text else "",
    )


def _path_in(arguments: Line) -> str:
    return next((found for name in _PATHS if (found := text_member(arguments, name))), "")


def _answered(line: Line, block: Line) -> Answered:
    text, failed, result = entries.text_of(block), block.get("is_error") is True, line.get("toolUseResult")
    by_question = result.get("answers") if isinstance(result, dict) else None
    answers = list(by_question.items())[:MAX_ANSWERS] if isinstance(by_question, dict) else []
    return Answered(
        text_member(block, "tool_use_id"),
        text,
        failed,
        refused=_refused(line, text) if failed else None,
        not_run=failed and (text.startswith(_MISUSED) or INTERRUPTED in text),
        created=text_member(result, "type") == "create",
        plan=text_member(result, "plan"),
        answers=tuple((str(question), str(said)) for question, said in answers),
        todo_key=text_member(result.get("task") if isinstance(result, dict) else None, "id"),
    )


def _refused(line: Line, text: str) -> Refused | None:
    decision = line.get("permissionDecision")
    if text_member(decision, "decision") != "reject" and not text.startswith(_REFUSED):
        return None
    match = _USER_SAID.search(text)
    if match:
        return Refused(by_user=True, said=match[1])
    if text.startswith(_REFUSED[0]) or text_member(decision, "source").startswith("user"):
        return Refused(by_user=True, reason="" if text.startswith(_REFUSED) else text)
    return Refused(by_user=False, reason=text)


def spoken_in(line: Line) -> Iterator[Spoken]:
    """Return what was said or done in a line, word for word; nothing for bookkeeping lines."""
    speaker = line.get("type")
    if speaker not in ("user", "assistant") or line.get("isMeta"):
        return
    at = entries.timestamp(line) or 0
    for block in entries.blocks(line):
        role, text = _passage(str(speaker), block)
        yield Spoken(role, text, at)


def _passage(speaker: str, block: Line) -> tuple[str, str]:
    kind = block.get("type")
    if kind == "text":
        return speaker, text_member(block, "text")
    if kind == "tool_use":
        return "tool", "\n".join([text_member(block, "name"), *_texts(block.get("input"))])
    if kind == "tool_result":
        return "error" if block.get("is_error") else "result", entries.text_of(block)
    return speaker, ""


def _texts(arguments: Any) -> list[str]:
    values = list(arguments.values())[:MAX_VALUES] if isinstance(arguments, dict) else []
    return [value for value in values if isinstance(value, str)]
