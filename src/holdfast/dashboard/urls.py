"""Addresses of pages, so that one page can lead to another."""

from __future__ import annotations

import hashlib


def project_id(root: str) -> str:
    """Return the short name of a project in addresses, from its key or root."""
    return hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def project_url(root: str) -> str:
    """Return the address of a project's page."""
    return f"/projects/{project_id(root)}"


def conversation_url(conversation_id: int) -> str:
    """Return the address of a conversation of teams."""
    return f"/teams/conversations/{conversation_id}"
