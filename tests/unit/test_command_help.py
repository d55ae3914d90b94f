"""Help fits a screen, every command of it has examples, and every example can be run."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast.cli import BY_NAME, COMMANDS, PLACES, STANDS_FOR, build_parser, spelled_out
from holdfast.cli.completion import run as print_completion
from holdfast.cli.help import INSTEAD, all_commands, short_help, unknown_command
from holdfast.cli.man import page

SHORT = [command.name for command in COMMANDS if command.short]


def _texts(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """The description and epilogue of every command, as its help shows them."""
    yield parser.prog, f"{parser.description or ''}\n{parser.epilog or ''}"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _texts(below)


def _examples() -> list[str]:
    lines = [line for _, text in _texts(build_parser()) for line in text.splitlines()]
    found = [re.search(r"(?:^  |&& |\| |<\()(holdfast (?:[^ )]| (?! ))+)", line) for line in lines]
    return sorted({one[1].partition(" | ")[0].partition(" > ")[0] for one in found if one})


def test_the_short_help_fits_a_screen_and_has_at_most_twelve_commands_in_three_groups() -> None:
    lines = short_help().splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    assert 10 <= len(SHORT) <= 12
    assert len([line for line in lines if line.endswith(":")]) == 3
    for name in SHORT:
        assert any(line.startswith(f"  {name} ") for line in lines), name


def test_all_commands_are_listed_but_those_that_agents_run() -> None:
    lines = all_commands().splitlines()
    assert max(map(len, lines)) <= 90
    for command in COMMANDS:
        assert any(line.startswith(f"  {command.name} ") for line in lines) is bool(command.group), command.name


@pytest.mark.parametrize("name", SHORT)
def test_every_command_of_the_short_help_has_an_example_in_its_own(name: str) -> None:
    assert any(example.startswith(f"holdfast {name}") for example in _examples()), name


@pytest.mark.parametrize("example", _examples())
def test_every_example_can_be_run(example: str) -> None:
    words = spelled_out(shlex.split(example)[1:])
    assert build_parser(words).parse_args(words)


def test_no_name_stands_for_two_things() -> None:
    aliases = [alias for command in COMMANDS for alias in command.aliases]
    assert len(aliases) == len(set(aliases))
    assert not ({*STANDS_FOR} | {*INSTEAD}) & ({*BY_NAME} | {*PLACES})
    assert not {*STANDS_FOR} & {*INSTEAD}


def test_help_of_a_command_is_found_by_every_spelling() -> None:
    assert spelled_out(["help", "verify"]) == ["admin", "verify", "--help"]
    assert spelled_out(["help", "teams", "ask"]) == ["teams", "ask", "--help"]
    assert spelled_out(["help"]) == ["--help"]
    assert spelled_out(["commands"]) == ["--help", "--all"]


def test_an_unknown_command_is_answered_with_the_nearest_one() -> None:
    assert "`holdfast status`" in unknown_command("statsu")
    assert "setup claude --remove" in unknown_command("uninstall")
    assert "\\x1b" in unknown_command("\x1b[2J") or "\\u001b" in unknown_command("\x1b[2J")


def test_the_manual_page_has_every_command_and_is_roff_without_warnings() -> None:
    text = "\n".join(page())
    for command in COMMANDS:
        assert (f"holdfast {command.name}".replace("-", "\\-") in text) is bool(command.group), command.name
    if (groff := shutil.which("groff")) is not None:
        told = subprocess.run([groff, "-man", "-Tascii", "-ww"], input=text, capture_output=True, text=True)
        assert (told.returncode, told.stderr) == (0, "")


COMPLETED = [
    ("", ["setup", "inbox", "daemon"], ["mcp", "serve", "hook"]),
    ("daemon", ["serve", "stop", "status"], []),
    ("serve", ["--port", "--detach"], []),
    ("admin key create", ["--scope"], []),
    ("teams", ["ask", "list"], []),
    ("teams ask", ["--thread", "@teams"], []),
    ("completion", ["bash", "zsh", "fish"], []),
]


@pytest.mark.parametrize(("path", "there", "absent"), COMPLETED)
def test_a_shell_completes_commands_and_options(
    path: str, there: list[str], absent: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_completion(argparse.Namespace(script="bash"))
    script = f'{capsys.readouterr().out}\n_holdfast_words "$1"'
    told = subprocess.run(["bash", "-c", script, "bash", path], capture_output=True, text=True, check=True)
    assert told.stderr == "" and {*there} <= {*told.stdout.split()} and not {*absent} & {*told.stdout.split()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_of_completion_is_valid_for_its_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_completion(argparse.Namespace(script=shell))
    script = capsys.readouterr().out
    assert "completion teams" in script and "\x1b" not in script
    if (program := shutil.which(shell)) is not None:
        told = subprocess.run([program, "-n"], input=script, capture_output=True, text=True)
        assert (told.returncode, told.stderr) == (0, ""), sys.platform
