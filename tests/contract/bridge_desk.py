"""A target's project with agents in it, as their hooks and files show them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.agents.claude.hooks import HOOKS
from holdfast.agents.claude.settings import PURPOSES, installed
from holdfast.bridge.hooks import BridgeHooks
from holdfast.bridge.model import Priority, TaskReport
from holdfast.bridge.results import TargetStatus
from holdfast.bridge.service import Bridge
from holdfast.bridge.session_file_watch import Watch
from holdfast.bridge.views import pulled_view
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.store import Store
from holdfast.teams.team import Chat, Team

Answer = dict[str, Any] | None


class Desk:
    """A target's project with an agent in it, whose transcript holds whatever its hooks told it."""

    def __init__(self, store: Store, home: Path) -> None:
        self.home = home
        self.teams = {name: Team(name, home / name) for name in ("homelab", "felt")}
        for team in self.teams.values():
            (team.project / "sub").mkdir(parents=True)
            installed(team.project, PURPOSES["bridge"]).write()
        self.store = store
        self.bridge = Bridge(store, lambda: self.teams)
        self.connected: set[str] = set()
        self.now = 0.0
        self.start_holdfast()

    def start_holdfast(self) -> None:
        """What is remembered is lost with the daemon."""
        self.hooks = BridgeHooks(
            self.store,
            lambda: self.teams,
            self.connected.__contains__,
            clock=lambda: self.now,
            written_s=0.0,
        )
        self.watch = Watch(self.store, self.bridge, lambda: self.teams)

    def agent(self, session: str = "a", target: str = "homelab") -> Agent:
        return Agent(self, session, self.teams[target].project, self.home / f"{session}.jsonl")

    async def send(self, text: str, priority: Priority = Priority.NORMAL, target: str = "homelab") -> str:
        return (await self.bridge.send(target, text, priority=priority, sender="owner")).id or ""

    async def updates(self, kind: str, target: str = "homelab") -> list[dict[str, Any]]:
        return [one for one in pulled_view(await self.bridge.pull(target, None))["updates"] if one["type"] == kind]

    async def replies(self) -> dict[str, str]:
        return {one["message_id"]: one["content"] for one in await self.updates("reply")}

    async def restarts(self) -> list[str]:
        return [one["content"].rpartition("Session: ")[2] for one in await self.updates("session_restart")]

    async def figures(self, target: str = "homelab") -> tuple[int, int]:
        status = await self.status(target)
        return status.pending, status.in_progress

    async def status(self, target: str = "homelab") -> TargetStatus:
        return next(one for one in await self.bridge.status() if one.target == target)

    async def task(self, task: str, session: str = "a") -> None:
        await self.bridge.save_task(
            caller(session), "homelab", TaskReport(task, last_completed_step="2", pending_messages=("msg-789",))
        )


@dataclass
class Agent:
    """One session of an agent, as its hooks show it."""

    desk: Desk
    session: str
    cwd: Path
    transcript: Path
    deaf: bool = False
    """Whether the answers of its hooks are lost."""

    async def hook(self, event: str, **payload: Any) -> Answer:
        common = {
            "session_id": self.session,
            "cwd": str(self.cwd),
            "hook_event_name": event,
            "transcript_path": str(self.transcript),
        }
        managed = payload.pop("holdfast_managed", False)
        found = await self.desk.hooks.handle(HOOKS.event(event, {**common, **payload}, is_managed=managed))
        answer = None if found is None else HOOKS.answer(event, found)
        if not self.deaf and "agent_id" not in payload:
            self.hear(answer)
        return answer

    def hear(self, answer: Answer) -> None:
        """The agent goes on, and what its hook told it stands in the transcript."""
        with self.transcript.open("a") as file:
            file.write(json.dumps({"message": words(answer)}, ensure_ascii=False) + "\n")

    async def starts(self, source: str = "startup") -> str:
        return words(await self.hook("SessionStart", source=source))

    async def gets(self, prompt: str = "Work.") -> str:
        return words(await self.hook("UserPromptSubmit", prompt=prompt))

    async def uses(self, tool: str = "Bash", **more: Any) -> Answer:
        return await self.hook("PreToolUse", tool_name=tool, tool_input={}, **more)

    async def used(self, tool: str = "Bash", **more: Any) -> str:
        return words(await self.hook("PostToolUse", tool_name=tool, tool_input={}, tool_response={}, **more))

    async def stops(self, said: str = "Done.", *, again: bool = False) -> str:
        return words(await self.hook("Stop", stop_hook_active=again, last_assistant_message=said))

    async def ends(self) -> None:
        assert await self.hook("SessionEnd", reason="other") is None


def caller(session: str = "a") -> Caller:
    """The same session, where it calls a tool."""
    return Caller(Transport.RELAY, Era.LEGACY, f"agent:{session}", agent_session=session)


def words(answer: Answer) -> str:
    """All that an answer tells the agent."""
    if answer is None:
        return ""
    specific = answer.get("hookSpecificOutput", {})
    told = (answer.get("reason"), specific.get("additionalContext"), specific.get("permissionDecisionReason"))
    return "\n".join(one for one in told if one)


def denied(answer: Answer) -> bool:
    return answer is not None and answer["hookSpecificOutput"].get("permissionDecision") == "deny"


class Files:
    """A target whose agent writes the seed's files."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        project = desk.teams["homelab"].project
        self.session, self.state = project / ".claude-session", project / ".claude-session-state.json"
        self.configure(Chat("-100"))

    def configure(self, chat: Chat | None) -> None:
        self.desk.teams["homelab"] = Team(
            "homelab", self.session.parent, chat=chat, session_file=self.session, state_file=self.state
        )

    async def look(self, times: int = 2) -> None:
        for _ in range(times):
            await self.desk.watch.step()

    async def says(self, session: str, **more: Any) -> None:
        self.session.write_text(json.dumps({"id": session, **more}))
        await self.look()
