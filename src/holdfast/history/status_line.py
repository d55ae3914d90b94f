"""One short line about a session, for the status line of the agent's own program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from holdfast.bridge.queries import queue as bridge_queries
from holdfast.files.in_time import in_time
from holdfast.history import queries
from holdfast.identity.worktree import worktree_of
from holdfast.protocol import queries as protocol_queries
from holdfast.store import Store, Tx
from holdfast.teams.team import Team
from holdfast.text import counted, one_line

LONGEST_PHASE = 30


class StatusLine:
    """Describes the state of a session; cheap, because Claude Code asks after every turn."""

    def __init__(self, store: Store, targets: Callable[[], Mapping[str, Team]]) -> None:
        self._store = store
        self._targets = targets

    async def line(self, args: dict[str, Any], progress: Callable[[float, str], None]) -> dict[str, Any]:
        """Return the status line of a `session` at work in `cwd`; empty if there is nothing to show."""
        session, cwd = args.get("session"), args.get("cwd")
        directory = Path(cwd) if isinstance(cwd, str) and cwd.startswith("/") and "\0" not in cwd else None
        worktree = await in_time(worktree_of, directory) if directory else None
        targets = [name for name, team in self._targets().items() if directory and team.project == directory]

        def read(tx: Tx) -> list[str]:
            run = protocol_queries.active(tx, worktree.root) if worktree else None
            waiting = sum(bridge_queries.waiting(tx, target) for target in targets)
            thoughts = queries.thoughts_of(tx, session) if isinstance(session, str) else 0
            parts = [one_line(run.phase, LONGEST_PHASE)] if run else []
            parts += [f"{counted(waiting, 'message')} waiting"] if waiting else []
            return parts + ([counted(thoughts, "thought")] if thoughts else [])

        parts = await self._store.read(read)
        return {"line": f"holdfast: {' · '.join(parts)}" if parts else ""}
