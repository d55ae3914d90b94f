"""The command that continues an agent's session, to be copied into a terminal."""

from __future__ import annotations

from holdfast.agents.registry import resume_command_of
from holdfast.briefing.ledger.model import is_session_id
from holdfast.identity.project import path_of
from holdfast.text.paths import typed


def way_back(directory: str | None, root: str | None, session_id: str) -> str | None:
    """Return the command, in the session's directory or else in its project's; None if there is no way back."""
    place = directory or (root and path_of(root))
    if not place or not is_session_id(session_id):
        return None
    return f"cd {typed(str(place))} && {resume_command_of()(session_id)}"
