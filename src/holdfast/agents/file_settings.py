"""Agents of which Holdfast only knows the settings: which file names their MCP servers, and in which form."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from holdfast.agents.settings import Allow, Registered, Scope, SettingsPart, SetupRequest, registered
from holdfast.lazy_dataclass import dataclass
from holdfast.setup import json_entry, toml_entry
from holdfast.setup.json_file import Change, SettingsUnusable, edited, inside, read_settings, read_text
from holdfast.setup.launcher import refresh_quietly
from holdfast.setup.originals import Originals
from holdfast.setup.server import NAME, Server
from holdfast.setup.steps import Step, putting_in, taking_out

Env = Mapping[str, str]


class Format(Protocol):
    """How an agent writes its servers."""

    @property
    def env(self) -> str:
        """The name of a server's environment variables."""
        ...

    def installed(self, path: Path, server: Server) -> Change:
        """Return the change that adds our server."""
        ...

    def removed(self, path: Path) -> Change:
        """Return the change that removes it."""
        ...

    def own_entry(self, path: Path) -> Mapping[str, Any] | None:
        """Return our server's entry."""
        ...


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Servers by name in an object of a JSON file."""

    keys: tuple[str, ...]
    entry: Callable[[Server], dict[str, Any]] = Server.entry
    env: str = "env"
    nested: str | None = None
    """A further name that leads to the servers in files of a newer form."""

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

    def own_entry(self, path: Path) -> Mapping[str, Any] | None:
        return json_entry.own_entry(path, self._keys(path))

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
    env: str = "env"

    def installed(self, path: Path, server: Server) -> Change:
        return toml_entry.installed(path, self.table, server.entry(kind=None))

    def removed(self, path: Path) -> Change:
        return toml_entry.removed(path, self.table)

    def own_entry(self, path: Path) -> Mapping[str, Any] | None:
        return toml_entry.own_entry(path, self.table)


class FileSettings(SettingsPart):
    """An agent whose servers are in one file of the user and one of a project."""

    def __init__(self, form: Format, user_file: Callable[[Env], Path], project_file: str, note: str = "") -> None:
        self.form = form
        self.user_file = user_file
        self.project_file = project_file
        self.shared_file_note = note

    def config_directory(self, env: Env) -> Path:
        return self.user_file(env).parent

    def setup(self, request: SetupRequest) -> FileSetup:
        return FileSetup(self, request)

    def file(self, scope: Scope, project: Path, env: Env) -> Path:
        """Return the file of a scope."""
        return inside(project, self.project_file) if scope is Scope.PROJECT else self.user_file(env).resolve()

    def servers(self, env: Env, project: Path) -> Sequence[Registered]:
        """Return where Holdfast is registered. A file that cannot be read counts only if it names Holdfast."""
        found = []
        for scope in self.scopes:
            path = self.file(scope, project, env)
            try:
                entry = self.form.own_entry(path)
            except SettingsUnusable:
                if NAME in (read_text(path) or ""):
                    raise
                continue
            if entry is not None:
                found.append(registered(str(path), entry, own=scope is Scope.USER, env=self.form.env))
        return found


@dataclass(frozen=True, slots=True)
class FileSetup:
    """One scope of such an agent."""

    settings: FileSettings
    request: SetupRequest

    @property
    def path(self) -> Path:
        """The file that is changed."""
        return self.settings.file(self.request.scope, self.request.project, self.request.env)

    def install(self, allow: Allow | None = None) -> list[Step]:
        """Return the step that adds Holdfast."""
        form = self.settings.form
        try:
            installed = form.installed(self.path, self.request.server)
        except SettingsUnusable:
            if self.request.launcher_steps:  # the entry that its user should paste names the launcher
                refresh_quietly(str(self.request.home), create=True)
            raise
        step = putting_in(Originals(self.request.home), installed, form.removed(self.path))
        return [*self.request.launcher_steps, step]

    def remove(self) -> list[Step]:
        """Return the step that removes it."""
        return [taking_out(Originals(self.request.home), self.settings.form.removed(self.path))]

    def has_rules(self) -> bool:
        """Return False: Holdfast writes no rules here."""
        return False


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


SETTINGS = {
    "codex": FileSettings(
        TomlFormat("mcp_servers"),
        _codex,
        ".codex/config.toml",
        "Codex reads a project's file only where the project is trusted.",
    ),
    "gemini": FileSettings(
        JsonFormat(("mcpServers",), lambda server: server.entry(kind=None)),
        lambda env: _user(env) / ".gemini" / "settings.json",
        ".gemini/settings.json",
    ),
    "opencode": FileSettings(
        JsonFormat(("mcp",), _opencode_entry, env="environment", nested="servers"), _opencode, "opencode.json"
    ),
    "cursor": FileSettings(
        JsonFormat(("mcpServers",)), lambda env: _user(env) / ".cursor" / "mcp.json", ".cursor/mcp.json"
    ),
    "vscode": FileSettings(JsonFormat(("servers",)), _vscode, ".vscode/mcp.json"),
}
