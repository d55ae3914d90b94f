"""What an agent leaves behind when it is cut off, and the hook by which the next one says that it starts."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from tests.installation import Installation

from holdfast.store.sqlite import system_clock
from holdfast.times import iso


def left_behind(folder: Path, project: Path, request: str = "Mend the fence, north side first.") -> Path:
    """The transcript of a session that was cut off."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{uuid.uuid4()}.jsonl"
    asked = {
        "type": "user",
        "message": {"role": "user", "content": request},
        "sessionId": path.stem,
        "uuid": str(uuid.uuid4()),
        "cwd": str(project),
        "timestamp": iso(system_clock()),
    }
    path.write_text(json.dumps(asked) + "\n")
    return path


def call_hook(
    holdfast: Installation, event: str, project: Path, transcript: Path, pid: int | None = None, **payload: Any
) -> dict[str, Any]:
    """A hook of the session with this transcript, whose process that is; what it printed."""
    common = {
        "session_id": transcript.stem,
        "transcript_path": str(transcript),
        "cwd": str(project),
        "hook_event_name": event,
    }
    env = {"CLAUDE_PID": str(pid)} if pid is not None else None
    done = holdfast.run("hook", event, stdin=json.dumps(common | payload), env=env)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)) if done.stdout else {}


def starts(holdfast: Installation, project: Path, transcript: Path, pid: int | None = None) -> dict[str, str]:
    """The session-start hook of an agent, whose process that is; what it printed."""
    answer = call_hook(holdfast, "SessionStart", project, transcript, pid, source="startup")
    return {
        "context": answer.get("hookSpecificOutput", {}).get("additionalContext", ""),
        "message": answer.get("systemMessage", ""),
    }
