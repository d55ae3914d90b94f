"""Other agents whose MCP servers stand in a documented file: where it is, and how they want a server written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from holdfast.setup import json_entry, toml_entry
from holdfast.setup.json_file import Change, SettingsUnusable, edited, inside, read_settings
from holdfast.setup.originals import Originals
from holdfast.setup.server import NAME, Server, of_any_machine, of_this_machine
from holdfast.setup.steps import Step, putting_in, taking_out

Env = Mapping[str, str]


class Format(Protocol):
    """How an agent writes its servers down."""

    def installed(self, path: Path, server: Server) -> Change:
        """The file with our server in it."""

    def removed(self, path: Path) -> Change:
        """The file without it."""


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Servers by name in an object of a JSON file."""

    keys: tuple[str, ...]
    entry: Callable[[Server], dict[str, Any]]
    env: str = "env"
    nested: str | None = None
    """A further name that leads to the servers in files of a newer form, where it is used."""

    def installed(self, path: Path, server: Server) -> Change:
        try:
            return edited(path, json_entry.putting_in(self._keys(path), self.entry(server), env=self.env))
        except SettingsUnusable as refused:
            raise SettingsUnusable(
                refused.message,
                recovery="It was not changed, because rewriting it would lose its comments."
                f" Add this by hand:\n\n{self._snippet(server)}\n",
            ) from refused

    def removed(self, path: Path) -> Change:
        return edited(path, json_entry.taking_out(self._keys(path)))

    def _keys(self, path: Path) -> tuple[str, ...]:
        if self.nested is None:
            return self.keys
        inner: object = read_settings(path)
        for key in (*self.keys, self.nested):
            inner = inner.get(key) if isinstance(inner, dict) else None
        return (*self.keys, self.nested) if isinstance(inner, dict) and "command" not in inner else self.keys

    def _snippet(self, server: Server) -> str:
        inner: dict[str, Any] = {NAME: self.entry(server)}
        for key in reversed(self.keys):
            inner = {key: inner}
        return json.dumps(inner, indent=2)


@dataclass(frozen=True, slots=True)
class TomlFormat:
    """Servers as tables of a TOML file."""

    table: str

    def installed(self, path: Path, server: Server) -> Change:
        return toml_entry.installed(path, self.table, server.entry(kind=None))

    def removed(self, path: Path) -> Change:
        return toml_entry.removed(path, self.table)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent that setup knows."""

    name: str
    title: str
    format: Format
    user_file: Callable[[Env], Path]
    project_file: str
    note: str = ""
    """What its user should know of a project's file."""

    def install(self, path: Path, server: Server, originals: Originals) -> list[Step]:
        """What puts Holdfast in."""
        return [putting_in(originals, self.format.installed(path, server), self.format.removed(path))]

    def remove(self, path: Path, originals: Originals) -> list[Step]:
        """What takes it out."""
        return [taking_out(originals, self.format.removed(path))]

    def file(self, project: Path | None, env: Env) -> Path:
        """The file of a project, or the user's own."""
        return self.user_file(env).resolve() if project is None else inside(project, self.project_file)


def server_for(project: Path | None, other_home: str | None) -> Server:
    """What the agent starts; a project's file is shared, and names nothing of this machine."""
    return of_this_machine(other_home) if project is None else of_any_machine()


def _user(env: Env) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def _config(env: Env) -> Path:
    return Path(env["XDG_CONFIG_HOME"]) if env.get("XDG_CONFIG_HOME") else _user(env) / ".config"


def _codex(env: Env) -> Path:
    return (Path(env["CODEX_HOME"]) if env.get("CODEX_HOME") else _user(env) / ".codex") / "config.toml"


def _opencode(env: Env) -> Path:
    folder = _config(env) / "opencode"
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


def _vscode(env: Env) -> Path:
    mac = _user(env) / "Library" / "Application Support"
    return (mac if sys.platform == "darwin" else _config(env)) / "Code" / "User" / "mcp.json"


def _opencode_entry(server: Server) -> dict[str, Any]:
    variables = {"environment": dict(server.env)} if server.env else {}
    return {"type": "local", "command": [server.command, *server.args], "enabled": True, **variables}


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent(
            "codex",
            "Codex",
            TomlFormat("mcp_servers"),
            _codex,
            ".codex/config.toml",
            "Codex reads a project's file only where the project is trusted.",
        ),
        Agent(
            "gemini",
            "Gemini CLI",
            JsonFormat(("mcpServers",), lambda server: server.entry(kind=None)),
            lambda env: _user(env) / ".gemini" / "settings.json",
            ".gemini/settings.json",
        ),
        Agent(
            "opencode",
            "opencode",
            JsonFormat(("mcp",), _opencode_entry, env="environment", nested="servers"),
            _opencode,
            "opencode.json",
        ),
        Agent(
            "cursor",
            "Cursor",
            JsonFormat(("mcpServers",), Server.entry),
            lambda env: _user(env) / ".cursor" / "mcp.json",
            ".cursor/mcp.json",
        ),
        Agent("vscode", "VS Code", JsonFormat(("servers",), Server.entry), _vscode, ".vscode/mcp.json"),
    )
}
"""Every agent but Claude Code, which has hooks and rules besides its server."""
