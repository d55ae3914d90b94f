"""Allow rules: which tools of Holdfast Claude Code lets an agent use without asking its user each time."""

from __future__ import annotations

from typing import Any

from holdfast.agents.settings import CORE_TOOLS, Allow
from holdfast.setup.json_file import Edit, Misshapen, Settings
from holdfast.setup.server import NAME


def rules(allow: Allow) -> list[str]:
    """Return the rules of a choice."""
    every = f"mcp__{NAME}"
    return {Allow.NONE: [], Allow.CORE: [f"{every}__{tool}" for tool in CORE_TOOLS], Allow.ALL: [every]}[allow]


OURS = frozenset(rule for allow in Allow for rule in rules(allow))
"""The rules that setup adds and removes; a rule that a user wrote for another of our tools stays."""


def allowing(allow: Allow) -> Edit:
    """Return the edit that puts exactly the rules of a choice in force."""

    def edit(settings: Settings) -> None:
        existing = _listed(settings)
        wanted = rules(allow)
        there = [rule for rule in existing if rule in OURS]
        if there == wanted:
            return
        changed = [rule for rule in existing if rule not in OURS] + wanted
        if changed:
            settings.setdefault("permissions", {})["allow"] = changed
            return
        del settings["permissions"]["allow"]
        if not settings["permissions"]:
            del settings["permissions"]

    return edit


def _listed(settings: Settings) -> list[Any]:
    permissions = settings.get("permissions", {})
    allowed = permissions.get("allow", []) if isinstance(permissions, dict) else None
    if not isinstance(allowed, list):
        raise Misshapen("`permissions` must be an object, and `allow` in it a list")
    return allowed
