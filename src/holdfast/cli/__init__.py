"""The command line: `holdfast <command>`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from holdfast.cli.common import is_agent
from holdfast.config import read_settings
from holdfast.errors import HoldfastError
from holdfast.text.terminal import one_line, say, screened
from holdfast.version import __version__

DESCRIPTION = "Holdfast keeps a coding agent's sessions alive across everything that ends them."

EXAMPLES = """\
examples:
  holdfast serve                        run the daemon in the foreground
  holdfast mcp                          what an agent starts (stdio); starts a daemon if none is running
  holdfast setup claude                 set up Claude Code; shows the changes first; --remove undoes them
  holdfast status                       the running daemon, its uptime and clients
  holdfast send homelab "Fix the DNS"   queue work for an agent, even while it is busy or gone
  holdfast key create phone             create a key for another HTTP client
  holdfast backup ~/holdfast.backup     back up into one file while work goes on
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
    "open": ("open",),
    "records": ("backup", "restore", "verify", "acknowledge-loss", "forget", "pause", "resume-recording"),
    "teams": ("teams",),
    "permissions": ("approve", "deny"),
    "protocol": ("protocol",),
    "trust": ("trust",),
    "bridge": ("send", "cancel", "retry", "pull", "queue", "tail", "bridge"),
    "resume": ("resume", "dismiss"),
    "move": ("move",),
    "handoff": ("handoff", "adopt", "release"),
    "sessions": ("sessions",),
    "history": ("import", "find", "saved", "statusline"),
}
"""The module of each command, in the order of `holdfast --help`; running one does not import the others."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Its output contains no terminal control sequences."""
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
        from holdfast.files.errors import explain

        say(f"holdfast: {explain(error)}", file=sys.stderr)
        return 1
    return status


def _refuse_agents(arguments: Sequence[str], options: argparse.Namespace) -> None:
    """Let a managed agent's shell give those commands alone that declare `for_agents`, because they only look."""
    only_looks = getattr(options, "for_agents", False) and not getattr(options, "fix", False)
    if not only_looks and is_agent(read_settings(home=getattr(options, "home", None)).home):
        raise HoldfastError(
            f"`holdfast {arguments[0]}` is not for managed agents.", recovery="The owner must run it in a terminal."
        )


class _Parser(argparse.ArgumentParser):
    """Argument parser whose errors quote unknown input on one line."""

    def error(self, message: str) -> NoReturn:
        super().error(one_line(message))


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Build the parser with all commands, or only with those in the module of `command`."""
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
    """Add `mcp` and `hook` for `holdfast --help`; they are dispatched before this parser is built."""
    commands.add_parser("mcp", help="speak MCP on stdin and stdout; what an agent starts")
    commands.add_parser("hook", help="pass an agent's hook event to the daemon")
