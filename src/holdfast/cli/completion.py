"""`holdfast completion`: scripts with which shells complete commands, options and the names of teams."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence

from holdfast.cli import BY_NAME, HIDDEN, STANDS_FOR, build_parser
from holdfast.cli.common import described_parser, settings_of
from holdfast.cli.parsers import Spelled, spelled
from holdfast.text.terminal import say

DESCRIPTION = """\
Prints a script that makes a shell complete the commands, options and teams of Holdfast. `teams` prints the names of
the teams, as the script asks for them.

examples:
  source <(holdfast completion bash)      in ~/.bashrc
  source <(holdfast completion zsh)       in ~/.zshrc, after compinit
  holdfast completion fish | source       in ~/.config/fish/config.fish
"""
WORDS = """\
_holdfast_words() {
  case "$1" in
%s
    *) return 1 ;;
  esac
}
_holdfast_path() {
  local word at="" longer
  for word in "$@"; do
    longer="${at:+$at }$word"
    case "$word" in -*) continue ;; esac
    _holdfast_words "$longer" >/dev/null && at="$longer"
  done
  printf '%%s' "$at"
}
_holdfast_choices() {
  local found
  found=$(_holdfast_words "$1")
  case "$found" in
    *@teams*) printf '%%s %%s' "${found%%@teams}" "$(holdfast completion teams 2>/dev/null | tr '\\n' ' ')" ;;
    *) printf '%%s' "$found" ;;
  esac
}
"""
BASH = """\
_holdfast() {
  local current="${COMP_WORDS[COMP_CWORD]}" at
  at=$(_holdfast_path "${COMP_WORDS[@]:1:COMP_CWORD-1}")
  COMPREPLY=($(compgen -W "$(_holdfast_choices "$at")" -- "$current"))
}
complete -o default -F _holdfast holdfast
"""
ZSH = """\
_holdfast() {
  local at
  at=$(_holdfast_path "${(@)words[2,CURRENT-1]}")
  compadd -- ${=$(_holdfast_choices "$at")} || _files
}
compdef _holdfast holdfast
"""
FISH = """\
function __holdfast_at
  set -l words (commandline -opc)
  set -l path
  for word in $words[2..-1]
    string match -q -- '-*' $word; and continue
    contains -- (string join ' ' $path $word) $__holdfast_paths; and set path $path $word
  end
  test "$path" = "$argv"
end
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = described_parser(commands, "completion", DESCRIPTION)
    parser.add_argument("script", metavar="SHELL", choices=("bash", "zsh", "fish", "teams"), help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a script, or the names of the teams."""
    if options.script == "teams":
        from holdfast.teams.config_file import TeamsFile

        for name in TeamsFile(settings_of(options).home).projects():
            say(name)
    elif options.script == "fish":
        print(FISH + "\n".join(_fish(list(_all()))))
    else:
        print(WORDS % "\n".join(_cases(list(_all()))) + (BASH if options.script == "bash" else ZSH), end="")
    return 0


def _all() -> Iterator[Spelled]:
    """Yield everything that can be typed: also by the earlier names, which complete their options."""
    found = list(spelled(build_parser()))
    yield from found
    for alias, name in STANDS_FOR.items():
        words = tuple(name.split())
        for one in found:
            if words and one.words[: len(words)] == words:
                yield Spelled((alias, *one.words[len(words) :]), one.parser)


def _followers(one: Spelled) -> dict[str, str]:
    """Return the words that may follow, each with its sentence; a hidden command is not proposed."""
    words = {name: text for name, text in one.actions.items() if one.words or not _is_hidden(name)}
    for argument in one.arguments:
        words |= {str(choice): "" for choice in argument.choices or ()}
    return words


def _is_hidden(name: str) -> bool:
    return name in BY_NAME and BY_NAME[name].group == HIDDEN


def _takes_team(one: Spelled) -> bool:
    return any(argument.metavar in ("TARGET", "TEAM") for argument in one.arguments)


def _cases(found: Sequence[Spelled]) -> Iterator[str]:
    for one in found:
        options = [spelling for option in one.options for spelling in option.option_strings]
        words = [*_followers(one), *options, "--help", *(["@teams"] if _takes_team(one) else [])]
        yield f"    {shlex.quote(' '.join(one.words))}) echo {shlex.quote(' '.join(words))} ;;"


def _fish(found: Sequence[Spelled]) -> Iterator[str]:
    paths = " ".join(shlex.quote(" ".join(one.words)) for one in found if one.words)
    yield f"set -g __holdfast_paths {paths}"
    for one in found:
        at = f"complete -c holdfast -n {shlex.quote(' '.join(['__holdfast_at', *one.words]))}"
        for name, text in _followers(one).items():
            yield f"{at} -f -a {shlex.quote(name)} -d {_fish_quoted(text)}"
        for option in one.options:
            for spelling in option.option_strings:
                kind = "-l" if spelling.startswith("--") else "-s"
                takes = "" if option.nargs == 0 else " -r"
                yield f"{at} {kind} {spelling.lstrip('-')}{takes} -d {_fish_quoted(option.help or '')}"
        if _takes_team(one):
            yield f"{at} -f -a '(holdfast completion teams 2>/dev/null)'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
