"""Checks of how agents connect: the MCP server in their settings, and the relay they start."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.agents import Agent
from holdfast.agents.registry import AGENTS, DEFAULT, settings_of
from holdfast.agents.settings import Registered, SettingsPart
from holdfast.config import read_settings
from holdfast.doctor.findings import Finding, fault, note, ok
from holdfast.doctor.mcp_client import ANY_SESSION, StdioClient
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import HoldfastError
from holdfast.setup.json_file import SettingsUnusable
from holdfast.setup.launcher import is_private, read_launcher, refresh
from holdfast.setup.server import HOME, launcher_of

FIRST_TURN_WAITS_S = 1.5
"""How long an agent that is given one prompt waits for its servers before the first turn."""
SETUP = f"Run `holdfast setup {DEFAULT}`."


def check_registration(around: Surroundings) -> Iterator[Finding]:
    """Check the server `holdfast` in the settings of every agent; that one other than the default lacks it is fine."""
    for agent in AGENTS.values():
        if agent.settings is not None:
            yield from _of_agent(around, agent, agent.settings())


def _of_agent(around: Surroundings, agent: Agent, settings: SettingsPart) -> Iterator[Finding]:
    try:
        servers = settings.servers(around.env, around.project)
    except SettingsUnusable as unusable:
        yield fault(unusable.message, f"Repair that file; {agent.title} cannot start servers from it.")
        return
    plugin = settings.plugin(around.env, around.project)
    if plugin:
        yield ok(f"by the plugin {plugin}")
    elif not servers and agent.name == DEFAULT:
        yield note(f"{agent.title} does not know Holdfast", f"Run `holdfast setup {agent.name}`.")
    for one in servers:
        yield _examined(around, agent.name, one)


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
            f"{len(tools)} tools after {took:.1f} s; an agent given one prompt waits about {FIRST_TURN_WAITS_S} s",
            "Keep a daemon running with `holdfast serve`; a busy machine is slow too.",
        )
    else:
        yield ok(f"{len(tools)} tools after {took:.2f} s")


def _examined(around: Surroundings, agent: str, one: Registered) -> Finding:
    if not one.command:
        return ok(f"{one.where}: over HTTP")
    launcher = launcher_of(one.command)
    program = one.command[0] if launcher is None else str(launcher)
    if launcher is not None and not (launcher.is_file() and is_private(launcher)):
        state = "can be written by others" if launcher.is_file() else "no longer exists"
        return fault(
            f"{one.where}: {launcher} {state}, so agents cannot start Holdfast.",
            f"Run `holdfast setup {agent}`. It rewrites the entry.",
            lambda: _launcher_rewritten(launcher),
        )
    if launcher is None and shutil.which(program, path=around.env.get("PATH", os.defpath)) is None:
        return fault(
            f"{one.where}: {program} no longer exists, so agents cannot start Holdfast.",
            f"Run `holdfast setup {agent}`. It repairs the entry.",
        )
    if not one.is_of(around.home):
        return note(
            f"{one.where}: uses another data directory, {one.env[HOME]}",
            f"Run `holdfast setup {agent}` with the {HOME} you mean, or doctor with --home {one.env[HOME]}.",
        )
    if HOME not in one.env and around.home != read_settings({"HOME": str(around.user)}).home and one.own:
        return note(
            f"{one.where}: names no {HOME}, so it uses the default one unless the agent's environment says otherwise",
            f"Run `holdfast setup {agent}` with {HOME} set.",
        )
    there = None if launcher is None else read_launcher(launcher)
    started = f" (starts {there.python}, holdfast {there.version})" if there is not None else ""
    return ok(f"{one.where}: {' '.join(one.command) if one.own and launcher is None else program}{started}")


def _launcher_rewritten(launcher: Path) -> str:
    refresh(launcher.parent, takes_over=True)
    return f"{launcher} is written anew"


def _relay(around: Surroundings) -> tuple[list[str], dict[str, str]]:
    """Return the relay that the user registered, if it uses this data directory; otherwise this installation's own.

    Never what a project's file names: nothing from a project is run.
    """
    env = {**around.env, HOME: str(around.home)}
    try:
        servers = settings_of().servers(around.env, around.project)
    except SettingsUnusable:
        servers = []
    for one in servers:
        usable = bool(one.command) and shutil.which(one.command[0], path=around.env.get("PATH", os.defpath)) is not None
        if one.own and usable and one.is_of(around.home):
            return list(one.command), {**env, **one.env}
    return [sys.executable, "-P", "-m", "holdfast", "mcp"], env
