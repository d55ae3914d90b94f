"""The command line: `holdfast <command>`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from holdfast.errors import HoldfastError
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    parser = build_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    try:
        status: int = options.run(options)
    except HoldfastError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    return status


def build_parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    from holdfast.cli import (
        audit,
        bridge,
        daemon,
        demo,
        doctor,
        handoff,
        history,
        keys,
        permissions,
        protocol,
        records,
        resume,
        serve,
        setup,
        teams,
        trust,
    )

    parser = argparse.ArgumentParser(
        prog="holdfast",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = parser.add_subparsers(metavar="<command>", title="commands")
    serve.add_to(commands)
    setup.add_to(commands)
    _add_relayed(commands)
    daemon.add_to(commands)
    doctor.add_to(commands)
    demo.add_to(commands)
    keys.add_to(commands)
    audit.add_to(commands)
    records.add_to(commands)
    teams.add_to(commands)
    permissions.add_to(commands)
    protocol.add_to(commands)
    trust.add_to(commands)
    bridge.add_to(commands)
    resume.add_to(commands)
    handoff.add_to(commands)
    history.add_to(commands)
    return parser


def _add_relayed(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`mcp` and `hook` are dispatched before this parser is built; they are here for `holdfast --help`."""
    commands.add_parser("mcp", help="speak MCP on stdin and stdout; what an agent starts")
    commands.add_parser("hook", help="pass an agent's hook event to the daemon")
