"""Decides what a `holdfast` command needs before importing anything: relay and hook start in milliseconds."""

import os
import sys


def main() -> int:
    """Run the command line of this process; returns the exit status."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if os.environ.get("HOLDFAST_LAUNCHER") == "repair":  # the installation that an agent's settings meant is gone
        _refresh_launcher(create=True)
    if command == "mcp":
        from holdfast.relay.main import main as relay

        return relay(sys.argv[2:])
    if command == "hook":
        from holdfast.relay.hook_client import main as hook

        return hook(sys.argv[2:])
    if command == "statusline" and len(sys.argv) == 2:
        from holdfast.relay.statusline import main as status_line

        return status_line()
    if sys.argv[1:3] == ["serve", "--detach"]:
        from holdfast.daemon.serve import run_detached

        status = run_detached(sys.argv[3:])
        if status is not None:
            return status
    from holdfast.cli import main as cli

    _refresh_launcher(create=False)
    return cli(sys.argv[1:])


def _refresh_launcher(*, create: bool) -> None:
    """Have agents start this Holdfast if the one that they start is gone or older."""
    from holdfast.relay.place import home
    from holdfast.setup.launcher import refresh_quietly

    refresh_quietly(home(), create=create)


if __name__ == "__main__":
    sys.exit(main())
