"""Environment of a Claude Code process that Holdfast starts."""

from __future__ import annotations

import os
from collections.abc import Mapping

from holdfast.process.child_environment import agent_environment

NAMES = frozenset(
    (
        *("IS_SANDBOX", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_BUG_COMMAND"),
        *("DISABLE_COST_WARNINGS", "DISABLE_AUTO_COMPACT", "DISABLE_PROMPT_CACHING", "ENABLE_TOOL_SEARCH"),
        *("BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH", "API_TIMEOUT_MS"),
        *("MAX_THINKING_TOKENS", "MAX_MCP_OUTPUT_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "USE_BUILTIN_RIPGREP"),
    )
)
PREFIXES = ("ANTHROPIC_", "CLAUDE_")
"""It signs in with these."""
CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": ("AWS_",),
    "CLAUDE_CODE_USE_VERTEX": ("GOOGLE_", "VERTEX_", "CLOUD_ML_"),
    "CLAUDE_CODE_USE_FOUNDRY": ("AZURE_",),
}
"""Further prefixes it signs in with, by the switch that enables them."""


def claude_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment before the team's own variables are added."""
    env = os.environ if env is None else env
    clouds = [prefix for switch, prefixes in CLOUDS.items() if env.get(switch) for prefix in prefixes]
    return agent_environment(env, NAMES, (*PREFIXES, *clouds))
