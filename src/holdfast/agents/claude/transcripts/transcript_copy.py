"""The copy of a transcript in the store: filled while its agent works, merged with its file before it resumes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.agents.claude.transcripts.files import TranscriptFiles
from holdfast.agents.claude.transcripts.merge import Line, lines_of, merge
from holdfast.agents.claude.transcripts.queries import Entry
from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.agents.transcript_copies import MAIN


class TranscriptCopy:
    """The session store that is passed to the SDK.

    It answers every `load` with nothing. Entries would make the SDK move the agent to a temporary configuration
    directory with a copy of the user's credentials; without them the agent resumes its own merged file.
    """

    def __init__(self, transcripts: TranscriptStore) -> None:
        self._transcripts = transcripts
        self.appended = 0
        """How many lines have reached the store."""

    async def append(self, key: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> None:
        """Keep what the agent wrote."""
        await self._transcripts.append(key, entries)
        self.appended += len(entries)

    async def load(self, key: Mapping[str, Any]) -> None:
        """Return nothing: the agent has its own file."""


async def level(transcripts: TranscriptStore, files: TranscriptFiles, project_key: str, session_id: str) -> bool:
    """Merge store and file, here and under this project; False when neither has the conversation.

    The caller holds the session's lock.
    """
    stored = await transcripts.everywhere(session_id)
    local = await asyncio.to_thread(files.read, session_id)
    if not stored.get(MAIN) and not local.get(MAIN):
        return False
    for subpath in sorted(stored.keys() | local.keys()):
        # A long conversation takes its time; the daemon has others to serve.
        lines = await asyncio.to_thread(_merged, stored.get(subpath, []), local.get(subpath, []))
        await asyncio.to_thread(files.write, project_key, session_id, subpath, lines)
        key = {"project_key": project_key, "session_id": session_id, "subpath": subpath}
        await transcripts.put(key, [line.entry for line in lines if line.entry is not None and line.is_stored])
    return True


def _merged(stored: Sequence[Entry], local: Sequence[Line]) -> list[Line]:
    return merge(lines_of(stored), local)
