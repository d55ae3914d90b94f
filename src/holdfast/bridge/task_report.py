"""What an agent reports of its task by save_task: checked, and kept for its target or for its project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.bridge import agent_queries, project_tasks
from holdfast.bridge.model import Task
from holdfast.bridge.project_tasks import STRANGER, ProjectTask
from holdfast.caller import Caller
from holdfast.errors import BadInput
from holdfast.project import Root, path_of
from holdfast.reasoning import projects
from holdfast.store import Tx

MAX_FIELD = 2_000
MAX_ID = 128
MAX_LISTED = 100
PAUSED = "Recording is paused for this project; `holdfast resume-recording` starts it again. Nothing was stored."


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What the caller works on, or that it is finished."""

    current_task: str | None
    current_task_id: str | None = None
    last_completed_step: str | None = None
    pending_messages: tuple[str, ...] = ()
    done: bool = False

    def check(self) -> None:
        """Refuse what cannot be kept."""
        if self.current_task is None and not self.done:
            raise BadInput("current_task", "is required, unless done is true")
        for field in ("current_task", "current_task_id", "last_completed_step"):
            value = getattr(self, field)
            if value is not None and (not 0 < len(value) <= MAX_FIELD or "\0" in value):
                raise BadInput(field, f"must be 1 to {MAX_FIELD} characters without NUL bytes")
        if len(self.pending_messages) > MAX_LISTED or any(len(one) > MAX_ID for one in self.pending_messages):
            raise BadInput("pending_messages", f"must be at most {MAX_LISTED} ids")

    def write_for_target(self, tx: Tx, target: str, caller: Caller) -> dict[str, Any]:
        """Keep it as the task of a target."""
        if self.done:
            return {"target": target, "saved": True, "changed": agent_queries.finish_task(tx, target)}
        saved = Task(
            target=target,
            session_id=caller.agent_session,
            current_task=self.current_task or "",
            current_task_id=self.current_task_id,
            last_completed_step=self.last_completed_step,
            pending_messages=self.pending_messages,
            updated_at=0,
            decision=None,
        )
        return {"target": target, "saved": True, "changed": agent_queries.save_task(tx, saved)}

    def write_for_project(self, tx: Tx, root: Root, caller: Caller) -> dict[str, Any]:
        """Keep it as the caller's own task in a project that is no target's."""
        if projects.is_paused(tx, root, None):
            return {"saved": False, "message": PAUSED}
        owner = caller.identity or STRANGER
        reply = {"project": str(path_of(root.uri) or root.uri), "saved": True}
        if self.done:
            ended = project_tasks.finish(tx, root, owner, self.current_task, self.current_task_id)
            return {**reply, "changed": ended}
        saved = ProjectTask(
            root=root.uri,
            owner=owner,
            session_id=caller.agent_session,
            current_task=self.current_task or "",
            current_task_id=self.current_task_id,
            last_completed_step=self.last_completed_step,
            pending_messages=self.pending_messages,
        )
        return {**reply, "changed": project_tasks.save(tx, saved, root.key)}
