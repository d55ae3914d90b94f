"""Which files of a repository its settings for an agent name, so that they can be compared before an agent runs them.

A hook's command is shell, and shell can build a name in ways that nobody can follow: what is found is what is written
out, from the top of the repository or from a directory that is written out too. What those files run in turn is not
looked for.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast import bounded_json

MOST_WORDS = 5000
MOST_FOLDERS = 10
LONGEST_WORD = 1024
LONGEST_COMMAND = 4096
"""Up to which names with spaces in them are found; shlex takes ever longer for one long word."""
NOT_RUN = frozenset({"permissions"})
"""Settings that name files to allow or deny them."""
TOP = (
    *("${CLAUDE_PROJECT_DIR:-.}", "${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${CLAUDE_PLUGIN_ROOT}"),
    *("$(git rev-parse --show-toplevel)", "`git rev-parse --show-toplevel`", "${PWD}", "$PWD", "$(pwd)", "`pwd`"),
)
"""How a command spells the top of the repository."""
_SEPARATORS = str.maketrans(dict.fromkeys(";|&()<>=,:{}[]`$", " "))
_QUOTES = str.maketrans(dict.fromkeys("'\"\\"))
_QUOTES_APART = str.maketrans(dict.fromkeys("'\"\\", " "))


class TooManyWords(Exception):
    """Settings that name more than can be looked for; the message says so."""


def texts_of_settings(content: bytes) -> list[str]:
    """The texts of a settings file or a list of servers; none where it is no JSON."""
    try:
        return list(_texts(bounded_json.loads(content)))
    except ValueError:
        return []


def texts_of_markdown(content: bytes) -> list[str]:
    """What of a document for an agent may be run: the hooks in its head, and commands after an exclamation mark."""
    text = content.decode("utf-8", "replace")
    head = text.partition("\n---")[0].partition("hooks")[2] if text.startswith("---") else ""
    # Between backticks after an exclamation mark; and blocks that begin with ```!
    commands = [piece.partition("```" if piece.startswith("``") else "`")[0] for piece in text.split("!`")[1:]]
    blocks = [piece.partition("```")[0] for piece in text.split("```!")[1:]]
    return [head, *commands, *blocks]


def _texts(document: Any) -> Iterator[str]:
    """Every text in a document, without recursion, which a hostile one could exhaust."""
    waiting = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            waiting += [inner for key, inner in part.items() if key not in NOT_RUN]
        elif isinstance(part, list):
            waiting += part


def named_programs(texts: Iterable[str], worktree: Path) -> list[str]:
    """The paths in a worktree that texts name, where something is there. Raises TooManyWords."""
    words: dict[str, None] = {}
    for count, text in enumerate(texts):
        for word in _words(text):
            words[word] = None
            if len(words) > MOST_WORDS or count > MOST_WORDS:
                raise TooManyWords(f"The settings for an agent hold more than {MOST_WORDS} words that may be programs.")
    inside = list(dict.fromkeys(filter(None, (_inside(word, worktree) for word in words))))
    folders = [path for path in inside if path != "." and (worktree / path).is_dir()][:MOST_FOLDERS]
    below = [os.path.normpath(f"{folder}/{path}") for folder in folders for path in inside]
    found = [path for path in (*inside, *below) if os.path.lexists(worktree / path)]
    # What is not there yet will be found, and so be a change, once somebody makes it.
    return [path for path in dict.fromkeys(found) if path != "."]


def _words(text: str) -> Iterator[str]:
    for spelling in TOP:
        text = text.replace(spelling, ".")
    yield text
    yield from text.translate(_QUOTES).translate(_SEPARATORS).split()
    yield from text.translate(_QUOTES_APART).translate(_SEPARATORS).split()
    if len(text) <= LONGEST_COMMAND:
        with contextlib.suppress(ValueError):  # a quote without its end: no shell would run it
            yield from shlex.split(text)


def _inside(word: str, worktree: Path) -> str | None:
    """A word as a path from the top of the worktree; None where it cannot be one."""
    if not word or len(word) > LONGEST_WORD or "\0" in word or "\n" in word:
        return None
    if word.startswith("/"):
        tops = (str(worktree), os.path.realpath(worktree))
        top = next((top for top in tops if word.startswith(f"{top}/")), None)
        if top is None:
            return None
        word = word[len(top) + 1 :]
    elif "/" not in word and word.replace(".", "").isidentifier() and "." in word and not word.startswith("."):
        module = f"{word.replace('.', '/')}.py"  # python -m tools.hook
        word = module if (worktree / module).is_file() else word
    try:
        path = os.path.normpath(word)
        os.fsencode(path)
    except (ValueError, UnicodeEncodeError):
        return None
    return None if path.startswith("..") else path
