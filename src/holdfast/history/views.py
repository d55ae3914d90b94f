"""Imported history as JSON, for commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.agents.registry import resume_command_of, transcripts_of
from holdfast.history.model import Conversation, Found, Hit, Imported, Recovery, Scanned
from holdfast.identity.project import path_of
from holdfast.redaction import masked
from holdfast.times import iso


def imported_view(done: Imported) -> dict[str, Any]:
    """Return the result of an import as JSON."""
    return asdict(done)


def found_view(found: Found, config: Path) -> dict[str, Any]:
    """Return a search's hits as JSON; `config` is the configuration directory of `claude` where they are shown."""
    return {
        "results": _conversations(found.conversations, config),
        "files": found.files,
        "imported_at": None if found.imported_at is None else iso(found.imported_at),
    }


def scanned_view(found: Scanned, config: Path) -> dict[str, Any]:
    """Return the hits of a search in the transcripts themselves as JSON."""
    return {
        "results": _conversations(found.conversations, config),
        "files": found.files,
        "left_out": found.left_out,
    }


def saved_view(recoveries: Sequence[Recovery]) -> dict[str, Any]:
    """Return as JSON what was recovered, by project: how often, after what, and what it was."""
    projects: dict[str, list[Recovery]] = {}
    for one in recoveries:
        projects.setdefault(one.root, []).append(one)
    counted = [
        {
            "project": str(path_of(root) or root),
            "times": len(found),
            "after": dict(Counter(one.occasion for one in found).most_common()),
            "what": dict(Counter(kind for one in found for kind in one.kinds).most_common()),
            "last": iso(max(one.at for one in found)),
        }
        for root, found in projects.items()
    ]
    return {"projects": sorted(counted, key=lambda one: (-one["times"], one["project"]))}


def _conversations(conversations: Sequence[Conversation], config: Path) -> list[dict[str, Any]]:
    return [
        {
            "project": one.best.directory,
            "date": iso(one.best.at)[:16].replace("T", " ") if one.best.at else "",
            "role": one.best.role,
            "line": masked(one.line),  # also of what was imported under older rules
            "more": one.more,
            "session": one.best.session_id,
            "resume": resume_command(one.best, config),
            "elsewhere": one.best.elsewhere,
        }
        for one in conversations
    ]


def resume_command(hit: Hit, config: Path) -> str:
    """Return the shell command that continues the conversation."""
    its = transcripts_of().config_of(Path(hit.path))
    command = resume_command_of()(hit.session_id, config=None if its == config else its)
    return f"cd {shlex.quote(hit.directory)} && {command}"
