"""What a copy of a conversation did in the project, as its transcript shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agents.registry import transcripts_of
from holdfast.agents.transcript_position import CallKind, Position
from holdfast.text import clipped, one_line

if TYPE_CHECKING:
    from holdfast.agents.transcript_entries import Answered, Called, Entry

MAX_SHOWN = 600
MAX_COMMAND = 120


def changes(copied: Path, project: Path, session_id: str, since: int) -> str | None:
    """Describe which files a copy changed and which commands it ran in a project since a time; None if neither.

    The transcript that was copied may lie in another folder: its agent may be at work below the project.
    What was done before the copy was made is left out.
    """
    calls: dict[str, Called] = {}
    done: dict[str, Called] = {}

    def fold(entry: Entry) -> None:
        from holdfast.agents.transcript_entries import Answered, Called

        for part in entry.parts if entry.at is not None and entry.at >= since else ():
            if isinstance(part, Called):
                calls[part.call_id] = part
            elif isinstance(part, Answered) and part.call_id in calls and _had_effect(calls[part.call_id], part):
                done[part.call_id] = calls[part.call_id]

    transcripts = transcripts_of()
    config = transcripts.config_of(copied)
    if config is None:
        return None
    folder = transcripts.folder(config) / transcripts.folder_name(project)
    transcripts.follow(transcripts.file_of(folder, session_id), Position(), fold, restart=lambda: None)
    files = dict.fromkeys(one.path for one in done.values() if one.kind is CallKind.CHANGE and one.path)
    ran = dict.fromkeys(one_line(one.command, MAX_COMMAND) for one in done.values() if one.kind is CallKind.RUN)
    told = [f"changed {', '.join(files)}"] if files else []
    told += [f"ran {'; '.join(ran)}"] if ran else []
    return f"[The copy {clipped(' and '.join(told), MAX_SHOWN)}]" if told else None


def _had_effect(call: Called, answer: Answered) -> bool:
    """Whether a call may have changed something: a command may have done so before it failed."""
    return not answer.not_run and answer.refused is None and (call.kind is CallKind.RUN or not answer.failed)
