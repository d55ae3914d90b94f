"""Finds the repository's files that its agent settings name, so that trust can cover them before an agent runs them.

A hook's command is shell, which can build a name in any way: only names that are written out are found, relative to
the top of the repository or to a directory that is written out too. What those files run in turn is not searched.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.text import bounded_json

MAX_WORDS = 5000
MAX_FOLDERS = 10
MAX_WORD_LENGTH = 1024
MAX_COMMAND_LENGTH = 4096
"""Limit up to which names with spaces are found; shlex takes quadratic time on one long word."""
NOT_RUN = frozenset({"permissions"})
"""Settings that name files only to allow or deny them."""
TOP = (
    *("${CLAUDE_PROJECT_DIR:-.}", "${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${CLAUDE_PLUGIN_ROOT}"),
    *("$(git rev-parse --show-toplevel)", "`git rev-parse --show-toplevel`", "${PWD}", "$PWD", "$(pwd)", "`pwd`"),
)
"""Spellings of the top of the repository in a command."""
_SEPARATORS = str.maketrans(dict.fromkeys(";|&()<>=,:{}[]`$", " "))
_QUOTES = str.maketrans(dict.fromkeys("'\"\\"))
_QUOTES_APART = str.maketrans(dict.fromkeys("'\"\\", " "))


class TooManyWords(Exception):
    """Raised when settings name more words than can be checked."""


def texts_of_settings(content: bytes) -> list[str]:
    """Return the texts of a settings file or server list; none if it is not JSON."""
    try:
        return list(_texts(bounded_json.loads(content)))
    except ValueError:
        return []


def texts_of_markdown(content: bytes) -> list[str]:
    """Return what an agent's markdown runs: hooks in its front matter, commands after an exclamation mark."""
    text = content.decode("utf-8", "replace")
    head = text.partition("\n---")[0].partition("hooks")[2] if text.startswith("---") else ""
    # Backticks after an exclamation mark, and blocks that begin with ```!
    commands = [piece.partition("```" if piece.startswith("``") else "`")[0] for piece in text.split("!`")[1:]]
    blocks = [piece.partition("```")[0] for piece in text.split("```!")[1:]]
    return [head, *commands, *blocks]


def _texts(document: Any) -> Iterator[str]:
    """Yield every text in a document; iterative, because a hostile one could exhaust recursion."""
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
    """Return the existing paths of a worktree that texts name. Raises TooManyWords."""
    words: dict[str, None] = {}
    for count, text in enumerate(texts):
        for word in _words(text):
            words[word] = None
            if len(words) > MAX_WORDS or count > MAX_WORDS:
                raise TooManyWords(f"The agent settings contain more than {MAX_WORDS} words that may be programs.")
    inside = list(dict.fromkeys(filter(None, (_inside(word, worktree) for word in words))))
    folders = [path for path in inside if path != "." and (worktree / path).is_dir()][:MAX_FOLDERS]
    below = [os.path.normpath(f"{folder}/{path}") for folder in folders for path in inside]
    existing = [path for path in (*inside, *below) if os.path.lexists(worktree / path)]
    # A file that is created later will be found then, and so count as a change.
    return [path for path in dict.fromkeys(existing) if path != "."]


def _words(text: str) -> Iterator[str]:
    for spelling in TOP:
        text = text.replace(spelling, ".")
    yield text
    yield from text.translate(_QUOTES).translate(_SEPARATORS).split()
    yield from text.translate(_QUOTES_APART).translate(_SEPARATORS).split()
    if len(text) <= MAX_COMMAND_LENGTH:
        with contextlib.suppress(ValueError):  # an unclosed quote: no shell would run it
            yield from shlex.split(text)


def _inside(word: str, worktree: Path) -> str | None:
    """Return a word as a path from the top of the worktree; None if it cannot be one."""
    if not word or len(word) > MAX_WORD_LENGTH or "\0" in word or "\n" in word:
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
