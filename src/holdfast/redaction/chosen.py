"""Finds passwords that people choose: words with digits for letters or at the end, capitals, and signs. Pure, no I/O.

Nothing else is written like "Br1dge-Over": this form is masked everywhere, the others only near a word about logging
in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.redaction.literals import shortest
from holdfast.redaction.technical import is_technical
from holdfast.redaction.tokens import Span
from holdfast.redaction.values import is_blanked
from holdfast.redaction.words import FOREIGN, PASSWORDS, PASSWORDS_WITHOUT_SPACES

MIN_CHARS, MAX_CHARS, MAX_DISGUISED_CHARS = 6, 36, 32
MAX_DIGITS, MAX_DIGITS_LOWER = 5, 2
CHARS_BEFORE = 160
"""Characters before a word that are searched for a mention of logging in; likewise the lines before, and characters after."""
LINES_BEFORE, CHARS_AFTER, CLOSE_CHARS = 3, 80, 70

_CANDIDATE = re.compile(
    r"(?<![^\s\"'`«»„“”‘’:=,;|<>()\[\]{}%/@：，。（「『は를을为為是成了])(?<!://)(?=[^\W_]|!)(?=[^\s\d\"'`:=,;|<>()\[\]{}/\\@.]{0,39}\d)[^\s\"'`«»„“”‘’:=,;|<>()\[\]{}/\\@.，。、；：（）]{6,40}+(?![/\\=+]|\.\w|\()"
)
_BETWEEN = re.compile(r"[-_!#$%&*+~?]+")
_INSIDE = re.compile(r"[^\W\d_]\d{1,2}[^\W\d_]")
_SIGN = re.compile(r"[!#$%&*+~?]")
_WORDLIKE = re.compile(r"[^\W\d_A-Z]*(?:[A-Z][^\W\d_A-Z]+){0,2}\Z|[A-Z]\Z")
_LOWER_DISGUISED = re.compile(r"[^\W\d_]{2,20}[013457][^\W\d_]{2,20}\Z")
_PLAIN = re.compile(r"(?=\D{0,30}\d)[^\W_]{2,30}\Z")
_FOREIGN = re.compile("|".join(map(re.escape, FOREIGN)), re.IGNORECASE)
_PASSWORD_HINTS = shortest([
    *map(str.lower, FOREIGN), "pass", "pw", "cred", "wifi", "wi-fi", "login", "it's", "tried", "works", "denied", "root", "admin", "guest",
    "demo", "postgres", "sa:", "pi:", "ubuntu", "superuser", "ec2-user",
])  # fmt: skip
"""A text without any of these, in lower case, states no plain word as a password."""
_BY_NAME = re.compile(
    r"(?<![\w/.:-])(?:root|admin|administrator|guest|demo|postgres|sa|pi|ubuntu|sysadmin|superuser|ec2-user)(?::|[ \t]?/[ \t]?)[\"'`]?\Z|(?i:denied|login|creds?|works)\b[^\n]{0,20}[\s(\"'][a-z]{2,20}[:/]\Z"
)
"""A user name directly before: "root:abc12" means nothing else."""
_STATED = re.compile(
    r"(?i)\b(?:password|passwd|passphrase|passcode|pw|(?-i:pass)|pwd|creds?|wifi|wi-fi|login)\b(?:'s)?(?: (?:for|of|on|to|from|at|in) (?:[\w'-]{1,20} ){1,3}\w{1,20})?"
    r"(?:\s(?:is|was|are|=)|[:,]|\s?->|\s(?:[\w']{1,12}\s){0,3}?(?:to|tried|using|with|now))\s{1,2}(?:(?:just|now|still|simply|called|currently|again|probably|either)\s)?[\"'`(]?\Z"
    r"|password's\s[\"'`]?\Z|\bit's\s[\"'`]?\Z|\btried\s[\"'`(]{1,2}\Z"
)
_NAMED_SO = re.compile(
    r"(?i)(?:.{0,40}(?:base|utf|sha|md5|http|log\d|web\d|ipv|int|float|win|python|py\d|ec2|ed2|oauth|vec|ascii|iso|\bs3|x86|x64|v\d|i18|l10|a11|e2e|p2p|b2b"
    r"|socks|pkcs|route|asn|unicode|html|css|es\d|ieee|bzip|gzip|zip|lib|neo4|n8n|tier|stage|phase|step|level|line|page|test|part|rev|type|arm|amd|gpt|llama|uuid|crc)\d.{0,40}"
    r"|[a-z]2[a-z].{0,40}|[a-z]{1,40}2[a-z]{1,40}|(?:log|neo|ctrl|mp|h|p)4[a-z]{1,40}|[a-z]\d{1,4}|\d+[a-z]{1,3})\Z"
)
"""Names that contain a digit."""
_SPEAKS_OF_LOGIN = re.compile(
    r"(?i)pass|pwd|(?<![^\W_])pw(?![^\W_])|secret|cred|log(?:ged|ging)?[ -]?[io]n\b|\buser|auth|sign(?:ed)?[ -]?in|\bpin\b|psk|wpa|wi-?fi|wlan|vault|unlock|sudo|rcon|\broot\b|\badmin|\bchap\b|zugang|anmeld|\baccess code"
    rf"|(?<![^\W_])(?:{PASSWORDS})|{PASSWORDS_WITHOUT_SPACES}"
)
_SPEAKS_OF_PASSWORDS = re.compile(
    rf"(?i)\bpassword\b|\bpw\b|\bpwd\b|\bcreds\b|(?<![^\W_])(?:{PASSWORDS})(?![^\W_])|{PASSWORDS_WITHOUT_SPACES}"
)
_COMMAND = re.compile(r"(?:^|\s)(?:--?[a-zA-Z][\w-]{0,30}(?:[=\s]|\Z)|/[a-z]{2,12}\s|[$#]\s)", re.MULTILINE)
_NAMING = re.compile(
    r"\b(?:git|mkdir|cd|mv|ls|rm|touch|kubectl|docker|gh|pytest|npm)\s|(?:-[bnofmtcirlhdegHTNLIDSR]|--[\w-]{0,20}(?:name|title|tag|branch|output|file|id|ids|label|group|role|host|region|bucket|description|message|subject|env|type|format|stack|template|instance|target|project|profile|config|path|dir|image|version|filter|query|resource))[=\s]+[\"']?\Z"
)
"""Commands and options that take a name."""
_BEFORE = re.compile(
    r"(?:(?:^|\s)(?:-[pPwWkKaAsUu]|--?[\w-]{0,20}(?:pw|pass|passwd|password|auth|user|cred|creds|secret|token))(?:=|\s+)[\"']?(?:[\w.@\\/-]{1,40}[:%])?"
    r"|(?:^|[\s\"'=])(?:[a-z][\w.-]{1,30}@)?[a-z][\w.-]{1,30}:\s?|(?:^|[\s\"'=(])[a-z][\w.-]{1,30}\s?/\s?|[^\W\d_]\s\*\s\"?|\b(?:echo|printf)\s[^\n]{0,30})\Z"
)
"""Directly before: an option, a user name with a colon or a slash, or input piped into a command."""


def chosen_spans(text: str, lowered: str) -> Iterator[Span]:
    """Yield passwords that a person chose."""
    speaks: bool | None = None
    for found in _CANDIDATE.finditer(text):
        value = found[0].rstrip("?")
        if not any(map(str.isdigit, value)) or is_blanked(value):
            continue
        start, end = found.start(), found.start() + len(value)
        if is_disguised(value) or (is_coined(value) and _is_coined_secret(text, value, start, end)):
            yield start, end
        elif _PLAIN.match(value) and not _NAMED_SO.match(value) and not is_technical(value):
            if speaks is None:
                speaks = any(word in lowered for word in _PASSWORD_HINTS)
            if speaks and _is_stated(text, value, start, end):
                yield start, end


def _is_coined_secret(text: str, value: str, start: int, end: int) -> bool:
    """Return whether something near a coined value mentions logging in."""
    has_capital = any(map(str.isupper, value))
    if has_capital and _is_typed(text, value, start):
        return True
    if not has_capital and sum(map(str.isdigit, value)) > MAX_DIGITS_LOWER:
        return False
    return _is_near_login(text, start, end) if has_capital else _is_near_password(text, start, end)


def _is_stated(text: str, value: str, start: int, end: int) -> bool:
    """Return whether the text states that a plain value is a password."""
    before, behind = _around(text, start, end, lines=1)
    if _FOREIGN.search(text, before, start) or _FOREIGN.search(text, end, min(behind, end + CLOSE_CHARS)):
        return True
    if _BY_NAME.search(text, before, start):
        return True
    match = _STATED.search(text, max(before, start - CLOSE_CHARS), start)
    return match is not None or (
        _LOWER_DISGUISED.match(value) is not None
        and bool(_SPEAKS_OF_PASSWORDS.search(text, before, start) or _SPEAKS_OF_PASSWORDS.search(text, end, behind))
    )


def is_disguised(value: str) -> bool:
    """Return whether a value is several words with a capital, one of them with a digit for a letter."""
    parts = [part for part in _BETWEEN.split(value) if part]
    if len(parts) < 2 or not 8 <= len(value) <= MAX_DISGUISED_CHARS or not all(map(str.isalnum, parts)):
        return False
    words = ["".join(filter(str.isalpha, part)) for part in parts]
    if not all(word[1:].islower() or len(word) < 2 for word in words):
        return False
    inside = [part for part, word in zip(parts, words, strict=True) if len(word) > 2 and _INSIDE.search(part)]
    digits = sum(map(str.isdigit, value))
    return (
        bool(inside)
        and not any(map(_NAMED_SO.match, inside))
        and digits < MAX_DIGITS
        and any(word[:1].isupper() for word in words)
    )


def is_coined(value: str) -> bool:
    """Return whether a value combines words, capitals, digits and signs as chosen passwords do."""
    parts = [part for part in _BETWEEN.split(value) if part]
    digits = sum(map(str.isdigit, value))
    if not MIN_CHARS <= len(value) <= MAX_CHARS or not 0 < digits <= MAX_DIGITS or not all(map(str.isalnum, parts)):
        return False
    words = [word for part in parts if (word := "".join(filter(str.isalpha, part)))]
    if not all(map(_WORDLIKE.match, words)) or max(map(len, words), default=0) < 3:
        return False
    mixed = [part for part in parts if not part.isalpha() and not part.isdigit()]
    if any(map(_NAMED_SO.match, mixed)):
        return False
    has_capital, has_inside = any(map(str.isupper, value)), any(map(_INSIDE.search, parts))
    if len(parts) > 1 or _SIGN.search(value):
        return has_capital or has_inside
    return has_capital and has_inside


def _is_near_login(text: str, start: int, end: int) -> bool:
    before, behind = _around(text, start, end)
    return bool(
        _BEFORE.search(text, before, start)
        or _SPEAKS_OF_LOGIN.search(text, before, start)
        or _SPEAKS_OF_LOGIN.search(text, end, behind)
    )


def _is_typed(text: str, value: str, start: int) -> bool:
    """Return whether two words and a digit are an argument of a command with options, and not a name."""
    if sum(len(part) > 2 and not part.isdigit() for part in _BETWEEN.split(value)) < 2:
        return False
    before = max(text.rfind("\n", max(0, start - CHARS_BEFORE), start) + 1, start - CHARS_BEFORE, 0)
    return _COMMAND.search(text, before, start) is not None and not _NAMING.search(text, before, start)


def _is_near_password(text: str, start: int, end: int) -> bool:
    before, behind = _around(text, start, end)
    return bool(_SPEAKS_OF_PASSWORDS.search(text, before, start) or _SPEAKS_OF_PASSWORDS.search(text, end, behind))


def _around(text: str, start: int, end: int, lines: int = LINES_BEFORE) -> Span:
    """Return the span around a word that may reveal what it is."""
    before = start
    for _ in range(lines):
        before = max(start - CHARS_BEFORE, 0, text.rfind("\n", max(0, start - CHARS_BEFORE), max(before - 1, 0)) + 1)
    behind = text.find("\n", end, end + CHARS_AFTER)
    return before, behind if behind >= 0 else min(len(text), end + CHARS_AFTER)
