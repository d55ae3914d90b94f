"""Writes a transcript as Claude Code does, for an agent that is played: neutral entries back into lines."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.agents.transcript_entries import Answered, Asked, Called, Part, Said, TodosWritten
from holdfast.agents.transcript_position import CallKind
from holdfast.times import iso

Block = dict[str, Any]


def rehearsed(transcript: Path, project: Path) -> Callable[[Part], None]:
    """Return what appends one entry to a transcript; it is on disk when the call returns."""
    transcript.parent.mkdir(parents=True, exist_ok=True)

    def write(part: Part) -> None:
        for members in _members(part):
            line = {
                "uuid": str(uuid.uuid4()),
                "timestamp": iso(time.time_ns() // 1_000_000),
                "cwd": str(project),
                "sessionId": transcript.stem,
                "isSidechain": False,
                **members,
            }
            with transcript.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    return write


def _members(part: Part) -> list[Block]:
    match part:
        case Asked(text):
            return [_user(text)]
        case Said(text, ends_turn):
            return [_agent({"type": "text", "text": text}, "end_turn" if ends_turn else "tool_use")]
        case TodosWritten(todos):
            items, call_id = [{"content": one.text, "status": one.status} for one in todos], str(uuid.uuid4())
            return [_called(call_id, "TodoWrite", {"todos": items}), _result(call_id, "Todos have been modified.")]
        case Called():
            return [_called(part.call_id, *_tool(part))]
        case Answered(call_id, text, failed):
            return [_result(call_id, text, is_error=failed)]
    raise ValueError(f"A played agent does not write {type(part).__name__}.")


def _tool(call: Called) -> tuple[str, Block]:
    if call.kind is CallKind.RUN:
        return "Bash", {"command": call.command}
    if call.kind is CallKind.READ:
        return "Read", {"file_path": call.path}
    if call.replaced is not None:
        return "Edit", {"file_path": call.path, "old_string": call.replaced[0], "new_string": call.replaced[1]}
    return "Write", {"file_path": call.path, "content": call.text}


def _called(call_id: str, tool: str, arguments: Block) -> Block:
    return _agent({"type": "tool_use", "id": call_id, "name": tool, "input": arguments}, "tool_use")


def _result(call_id: str, text: str, *, is_error: bool = False) -> Block:
    return _user([{"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": is_error}])


def _user(content: str | list[Block]) -> Block:
    return {"type": "user", "message": {"role": "user", "content": content}}


def _agent(block: Block, stop_reason: str) -> Block:
    return {"type": "assistant", "message": {"role": "assistant", "content": [block], "stop_reason": stop_reason}}
