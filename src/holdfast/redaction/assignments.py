"""Finds secrets by their names: NAME=value, "name": "value", --name value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.redaction.technical import SNAKE, is_technical
from holdfast.redaction.tokens import Span, is_random
from holdfast.redaction.values import (
    CERTAIN,
    LIKELY,
    WEAK,
    is_code,
    is_dense,
    is_name_of_secret,
    is_path,
    is_pattern,
    is_placeholder,
    is_strong,
    is_word,
    kind_of_name,
)

_NAME = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]{2,80}+)(?P<quote>[\\\"'\]`)*]{0,4}+)(?P<sign>[ \t]{0,30}+(?::=|=>|\?=|={1,3}|(?P<typed>(?::[ \t]{1,3}[&'*]{0,2}[A-Za-z][\w.<>\[\]|?]{1,30}+|(?:string|String|str))[ \t]{0,3}=(?=[ \t]{0,3}[\"'`]))|[:：](?!:|//))[ \t*]{0,30}+)"
)
_OPTION = re.compile(r"(?<![\w-])--?(?P<name>[A-Za-z][\w.-]{1,40}+)[ \t]{1,8}+(?!-)")
_VALUE = re.compile(
    r"(?:(?:new )?(?:\[\]byte|bytes|bytearray|str|Some|Ok|[\w.:]{0,30}(?:from|[fF]rom_?[hH]ex|[dD]ecode\w{0,8}|[eE]ncode|unhexlify|String|SecretStr|Secret|SecretString|[sS]ensitive|[pP]laintext|Password|GuardedString))\((?=b?[\"'`]))?(?:[bBfFrRuU@$]{1,2}(?=[\"']))?(?:\\{1,3}[\"'](?P<escaped>[^\"'\\\n]{1,2000}+)|\"(?P<double>(?:[^\"\\\n]|\\.){1,2000}+)\"?"
    r"|'(?P<single>(?:[^'\\\n]|\\.){1,2000}+)'?|`(?P<tick>[^`\n]{1,400}+)`?|(?P<bare>[^\s\"'`]{1,400}+))"
)
_CUTS = re.compile(r"[,;&|<>)}\]]|\\[nrt\"']")
_SHELL_CUTS = re.compile(r"[;&|<>()]|\\[nr\"']")

_HEADER = re.compile(r"(?:[A-Z][A-Za-z]{1,20}-){1,4}(?:Key|Auth)\Z")
_USER = re.compile(
    r"(?i)\b(?:user(?:name)?|login|e-?mail|account|benutzer(?:name)?|usuario|utente|usuário|identifiant|логин)\b[\"']?\s{0,2}[:=]"
)
"""Text before the password in a pair of user and password."""
MIN_RANDOM_CHARS = 16
MIN_KEY_CHARS = 24
MAX_CHARS_BEFORE = 200
"""How much of a line before a name is read: an endless line would be read again for each name in it."""


def assigned_spans(text: str) -> Iterator[Span]:
    """Yield the values assigned to names of secrets."""
    for named in _NAME.finditer(text):
        kind = kind_of_name(named["name"])
        if kind is None:
            continue
        at = named.end()
        if at < len(text) and text[at] in "\r\n":
            continue
        value = _VALUE.match(text, at)
        if value is not None and (span := _assigned(text, named, kind, value)) is not None:
            yield span


def option_spans(text: str) -> Iterator[Span]:
    """Yield the values of command options that name secrets."""
    for named in _OPTION.finditer(text):
        kind = kind_of_name(named["name"])
        value = _VALUE.match(text, named.end()) if kind in (CERTAIN, LIKELY) else None
        if value is None:
            continue
        group = value.lastgroup or "bare"
        given = value[group]
        if group == "bare":
            given = _SHELL_CUTS.split(given, maxsplit=1)[0].rstrip(",.)]}")
        if not given or is_placeholder(given) or is_word(given):
            continue
        if kind == LIKELY and (is_path(given) or SNAKE.match(given)):
            continue
        ends = text[value.start(group) + len(given) : value.start(group) + len(given) + 2]
        plain = group == "bare" and is_code(given) and not is_strong(given, 4)
        if not plain or (kind == CERTAIN and (ends[:1] in ("", "\n") or ends == " -")):
            yield value.start(group), value.start(group) + len(given)


def _assigned(text: str, named: re.Match[str], kind: str, value: re.Match[str]) -> Span | None:
    group = value.lastgroup or "bare"
    given, start = value[group], value.start(group)
    name, sign = named["name"].lstrip("-"), "=" if named["typed"] else named["sign"].strip("* \t")
    if sign in ("==", "===") and group == "bare":
        return None
    if group != "bare":
        ok = _is_quoted_secret(name, kind, given) and (sign not in ("==", "===") or is_strong(given, 5))
        return (start, start + len(given)) if ok else None
    tight = named["sign"] in ("=", ":=")
    before = text[max(0, named.start() - MAX_CHARS_BEFORE) : named.start()].rpartition("\n")[2].strip(" \t-")
    ends = start + len(given)
    alone = before in ("", "export", "set", "+", "env", "$env:", "$env", "#", "//", "local") and text[
        ends : ends + 1
    ] in ("", "\n", "\r")
    is_variable = name.isupper() or ("_" in name and name.upper() == name)
    cut = given if alone and not is_variable else _cut(given, is_variable=is_variable)
    given = cut.rstrip(",;")
    followed = text[start + len(given) : start + len(given) + 1]
    if not given or is_placeholder(given) or is_word(given):
        return None
    with_user = "(" not in before and "{" not in before and _USER.search(before) is not None
    in_pairs = with_user or ("=" in before and "(" not in before and before[-1:].isalnum())
    ok = _is_bare_secret(
        name,
        kind,
        given,
        tight=tight,
        alone=alone,
        is_variable=is_variable,
        followed=followed,
        sign=sign,
        in_pairs=in_pairs,
        with_user=with_user,
    )
    return (start, start + len(given)) if ok else None


def _cut(value: str, *, is_variable: bool) -> str:
    return (_SHELL_CUTS if is_variable else _CUTS).split(value, maxsplit=1)[0]


def _is_quoted_secret(name: str, kind: str, value: str) -> bool:
    if is_placeholder(value) or is_word(value) or is_name_of_secret(value) or is_pattern(value):
        return False
    if " " in value:
        words = value.split()
        return (
            kind == CERTAIN
            and len(words) <= 6
            and not any(is_word(word.lower()) for word in words)
            and (name.isupper() or is_strong(value.replace(" ", ""), 8))
        )
    if kind == CERTAIN:
        return len(value) >= 3
    if kind == LIKELY:
        return (
            len(value) >= 6
            and not is_path(value)
            and (is_strong(value, 6) or "secret" in name.lower() or name.isupper())
            and (not is_technical(value) or is_dense(value))
        )
    return is_dense(value) and (is_random(value) or _HEADER.match(name) is not None) and not is_path(value)


def _is_bare_secret(
    name: str,
    kind: str,
    value: str,
    *,
    tight: bool,
    alone: bool,
    is_variable: bool,
    followed: str,
    sign: str,
    in_pairs: bool,
    with_user: bool,
) -> bool:
    if name == "PASS" and sign == ":":
        return False  # the outcome of a test
    if kind == WEAK and sign == ":" and "-" in name:
        is_header = is_dense(value) and _HEADER.match(name) is not None
        return (is_header or (len(value) >= MIN_RANDOM_CHARS and is_random(value))) and not is_path(value)
    if kind == WEAK and alone and not is_variable and name.lower().endswith(("auth", "session")):
        return is_strong(value, 8) and not is_path(value) and (is_random(value) or (tight and "." in name))
    if kind == WEAK and alone and len(value) >= MIN_KEY_CHARS and is_random(value):
        return not is_path(value)
    if kind == WEAK:
        return is_variable and tight and is_dense(value) and not is_path(value)
    if kind == LIKELY and is_path(value):
        return False
    if is_variable and tight and sign == "=":
        return not value.isdigit() or (len(value) > 5 if kind == LIKELY else name.lower() != "pass")
    if value.isdigit():
        return kind == CERTAIN and len(value) >= 4 and name.lower() not in ("pass", "passes") and (alone or tight)
    if is_code(value):
        if kind == CERTAIN and alone and tight and is_strong(value, 5) and value.count("(") != value.count(")"):
            return True
        if kind != CERTAIN or "." in value or "(" in value or "[" in value or (name.lower() == "pass" and not tight):
            dense = is_strong(value, 8) and is_dense(value) and "." not in value
            return (dense or ("-" in name and is_strong(value, 5))) and "(" not in value and "[" not in value
        if is_strong(value, 5) and followed not in ("(", "["):
            return True
        if (tight or with_user) and followed in ("", " ", "\n", ",") and in_pairs:
            return True
        return (tight and followed == ";") or (
            alone and (tight or sign in (":", "：")) and value[1:].islower() and len(value) >= 5 and value.isalpha()
        )
    if kind == CERTAIN:
        return is_strong(value, 4) or with_user or (alone and len(value) >= 4 and "(" not in value)
    return is_strong(value, 5 if "-" in name else 6) and any(char.isdigit() for char in value) and "(" not in value
