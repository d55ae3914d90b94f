"""The command line: `holdfast <command>`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from holdfast.cli.common import is_agent, is_for_agents
from holdfast.config import read_settings
from holdfast.errors import HoldfastError
from holdfast.terminal import one_line, say, screened
from holdfast.version import __version__

DESCRIPTION = "Holdfast keeps a coding agent's sessions alive across everything that ends them."

EXAMPLES = """\
examples:
  holdfast serve                        run the daemon in the foreground
  holdfast mcp                          what an agent starts (stdio); starts a daemon when there is none
  holdfast setup claude                 put it into Claude Code; shown first, taken out with --remove
  holdfast status                       who serves, since when, how many clients
  holdfast send homelab "Fix the DNS"   work for an agent, also while it is busy or gone
  holdfast key create phone             a key for one more HTTP client
  holdfast backup ~/holdfast.backup     one file, while everything goes on
  holdfast verify                       prove that nothing was lost or changed

environment: HOLDFAST_HOME (default ~/.holdfast), HOLDFAST_HOST, HOLDFAST_PORT, HOLDFAST_DATABASE_URL
"""


ROOMS = {
    "serve": ("serve",),
    "setup": ("setup",),
    "daemon": ("status", "stop"),
    "doctor": ("doctor",),
    "demo": ("demo",),
    "keys": ("key",),
    "audit": ("audit",),
    "records": ("backup", "restore", "verify", "acknowledge-loss", "forget", "pause", "resume-recording"),
    "teams": ("teams",),
    "permissions": ("approve", "deny"),
    "protocol": ("protocol",),
    "trust": ("trust",),
    "bridge": ("send", "pull", "queue", "tail", "bridge"),
    "resume": ("resume",),
    "handoff": ("handoff", "adopt", "release"),
    "history": ("import", "find", "saved", "statusline"),
}
"""Which module has which commands, in the order of `holdfast --help`: one command does not import the others."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status. Nothing that it prints steers the terminal."""
    with screened():
        return _run(argv)


def _run(argv: Sequence[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else list(argv)
    parser = build_parser(arguments[0] if arguments else None)
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    try:
        _refuse_agents(arguments, options)
        status: int = options.run(options)
    except HoldfastError as error:
        say(f"holdfast: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except OSError as error:
        from holdfast.file_errors import explain

        say(f"holdfast: {explain(error)}", file=sys.stderr)
        return 1
    return status


def _refuse_agents(arguments: Sequence[str], options: argparse.Namespace) -> None:
    only_looks = is_for_agents(arguments) and not getattr(options, "fix", False)
    if not only_looks and is_agent(read_settings(home=getattr(options, "home", None)).home):
        raise HoldfastError(
            f"`holdfast {arguments[0]}` is not for managed agents.", recovery="Its owner calls it in a terminal."
        )


class _Parser(argparse.ArgumentParser):
    """Quotes what it does not understand on one line."""

    def error(self, message: str) -> NoReturn:
        super().error(one_line(message))


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The commands with their options: all, or those that are in one module with `command`."""
    parser: argparse.ArgumentParser = _Parser(
        prog="holdfast",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = parser.add_subparsers(metavar="<command>", title="commands")
    rooms = [room for room, names in ROOMS.items() if command in names]
    for room in rooms or ROOMS:
        importlib.import_module(f"holdfast.cli.{room}").add_to(commands)
    if not rooms:
        _add_relayed(commands)
    return parser


def _add_relayed(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`mcp` and `hook` are dispatched before this parser is built; they are here for `holdfast --help`."""
    commands.add_parser("mcp", help="speak MCP on stdin and stdout; what an agent starts")
    commands.add_parser("hook", help="pass an agent's hook event to the daemon")
