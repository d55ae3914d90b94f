"""Outside text as an agent reads it: quoted on one line, or as a block of marked lines that nothing inside can end.

A line of Holdfast's own never begins with the mark, so no line of an outside text can pass for one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import unicodedata
from typing import Any

from holdfast.reasoning.wording import one_line

LONGEST_NAME = 80
"""Characters of a name that comes from outside."""
MARGIN = 1_000
"""How much more than is shown is searched for secrets, so that none is told because its other half was cut off."""
MARK = "> "
"""What every line of an outside text begins with."""

_TAMED = str.maketrans({'"': "'", "`": "'", "<": "‹", ">": "›"})
_JOINERS = "\u200c\u200d"
"""Invisible, but part of how words and emoji are written."""
_AGENTS_OWN_TAG = re.compile(
    r"<(?=/?(?:system|task-|command-|local-command|user-|bash-|function|tool|antml|assistant|human|thinking))",
    re.IGNORECASE,
)
"""How the tags begin that agents put around what is not said by a person."""
_PLAIN = re.compile(r"[\w./~+@%=:,#*-]+")
"""Paths and ids that need no quotes: they are one word."""
_RAW_IN_JSON = re.compile(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""What JSON leaves as it is, and can end a line or change how one is read."""
_secret = secrets.token_bytes(32)


def quoted(text: str, limit: int) -> str:
    """A text on one line, in quotes, without secrets, with nothing in it that could end them or look like markup."""
    from holdfast.redaction import masked  # its patterns take 50 ms to compile, and a daemon's start does without them

    return in_quotes(masked(text[: limit + MARGIN]), limit)


def quoted_name(name: str) -> str:
    """A name as an agent is told it."""
    return in_quotes(name, LONGEST_NAME)


def named(text: str, limit: int = LONGEST_NAME) -> str:
    """A path or an id as it is where it is plain, else quoted."""
    return text if len(text) <= limit and _PLAIN.fullmatch(text) else in_quotes(text, limit)


def in_quotes(text: str, limit: int) -> str:
    """The same with its secrets: for names and ids, and for what its reader gets whole anyway."""
    return f'"{_tamed(one_line(text, limit))}"'


def marked(text: str) -> str:
    """A text of several lines as data: each line with the mark, and no character that is not what it looks like."""
    lines = (_AGENTS_OWN_TAG.sub("‹", text) if "<" in text else text).splitlines() or [""]
    return "\n".join([f"{MARK}{line if line.isprintable() else _visible(line)}".rstrip() for line in lines])


def as_data(value: Any) -> Any:
    """The result of a tool as an agent reads it: within a JSON string nothing is left that could end a line.

    JSON escapes line feeds, quotes and C0 by itself. What it leaves and is not what it looks like (other ends of lines,
    marks of direction, tags) is escaped visibly, because clients write a structured result as JSON anew.
    """
    if isinstance(value, str):
        return value if value.isprintable() else _RAW_IN_JSON.sub(lambda found: _escaped(found[0]), value)
    if isinstance(value, dict):
        return {as_data(name): as_data(member) for name, member in value.items()}
    return [as_data(member) for member in value] if isinstance(value, list) else value


def error_text(text: str) -> str:
    """An error as an agent is told it: what it quotes of a caller's input cannot begin a line."""
    first, *rest = text.splitlines() or [""]
    return "\n".join([_visible(first), *(marked(line) for line in rest)])


def use_secret(secret: bytes) -> None:
    """Make the words of frames from a secret that outlives the daemon: it must know its own frames again."""
    global _secret
    _secret = secret


def frame_word(*of: object) -> str:
    """The word that begins and ends the frame of one text; who wrote the text cannot know it."""
    # BLAKE2 with a key: HMAC would take ten times as long, for each message that is handed out.
    return hashlib.blake2b(
        "\0".join(map(str, of)).encode("utf-8", "surrogatepass"), key=_secret, digest_size=6
    ).hexdigest()


def signed(text: str) -> str:
    """A text that Holdfast itself put together, outside text in it marked, on its way to an agent."""
    return f"{frame_word('signed', text)}\n{text}"


def read_signed(text: str) -> str | None:
    """What Holdfast put together; None for a text that came from anybody else."""
    word, _, rest = text.partition("\n")
    is_own = hmac.compare_digest(word.encode("utf-8", "surrogatepass"), frame_word("signed", rest).encode())
    return rest if is_own else None


def _tamed(text: str) -> str:
    # Most texts have none of these, and looking for four characters takes a tenth of the time of a translation.
    return text.translate(_TAMED) if '"' in text or "`" in text or "<" in text or ">" in text else text


def _visible(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(char if _is_plain(char) else _escaped(char) for char in line)


def _is_plain(char: str) -> bool:
    return char.isprintable() or char == "\t" or char in _JOINERS or unicodedata.category(char) == "Zs"


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
