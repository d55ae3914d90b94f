"""Claude Code: its MCP server, its hooks and its allow rules, for a user, for a project, or for one of both."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.agents.claude import permissions
from holdfast.agents.claude import settings as claude_settings
from holdfast.agents.claude.cli import Registry
from holdfast.agents.claude.config import config_directory, user_directory
from holdfast.agents.claude.program import find_claude
from holdfast.agents.settings import Allow, Registered, Scope, SetupRequest, registered
from holdfast.errors import Conflict
from holdfast.git.directory import git_answer
from holdfast.setup import json_entry, steps
from holdfast.setup.hook_command import command, portable_command
from holdfast.setup.json_file import Change, SettingsUnusable, edited, inside, read_settings
from holdfast.setup.originals import Originals
from holdfast.setup.server import NAME, Server, is_ours, kept, not_ours
from holdfast.setup.steps import Step

HOOKS = claude_settings.PURPOSES["briefing"]
SERVERS = "mcpServers"
MCP_FILE = ".mcp.json"


class ClaudeSetup(SetupRequest):
    """Sets up one scope of Claude Code."""

    def install(self, allow: Allow | None) -> list[Step]:
        """Return the steps that set it up; without a choice of rules, existing rules stay."""
        enabled = plugin(self._settings_files())
        if enabled is not None:
            raise Conflict(
                f"The plugin {enabled} is enabled and brings the same hooks and server.",
                recovery=f"Choose one: keep the plugin and do without setup,"
                f" or `claude plugin disable {enabled}` and run this again.",
            )
        run = self._run_command()
        edits = [claude_settings.putting_in(HOOKS, run)]
        if allow is not None:
            edits.append(permissions.allowing(allow))
        settings = self._settings_file()
        hooks = steps.putting_in(self._originals(), edited(settings, *edits), self._without(settings))
        return [*self.launcher_steps, self.register_server(), hooks]

    def remove(self) -> list[Step]:
        """Return the steps that remove Holdfast, and nothing else."""
        hooks = steps.taking_out(self._originals(), self._without(self._settings_file()))
        return [self._server_out(), hooks]

    def has_rules(self) -> bool:
        """Return whether one of our allow rules is in force."""
        return edited(self._settings_file(), permissions.allowing(Allow.NONE)).needed

    def register_server(self) -> Step:
        """Return the step that registers the MCP server."""
        server = self.server
        if self.scope is Scope.PROJECT:
            return self._edited_in(inside(self.project, MCP_FILE), (SERVERS,), server)
        registry = self._registry()
        if registry is None:
            return self._edited_in(global_file(self.env), self._keys(), server)
        there = registry.entry()
        if there is not None and not is_ours(there):
            raise not_ours()
        return registry.add(kept(there, server.entry()))

    def unregister_server(self) -> Step | None:
        """Return the step that takes out what `register_server` put in, unless the hooks of setup are there as well."""
        there = json_entry.own_entry(global_file(self.env), self._keys())
        is_setup = claude_settings.hooks_in(self._settings_file()).issuperset(HOOKS)
        return None if is_setup or there != kept(there, self.server.entry()) else self._server_out()

    def _server_out(self) -> Step:
        originals = self._originals()
        if self.scope is Scope.PROJECT:
            change = edited(inside(self.project, MCP_FILE), json_entry.taking_out((SERVERS,)))
            return steps.taking_out(originals, change)
        change = edited(global_file(self.env), json_entry.taking_out(self._keys()))
        registry = self._registry()
        if registry is None or originals.counting(change.path, change.before) is not None:
            return steps.taking_out(originals, change)
        return registry.remove()

    def _edited_in(self, path: Path, keys: tuple[str, ...], server: Server) -> Step:
        installed = edited(path, json_entry.putting_in(keys, server.entry()))
        return steps.putting_in(self._originals(), installed, edited(path, json_entry.taking_out(keys)))

    def _without(self, settings: Path) -> Change:
        return edited(settings, claude_settings.taking_out(HOOKS), permissions.allowing(Allow.NONE))

    def _run_command(self) -> Callable[[str], str]:
        if self.scope is Scope.PROJECT:
            return portable_command
        return lambda event: command(event, home=self.other_home)

    def _registry(self) -> Registry | None:
        claude = find_claude(self.env)
        if claude is None:
            return None
        return Registry(claude, self.scope.value, self.project, global_file(self.env), self._keys(), self._originals())

    def _keys(self) -> tuple[str, ...]:
        if self.scope is Scope.USER:
            return (SERVERS,)
        return ("projects", str(_claude_project(self.project)), SERVERS)

    def _originals(self) -> Originals:
        return Originals(self.home)

    def _settings_file(self) -> Path:
        if self.scope is Scope.USER:
            # A user's own link, into a directory of dotfiles say, is followed.
            return Path(os.path.realpath(config_directory(self.env) / "settings.json"))
        local = self.scope is Scope.LOCAL
        return inside(self.project, claude_settings.LOCAL if local else claude_settings.SHARED)

    def _settings_files(self) -> list[Path]:
        """Return the user's file, then the project's where it counts: later ones override earlier ones."""
        project = () if self.scope is Scope.USER else (claude_settings.SHARED, claude_settings.LOCAL)
        return [config_directory(self.env) / "settings.json", *(inside(self.project, file) for file in project)]


def global_file(env: Mapping[str, str]) -> Path:
    """Return the file of a user's MCP servers: beside the default directory, but inside a chosen one."""
    old = config_directory(env) / ".config.json"
    if old.exists():
        return Path(os.path.realpath(old))
    chosen = env.get("CLAUDE_CONFIG_DIR")
    return Path(os.path.realpath((Path(chosen) if chosen else user_directory(env)) / ".claude.json"))


def plugin(files: Sequence[Path]) -> str | None:
    """Return the plugin of Holdfast that these settings files enable, if any."""
    enabled: dict[str, bool] = {}
    for path in files:
        with contextlib.suppress(SettingsUnusable):  # Claude Code ignores it as well
            plugins = read_settings(path).get("enabledPlugins")
            enabled |= plugins if isinstance(plugins, dict) else {}
    return next((name for name, is_on in enabled.items() if is_on and name.startswith(f"{NAME}@")), None)


def servers(env: Mapping[str, str], project: Path) -> list[Registered]:
    """Return all servers of Holdfast that Claude Code starts in a project; raises SettingsUnusable."""
    file, shared = global_file(env), inside(project, MCP_FILE)
    own = read_settings(file)
    local = _mapping(_mapping(own.get("projects")).get(str(_claude_project(project))))
    return [
        registered(where, entry, own=scope is not Scope.PROJECT, scope=scope)
        for where, config, scope in (
            (f"{file}, this project", local, Scope.LOCAL),
            (str(project / MCP_FILE), read_settings(shared), Scope.PROJECT),
            (str(file), own, Scope.USER),
        )
        for name, entry in _mapping(config.get(SERVERS)).items()
        if isinstance(entry, dict) and (name == NAME or is_ours(entry))
    ]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _claude_project(directory: Path) -> Path:
    """Return the directory under which Claude Code files a project: its repository's, which linked worktrees share."""
    common = git_answer(directory, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if common is not None and Path(common).name == ".git":
        return Path(os.path.realpath(common)).parent
    top = git_answer(directory, "rev-parse", "--show-toplevel")
    return Path(os.path.realpath(top or directory))
