"""What briefing does when an agent's hook calls: it tells, keeps the ledger up to date, and notes the end."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.briefing.incarnations import Visit
from holdfast.briefing.model import Wish
from holdfast.briefing.service import NOTHING, Briefing, Briefings
from holdfast.briefing.sources import Beside
from holdfast.briefing.wish import WishUnreadable, wish
from holdfast.hook_answers import Answer
from holdfast.processes import mark_of
from holdfast.project import Root, RootSource, locate
from holdfast.protocol.in_time import in_time
from holdfast.quoting import error_text

EVENTS = ("SessionStart", "PreCompact", "SessionEnd")
SOURCES = ("startup", "resume", "compact", "clear")
AGAIN_SECONDS = 3.0
"""A session start that is told twice within this time, by a plugin and by settings, is answered once."""
LONGEST_PATH = 4096

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class BriefingHooks:
    """Answers the hooks of agents that begin, are compacted, or end."""

    def __init__(self, briefings: Briefings, machine: str, again_s: float = AGAIN_SECONDS) -> None:
        self._briefings = briefings
        self._machine = machine
        self._again_s = again_s
        self._answered: dict[tuple[str, str, int | None], float] = {}

    async def handle(
        self,
        event: str,
        payload: Mapping[str, Any],
        *,
        pid: int | None = None,
        wanted: str | None = None,
        beside: Beside = NOTHING,
    ) -> Answer | None:
        """What the hook is to print; None when there is nothing to say."""
        session, cwd = payload.get("session_id"), payload.get("cwd")
        if "agent_id" in payload or not isinstance(session, str) or not _SESSION.fullmatch(session):
            return None
        if not isinstance(cwd, str) or not cwd.startswith("/") or "\0" in cwd or len(cwd) > LONGEST_PATH:
            return None
        if event == "SessionStart":
            return await self._begins(payload, session, cwd, pid, wanted, beside)
        transcript = _transcript(payload)
        if event == "PreCompact" and transcript is not None:
            await self._briefings.compacts(session, transcript, await in_time(_root, cwd))
        elif event == "SessionEnd":
            root = await in_time(_root, cwd)
            await self._briefings.ends(session, transcript, root, str(payload.get("reason", "other"))[:40])
        return None

    async def _begins(
        self,
        payload: Mapping[str, Any],
        session: str,
        cwd: str,
        pid: int | None,
        wanted: str | None,
        beside: Beside,
    ) -> Answer | None:
        source = payload.get("source")
        if source not in SOURCES or not self._first_time(session, source, pid):
            return None
        transcript = _transcript(payload)
        root = await in_time(_root, cwd)

        def arrival() -> tuple[Visit, Wish | None]:
            visit = Visit(
                session_id=session,
                root=root,
                machine=self._machine,
                source=source,
                transcript=str(transcript) if transcript is not None else None,
                pid=pid,
                pid_mark=mark_of(pid) if pid is not None else None,
            )
            return visit, wish(wanted, Path(cwd))

        try:
            visit, wished = await in_time(arrival)
        except WishUnreadable as failure:
            return {"systemMessage": error_text(f"Holdfast: {failure}")}
        found = await self._briefings.begins(visit, wished, beside)
        return None if found is None else _answer(found)

    def _first_time(self, session: str, source: str, pid: int | None) -> bool:
        now = time.monotonic()
        self._answered = {key: at for key, at in self._answered.items() if now - at < self._again_s}
        key = (session, source, pid)
        if key in self._answered:
            return False
        self._answered[key] = now
        return True


def _answer(briefing: Briefing) -> Answer:
    told = {"hookEventName": "SessionStart", "additionalContext": briefing.text}
    if not briefing.items:
        return {"hookSpecificOutput": told}
    kinds = ", ".join(dict.fromkeys(item.kind for item in briefing.items))
    return {
        "hookSpecificOutput": told,
        "systemMessage": f"Holdfast told the agent of earlier work here: {kinds}. `holdfast resume` shows it.",
    }


def _root(cwd: str) -> Root:
    return locate(cwd, RootSource.DIRECTORY)


def _transcript(payload: Mapping[str, Any]) -> Path | None:
    path = payload.get("transcript_path")
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path or len(path) > LONGEST_PATH:
        return None
    return Path(path)
