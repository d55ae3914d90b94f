"""JSON that is nested as deeply as it can be is refused at every door, and keeps nobody else from being served."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
from tests.installation import Installation
from tests.process.agent import Agent
from tests.process.hooks import left_behind, starts

DEPTHS = (300, 880, 950, 50_000)
"""Above our limit; about where Python's own stack ends, for reading or only for what comes after; far above."""
DEEP = "what is nested"

Door = Callable[[Installation, Path, str], None]


def _text(value: Any, deep: str) -> str:
    return json.dumps(value).replace(f'"{DEEP}"', deep)


CALL = {
    "jsonrpc": "2.0",
    "id": "deep",
    "method": "tools/call",
    "params": {"name": "thought", "arguments": {"thought": DEEP}},
}


def _hello(holdfast: Installation, project: Path, deep: str) -> None:
    for line in (DEEP, {"holdfast": DEEP}, {"holdfast": "relay", "env": {"a": DEEP}}):
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(60)
            door.connect(str(holdfast.home / "daemon.sock"))
            door.sendall(_text(line, deep).encode() + b"\n")
            with door.makefile("rb") as answers:
                answers.read()  # it hangs up, whether or not it says why


def _hook(holdfast: Installation, project: Path, deep: str) -> None:
    told = {"session_id": str(uuid.uuid4()), "cwd": str(project), "tool_name": "Bash"}
    for event, member in (("SessionStart", "source"), ("PreToolUse", "tool_input"), ("PostToolUse", "tool_response")):
        done = holdfast.run("hook", event, stdin=_text({**told, member: DEEP}, deep))
        assert (done.returncode, done.stderr) == (0, ""), "the agent goes on"


def _transcript(holdfast: Installation, project: Path, deep: str) -> None:
    path = left_behind(project.parent / "transcripts", project)
    entry = json.loads(path.read_text()) | {"message": {"role": "user", "content": DEEP}}
    with path.open("a") as file:
        file.write(f"{_text(entry, deep)}\n{deep}\n")
    starts(holdfast, project, path)
    told = starts(holdfast, project, path.with_name(f"{uuid.uuid4()}.jsonl"))
    assert "Mend the fence" in told["context"], "the lines before it are read"


def _tool(holdfast: Installation, project: Path, deep: str) -> None:
    with Agent(holdfast, project) as agent:
        agent.write(_text(CALL, deep).encode() + b"\n")
        assert "nested deeper" in agent.answer("deep")["error"]["message"]
        assert agent.think("The same connection goes on.")["thoughtNumber"] == 1


def _http(holdfast: Installation, project: Path, deep: str) -> None:
    headers = {
        "Authorization": f"Bearer {holdfast.key()}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    with httpx2.Client(base_url=holdfast.address(), headers=headers, timeout=60) as client:
        for path, body in product(("/mcp", "/api/bridge/messages"), (DEEP, CALL)):
            answer = client.post(path, content=_text(body, deep))
            assert answer.status_code == 400, (path, answer.status_code, answer.text)


def _project_files(holdfast: Installation, project: Path, deep: str) -> None:
    for name in (".mcp.json", ".claude/settings.json", ".session-state.json", ".serena/project.yml"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(_text({"mcpServers": {"serena": {"command": "x", "env": DEEP}}}, deep))
    with Agent(holdfast, project) as agent:
        asked = agent.ask("tools/call", {"name": "session_start", "arguments": {"objective": "look"}})
        assert "error" not in agent.answer(asked)
    assert "Traceback" not in holdfast.run("trust", str(project)).stderr


DOORS: tuple[Door, ...] = (_hello, _hook, _transcript, _tool, _http, _project_files)


def test_json_that_is_nested_too_deeply_is_refused_and_ends_nothing(embedded: Installation, tmp_path: Path) -> None:
    with Agent(embedded, tmp_path) as other:
        for number, (depth, door) in enumerate(product(DEPTHS, DOORS), 1):
            assert other.think(f"Question {number}: is anybody there?")["thoughtNumber"] == number
            project = tmp_path / door.__name__ / str(depth)
            project.mkdir(parents=True)
            door(embedded, project, "[" * depth + "]" * depth)
    told = (embedded.home / "daemon.log").read_text()
    assert "Traceback" not in told, told
