"""An agent that is played: a process that works on files as it is told, and writes its transcript as a real one does.

`python -m holdfast.demo.played_agent PROJECT TRANSCRIPT` reads one step per line. A step on files or a command is
entered in the transcript when it begins, is done when the next line comes, and then gets its result: so an agent can be
killed in the middle of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from holdfast.agents.registry import AGENTS, DEFAULT
from holdfast.agents.transcript_entries import Answered, Asked, Called, Part, Said, TodoItem, TodosWritten
from holdfast.agents.transcript_position import CallKind
from holdfast.errors import HoldfastError

END_SECONDS = 10.0
COMMAND_SECONDS = 30.0
GO = "\n"


class PlayedAgent:
    """The demo's hold on such a process."""

    def __init__(self, project: Path, transcript: Path, env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-m", "holdfast.demo.played_agent", str(project), str(transcript)],
            env=dict(env),
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C in a terminal is for the demo
        )

    def asked(self, text: str) -> None:
        """The user asks it for something."""
        self._send({"asked": text})

    def said(self, text: str) -> None:
        """It says something, and its turn is over."""
        self._send({"said": text})

    def todos(self, **todos: str) -> None:
        """It writes its list of todos: texts by status."""
        self._send({"todos": [[text, status] for status, text in todos.items()]})

    def begin(self, **step: Any) -> None:
        """It calls a tool, which has not done anything yet."""
        self._send(step)

    def finish(self) -> dict[str, Any]:
        """The tool does its work; returns what it answered."""
        return self._send(None)

    def do(self, **step: Any) -> dict[str, Any]:
        """It calls a tool, which answers: `read`, `edit` with `old` and `new`, `write` with `text`, `run`."""
        self.begin(**step)
        return self.finish()

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        """End it, and the command that it may be running."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not sent yet reaches nobody
                    stream.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(END_SECONDS)

    def _send(self, step: dict[str, Any] | None) -> dict[str, Any]:
        given, answers = self.process.stdin, self.process.stdout
        assert given is not None and answers is not None  # noqa: S101 - they were opened with pipes
        given.write(GO if step is None else f"{json.dumps(step)}\n")
        given.flush()
        line = answers.readline()
        if not line:
            raise HoldfastError("The demo's agent ended by itself.", recovery="Report this as a bug.")
        return dict(json.loads(line))


def play(steps: TextIO, tell: Callable[[dict[str, Any]], None], project: Path, write: Callable[[Part], None]) -> None:
    """Do what each line says, until there are no more."""
    for number, line in enumerate(steps):
        step = json.loads(line)
        part = _part(step, str(number), project)
        write(part)
        tell({})
        if isinstance(part, Called):
            if not steps.readline():
                return
            answer = _done(part, project)
            write(Answered(part.call_id, answer["text"], failed=answer["failed"]))
            tell(answer)


def _part(step: Mapping[str, Any], call_id: str, project: Path) -> Part:
    match step:
        case {"asked": text}:
            return Asked(text)
        case {"said": text}:
            return Said(text, ends_turn=True)
        case {"todos": todos}:
            return TodosWritten(tuple(TodoItem(text, status) for text, status in todos))
        case {"run": command}:
            return Called(call_id, "", CallKind.RUN, command=command)
        case {"read": path}:
            return Called(call_id, "", CallKind.READ, path=str(project / path))
        case {"edit": path, "old": old, "new": new}:
            return Called(call_id, "", CallKind.CHANGE, path=str(project / path), replaced=(old, new))
        case {"write": path, "text": text}:
            return Called(call_id, "", CallKind.CHANGE, path=str(project / path), text=text)
    raise ValueError(f"no such step: {step}")


def _done(call: Called, project: Path) -> dict[str, Any]:
    """Do what a call asks for; return what its tool answers."""
    path = Path(call.path)
    if call.kind is CallKind.RUN:
        done = subprocess.run(  # noqa: S603 - the demo's own commands
            ["/bin/sh", "-c", call.command],
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )
        failed, output = done.returncode != 0, (done.stdout + done.stderr).strip()
        return {"text": f"Exit code {done.returncode}\n{output}" if failed else output, "failed": failed}
    if call.kind is CallKind.READ:
        return {"text": path.read_text(encoding="utf-8"), "failed": False}
    text = path.read_text(encoding="utf-8").replace(*call.replaced) if call.replaced else call.text
    path.write_text(text, encoding="utf-8")
    return {"text": "The file was written.", "failed": False}


def main() -> None:
    """Play an agent in a project, with a transcript of its own."""
    project, transcript = (Path(argument) for argument in sys.argv[1:])
    rehearsal = AGENTS[DEFAULT].rehearsal
    assert rehearsal is not None  # noqa: S101 - the demo plays an agent that has one
    play(sys.stdin, lambda answer: print(json.dumps(answer), flush=True), project, rehearsal(transcript, project))


if __name__ == "__main__":
    main()
