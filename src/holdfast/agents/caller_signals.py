"""What a caller's environment and calls reveal about the agent that it belongs to, for every kind of agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.agents.registry import AGENTS


def session_in(env: Mapping[str, str]) -> str | None:
    """Return the id of the agent session."""
    return _first(env, (agent.session_variable for agent in AGENTS.values()))


def project_in(env: Mapping[str, str]) -> str | None:
    """Return the project directory of the agent."""
    return _first(env, (agent.project_variable for agent in AGENTS.values()))


def call_id_in(meta: Mapping[str, Any]) -> str | None:
    """Return the id that the agent's model gave a call."""
    return _first(meta, (agent.call_id_meta for agent in AGENTS.values()))


def _first(mapping: Mapping[str, Any], names: Iterable[str]) -> str | None:
    for name in names:
        value = mapping.get(name)
        if value and isinstance(value, str):
            return value
    return None
