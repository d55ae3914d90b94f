"""What `holdfast --help` prints: twelve commands in three groups, or all of them."""

from __future__ import annotations

import difflib

from holdfast.cli import BY_NAME, COMMANDS, CONTINUE, PLACES, PROVE, REACH, STANDS_FOR, Command
from holdfast.text.terminal import one_line

INTRODUCTION = """\
usage: holdfast [<command>] [--help]

Your agent's work belongs to the project, not to the process that did it.
`holdfast` alone lists what is unfinished on this machine."""
PROMISES = {
    CONTINUE: "your agent's work, whatever ended it",
    REACH: "the agents of your projects",
    PROVE: "what was done",
}
ENDING = """\
`holdfast help COMMAND` explains one, with an example. `holdfast commands` lists
all. Most take --json. Data: ~/.holdfast, or HOLDFAST_HOME."""
ENVIRONMENT = """\
`holdfast help COMMAND` explains one. Earlier and other names keep working:
`holdfast serve` is `holdfast daemon serve`, `holdfast verify` is
`holdfast admin verify`, and so on.

environment: HOLDFAST_HOME (default ~/.holdfast), HOLDFAST_HOST, HOLDFAST_PORT,
HOLDFAST_DATABASE_URL, NO_COLOR"""
INSTEAD = {
    "uninstall": "setup claude --remove",
    "disconnect": "setup claude --remove",
    "remove": "forget",
    "delete": "forget",
    "restart": "daemon serve",
    "logs": "doctor",
    "config": "doctor",
    "answer": "send",
    "reply": "send",
    "log": "sessions list",
    "history": "find",
    "team": "teams",
    "session": "sessions",
    "check": "doctor",
}
"""The command for an unknown name, which must not be guessed silently."""


def short_help() -> str:
    """Return the help that fits a screen."""
    return "\n".join([INTRODUCTION, *_groups([command for command in COMMANDS if command.short]), "", ENDING])


def all_commands() -> str:
    """Return every command by group."""
    return "\n".join(["usage: holdfast [<command>] [--help]", *_groups(COMMANDS), "", ENVIRONMENT])


def unknown_command(name: str) -> str:
    """Return the error for an unknown command, with the nearest known one, if any."""
    names = [*BY_NAME, *PLACES, *STANDS_FOR]
    near = [INSTEAD[name]] if name in INSTEAD else difflib.get_close_matches(name, names, 3)
    proposed = " or ".join(f"`holdfast {one}`" for one in near)
    meant = f" Did you mean {proposed}?" if near else ""
    return f"holdfast: there is no command {one_line(name)[:80]!r}.{meant} `holdfast --help` lists the commands."


def _groups(commands: tuple[Command, ...] | list[Command]) -> list[str]:
    width = max(len(command.name) for command in commands)
    lines: list[str] = []
    for group, promise in PROMISES.items():
        lines += ["", f"{group} {promise}:"]
        lines += [f"  {one.name:{width}}  {one.sentence}" for one in commands if one.group == group]
    return lines
