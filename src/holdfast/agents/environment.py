"""What an agent's environment variables say of it, whichever agent it is."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.agents.registry import AGENTS


def session_in(env: Mapping[str, str]) -> str | None:
    """Return the id of the agent session to which a process with these variables belongs."""
    return next((env[one.session_variable] for one in AGENTS.values() if env.get(one.session_variable)), None)


def project_in(env: Mapping[str, str]) -> str | None:
    """Return the project directory of the agent to which a process with these variables belongs."""
    return next((env[one.project_variable] for one in AGENTS.values() if env.get(one.project_variable)), None)
