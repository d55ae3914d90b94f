"""What an agent leaves behind when it is cut off, and the hook by which the next one says that it starts."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

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


def starts(holdfast: Installation, project: Path, transcript: Path, pid: int | None = None) -> dict[str, str]:
    """The session-start hook of an agent, whose process that is; what it printed."""
    payload = {
        "session_id": transcript.stem,
        "transcript_path": str(transcript),
        "cwd": str(project),
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    env = {"CLAUDE_PID": str(pid)} if pid is not None else None
    done = holdfast.run("hook", "SessionStart", stdin=json.dumps(payload), env=env)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout) if done.stdout else {}
    return {
        "context": answer.get("hookSpecificOutput", {}).get("additionalContext", ""),
        "message": answer.get("systemMessage", ""),
    }
