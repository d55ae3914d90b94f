"""Entries of a transcript as Claude Code writes them, and a transcript of one's own making.

transcript = Transcript(project)
transcript.ask("Mend the fence.")
transcript.run("Bash", {"command": "make"}, "Exit code 2\\nmake: *** no rule", error=True)
transcript.say("It is mended.")
transcript.write(path)
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

from holdfast.agents.claude.transcripts.neutral import entry_of
from holdfast.briefing.ledger.folding import fold
from holdfast.briefing.ledger.model import Ledger
from holdfast.times import iso

Entry = dict[str, Any]

BEGAN = 1_790_000_000_000
"""Milliseconds: when every transcript here begins; each entry is a second later than the one before."""


class Transcript:
    """A transcript that grows entry by entry."""

    def __init__(self, cwd: Path | str = "/home/me/project", *, branch: str = "main") -> None:
        self.session_id = str(uuid.uuid4())
        self.cwd = str(cwd)
        self.branch = branch
        self.entries: list[Entry] = []
        self.context = 0
        """Tokens of its context, as its replies tell them; 0 if they do not."""
        self._calls = count(1)

    def add(self, kind: str, **members: Any) -> Entry:
        """Any entry at all."""
        entry = {
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "timestamp": iso(BEGAN + 1_000 * len(self.entries)),
            "cwd": self.cwd,
            "gitBranch": self.branch,
            "sessionId": self.session_id,
            "isSidechain": False,
            **members,
        }
        self.entries.append(entry)
        return entry

    def ask(self, words: str, **members: Any) -> Entry:
        """The user says something."""
        return self.add("user", message={"role": "user", "content": words}, **members)

    def say(self, words: str, *, stop_reason: str | None = "end_turn", **members: Any) -> Entry:
        """The agent says something, and with it ends its turn."""
        content = [{"type": "text", "text": words}]
        message = {"role": "assistant", "content": content, "stop_reason": stop_reason} | self._usage()
        return self.add("assistant", message=message, **members)

    def call(self, tool: str, arguments: Any, **members: Any) -> str:
        """The agent calls a tool; returns the id of the call."""
        name = f"toolu_{next(self._calls):04}"
        content = [{"type": "tool_use", "id": name, "name": tool, "input": arguments}]
        message = {"role": "assistant", "content": content, "stop_reason": "tool_use"} | self._usage()
        self.add("assistant", message=message, **members)
        return name

    def _usage(self) -> Entry:
        tokens = {"input_tokens": 3, "cache_read_input_tokens": self.context - 83, "output_tokens": 80}
        return {"usage": tokens} if self.context else {}

    def answer(self, call: str, text: Any, *, error: bool = False, **members: Any) -> Entry:
        """The tool answers."""
        content = [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": error}]
        return self.add("user", message={"role": "user", "content": content}, **members)

    def run(self, tool: str, arguments: Any, text: Any = "done", *, error: bool = False, **members: Any) -> None:
        """A tool is called and answers."""
        self.answer(self.call(tool, arguments), text, error=error, **members)

    def read(self, path: str, text: str = "1\tx = 1") -> None:
        self.run("Read", {"file_path": path}, text)

    def edit(self, path: str, old: str = "x = 1", new: str = "x = 2") -> None:
        self.run("Edit", {"file_path": path, "old_string": old, "new_string": new})

    def fail(self, command: str, text: str) -> None:
        self.run("Bash", {"command": command}, text, error=True)

    def compact(self) -> None:
        """What a compaction leaves: a boundary, a summary in the user's place, and the command that asked for it."""
        metadata = {"compactMetadata": {"trigger": "auto", "preTokens": self.context}} if self.context else {}
        self.add("system", subtype="compact_boundary", content="Conversation compacted", **metadata)
        self.ask(
            "This session is being continued from a previous conversation that ran out of context.",
            isCompactSummary=True,
            isVisibleInTranscriptOnly=True,
        )
        self.ask("<local-command-caveat>The command below …</local-command-caveat>", isMeta=True)
        self.ask("<command-name>/compact</command-name>\n<command-message>compact</command-message>")
        self.ask("<local-command-stdout>Compacted </local-command-stdout>")

    @property
    def lines(self) -> list[bytes]:
        return [json.dumps(entry, ensure_ascii=False).encode() + b"\n" for entry in self.entries]

    def write(self, folder: Path) -> Path:
        """Write it whole, as a file named for its session."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.session_id}.jsonl"
        path.write_bytes(b"".join(self.lines))
        return path


def folded(ledger: Ledger, lines: Iterable[Entry]) -> Ledger:
    """A ledger with what all of these lines tell."""
    for line in lines:
        fold(ledger, entry_of(line))
    return ledger
