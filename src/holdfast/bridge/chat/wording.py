"""What a chat shows of an update. Pure, no I/O."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from holdfast.bridge.chat import Button
from holdfast.bridge.model import Outcome, Status, Task, Update, UpdateKind
from holdfast.lazy_dataclass import dataclass
from holdfast.redaction import masked

REPETITION = "(may be a repetition)"
"""Prefix of a text that may have arrived before."""
SILENT = (UpdateKind.TASK, UpdateKind.MESSAGE, UpdateKind.PROGRESS, UpdateKind.CANCELLED)
PROGRESS = {
    Status.PENDING: "Stored; it is waiting for the agent.",
    Status.LEASED: "The agent has it now.",
    Status.DONE: "Done.",
    Status.FAILED: "Not done.",
    Status.DEAD: "Given up.",
    Status.EXPIRED: "Expired.",
    Status.CANCELLED: "Cancelled.",
}
"""The status of a message in words, for chats without reactions."""


@dataclass(frozen=True, slots=True)
class Shown:
    text: str
    buttons: tuple[Button, ...] = ()
    urgent: bool = False
    status: Status | None = None


def shown(update: Update, task: Task | None) -> Shown:
    """Render an update with its buttons; secrets are masked, because it leaves the machine."""
    view = _shown(update, task)
    return replace(view, text=masked(view.text))


def _shown(update: Update, task: Task | None) -> Shown:
    buttons = tuple(Button(masked(label), action) for label, action in update.buttons)
    if update.kind == UpdateKind.SESSION_RESTART:
        return _restart(update, task)
    if update.kind == UpdateKind.PROGRESS:
        status = Status(update.content)
        return Shown(PROGRESS[status], status=status)
    text = update.content
    if update.kind == UpdateKind.TASK:
        text = f"Working on: {text}"
    elif update.kind == UpdateKind.REPLY and update.outcome == Outcome.FAILED:
        text = f"Not done: {text}"
    elif update.kind in (UpdateKind.DEAD_LETTER, UpdateKind.EXPIRED):
        text = f"⚠️ {text}"
    return Shown(text.strip() or "(no text)", buttons, urgent=bool(buttons) or update.kind not in SILENT)


def question(session_id: str) -> str:
    """Return an id of one restart's question, short enough for a button."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _restart(update: Update, task: Task | None) -> Shown:
    if task is None or task.decision is not None:
        return Shown(update.content, urgent=True)
    step = f" (last completed step: {task.last_completed_step})" if task.last_completed_step else ""
    text = f"{update.content}\n\nIt was working on: {task.current_task}{step}\nResume or start fresh?"
    about = question(update.restart.new if update.restart else "")
    return Shown(text, (Button("Resume", f"resume:{about}"), Button("Start fresh", f"new:{about}")), urgent=True)
