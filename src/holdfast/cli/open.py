"""`holdfast open`: the dashboard in a browser, signed in by a link that works once."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from holdfast.cli.common import described_parser, settings_of
from holdfast.cli.control import ask_daemon
from holdfast.config import Settings
from holdfast.errors import HoldfastError, NoDaemon
from holdfast.relay.spawn import start_daemon
from holdfast.text.terminal import say

START_SECONDS = 30.0
POLL_SECONDS = 0.05
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - not bound here, but read as where a daemon listens
OPEN = """\
Opens the dashboard in a browser, signed in by a link that works once, for two minutes. Starts a daemon if none is
running.

examples:
  holdfast open                    see every session, and act on it
  holdfast open --print            print the link, for a browser elsewhere (an ssh tunnel to the port is enough)
  holdfast open --read             look only: nothing can be changed
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = described_parser(commands, "open", OPEN)
    parser.add_argument("--print", action="store_true", dest="only_print", help="print the link instead of opening it")
    parser.add_argument("--read", action="store_true", help="sign in read-only")
    parser.set_defaults(run=open_dashboard)


def open_dashboard(options: argparse.Namespace) -> int:
    """Open the dashboard, or print its link if there is no browser."""
    settings = settings_of(options)
    status = _ready(settings)
    if not status["address"]:
        raise HoldfastError(
            f"The dashboard is not served: {status['http']}",
            recovery="`holdfast serve --port 8182` takes another port.",
        )
    made = ask_daemon(settings, "dashboard-link", {"scope": "read" if options.read else "admin"})
    link = f"{_reachable(status['address'])}{made['path']}"
    if not options.only_print and _opens(link):
        say("The dashboard is open in your browser.")
        return 0
    if not options.only_print:
        say(f"There is no browser here. Open this within {made['seconds']} s, once:", file=sys.stderr)
    say(link)
    return 0


def _ready(settings: Settings) -> dict[str, Any]:
    """Return the status of a daemon that serves HTTP; starts one if none is running."""
    deadline, started = time.monotonic() + START_SECONDS, False
    while time.monotonic() < deadline:
        try:
            status = ask_daemon(settings, "status")
            if status["ready"]:
                return status
        except NoDaemon:
            started = started or start_daemon(str(settings.home), settings.host, settings.port)
        time.sleep(POLL_SECONDS)
    raise NoDaemon("The daemon did not start.", recovery="`holdfast serve` says why.")


def _reachable(address: str) -> str:
    """Return an address that a browser on this machine can open, of a daemon that may listen on all."""
    for host in EVERYWHERE:
        address = address.replace(f"//{host}:", "//127.0.0.1:").replace(f"//[{host}]:", "//[::1]:")
    return address


def _opens(link: str) -> bool:
    """Open the link in a browser with a window; a text browser in this terminal could not run the page."""
    import webbrowser  # imported late: most who run this elsewhere only print

    has_screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    return has_screen and webbrowser.open(link)
