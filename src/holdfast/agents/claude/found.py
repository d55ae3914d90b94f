"""Claude Code's sessions on this machine's disk, as the SDK lists them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import list_sessions, list_sessions_from_store, project_key_for_directory
from claude_agent_sdk.types import SDKSessionInfo, SessionStore

from holdfast.agents import FoundSession
from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.agents.claude.transcripts.merge import lines_in


async def found_sessions(config: Path, project: Path) -> list[FoundSession]:
    """Return the sessions of a project, the latest first."""
    key = project_key(project)
    own = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    if config == own and key == project_key_for_directory(project):
        listed = await asyncio.to_thread(list_sessions, directory=str(project), include_worktrees=False)
    else:
        # The SDK reads only the directory of this process; of another one it is given the files' content.
        files = cast(SessionStore, _Folder(config / "projects" / key))
        listed = await list_sessions_from_store(files, directory=str(project))
    return [_found(info) for info in listed]


def _found(info: SDKSessionInfo) -> FoundSession:
    return FoundSession(
        session_id=info.session_id,
        title=info.summary,
        modified_at=info.last_modified,
        first_prompt=info.first_prompt,
        cwd=info.cwd,
    )


class _Folder:
    """A project's transcript files as a session store that can only be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def list_sessions(self, _key: str) -> list[Any]:
        paths = self._folder.glob("*.jsonl")
        return [{"session_id": path.stem, "mtime": int(path.stat().st_mtime * 1000)} for path in paths]

    async def load(self, key: Any) -> list[Any] | None:
        path = self._folder / f"{key['session_id']}.jsonl"
        text = await asyncio.to_thread(path.read_text, encoding="utf-8", errors="replace")
        return [line.entry for line in lines_in(text) if line.entry is not None]

    async def append(self, key: Any, entries: list[Any]) -> None:
        raise NotImplementedError("these files are the agent's own")
