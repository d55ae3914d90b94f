"""`holdfast mcp`: the stdio MCP server that an agent spawns."""

from __future__ import annotations

import os
import sys

from holdfast.relay import place

TYPE_CHECKING = False  # importing typing would double the relay's start-up
if TYPE_CHECKING:
    from holdfast.relay.answers import Answers

HELP = """\
usage: holdfast mcp [--toolsets auto|all|LIST] [--home DIR]

Speaks MCP on standard input and output, for an agent to spawn. Passes each message to the Holdfast daemon,
starts one when none is running, and goes on without a break when the daemon is restarted.

options:
  --toolsets auto|all|LIST  which tools the agent sees; LIST is names with commas between: core, teams, protocol,
                            bridge (environment: HOLDFAST_TOOLSETS; default: auto, what applies to the project)
  --home DIR                the data directory (environment: HOLDFAST_HOME; default: ~/.holdfast)
  -h, --help                show this text and exit

examples:
  holdfast setup claude                      (makes it an MCP server of Claude Code)
  holdfast mcp --toolsets core,teams
  HOLDFAST_DAEMON_WAIT=5 holdfast mcp        (say after 5 s, not 30, that no daemon could be reached)
"""

TOOLSETS = ("auto", "all", "core", "teams", "protocol", "bridge")
"""The valid toolsets. A test compares them with the catalog."""
DAEMON_WAIT = 30.0
MAX_DAEMON_WAIT = 3600.0


class BadUsage(Exception):
    """The command line or the environment has an invalid value."""


class Options:
    """Options from the command line and the environment."""

    __slots__ = ("home", "patience", "toolsets")

    def __init__(self, home: str, toolsets: str, patience: float) -> None:
        self.home = home
        self.toolsets = toolsets
        self.patience = patience


def main(argv: list[str]) -> int:
    """Run the relay until the agent hangs up; returns the exit status."""
    if "-h" in argv or "--help" in argv:
        sys.stdout.write(HELP)
        return 0
    try:
        options = read_options(argv)
    except BadUsage as error:
        _say(f"{error} See `holdfast mcp --help`.")
        return 2
    owner = place.foreign_owner(options.home)
    if owner is not None:  # its cached tools and descriptions would reach the agent
        _say(
            f"{options.home} belongs to user {owner}, this is user {os.geteuid()}."
            " Run the agent as its owner, or set HOLDFAST_HOME to a directory of your own."
        )
        return 1
    try:
        _relay(options)
    except KeyboardInterrupt:
        return 130
    return 0


def read_options(argv: list[str]) -> Options:
    """Parse `argv`, completed from the environment; raises BadUsage."""
    options: dict[str, str] = {}
    rest = list(argv)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in ("--toolsets", "--home"):
            raise BadUsage(f"{name}: unknown option.")
        if not equals and not rest:
            raise BadUsage(f"{name}: a value is missing.")
        options[name] = value if equals else rest.pop(0)
        if not options[name]:
            raise BadUsage(f"{name}: a value is missing.")
    if "--toolsets" in options:
        toolsets = _toolsets("--toolsets", options["--toolsets"])
    else:
        toolsets = _toolsets("HOLDFAST_TOOLSETS", os.environ.get("HOLDFAST_TOOLSETS") or "auto")
    return Options(place.home(options.get("--home")), toolsets, _patience())


def _toolsets(where: str, text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in TOOLSETS:
            raise BadUsage(f"{where}: {name[:60]!r} is not a toolset. Use {', '.join(TOOLSETS)}.")
    return ",".join(names)


def _patience() -> float:
    text = os.environ.get("HOLDFAST_DAEMON_WAIT")
    if not text:
        return DAEMON_WAIT
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= MAX_DAEMON_WAIT:
        raise BadUsage(f"HOLDFAST_DAEMON_WAIT: must be seconds, over 0 and at most {MAX_DAEMON_WAIT:.0f}.")
    return seconds


def _relay(options: Options) -> None:
    from holdfast.relay.link import Link, hello
    from holdfast.relay.loop import Loop
    from holdfast.relay.session import RelaySession
    from holdfast.version import __version__

    _clear_stopped(options.home)
    read: list[Answers] = []

    def answers() -> Answers:
        if not read:  # loaded only when needed: most relays find a running daemon
            read.append(_expected_answers(options))
        return read[0]

    session = RelaySession(find=lambda asked: answers().find(asked))
    link = Link(options.home, session, hello(session.relay, __version__, options.toolsets), __version__)
    Loop(session, link, options.patience, lambda learned: answers().keep(learned)).run()


def _expected_answers(options: Options) -> Answers:
    """Return the answers that a daemon is expected to give."""
    from holdfast.relay.answers import Answers
    from holdfast.relay.link import PROJECT_VARIABLES, SESSION_VARIABLES
    from holdfast.version import __version__

    projects = [os.environ[name] for name in PROJECT_VARIABLES if os.environ.get(name)]
    root = projects[0] if projects else place.working_directory()
    recognised = any(map(os.environ.get, SESSION_VARIABLES))
    return Answers(options.home, __version__, options.toolsets, root, recognised=recognised)


def _clear_stopped(home: str) -> None:
    """Remove the marker of `holdfast stop`: a new relay means that an agent wants Holdfast again."""
    try:
        os.unlink(place.stopped_marker(home))
    except FileNotFoundError:
        return
    except OSError as error:
        _say(f"cannot remove {error.filename}: {error.strerror}")


def _say(text: str) -> None:
    """Write one line without control characters to standard error; importing `text.terminal` would be slower."""
    sys.stderr.write("holdfast mcp: " + "".join(char if char.isprintable() else "?" for char in text) + "\n")
