"""`holdfast` without a command: the unfinished work of all projects, each with the command that continues it."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.cli.common import PassingProgress, settings_of
from holdfast.cli.control import ask_or_do
from holdfast.cli.handoff import config_directory
from holdfast.cli.table import DIM, YELLOW, show_table
from holdfast.text import clipped, counted
from holdfast.text.paths import in_home, typed
from holdfast.text.terminal import say
from holdfast.times import local

SHORT_ID = 8
MAX_TEXT = 200
CUT_OFF = "cut off"

Work = dict[str, Any]
"""One conversation that is not finished, as the daemon's command `unfinished` describes it."""


def run(options: argparse.Namespace) -> int:
    """List the unfinished work."""
    settings = settings_of(options)
    args = {"limit": options.limit, "config": config_directory()}
    found = ask_or_do(settings, "unfinished", args, PassingProgress())
    if options.json:
        say(json.dumps(found))
        return 0
    work, looked_at = found["work"], found["looked_at"]
    if work:
        list_work(work, commands_for(work))
        say("")
        if found["more"]:
            say(f"{found['more']} more: `holdfast --limit {len(work) + found['more']}`.")
        say("`holdfast show DIR` says where it stands. Done or not wanted: `holdfast dismiss SESSION DIR`.")
    else:
        seen = f" ({counted(looked_at['sessions'], 'session')} of {counted(looked_at['projects'], 'project')})"
        say(f"Nothing is unfinished on this machine{seen if looked_at['sessions'] else ''}.")
    if found.get("left_out"):
        say(f"{counted(found['left_out'], 'project')} could not be looked at in time; run it again.")
    if not is_connected():
        say("No agent is connected to Holdfast yet: `holdfast setup claude` connects Claude Code.")
    elif not work:
        say("`holdfast find TEXT` finds what was said before, `holdfast --help` lists the commands.")
    return 0


def list_work(work: Sequence[Work], commands: Sequence[str], numbered: bool = False) -> None:
    """Print unfinished work as a table, each with the command that continues it."""
    rows = [
        (
            *([str(number)] if numbered else []),
            local(one["last_at"]),
            CUT_OFF if one["cut_off"] else "open",
            in_home(one["project"]),
            _line(one["asked"]),
        )
        for number, one in enumerate(work, 1)
    ]
    headings = (*([""] if numbered else []), "LAST", "STATE", "PROJECT", "ASKED")
    below = [
        [*([f"left: {_line(one['left'])}"] if one["left"] else []), *([command] if command else [])]
        for one, command in zip(work, commands, strict=True)
    ]
    show_table([headings, *rows], whole=("LAST", "STATE"), below=below, colours={CUT_OFF: YELLOW, "open": DIM})


def commands_for(work: Sequence[Work]) -> list[str]:
    """Return the command that continues each, or shows what is known of it."""
    return [
        f"holdfast resume {typed(one['project'])} --session {shlex.quote(one['session'][:SHORT_ID])}"
        if one["resumable"]
        else f"holdfast show {typed(one['project'])}"
        for one in work
    ]


def is_connected() -> bool:
    """Return whether an agent on this machine is set up for Holdfast, in every project or in this one."""
    from holdfast.agents.registry import AGENTS
    from holdfast.setup.json_file import SettingsUnusable

    for agent in AGENTS.values():
        if agent.settings is None:
            continue
        part = agent.settings()
        try:
            if part.plugin(os.environ, Path.cwd()) or part.servers(os.environ, Path.cwd()):
                return True
        except SettingsUnusable:
            return True  # `holdfast doctor` says what is wrong with it
    return False


def _line(text: str) -> str:
    return clipped(" ".join(text.split()), MAX_TEXT)
