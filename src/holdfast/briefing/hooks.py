"""Answers agents' hooks: briefs, brings the ledger up to date, and records the end of a session."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.agents.hook_events import HookAnswer, HookEvent, HookKind
from holdfast.briefing.model import BriefingSetting
from holdfast.briefing.queries.agent_sessions import StartedSession
from holdfast.briefing.service import NOTHING, Briefing, Briefings
from holdfast.briefing.settings import BriefingSettingUnreadable, briefing_setting
from holdfast.capability.briefing import Covered
from holdfast.files.in_time import in_time
from holdfast.identity.project import Root, RootSource, locate
from holdfast.process.alive import mark_of
from holdfast.text.quoting import error_text

KINDS = (HookKind.STARTED, HookKind.COMPACTING, HookKind.ENDED)
SOURCES = ("startup", "resume", "compact", "clear")
LONGEST_PATH = 4096

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class BriefingHooks:
    """Answers the hooks of agent sessions that begin, are compacted or end."""

    def __init__(self, briefings: Briefings, machine: str) -> None:
        self._briefings = briefings
        self._machine = machine

    async def handle(
        self,
        event: HookEvent,
        *,
        pid: int | None = None,
        wanted: str | None = None,
        covered: Covered = NOTHING,
    ) -> HookAnswer | None:
        """Return the hook's answer; None if there is nothing to say."""
        if event.is_subagent or not _SESSION.fullmatch(event.session_id) or not _is_path(event.cwd):
            return None
        if event.kind is HookKind.STARTED:
            return await self._begins(event, pid, wanted, covered)
        transcript = _transcript(event)
        if event.kind is HookKind.COMPACTING and transcript is not None:
            await self._briefings.bring_up_to_date(event.session_id, transcript, await in_time(_root, event.cwd))
        elif event.kind is HookKind.ENDED:
            root = await in_time(_root, event.cwd)
            await self._briefings.ends(event.session_id, transcript, root, event.reason[:40])
        return None

    async def _begins(
        self, event: HookEvent, pid: int | None, wanted: str | None, covered: Covered
    ) -> HookAnswer | None:
        session, cwd, source = event.session_id, event.cwd, event.source
        if source not in SOURCES:
            return None
        transcript = _transcript(event)
        try:
            root, setting = await in_time(_root_and_setting, cwd, wanted)
        except BriefingSettingUnreadable as failure:
            return HookAnswer(notice=error_text(f"Holdfast: {failure}"))
        started = StartedSession(
            session_id=session,
            root=root,
            machine=self._machine,
            source=source,
            transcript=str(transcript) if transcript is not None else None,
            pid=pid,
            pid_mark=mark_of(pid) if pid is not None else None,
        )
        briefing = await self._briefings.begins(started, setting, covered)
        return None if briefing is None else _answer(briefing)


def _answer(briefing: Briefing) -> HookAnswer:
    if not briefing.items:
        return HookAnswer(briefing.text)
    kinds = ", ".join(dict.fromkeys(item.kind for item in briefing.items))
    notice = f"Holdfast told the agent of earlier work here: {kinds}. `holdfast show` prints it."
    return HookAnswer(briefing.text, notice)


def _root(cwd: str) -> Root:
    return locate(cwd, RootSource.DIRECTORY)


def _root_and_setting(cwd: str, wanted: str | None) -> tuple[Root, BriefingSetting | None]:
    return _root(cwd), briefing_setting(wanted, Path(cwd))


def _transcript(event: HookEvent) -> Path | None:
    return Path(event.transcript) if _is_path(event.transcript) else None


def _is_path(text: str) -> bool:
    return text.startswith("/") and "\0" not in text and len(text) <= LONGEST_PATH
