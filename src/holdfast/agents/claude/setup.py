"""Claude Code: its MCP server, its hooks and its allow rules, for a user, for a project, or for one of both."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from holdfast.agents.claude import permissions
from holdfast.agents.claude import settings as claude_settings
from holdfast.agents.claude.cli import Registry, find_claude
from holdfast.agents.claude.permissions import Allow
from holdfast.errors import Conflict
from holdfast.git.directory import git_answer
from holdfast.setup import json_entry, steps
from holdfast.setup.json_file import Change, edited, inside, read_settings
from holdfast.setup.originals import Originals
from holdfast.setup.server import NAME, Server, is_ours, kept, not_ours, of_any_machine, of_this_machine
from holdfast.setup.steps import Step

HOOKS = claude_settings.PURPOSES["briefing"]
SERVERS = "mcpServers"
MCP_FILE = ".mcp.json"


class Scope(StrEnum):
    """For whom Claude Code is set up."""

    USER = "user"
    """This user, in every project."""
    PROJECT = "project"
    """Everybody who works on a project: the files are shared."""
    LOCAL = "local"
    """This user, in one project."""


@dataclass(frozen=True, slots=True)
class ClaudeSetup:
    """Claude Code as one scope of it is set up."""

    scope: Scope
    project: Path
    home: Path
    """Holdfast's data directory."""
    other_home: str | None
    """The same, where it is not the usual one and has to be told."""
    env: Mapping[str, str]

    def install(self, allow: Allow | None) -> list[Step]:
        """What sets it up; without a choice of rules, those that are there stay."""
        enabled = self.plugin()
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
        return [self._server_in(), hooks]

    def remove(self) -> list[Step]:
        """What takes Holdfast out again, and nothing else."""
        hooks = steps.taking_out(self._originals(), self._without(self._settings_file()))
        return [self._server_out(), hooks]

    def has_rules(self) -> bool:
        """Whether an allow rule of ours is in force."""
        return edited(self._settings_file(), permissions.allowing(Allow.NONE)).needed

    def plugin(self) -> str | None:
        """The enabled plugin of Holdfast, if there is one; a project's word counts more than the user's."""
        enabled: dict[str, bool] = {}
        places = [self._config() / "settings.json"]
        if self.scope is not Scope.USER:
            places += [inside(self.project, file) for file in (claude_settings.SHARED, claude_settings.LOCAL)]
        for path in places:
            said = read_settings(path).get("enabledPlugins")
            enabled |= said if isinstance(said, dict) else {}
        return next((name for name, is_on in enabled.items() if is_on and name.startswith(f"{NAME}@")), None)

    def _server_in(self) -> Step:
        server = self._server()
        if self.scope is Scope.PROJECT:
            return self._edited_in(inside(self.project, MCP_FILE), (SERVERS,), server)
        registry = self._registry()
        if registry is None:
            return self._edited_in(self._global_file(), self._keys(), server)
        there = registry.entry()
        if there is not None and not is_ours(there):
            raise not_ours()
        return registry.add(kept(there, server.entry()))

    def _server_out(self) -> Step:
        originals = self._originals()
        if self.scope is Scope.PROJECT:
            change = edited(inside(self.project, MCP_FILE), json_entry.taking_out((SERVERS,)))
            return steps.taking_out(originals, change)
        change = edited(self._global_file(), json_entry.taking_out(self._keys()))
        registry = self._registry()
        if registry is None or originals.counting(change.path, change.before) is not None:
            return steps.taking_out(originals, change)
        return registry.remove()

    def _edited_in(self, path: Path, keys: tuple[str, ...], server: Server) -> Step:
        installed = edited(path, json_entry.putting_in(keys, server.entry()))
        return steps.putting_in(self._originals(), installed, edited(path, json_entry.taking_out(keys)))

    def _without(self, settings: Path) -> Change:
        return edited(settings, claude_settings.taking_out(HOOKS), permissions.allowing(Allow.NONE))

    def _server(self) -> Server:
        return of_any_machine() if self.scope is Scope.PROJECT else of_this_machine(self.other_home)

    def _run_command(self) -> Callable[[str], str]:
        if self.scope is Scope.PROJECT:
            return claude_settings.portable_command
        return lambda event: claude_settings.command(event, home=self.other_home)

    def _registry(self) -> Registry | None:
        claude = find_claude(self.env)
        if claude is None:
            return None
        return Registry(claude, self.scope.value, self.project, self._global_file(), self._keys(), self._originals())

    def _keys(self) -> tuple[str, ...]:
        if self.scope is Scope.USER:
            return (SERVERS,)
        return ("projects", str(_claude_project(self.project)), SERVERS)

    def _originals(self) -> Originals:
        return Originals(self.home)

    def _settings_file(self) -> Path:
        if self.scope is Scope.USER:
            # A user's own link, into a directory of dotfiles say, is followed.
            return Path(os.path.realpath(self._config() / "settings.json"))
        local = self.scope is Scope.LOCAL
        return inside(self.project, claude_settings.LOCAL if local else claude_settings.SHARED)

    def _config(self) -> Path:
        return config_directory(self.env)

    def _global_file(self) -> Path:
        return global_file(self.env)


def config_directory(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps a user's settings."""
    chosen = env.get("CLAUDE_CONFIG_DIR")
    return Path(chosen).absolute() if chosen else _user(env) / ".claude"


def global_file(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps a user's servers, and much else: beside its directory, inside one that was chosen."""
    old = config_directory(env) / ".config.json"
    if old.exists():
        return Path(os.path.realpath(old))
    chosen = env.get("CLAUDE_CONFIG_DIR")
    return Path(os.path.realpath((Path(chosen) if chosen else _user(env)) / ".claude.json"))


def _user(env: Mapping[str, str]) -> Path:
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def _claude_project(directory: Path) -> Path:
    """The directory under which Claude Code files a project: its repository's, which linked worktrees share."""
    common = git_answer(directory, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if common is not None and Path(common).name == ".git":
        return Path(os.path.realpath(common)).parent
    top = git_answer(directory, "rev-parse", "--show-toplevel")
    return Path(os.path.realpath(top or directory))
