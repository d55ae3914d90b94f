"""What else puts text before Claude Code at the start of a session: its own memory, other hooks, plugins and servers.

Only files are read; nothing is run.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.agents.claude.mcp_servers import mcp_servers
from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.agents.settings import Neighbour, NeighbourKind
from holdfast.setup.hook_command import is_ours as is_our_hook
from holdfast.setup.json_file import SettingsUnusable, inside, read_settings
from holdfast.setup.server import NAME
from holdfast.setup.server import is_ours as is_our_server

EVENTS = ("SessionStart", "UserPromptSubmit")
"""Events whose hooks can add to what the model reads."""
MEMORIES = re.compile(
    r"mem0|memory|memories|claude-mem|mempalace|recall|letta|graphiti|cognee|\bzep\b|context-(?:mode|recovery)"
)
"""Names of plugins and servers that bring back what was done before."""
MAX_RULES = 200
MAX_PARENTS = 40
MAX_LISTED = 50
_PLAIN = re.compile(r"[\w@.+-]{1,60}")


def neighbours(config: Path, files: Sequence[Path], project: Path, env: Mapping[str, str]) -> list[Neighbour]:
    """Return them; `files` are the settings files that count in the project."""
    memory = tuple(_memory_files(config, project))
    own = [Neighbour(NeighbourKind.MEMORY, "Claude Code's own memory", str(config), memory)] if memory else []
    enabled = _enabled_plugins(files)
    found = [*_hooks(files), *_plugins(config, enabled), *_servers(project, env)]
    return [*own, *dict.fromkeys(found)]


def _memory_files(config: Path, project: Path) -> Iterator[Path]:
    """Yield the files that Claude Code reads by itself; those of folders below come only when it works there."""
    yield from _there(config / "CLAUDE.md")
    yield from _markdown(config / "rules")
    for folder in (project, *list(project.parents)[:MAX_PARENTS]):
        if folder / ".claude" == config:
            continue
        yield from _there(folder / "CLAUDE.md", folder / ".claude" / "CLAUDE.md", folder / "CLAUDE.local.md")
    if project / ".claude" != config:
        yield from _markdown(project / ".claude" / "rules")
    yield from _there(config / "projects" / project_key(project) / "memory" / "MEMORY.md")


def _there(*paths: Path) -> Iterator[Path]:
    for path in paths:
        with contextlib.suppress(OSError):
            if path.is_file():
                yield path


def _markdown(folder: Path) -> list[Path]:
    """Return the rules in a folder; those for certain files only are not read at the start, but are counted."""
    with contextlib.suppress(OSError):
        return sorted(path for path in folder.rglob("*.md") if path.is_file())[:MAX_RULES]
    return []


def _hooks(files: Sequence[Path]) -> Iterator[Neighbour]:
    for path in files:
        with contextlib.suppress(SettingsUnusable):  # Claude Code ignores it as well
            yield from _hooks_in(read_settings(path), str(path))


def _hooks_in(settings: Mapping[str, Any], where: str) -> Iterator[Neighbour]:
    section = _mapping(settings.get("hooks"))
    for event in EVENTS:
        for group in _list(section.get(event))[:MAX_LISTED]:
            for handler in _list(_mapping(group).get("hooks"))[:MAX_LISTED]:
                command = _mapping(handler).get("command")
                if isinstance(command, str) and not is_our_hook(command):
                    yield Neighbour(NeighbourKind.HOOK, f"the {event} hook {_program(command)}", where)


def _program(command: str) -> str:
    """Return what a command runs, without arguments: they may hold secrets."""
    try:
        words = shlex.split(command[:1000])[:2]
    except ValueError:
        words = []
    names = [word.rpartition("/")[2] for word in words]
    return " ".join(f"`{name}`" for name in names if _PLAIN.fullmatch(name)) or "(a command)"


def _enabled_plugins(files: Sequence[Path]) -> list[str]:
    enabled: dict[str, Any] = {}
    for path in files:
        with contextlib.suppress(SettingsUnusable):
            enabled |= _mapping(read_settings(path).get("enabledPlugins"))
    return [name for name, is_on in enabled.items() if is_on and not name.startswith(f"{NAME}@")][:MAX_LISTED]


def _plugins(config: Path, enabled: Sequence[str]) -> Iterator[Neighbour]:
    installed: Mapping[str, Any] = {}
    with contextlib.suppress(SettingsUnusable):
        installed = _mapping(read_settings(config / "plugins" / "installed_plugins.json").get("plugins"))
    for name in enabled:
        shown = f"the plugin {_shown(name)}"
        hooks = [hook for one in _list(installed.get(name)) for hook in _plugin_hooks(_mapping(one))]
        if hooks:
            yield Neighbour(NeighbourKind.PLUGIN, f"{shown}, with {', '.join(dict.fromkeys(hooks))} hooks", str(config))
        elif MEMORIES.search(name.lower()):
            yield Neighbour(NeighbourKind.PLUGIN, shown, str(config))


def _plugin_hooks(installation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the events at which a plugin adds to what the model reads."""
    path = installation.get("installPath")
    if not isinstance(path, str):
        return
    section: dict[str, Any] = {}
    with contextlib.suppress(SettingsUnusable):
        named = read_settings(Path(path) / ".claude-plugin" / "plugin.json").get("hooks")
        section |= _mapping(_mapping(named).get("hooks", named))
    with contextlib.suppress(SettingsUnusable):
        section |= _mapping(read_settings(Path(path) / "hooks" / "hooks.json").get("hooks"))
    yield from (event for event in EVENTS if section.get(event))


def _servers(project: Path, env: Mapping[str, str]) -> Iterator[Neighbour]:
    """Yield servers that are memories by their name: their tools and instructions are read at every start."""
    with contextlib.suppress(ValueError, SettingsUnusable):
        shared = _mapping(read_settings(inside(project, ".mcp.json")).get("mcpServers"))
        for servers in (*mcp_servers(project, env), shared):
            for name, entry in list(servers.items())[:MAX_LISTED]:
                if MEMORIES.search(name.lower()) and not is_our_server(entry):
                    yield Neighbour(NeighbourKind.SERVER, f"the MCP server {_shown(name)}", "MCP servers")


def _shown(name: str) -> str:
    return f"`{name}`" if _PLAIN.fullmatch(name) else "(with an unusual name)"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
