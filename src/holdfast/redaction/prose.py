"""Finds secrets that people write beside the word for them, in several languages. Pure, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.redaction.literals import places
from holdfast.redaction.technical import is_technical
from holdfast.redaction.tokens import PUBLIC_VALUE, Span, is_random
from holdfast.redaction.values import (
    is_dense,
    is_name_of_secret,
    is_path,
    is_pattern,
    is_placeholder,
    is_strong,
    is_uuid,
    is_word,
)
from holdfast.redaction.words import KEYS, LINKS, PASSWORDS, PASSWORDS_WITHOUT_SPACES, PROSE_BEGINNINGS

_WORD = re.compile(
    r"(?:(?<![\w.$/])(?<!--)(?<!\s-)(?:(?P<password>" + PASSWORDS + r")|(?P<token>" + KEYS + r"))(?![^\W\d_])|(?P<joined>" + PASSWORDS_WITHOUT_SPACES
    + r"))(?P<closed>[\"'*_`)]{0,4}+)",
    re.IGNORECASE,
)  # fmt: skip
_LINKED = re.compile(
    r"(?:[ \t\n]{1,3}(?:(?:[^\s:=|\"'`.,;]|[.](?=\w)){1,40}[ \t]{1,3}){0,5}?(?:" + LINKS + r")[ \t]{0,2}[:：=]?\s{1,3}"
    r"|[ \t]{0,3}[(\[][^()\[\]\n]{1,40}[)\]][ \t]{0,2}[:：=][ \t]{0,3}"
    r"|(?:[ \t]{1,2}(?:[^\s:=|\"'`.,;]|[.](?=\w)){1,40}){0,4}?[ \t]{0,3}(?:[:：=]|->|→|=>|\||[ \t][—–-](?=[ \t]))[*_]{0,2}\s{0,3}|\s?(?:は|を|是|为|為|는|은|가)[ \t]{0,3})",
    re.IGNORECASE,
)
_DIRECT = re.compile(r",?\s{1,2}")
_SPOKEN = re.compile(
    r"(?P<opening>[\"'`*«„“‘「(]{0,3}+)(?P<secret>[^\s\"'`«»„“”‘’「」|<>\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af，。、；：（）]{2,400}+)"
)
_CHOSEN = re.compile(r"(?<![^\s\"'`(,:])[A-Za-z0-9][A-Za-z0-9!@#$%&*?+_-]{6,40}+(?![\w.(\[=/\\<>{}-])")
"""A word in a sentence that could be a chosen password."""
MIN_LONE_CHARS = 36
_LONE = re.compile(r"(?<![\w/+=.:@%-])[A-Za-z0-9]{36,200}+(?![\w/+=.:@%(-])")
"""A word that is too long and too random for a name."""
MAX_LINKS = 3
MIN_ADJACENT_KEY_CHARS = 20
"""Minimum length of a key directly after the word for it."""
NEARBY_CHARS = 60
"""Characters around the word for a password that are searched for a chosen one."""


def prose_spans(text: str, lowered: str) -> Iterator[Span]:
    """Yield values that people write beside the word for them."""
    searched = -1
    if len(text) >= MIN_LONE_CHARS:
        yield from _lone(text)
    for place in [place for word in PROSE_BEGINNINGS if word in lowered for place in places(lowered, word)]:
        word = _WORD.match(text, place)
        if word is None:
            continue
        for link in _links(text, word.end()):
            match = _SPOKEN.match(text, link.end())
            value = match["secret"].rstrip(".,;:)*_]}?…、。") if match is not None else ""
            if match is not None and _is_stated(word, link, value, match["opening"]):
                yield match.start("secret"), match.start("secret") + len(value)
                break
        if word["token"] is None and place // NEARBY_CHARS != searched:
            searched = place // NEARBY_CHARS
            yield from _chosen(text, word)


def _links(text: str, at: int) -> Iterator[re.Match[str]]:
    """Yield the possible links between a word and its value: "was changed to" has two ends."""
    linked = _LINKED.match(text, at)
    for _ in range(MAX_LINKS):
        if linked is None:
            break
        yield linked
        between = _SPOKEN.match(text, linked.end())
        linked = _LINKED.match(text, linked.end() - 1) if between and between["secret"].isalpha() else None
    direct = _DIRECT.match(text, at)
    if direct is not None:
        yield direct


def _lone(text: str) -> Iterator[Span]:
    """Yield long random words in a text that mentions secrets."""
    for found in _LONE.finditer(text):
        if is_random(found[0]) and not PUBLIC_VALUE.search(text, max(0, found.start() - 40), found.start()):
            yield found.span()


def _chosen(text: str, word: re.Match[str]) -> Iterator[Span]:
    start = max(text.rfind("\n", 0, word.start()) + 1, word.start() - NEARBY_CHARS)
    end = text.find("\n", word.end(), word.end() + NEARBY_CHARS)
    for said in _CHOSEN.finditer(text, start, end if end >= 0 else word.end() + NEARBY_CHARS):
        value = said[0]
        if _is_chosen(value) and not is_placeholder(value) and not is_technical(value):
            yield said.span()


def _is_chosen(value: str) -> bool:
    """Return whether a word has upper and lower case, digits and a sign, as many password policies require."""
    inner, digits = value[1:-1], sum(char.isdigit() for char in value)
    has_sign = any(char in "!@#$%&*" for char in inner) or (value[-1] in "!#$%&*" and digits >= 2)
    return (
        has_sign and digits > 0 and any(map(str.isupper, value)) and any(map(str.islower, value)) and "-" not in value
    )


def _is_stated(word: re.Match[str], link: re.Match[str], value: str, opening: str) -> bool:
    linked = link.re is _LINKED
    if is_uuid(value) and (not linked or "|" in link[0] or len(link[0].split()) > 1):
        return False
    if word["token"] is None:
        quoted = opening[:1] in tuple("\"'`«„“‘「")
        fits = is_strong(value, 4 if linked else 5) or (
            (linked or (quoted and not word["closed"])) and _is_spoken(value, quoted=quoted)
        )
    elif linked:
        fits = is_strong(value, 8) and sum(char.isdigit() for char in value) >= 2
    else:
        fits = is_dense(value) or (len(value) >= MIN_ADJACENT_KEY_CHARS and is_random(value))
    return fits and not (
        is_placeholder(value) or is_word(value) or is_technical(value) or is_path(value) or is_pattern(value)
    )


def _is_spoken(value: str, *, quoted: bool) -> bool:
    """Return whether a value without signs stands out as a secret: quoted, a long number, or several words in one."""
    if value.isdigit():
        return 6 <= len(value) <= 16
    if value.count("-") >= 2 and len(value) >= 14 and value.replace("-", "").isalpha():
        return True
    return quoted and len(value) >= 5 and value.isalpha() and not is_name_of_secret(value)
