"""The echo agent's hooks: payloads of three fields, answers as plain text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.agents.hook_events import HookAnswer, HookEvent, HookKind

EVENTS = {"begin": HookKind.STARTED, "heard": HookKind.PROMPTED, "quit": HookKind.ENDED}


class EchoHooks:
    """Reads the payloads of the echo agent's hooks and writes the answers."""

    def event(self, name: str, payload: Mapping[str, Any], *, is_managed: bool = False) -> HookEvent:
        """Return what a payload says."""
        session, directory, words = (payload.get(key) for key in ("session", "directory", "words"))
        return HookEvent(
            kind=EVENTS.get(name, HookKind.OTHER),
            session_id=session if isinstance(session, str) else "",
            cwd=directory if isinstance(directory, str) else "",
            is_managed=is_managed,
            source="startup",
            prompt=words if isinstance(words, str) else "",
        )

    def output(self, name: str, answer: HookAnswer) -> bytes:
        """Return what the hook prints."""
        said = (answer.notice, answer.context, answer.denied or "", answer.keep_going or "")
        return "".join(f"{text}\n" for text in said if text).encode()

    def start_payload(self, session_id: str, cwd: Path, transcript: Path) -> tuple[str, str]:
        """Return the event's name and the payload of a session that starts."""
        return "begin", json.dumps({"session": session_id, "directory": str(cwd)})

    def context_in(self, output: str) -> str:
        """Return what a hook's output tells the agent."""
        return output
