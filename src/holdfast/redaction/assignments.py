"""Secrets by the name they are given: NAME=value, "name": "value", --name value, and what people write about them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.redaction.literals import places
from holdfast.redaction.tokens import Span, is_random
from holdfast.redaction.values import (
    CERTAIN,
    LIKELY,
    WEAK,
    is_code,
    is_dense,
    is_path,
    is_placeholder,
    is_strong,
    is_word,
    kind_of_name,
)

_NAME = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]{2,80}+)(?P<quote>[\\\"'\]`)*]{0,4}+)(?P<sign>[ \t]{0,30}+(?::=|=>|\?=|={1,3}|[:：](?!:|//))[ \t*]{0,30}+)"
)
_OPTION = re.compile(r"(?<![\w-])--?(?P<name>[A-Za-z][\w.-]{1,40}+)[ \t]{1,8}+(?!-)")
_VALUE = re.compile(
    r"(?:(?:\[\]byte|bytes|Buffer\.from|b64decode|SecretStr|Secret)\((?=[\"'`]))?(?:[bBfFrRuU@$]{1,2}(?=[\"']))?(?:\\{1,3}[\"'](?P<escaped>[^\"'\\\n]{1,2000}+)|\"(?P<double>(?:[^\"\\\n]|\\.){1,2000}+)\"?"
    r"|'(?P<single>(?:[^'\\\n]|\\.){1,2000}+)'?|`(?P<tick>[^`\n]{1,400}+)`?|(?P<bare>[^\s\"'`]{1,1000}+))"
)
_CUTS = re.compile(r"[,;&|<>)}\]]|\\[nrt\"']")
_SHELL_CUTS = re.compile(r"[;&|<>()]|\\[nr\"']")
_NEXT_LINE = re.compile(r"[\"']?\n[ \t]{1,40}(?=\S)")

_PROSE_WORDS = (
    r"passwords?|passwd|passphrase|passcode|passwort|kennwort|pwd|mot de passe|contraseña|contrasena|palabra clave|senha|palavra-passe|hasło|haslo"
    r"|wachtwoord|parola(?: d'ordine)?|lösenord|şifre|salasana|heslo|adgangskode|passord|jelszó|пароль|密码|密碼|口令|パスワード|비밀번호|mật khẩu|κωδικός|סיסמה|كلمة المرور|parole"
)
_WORDS_FOR_KEYS = (
    r"(?:api|access|secret|private|auth|signing|encryption|license|deploy|shared|master|service)[ -]key|token|secret|api-?key|credentials?"
    r"|schlüssel|clé(?: api| d'api| secrète)?|clave(?: api| secreta)?|chave(?: api)?|jeton|токен|密钥|令牌|ключ"
)
_PROSE_BEGINNINGS = (
    "pass", "kennwort", "pwd", "mot de passe", "contrase", "palabra clave", "senha", "palavra-passe", "has", "wachtwoord", "parol", "lösenord",
    "şifre", "salasana", "heslo", "adgangskode", "jelszó", "пароль", "密", "口令", "パスワード", "비밀번호", "mật khẩu", "κωδικός", "סיסמה",
    "كلمة المرور", "api", "access", "secret", "private", "auth", "signing", "encryption", "license", "deploy", "shared", "master", "service",
    "token", "credential", "schlüssel", "clé", "clave", "chave", "jeton", "токен", "令牌", "ключ",
)  # fmt: skip
"""With one of these, in lower case, every match begins."""
_LINKS = r"is|was|are|be|to|as|ist|lautet|war|ist jetzt|heißt|es|est|sera|era|è|é|jest|är|er|on|to jest|будет|это|for now is|equals|became|becomes|stays"
_PROSE_WORD = re.compile(
    r"(?<![\w.$/-])(?:(?P<password>" + _PROSE_WORDS + r")|(?P<token>" + _WORDS_FOR_KEYS + r"))[\"'*_`)]{0,4}+",
    re.IGNORECASE,
)
_LINKED = re.compile(
    r"(?:[ \t\n]{1,3}(?:[^\s:=|\"'`.,;]{1,20}[ \t]{1,3}){0,5}?(?:" + _LINKS + r")[ \t]{0,2}[:：=]?\s{1,3}"
    r"|[ \t]{0,3}[(\[][^()\[\]\n]{1,40}[)\]][ \t]{0,2}[:：=][ \t]{0,3}"
    r"|(?:[ \t]{1,2}[^\s:=|\"'`.,;]{1,20}){0,4}?[ \t]{0,3}(?:[:：=]|->|→|=>|\|)[*_]{0,2}\s{0,3}|\s?(?:は|を|是|为|為|는|은|가)[ \t]{0,3})",
    re.IGNORECASE,
)
_DIRECT = re.compile(r"\s{1,2}")
_SPOKEN = re.compile(r"(?P<opening>[\"'`*«„“(]{0,3}+)(?P<secret>[^\s\"'`«»„“”|<>]{2,400}+)")
_TECHNICAL = re.compile(
    r"(?i)(?:sha|utf|base|oauth|ipv|md|http|v|rfc|p|argon|pbkdf|python|ed|rs|es|hs|ps|aes|x|level|step|phase|line|test|case|type|item|issue|pr|py|s|w|i|k|n|u|f)"
    r"[-_]?\d{1,5}(?:[-_.]\w{1,8})?\Z|\d+(?:\.\d+)*(?:st|nd|rd|th|ms|s|kb|mb|gb|k|m|h|d|x|%|px|min)?\Z|[A-Z]{1,5}-\d{1,5}\Z|#\d+\Z|\d{4}-\d\d-\d\d\S*\Z|\d+[-–/]\w+\Z"
    r"|[\w.]+\(\S*\Z|--?\w\S*\Z|[0-9a-f]{7,10}\Z|(?-i:[A-Z]+\d*(?:[-_./][A-Z0-9]+)+\Z)|[A-Z][+#]{1,2}\Z|[^()]*\([^()]*\Z|[^{}]*\{[^{}]*\Z"
)
"""Names of methods, versions, measures, identifiers and the like: they hold digits and are no secrets."""
_HEADER = re.compile(r"(?:[A-Z][A-Za-z]{1,20}-){1,4}(?:Key|Auth)\Z")
_SNAKE = re.compile(r"(?i)(?>[a-z_]+_)[a-z0-9]++(?:_[a-z0-9]++)*+\Z|[a-z_]++\d(?:_[a-z0-9]++)++\Z|[A-Za-z]+[=:/]\S*\Z")
MOST_BEFORE = 200
"""So much of a line is read before a name: a line without an end would be read again for each name in it."""


def assigned_spans(text: str) -> Iterator[Span]:
    """Values of names that name secrets."""
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
    """Values of a command's options that name secrets."""
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
        if kind == LIKELY and (is_path(given) or _SNAKE.match(given)):
            continue
        ends = text[value.start(group) + len(given) : value.start(group) + len(given) + 2]
        plain = group == "bare" and is_code(given) and not is_strong(given, 4)
        if not plain or (kind == CERTAIN and (ends[:1] in ("", "\n") or ends == " -")):
            yield value.start(group), value.start(group) + len(given)


def prose_spans(text: str, lowered: str) -> Iterator[Span]:
    """Values that people write down beside the word for them."""
    for place in [place for word in _PROSE_BEGINNINGS if word in lowered for place in places(lowered, word)]:
        word = _PROSE_WORD.match(text, place)
        if word is None:
            continue
        for link in (_LINKED.match(text, word.end()), _DIRECT.match(text, word.end())):
            said = _SPOKEN.match(text, link.end()) if link is not None else None
            value = said["secret"].rstrip(".,;:)*_]}?…、。").removesuffix("です") if said is not None else ""
            linked = link is not None and link.re is _LINKED
            if said is not None and _is_told(
                value, said["opening"], is_password=word["password"] is not None, linked=linked
            ):
                yield said.start("secret"), said.start("secret") + len(value)
                break


def _is_told(value: str, opening: str, *, is_password: bool, linked: bool) -> bool:
    if is_password:
        fits = is_strong(value, 4 if linked else 5) or (linked and _is_spoken(value, opening))
    elif linked:
        fits = is_strong(value, 8) and sum(char.isdigit() for char in value) >= 2
    else:
        fits = is_dense(value)
    return fits and not (is_placeholder(value) or is_word(value) or _is_technical(value) or is_path(value))


def _is_technical(value: str) -> bool:
    return bool(_TECHNICAL.match(value)) or (bool(_SNAKE.match(value)) and not is_dense(value))


def _is_spoken(value: str, opening: str) -> bool:
    """Whether a value without signs of its own is set off as one: in quotes, a long number, several words in one."""
    if value.isdigit():
        return 6 <= len(value) <= 16
    if value.count("-") >= 2 and len(value) >= 14 and value.replace("-", "").isalpha():
        return True
    return (
        opening[:1] in "\"'`«„“"
        and bool(opening)
        and len(value) >= 5
        and value.isalpha()
        and kind_of_name(value) is None
    )


def _assigned(text: str, named: re.Match[str], kind: str, value: re.Match[str]) -> Span | None:
    group = value.lastgroup or "bare"
    given, start = value[group], value.start(group)
    name, sign = named["name"].lstrip("-"), named["sign"].strip("* \t")
    if sign in ("==", "===") and group == "bare":
        return None
    if group != "bare":
        return (start, start + len(given)) if _is_quoted_secret(name, kind, given, is_fitting=sign != "?=") else None
    tight = named["sign"] in ("=", ":=")
    before = text[max(0, named.start() - MOST_BEFORE) : named.start()].rpartition("\n")[2].strip(" \t-")
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
    in_pairs = "=" in before and "(" not in before and before[-1:].isalnum()
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
    )
    return (start, start + len(given)) if ok else None


def _cut(given: str, *, is_variable: bool) -> str:
    return (_SHELL_CUTS if is_variable else _CUTS).split(given, maxsplit=1)[0]


def _is_quoted_secret(name: str, kind: str, value: str, *, is_fitting: bool) -> bool:
    if is_placeholder(value) or is_word(value) or (kind_of_name(value) is not None and not is_strong(value, 4)):
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
            and not _is_technical(value)
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
) -> bool:
    if name == "PASS" and sign == ":":
        return False  # how tests tell their outcome
    if kind == WEAK and sign == ":" and "-" in name:
        return is_dense(value) and (is_random(value) or _HEADER.match(name) is not None) and not is_path(value)
    if kind == WEAK:
        return is_variable and tight and is_dense(value) and not is_path(value)
    if kind == LIKELY and is_path(value):
        return False
    if is_variable and tight and sign == "=":
        return not value.isdigit() or (len(value) > 5 if kind == LIKELY else name.lower() != "pass")
    if value.isdigit():
        return kind == CERTAIN and len(value) >= 4 and name.lower() not in ("pass", "passes") and (alone or tight)
    if is_code(value):
        if kind != CERTAIN or "." in value or "(" in value or "[" in value or (name.lower() == "pass" and not tight):
            dense = is_strong(value, 8) and is_dense(value) and "." not in value
            return (dense or ("-" in name and is_strong(value, 5))) and "(" not in value and "[" not in value
        if is_strong(value, 5) and followed not in ("(", "["):
            return True
        if tight and followed in ("", " ", "\n") and in_pairs:
            return True
        return (tight and followed == ";") or (
            alone and (tight or sign in (":", "：")) and value.islower() and len(value) >= 5 and value.isalpha()
        )
    if kind == CERTAIN:
        return is_strong(value, 4) or (alone and len(value) >= 4 and "(" not in value)
    return is_strong(value, 5 if "-" in name else 6) and any(char.isdigit() for char in value) and "(" not in value
