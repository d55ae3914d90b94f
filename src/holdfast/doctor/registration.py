"""Checks of how agents connect: the MCP server in Claude Code's configuration, and the relay it starts."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.config import read_settings as read_own_settings
from holdfast.doctor.findings import Finding, fault, note, ok
from holdfast.doctor.hook_entries import plugin_enabled
from holdfast.doctor.mcp_client import ANY_SESSION, StdioClient
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import HoldfastError
from holdfast.setup.json_file import SettingsUnusable, inside, read_settings
from holdfast.setup.server import HOME, NAME, is_ours

FIRST_TURN_WAITS_S = 1.5
"""How long `claude -p` waits for its servers before the first turn."""
SHARED_FILE = ".mcp.json"
SETUP = "Run `holdfast setup claude`."


@dataclass(frozen=True, slots=True)
class Registered:
    """A Holdfast server in an agent's configuration."""

    where: str
    entry: Mapping[str, Any]
    own: bool
    """Whether the user registered it, rather than a project's file."""

    @property
    def argv(self) -> list[str]:
        """The command with its arguments; empty for a server reached over HTTP."""
        command, args = self.entry.get("command"), self.entry.get("args")
        given = [str(arg) for arg in args] if isinstance(args, list) else []
        return [command, *given] if isinstance(command, str) and command else []

    @property
    def env(self) -> dict[str, str]:
        """The environment variables of the entry."""
        given = self.entry.get("env")
        return {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}

    def is_of(self, home: Path) -> bool:
        """Return whether it uses this data directory."""
        given = self.env.get(HOME)
        return given is None or Path(given).expanduser().absolute() == home


def check_registration(around: Surroundings) -> Iterator[Finding]:
    """Check the server `holdfast` in the user's and the project's configuration."""
    try:
        found = registered(around)
    except SettingsUnusable as unusable:
        yield fault(unusable.message, "Repair that file; Claude Code cannot start servers from it.")
        return
    plugin = plugin_enabled(around)
    if plugin:
        yield ok(f"by the plugin {plugin}")
    elif not found:
        yield note("Claude Code does not know Holdfast", SETUP)
    for one in found:
        yield _examined(around, one)


def check_relay(around: Surroundings) -> Iterator[Finding]:
    """Check a real relay, as the agent starts it: handshake and tools, within the time that an agent waits.

    A relay can list the tools by itself while its daemon starts, so it is also asked what only the daemon knows.
    """
    if around.daemon is None:
        return
    argv, env = _relay(around)
    began = time.monotonic()
    try:
        with StdioClient(argv, env=env, cwd=around.project, name="holdfast-doctor", limit=around.timeout) as relay:
            relay.introduce()
            tools = relay.request("tools/list").get("tools", [])
            took = time.monotonic() - began
            relay.request("completion/complete", ANY_SESSION)
    except HoldfastError as error:
        yield fault(f"{' '.join(argv)}: {error.message}", f"{SETUP} See daemon.log in the data directory.")
        return
    if not tools:
        yield fault(f"{' '.join(argv)} offers no tools.", f"{SETUP} See daemon.log in the data directory.")
    elif took > FIRST_TURN_WAITS_S:
        yield note(
            f"{len(tools)} tools after {took:.1f} s; `claude -p` waits about {FIRST_TURN_WAITS_S} s for its first turn",
            "Keep a daemon running with `holdfast serve`; a busy machine is slow too.",
        )
    else:
        yield ok(f"{len(tools)} tools after {took:.2f} s")


def registered(around: Surroundings) -> list[Registered]:
    """All registrations of Holdfast; raises SettingsUnusable for a file that cannot be read."""
    own = read_settings(around.agent_registry)
    local = _mapping(_mapping(own.get("projects")).get(str(around.project)))
    shared = read_settings(inside(around.project, SHARED_FILE))
    places = (
        (f"{around.agent_registry}, this project", local, True),
        (str(around.project / SHARED_FILE), shared, False),
        (str(around.agent_registry), own, True),
    )
    return [
        Registered(where, entry, of_user)
        for where, config, of_user in places
        for name, entry in _mapping(config.get("mcpServers")).items()
        if isinstance(entry, dict) and (name == NAME or is_ours(entry))
    ]


def _examined(around: Surroundings, one: Registered) -> Finding:
    if not one.argv:
        return ok(f"{one.where}: over HTTP")
    program = one.argv[0]
    if shutil.which(program, path=around.env.get("PATH", os.defpath)) is None:
        return fault(
            f"{one.where}: {program} no longer exists, so agents cannot start Holdfast.",
            f"{SETUP} It repairs the entry.",
        )
    if not one.is_of(around.home):
        return note(
            f"{one.where}: uses another data directory, {one.env[HOME]}",
            f"Run `holdfast setup claude` with the {HOME} you mean, or doctor with --home {one.env[HOME]}.",
        )
    if HOME not in one.env and around.home != read_own_settings({"HOME": str(around.user)}).home and one.own:
        return note(
            f"{one.where}: names no {HOME}, so it uses the default one unless the agent's environment says otherwise",
            f"Run `holdfast setup claude` with {HOME} set.",
        )
    return ok(f"{one.where}: {' '.join(one.argv) if one.own else program}")


def _relay(around: Surroundings) -> tuple[list[str], dict[str, str]]:
    """The relay that the user registered, if it uses this data directory; otherwise this installation's own.

    Never what a project's file names: nothing from a project is run.
    """
    env = {**around.env, HOME: str(around.home)}
    try:
        found = registered(around)
    except SettingsUnusable:
        found = []
    for one in found:
        usable = bool(one.argv) and shutil.which(one.argv[0], path=around.env.get("PATH", os.defpath)) is not None
        if one.own and usable and one.is_of(around.home):
            return one.argv, {**env, **one.env}
    return [sys.executable, "-P", "-m", "holdfast", "mcp"], env


def _mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, dict) else {}
