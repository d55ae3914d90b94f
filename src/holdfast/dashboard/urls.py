"""Addresses of pages, so that one page can lead to another."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from urllib.parse import quote

from holdfast.identity.project import path_of
from holdfast.lazy_dataclass import dataclass
from holdfast.text.paths import in_home


@lru_cache(1_000)
def project_id(root: str) -> str:
    """Return the short name of a project in addresses, from its key or root."""
    return hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def project_url(root: str) -> str:
    """Return the address of a project's page."""
    return f"/projects/{project_id(root)}"


def session_url(session_id: str, number: int | None = None) -> str:
    """Return the address of a reasoning session, or of one of its thoughts."""
    return f"/sessions/{quote(session_id, safe='')}" + ("" if number is None else f"?t={number}")


def sessions_url(project: str) -> str:
    """Return the address of the list of a project's reasoning sessions, by its key or root."""
    return f"/sessions?project={quote(project, safe='', errors='replace')}"


def conversation_url(conversation_id: int) -> str:
    """Return the address of a conversation of teams."""
    return f"/teams/conversations/{conversation_id}"


def run_url(project: str, row_id: int | None) -> str:
    """Return the address of a run of the protocol, by its project's key or root."""
    return f"{project_url(project)}/runs/{row_id}"


@dataclass(frozen=True, slots=True)
class ProjectLink:
    """A project, as other pages lead to it."""

    name: str
    place: str
    """Its directory."""
    url: str
    sessions: str
    """The address of the list of its reasoning sessions."""


def project_link(root: str | None, key: str | None) -> ProjectLink | None:
    """Return the way to a project, from its root and its key."""
    if root is None:
        return None
    path = path_of(root)
    return ProjectLink(
        path.name if path is not None and path.name else root,
        place_of(root),
        project_url(key or root),
        sessions_url(key or root),
    )


def place_of(root: str) -> str:
    """Return a root as people write it."""
    path = path_of(root)
    return root if path is None else in_home(str(path))


def survival_url(root: str, session_id: str, row_id: int | None = None) -> str:
    """Return the address of the page that shows how a session's work survived its latest break, or a certain one."""
    return f"{project_url(root)}/sessions/{session_id}" + ("" if row_id is None else f"?break={row_id}")
