"""What the pages of all kinds of sessions have in common: of what kind, of which project, since when.

A template extends `session_frame.html`, passes a `frame`, and fills in `session_actions` and `session_body`.
"""

from __future__ import annotations

from holdfast.dashboard.urls import ProjectLink
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact in the head of a session's page; `at` is a time, `text` is outside text, `code` can be copied."""

    name: str
    text: str = ""
    at: int | None = None
    code: bool = False


@dataclass(frozen=True, slots=True)
class SessionFrame:
    """The head of a session's page."""

    kind: str
    """As a person calls it, such as "Reasoning", "Conversation" or "Run"."""
    title: str
    project: ProjectLink | None
    badges: tuple[str, ...] = ()
    """Such as "pinned" and "archived"."""
    facts: tuple[Fact, ...] = ()
    live: str = "reasoning."
    """The kinds of events after which the head is refreshed."""
    subject: str = ""
    """The subject of these events; empty for any."""
