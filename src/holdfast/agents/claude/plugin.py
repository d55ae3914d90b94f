"""The Claude Code plugin, made from the same table as `holdfast setup claude`.

`python -m holdfast.agents.claude.plugin DIR` writes it; the repository holds what that gives for its own root, which
is thereby a marketplace: `claude plugin install holdfast --marketplace DIR`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.agents.claude import settings
from holdfast.setup.hook_command import portable_command
from holdfast.setup.server import NAME, of_any_machine
from holdfast.version import __version__

FOLDER = "plugin"
DESCRIPTION = "Keeps a coding agent's sessions alive across everything that ends them."
AUTHOR = {"name": "Holdfast"}
MISSING = (
    "Holdfast: the plugin is enabled, but there is no `holdfast` command on the PATH."
    " Install Holdfast (its README says how), or disable the plugin."
)
README = f"""\
# Holdfast for Claude Code

{DESCRIPTION} After a crash, a resume, a compaction or a restart, the agent is told what it was doing, what was asked
last and what is still open, without having to remember anything. The plugin brings the MCP server `{NAME}` and three
hooks: SessionStart, PreCompact and SessionEnd. No process of Holdfast starts at a tool call.

In a clone of the repository, with the `holdfast` command installed and on the PATH:

    claude plugin install {NAME} --marketplace .

Where the command is missing, the plugin says so at the start of a session and does nothing else.

Use the plugin or `holdfast setup claude`, not both: setup refuses while the plugin is enabled.
`claude plugin disable {NAME}@{NAME}` turns it off.
"""


def files() -> Mapping[str, str]:
    """Return every file of the plugin and its marketplace, by its path in the repository."""
    hooks: dict[str, Any] = {}
    settings.putting_in(settings.BRIEFING, hook_command)(hooks)
    return {
        ".claude-plugin/marketplace.json": _json(
            {
                "name": NAME,
                "owner": AUTHOR,
                "metadata": {"description": DESCRIPTION},
                "plugins": [{"name": NAME, "source": f"./{FOLDER}", "description": DESCRIPTION}],
            }
        ),
        f"{FOLDER}/.claude-plugin/plugin.json": _json(
            {
                "name": NAME,
                "version": __version__,
                "description": DESCRIPTION,
                "author": AUTHOR,
                "license": "MIT",
                "keywords": ["mcp", "session", "memory", "recovery"],
            }
        ),
        f"{FOLDER}/hooks/hooks.json": _json(hooks),
        f"{FOLDER}/.mcp.json": _json({"mcpServers": {NAME: of_any_machine().entry()}}),
        f"{FOLDER}/README.md": README,
    }


def hook_command(event: str) -> str:
    """Return what the plugin's hook runs. If Holdfast is missing, only the start of a session reports it."""
    if event != "SessionStart":
        return portable_command(event)
    message = json.dumps({"systemMessage": MISSING})
    return f"command -v holdfast >/dev/null 2>&1 && exec holdfast hook {event}; echo '{message}'"


def write(root: Path) -> None:
    """Write the plugin into a directory."""
    for name, text in files().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
