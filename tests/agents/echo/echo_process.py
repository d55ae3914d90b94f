"""The echo agent's process: answers each text with itself, and does what directives in it say.

Run as `python -I -S echo_process.py FOLDER SESSION MODE`; JSON lines in both directions. A line of a
text may be

    sleep SECONDS    answer later; an interrupt ends the wait
    permission TOOL [INPUT]  ask before the answer, and say in it what was decided
    fail             end the turn with an error
    die              end the process in the middle of the turn

A file answers.json in the folder gives the answers to texts that contain one of its keys, and what each spends
(`{"answer": "…", "input_tokens": 9000}`); directives are then lines of the answer, and are not said.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

DIRECTIVE = re.compile(r"^(?:> )?(sleep|permission|fail|die)\b *(.*)$", re.MULTILINE)


class Interrupted(Exception):
    """The turn was ended from outside."""


class Echo:
    """A conversation that repeats what it is told."""

    def __init__(self, path: Path, turns: list[dict[str, str]]) -> None:
        self._path = path
        self._turns = turns
        self._unsaved = not path.exists()
        self._buffer = b""

    def run(self) -> None:
        """Take turns until the input ends."""
        self._say({"ready": os.getpid()})
        while (request := self._hear(None)) is not None:
            if "text" in request:
                self._say({"turn": self._turn(request["text"])})
            elif "compact" in request:
                self._say({"compaction": {"pre": len(self._turns), "post": min(1, len(self._turns))}})

    def _turn(self, text: str) -> dict[str, Any]:
        self._say({"event": "status"})
        prepared, spent = self._prepared(text), {"input_tokens": len(text), "output_tokens": len(text)}
        answer, directives = f"echo {len(self._turns) + 1}: {text}", DIRECTIVE.findall(text)
        if prepared is not None:
            written = prepared.pop("answer")
            answer, directives, spent = DIRECTIVE.sub("", written).strip(), DIRECTIVE.findall(written), prepared
        try:
            for word, rest in directives:
                answer += self._obey(word, rest.strip())
        except Interrupted:
            ended = {"is_error": True, "interrupted": True, "subtype": "error_during_execution"}
            return {"text": "", **spent, **ended}
        if any(word == "fail" for word, _ in directives):
            said = f"told to fail: {answer}" if prepared is None else answer
            return {"text": said, "is_error": True, "subtype": "success"}
        self._turns.append({"text": text, "answer": answer})
        self._save()
        return {"text": answer, **spent}

    def _prepared(self, text: str) -> dict[str, Any] | None:
        """What answers.json beside the conversations says to a text that contains one of its keys."""
        try:
            answers = json.loads((self._path.parent / "answers.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return next((answer for part, answer in answers.items() if part in text), None)

    def _obey(self, word: str, rest: str) -> str:
        if word == "sleep":
            self._sleep(float(rest))
        elif word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == "permission":
            self._say({"permission": rest})
            reply = self._hear(None) or {}
            return f" [{rest} {'allowed' if reply.get('allowed') else 'denied'}]"
        return ""

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            request = self._hear(left)
            if request is not None and "interrupt" in request:
                raise Interrupted

    def _save(self) -> None:
        """Write the turn to disk before it is answered."""
        lines = self._turns if self._unsaved else self._turns[-1:]
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(turn) + "\n" for turn in lines)
            file.flush()
            os.fsync(file.fileno())
        self._unsaved = False

    def _say(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def _hear(self, seconds: float | None) -> dict[str, Any] | None:
        """The next request; None when the time is over. The end of the input ends the process."""
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([0], [], [], seconds)
            if not ready:
                return None
            chunk = os.read(0, 65536)
            if not chunk:
                sys.exit(0)
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        request = json.loads(line)
        return request if isinstance(request, dict) else None


def main() -> None:
    """Begin or resume a conversation, as the arguments say."""
    folder, session, mode = sys.argv[1:]
    path = Path(folder) / f"{session}.jsonl"
    if mode == "new" and path.exists():
        sys.exit(f"Session {session} is already in use")
    if mode == "resume" and not path.exists():
        sys.exit(f"No conversation found with session ID {session}")
    Echo(path, _turns(path) if path.exists() else []).run()


def _turns(path: Path) -> list[dict[str, str]]:
    """Read a conversation; a last line that a kill or a full disk cut off was never answered, and is removed."""
    content = path.read_bytes()
    *lines, torn = content.split(b"\n")
    if torn:
        os.truncate(path, len(content) - len(torn))
    return [json.loads(line) for line in lines]


if __name__ == "__main__":
    main()
