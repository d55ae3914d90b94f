"""The command line: `holdfast <command>`. One table says which commands there are, where, and what they are for."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from holdfast.cli.common import is_agent
from holdfast.config import read_settings
from holdfast.errors import HoldfastError
from holdfast.text.terminal import one_line, say, screened
from holdfast.version import __version__

if TYPE_CHECKING:
    _SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    _SubParsers = argparse._SubParsersAction

CONTINUE, REACH, PROVE, HIDDEN = "Continue", "Reach", "Prove and keep", ""


class Command(NamedTuple):
    """A command, as help, completion, manual page and the rule for agents have it."""

    name: str
    """Its name; two words if it is in a group, such as `daemon serve`."""
    module: str
    group: str
    sentence: str
    """What a user would say who wants it."""
    aliases: tuple[str, ...] = ()
    """Earlier names, and what one would guess. They are not in the short help, and keep working."""
    short: bool = False
    """Whether it is in the short help."""
    for_agents: bool = False
    """Whether a managed agent's shell may run it, because it is read-only. Its actions declare this themselves."""

    @property
    def place(self) -> str:
        """The group of commands that it stands in, such as `daemon`; empty at the top."""
        return self.name.rpartition(" ")[0]


COMMANDS = (
    Command("setup", "setup", CONTINUE, "Connect my agent to Holdfast, or disconnect it.", ("install",), short=True),
    Command("show", "show", CONTINUE, "Where does the work here stand?", ("briefing",), short=True, for_agents=True),
    Command(
        "resume", "resume", CONTINUE, "Continue the work that was cut off.", ("continue",), short=True, for_agents=True
    ),
    Command("find", "history", CONTINUE, "Where did we talk about that?", ("search",), short=True, for_agents=True),
    Command("import", "history", CONTINUE, "Index the conversations that are on this machine, for find."),
    Command("saved", "history", CONTINUE, "What did agents recover from Holdfast?", for_agents=True),
    Command("sessions", "sessions", CONTINUE, "What did agents think?"),
    Command("project dismiss", "show", CONTINUE, "That session's open work is done, or not wanted.", ("dismiss",)),
    Command("project move", "move", CONTINUE, "A project's directory was moved.", ("move",)),
    Command("project handoff", "handoff", CONTINUE, "Take a project to another machine.", ("handoff", "export")),
    Command("project adopt", "handoff", CONTINUE, "Take in a project from another machine.", ("adopt",)),
    Command("project release", "handoff", CONTINUE, "Let its agent have the messages that came along.", ("release",)),
    Command("send", "bridge", REACH, "Tell a project's agent what to do, busy or gone.", ("tell",), short=True),
    Command("inbox", "inbox", REACH, "What is waiting, and what was answered?", ("messages",), short=True),
    Command("open", "open", REACH, "Show me all of it in the browser.", ("dashboard",), short=True),
    Command("queue", "inbox", REACH, "Which messages wait for which agent?", for_agents=True),
    Command("pull", "inbox", REACH, "What happened there since I last looked?"),
    Command("tail", "inbox", REACH, "Keep telling me what happens.", ("follow",)),
    Command("cancel", "bridge", REACH, "Take back a message that is still waiting."),
    Command("retry", "bridge", REACH, "Send a message again that failed or expired."),
    Command("approve", "permissions", REACH, "Allow what a managed agent asks for.", ("allow",)),
    Command("deny", "permissions", REACH, "Refuse what a managed agent asks for."),
    Command("teams", "teams", REACH, "Ask the agent of another project, and wait for its answer."),
    Command("bridge", "bridge", REACH, "Decide how messages reach a project's agent."),
    Command("doctor", "doctor", PROVE, "Is everything connected, and does it work?", short=True, for_agents=True),
    Command("demo", "demo", PROVE, "Kill everything, and show me that nothing is lost.", short=True, for_agents=True),
    Command("backup", "records", PROVE, "Put everything into one file.", short=True),
    Command("pause", "records", PROVE, "Do not record this project for now.", short=True),
    Command("resume-recording", "records", PROVE, "Record it again.", ("unpause",)),
    Command("forget", "records", PROVE, "Remove this project, or that session, for good.", short=True),
    Command("protocol", "protocol", PROVE, "Which phases and gates does the work here pass?"),
    Command("admin verify", "records", PROVE, "Was anything lost or changed?", ("verify",), for_agents=True),
    Command("admin restore", "records", PROVE, "Bring back what is in a backup.", ("restore",)),
    Command("admin trust", "trust", PROVE, "Let this project's protocol run its programs.", ("trust",)),
    Command("admin acknowledge-loss", "records", PROVE, "I have seen what was lost.", ("acknowledge-loss",)),
    Command("admin key", "keys", PROVE, "Let another program in over HTTP.", ("key",)),
    Command("admin audit", "audit", PROVE, "Who tried to reconnect to what?", ("audit",)),
    Command("daemon status", "daemon", PROVE, "Is the daemon running?", ("status",), for_agents=True),
    Command("daemon serve", "serve", PROVE, "Run the daemon in the foreground.", ("serve", "start")),
    Command("daemon stop", "daemon", PROVE, "Stop the daemon.", ("stop",)),
    Command("completion", "completion", PROVE, "Let my shell complete these commands.", for_agents=True),
    Command("man", "man", PROVE, "Print the manual page.", ("manual",), for_agents=True),
    Command("statusline", "history", HIDDEN, "One line for Claude Code's status line.", for_agents=True),
    Command("mcp", "", HIDDEN, "Speak MCP on stdin and stdout; what an agent starts."),
    Command("hook", "", HIDDEN, "Pass an agent's hook event to the daemon."),
)
"""Every command in the order of help. Running one imports its module and no other."""

PLACES = {
    "project": "A project's data as a whole: move it, take it to another machine.",
    "admin": "Proofs, keys and trust.",
    "daemon": "The process that keeps everything.",
}
"""Groups of commands, each with its sentence."""

BY_NAME = {command.name: command for command in COMMANDS}
STANDS_FOR = {
    **{alias: command.name for command in COMMANDS for alias in command.aliases},
    "ask": "teams ask",
    "commands": "--help --all",
    "list": "",
    "unfinished": "",
    "version": "--version",
}
"""What is run for another name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Its output contains no terminal control sequences."""
    with screened():
        return _run(sys.argv[1:] if argv is None else argv)


def _run(argv: Sequence[str]) -> int:
    words = spelled_out(argv)
    if not words or words[0].startswith("-"):
        return _run_bare(words)
    if words[0] not in PLACES and words[0] not in BY_NAME:
        from holdfast.cli.help import unknown_command

        say(unknown_command(words[0]), file=sys.stderr)
        return 2
    options, more = build_parser(words).parse_known_args(words)
    if more:
        options.parser.error(f"unrecognized arguments: {' '.join(more)}")

    def run() -> int:
        _refuse_agents(argv[0], options)
        status: int = options.run(options)
        return status

    return _answered(run)


def _run_bare(words: Sequence[str]) -> int:
    """Run `holdfast` without a command: the unfinished work, or help."""
    parser = bare_parser()
    options, more = parser.parse_known_args(words)
    if more:
        parser.error(f"options come after the command: holdfast {more[0]} … {words[0]}")
    if options.all and not options.help:
        parser.error("--all goes with --help")
    if options.help or is_agent(read_settings(home=options.home).home):
        from holdfast.cli.help import all_commands, short_help

        print(all_commands() if options.all else short_help())
        return 0
    from holdfast.cli import unfinished

    return _answered(lambda: unfinished.run(options))


def _answered(run: Callable[[], int]) -> int:
    """Return the exit status of a command; what goes wrong is said in one line."""
    try:
        return run()
    except HoldfastError as error:
        say(f"holdfast: {error}", file=sys.stderr)
        return 1
    except EOFError:
        say("holdfast: A question was not answered; nothing was done.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except OSError as error:
        from holdfast.files.errors import explain

        say(f"holdfast: {explain(error)}", file=sys.stderr)
        return 1


def spelled_out(words: Sequence[str]) -> list[str]:
    """Return the words of a command with its present name; `help COMMAND` is `COMMAND --help`."""
    if not words:
        return []
    if words[0] == "help":
        return [*spelled_out(words[1:]), "--help"]
    return [*STANDS_FOR.get(words[0], words[0]).split(), *words[1:]]


def _refuse_agents(name: str, options: argparse.Namespace) -> None:
    """Let a managed agent's shell run only the commands that declare `for_agents`, because they are read-only."""
    only_looks = getattr(options, "for_agents", False) and not getattr(options, "fix", False)
    if not only_looks and is_agent(read_settings(home=getattr(options, "home", None)).home):
        raise HoldfastError(
            f"`holdfast {name}` is not for managed agents.", recovery="The owner must run it in a terminal."
        )


class _Parser(argparse.ArgumentParser):
    """Argument parser whose errors quote unknown input on one line, and show the choices if one is missing."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("the following arguments are required: <"):
            self.print_help(sys.stderr)
            self.exit(2)
        super().error(f"{one_line(message)}\n`{self.prog} --help` explains it.")


class _Placed(_SubParsers):
    """Takes of a module's commands those that the table has at this place, with their sentence."""

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:
        command = BY_NAME.get(f"{self._prog_prefix} {name}".removeprefix("holdfast "))
        if command is None:
            return _Parser()
        options = {"description": command.sentence, **options, "help": command.sentence}
        parser: argparse.ArgumentParser = super().add_parser(name, **options)
        parser.set_defaults(for_agents=command.for_agents, parser=parser)
        return parser


def bare_parser() -> argparse.ArgumentParser:
    """Return the parser of `holdfast` without a command."""
    parser = _Parser(prog="holdfast", usage="holdfast [<command>] [--help]", add_help=False)
    parser.add_argument("-h", "--help", action="store_true", help="show the commands")
    parser.add_argument("--all", action="store_true", help="with --help: every command")
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    parser.add_argument("--limit", metavar="N", type=int, default=10, help="how much unfinished work is shown")
    parser.add_argument("--json", action="store_true", help="print the unfinished work as JSON")
    parser.add_argument("--home", metavar="DIR", help="the data directory (HOLDFAST_HOME, default ~/.holdfast)")
    return parser


def build_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Build the parser with all commands, or only with the one (or the group) that `words` begin with."""
    parser = _Parser(prog="holdfast") if words else bare_parser()
    top = parser.add_subparsers(action=_Placed, prog="holdfast", metavar="<command>", title="commands")
    wanted = [BY_NAME[name] for name in (" ".join(words[:2]), " ".join(words[:1])) if name in BY_NAME]
    commands = wanted or [command for command in COMMANDS if not words or command.place == words[0]]
    groups: dict[str, _SubParsers] = {"": top}
    for command in commands:
        if command.place not in groups:
            sentence = PLACES[command.place]
            group = _SubParsers.add_parser(top, command.place, help=sentence, description=sentence)
            groups[command.place] = group.add_subparsers(
                action=_Placed, prog=f"holdfast {command.place}", metavar="<what>", title="what", required=True
            )
    for place, module in dict.fromkeys((command.place, command.module) for command in commands):
        if module:
            importlib.import_module(f"holdfast.cli.{module}").add_to(groups[place])
        else:
            for name in ("mcp", "hook"):  # dispatched before this parser is built
                groups[place].add_parser(name)
    return parser
