"""Finds secrets whose name and value are written apart: XML, lists of variables, arguments. Pure, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.redaction.tokens import Span, is_random
from holdfast.redaction.values import (
    CERTAIN,
    WEAK,
    is_code,
    is_dense,
    is_path,
    is_placeholder,
    is_strong,
    is_word,
    kind_of_name,
)

_APART = (
    # The secret's name and its value are written apart.
    re.compile(
        r"<(?P<name>[\w.:-]{2,60}+)(?:\s[^<>\n]{0,200}+)?>\s{0,3}(?:<!\[CDATA\[)?(?P<secret>[^<>\s\]]{1,400}+)(?:\]\]>)?\s{0,3}</"
    ),
    re.compile(
        r"<\w{1,40}\s(?:[^<>\n]{0,100}\s)?(?:name|key|id)=[\"'](?P<name>[\w.:-]{2,80}+)[\"'][^<>\n]{0,60}>\s{0,3}(?P<secret>[^<>\s]{1,400}+)\s{0,3}</"
    ),
    re.compile(
        r"(?:name|key|id)=[\"'](?P<name>[\w.:-]{2,80}+)[\"']\s{1,4}(?:type=[\"']\w+[\"']\s{1,4})?value=[\"'](?P<secret>[^\"'\n]{1,400}+)[\"']"
    ),
    re.compile(
        r"(?:name|key)\\?[\"']?\s{0,3}:\s{0,3}\\?[\"']?(?P<name>[\w.-]{2,80}+)\\?[\"']?,?\s{1,40}\\?[\"']?value\\?[\"']?\s{0,3}:\s{0,3}\\?[\"']?(?P<secret>[^\s\"'\\]{1,400}+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"[\"'](?P<name>[\w.-]{2,60}+)[\"']\s{0,3},\s{0,30}(?P<mark>[\"'])(?P<secret>(?:\\.|(?!(?P=mark))[^\n]){1,400}+)(?P=mark)"
    ),
    re.compile(r"(?<!\w)(?P<name>\w{3,60}+)\(\s{0,3}[\"'](?P<secret>[^\"'\n]{4,400}+)[\"']"),
    re.compile(
        r"(?<!\S)(?:ENV|ARG|setx|set -\w{1,4}|SetEnv|#define|config:set|setenv|secret (?:put|set)|variables? set|env add|env:set|fastcgi_param|param)\s+(?P<name>\w{2,60}+)\s+[\"']?(?P<secret>[^\s\"']{1,400}+)"
    ),
)


_NEEDLES = (
    ("</",),
    ("</",),
    ("value=",),
    ("value",),
    ("',", '",'),
    ('("', "('"),
    ("env", "arg", "set", "param", "secret ", "define", "variable", "env add"),
)


def apart_spans(text: str, lowered: str) -> Iterator[Span]:
    """Yield secrets whose name and value are written apart: XML, lists of variables, arguments."""
    for number, pattern in enumerate(_APART):
        if not any(needle in lowered for needle in _NEEDLES[number]):
            continue
        for found in pattern.finditer(text):
            kind = kind_of_name(found["name"])
            if kind is None:
                continue
            value = found["secret"]
            if is_placeholder(value) or is_word(value) or is_path(value):
                continue
            if kind == WEAK and not (is_dense(value) and is_random(value)):
                continue
            apart = number in (4, 5) and not (number == 4 and found["name"].isupper())
            if is_strong(value, 5) if kind == CERTAIN else is_strong(value, 8):
                if not (apart and (" " in value or is_code(value))):
                    yield found.span("secret")
            elif kind == CERTAIN and not apart and len(value) >= 4 and " " not in value:
                yield found.span("secret")
