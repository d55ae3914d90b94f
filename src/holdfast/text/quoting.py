"""Quotes outside text for an agent: on one line, or as a block of marked lines that nothing inside can end.

A line of Holdfast's own never begins with the mark, so no line of an outside text can be mistaken for one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import unicodedata
from typing import Any

from holdfast.text import one_line
from holdfast.text.masking import without_secrets

MAX_NAME_CHARS = 80
"""Characters of a name that comes from outside."""
MARGIN = 1_000
"""Characters beyond those shown that are searched for secrets, so that none is missed because it was cut in half."""
MARK = "> "
"""Prefix of every line of an outside text."""

_NEUTRAL_CHARACTERS = str.maketrans({'"': "'", "`": "'", "<": "‹", ">": "›"})
_JOINERS = "\u200c\u200d"
"""Invisible, but part of how words and emoji are written."""
_AGENTS_OWN_TAG = re.compile(
    r"<(?=/?(?:system|task-|command-|local-command|user-|bash-|function|tool|antml|assistant|human|thinking))",
    re.IGNORECASE,
)
"""Beginnings of the tags that agents put around text that is not from a person."""
_PLAIN = re.compile(r"[\w./~+@%=:,#*-]+")
"""Paths and ids that need no quotes because they are one word."""
_RAW_IN_JSON = re.compile(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that JSON does not escape, and that can end a line or change how it is displayed."""
_secret = secrets.token_bytes(32)


def quoted(text: str, limit: int) -> str:
    """Quote a text on one line, without secrets, and with nothing that could end the quotes or look like markup."""
    return in_quotes(without_secrets(text[: limit + MARGIN]), limit)


def quoted_name(name: str) -> str:
    """Quote a name for an agent."""
    return in_quotes(name, MAX_NAME_CHARS)


def named(text: str, limit: int = MAX_NAME_CHARS) -> str:
    """Return a path or an id unchanged if it is one plain word, otherwise quoted."""
    return text if len(text) <= limit and _PLAIN.fullmatch(text) else in_quotes(text, limit)


def in_quotes(text: str, limit: int) -> str:
    """Quote a text without masking secrets: for names and ids, and for text that the reader sees in full anyway."""
    return f'"{_neutralized(one_line(text, limit))}"'


def marked(text: str) -> str:
    """Mark every line of a text as data, and escape characters that are invisible or misleading."""
    lines = (_AGENTS_OWN_TAG.sub("‹", text) if "<" in text else text).splitlines() or [""]
    return "\n".join([f"{MARK}{line if line.isprintable() else _visible(line)}".rstrip() for line in lines])


def as_data(value: Any) -> Any:
    """Escape a tool's result for an agent, so that nothing inside a JSON string can end a line.

    JSON itself escapes line feeds, quotes and C0. Other misleading characters (other line ends, direction marks, tags)
    are escaped visibly, because clients serialize a structured result as JSON again.
    """
    if isinstance(value, str):
        return value if value.isprintable() else _RAW_IN_JSON.sub(lambda found: _escaped(found[0]), value)
    if isinstance(value, dict):
        return {as_data(name): as_data(member) for name, member in value.items()}
    return [as_data(member) for member in value] if isinstance(value, list) else value


def error_text(text: str) -> str:
    """Return an error for an agent, in which quoted input cannot begin a line."""
    first, *rest = text.splitlines() or [""]
    return "\n".join([_visible(first), *(marked(line) for line in rest)])


def use_secret(secret: bytes) -> None:
    """Derive frame words from a secret that outlives the daemon, so that it recognises its own frames later."""
    global _secret
    _secret = secret


def frame_word(*of: object) -> str:
    """Return the word that begins and ends the frame of one text; its author cannot know it."""
    # Keyed BLAKE2: HMAC would take ten times as long, for each message handed out.
    return hashlib.blake2b(
        "\0".join(map(str, of)).encode("utf-8", "surrogatepass"), key=_secret, digest_size=6
    ).hexdigest()


def signed(text: str) -> str:
    """Sign a text that Holdfast itself composed for an agent, in which outside text is marked."""
    return f"{frame_word('signed', text)}\n{text}"


def read_signed(text: str) -> str | None:
    """Return the text that Holdfast signed; None for any other text."""
    word, _, rest = text.partition("\n")
    is_own = hmac.compare_digest(word.encode("utf-8", "surrogatepass"), frame_word("signed", rest).encode())
    return rest if is_own else None


def _neutralized(text: str) -> str:
    # Most texts have none of these, and searching for four characters takes a tenth of the time of a translation.
    return text.translate(_NEUTRAL_CHARACTERS) if '"' in text or "`" in text or "<" in text or ">" in text else text


def _visible(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(char if _is_plain(char) else _escaped(char) for char in line)


def _is_plain(char: str) -> bool:
    return char.isprintable() or char == "\t" or char in _JOINERS or unicodedata.category(char) == "Zs"


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
