"""What is forgotten as JSON, for the command."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from holdfast.forgetting.model import Preview, Removal


def preview_view(preview: Preview) -> dict[str, Any]:
    """Return as JSON what would be deleted."""
    return {
        "what": preview.what,
        "roots": list(preview.roots),
        "teams": list(preview.teams),
        **asdict(preview.counts),
        "files": list(map(str, preview.files)),
    }


def removal_view(removal: Removal) -> dict[str, Any]:
    """Return as JSON what was deleted, and what is left to do."""
    return {
        "success": not removal.left,
        "what": removal.what,
        **asdict(removal.counts),
        "files": list(map(str, removal.files)),
        "left": list(removal.left),
        "named_in": list(map(str, removal.named_in)),
    }
