"""Secrets are taken out of a text before anything of it is kept. Pure, no I/O.

What looks like a key, a token or a password is replaced, and so is whatever stands where one belongs. Hashes of commits
and UUIDs stay: they are what an agent needs in order to find its work again.
"""

from __future__ import annotations

import re

MASK = "[redacted]"
ROUNDS = 50
"""A secret taken out can lay open the next one; nearly always the second round finds nothing."""

_NAMES = (
    r"passwords?|passwd|passphrase|passcode|secrets?|tokens?(?=[^a-z]|$)|api[_-]?keys?|access[_-]?keys?"
    r"|secret[_-]?keys?|private[_-]?keys?|signing[_-]?keys?|encryption[_-]?keys?|account[_-]?key|credentials?|_pwd|_pw"
)
"""What a name holds whose value is a secret."""
_CERTAIN = re.compile(r"passw|passphrase|passcode|_pwd|_pw", re.IGNORECASE)
"""Names whose value is masked however harmless it looks."""
_HARMLESS = re.compile(
    r"\$|<|\[redacted\]|(?:true|false|null|none|nil|undefined|required|optional|missing|invalid|expired|str|string|int"
    r"|bytes|bool|any)\b|[A-Za-z_.]+\(|\d{1,5}(?!\w)",
    re.IGNORECASE,
)
"""How a value begins that is a reference, a type, a call or a small number."""

_QUOTED_OR_WORD = r"(?:\"(?:[^\"\\\n]|\\.){1,4000}\"|'(?:[^'\\\n]|\\.){1,4000}'|\[redacted\]|[^\s\"',;&|)}\]]+)"

_WHOLE = [
    # A key's block, also one whose end was cut off.
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    r"\bsk-(?:ant|proj|live|test|or|svcacct|admin)-[A-Za-z0-9_-]{6,}",
    r"\bsk-(?=[A-Za-z]*\d)[A-Za-z0-9]{16,}",
    r"\b[rsp]k_(?:live|test)_[A-Za-z0-9]{8,}",
    r"\bwhsec_[A-Za-z0-9+/=]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{16,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bgl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_-]{16,}",
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    r"\bxox[abceoprs]-[A-Za-z0-9-]{8,}",
    r"\bxapp-[A-Za-z0-9-]{8,}",
    r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{8,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,3}",
    r"\bhf_[A-Za-z0-9]{16,}",
    r"\bnpm_[A-Za-z0-9]{20,}",
    r"\bpypi-[A-Za-z0-9_-]{32,}",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\bya29\.[A-Za-z0-9_-]{16,}",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"\bdo[opr]_v1_[a-f0-9]{32,}",
    r"\bAGE-SECRET-KEY-1[A-Z0-9]{20,}",
    # A bot of Telegram's: its number, a colon and the key.
    r"(?:(?<![A-Za-z0-9])|(?<=bot))\d{6,12}:[A-Za-z0-9_-]{30,}",
]

_VALUES = [
    # Headers.
    r"(?P<keep>(?i:\b(?:proxy-)?authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?i:(?:bearer|basic|token|digest|negotiate)\s+)?)"
    r"(?P<secret>[^\s\"',;\[]+)",
    r"(?P<keep>(?i:\b(?:x-api-key|api-key|x-auth-token|x-[a-z-]{1,30}-token))[\"']?\s{0,4}:\s{0,4}[\"']?)"
    r"(?P<secret>[^\s\"',;\[]+)",
    r"(?P<keep>(?i:\b(?:set-)?cookie)[\"']?\s{0,4}:\s{0,4}[\"']?)(?P<secret>[A-Za-z0-9_.-]+=[^\r\n\"'\[]+)",
    r"(?P<keep>\b(?i:bearer|basic)\s+)(?P<secret>(?=[A-Za-z._~+/-]*[\d=])[A-Za-z0-9._~+/-]{12,}={0,2})",
    # URLs: the password of user:password@host, a token in the user's place, a key among the parameters.
    r"(?P<keep>\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/@:\"'<>]{0,200}:)(?P<secret>[^\s/\"'<>\[]{1,400})(?=@)",
    r"(?P<keep>\b[A-Za-z][A-Za-z0-9+.-]{1,20}://)(?P<secret>[A-Za-z0-9_-]{20,400})(?=@)",
    r"(?P<keep>[?&](?i:[a-z_-]{0,30}(?:token|secret|password|passwd|signature|sig|api_?key|key))=)"
    r"(?P<secret>[^\s&\"'#\[<>]+)",
    # Arguments of commands.
    r"(?P<keep>(?<![\w-])--?(?i:[a-z-]{0,20}(?:password|passwd|passphrase|pass|pwd|token|secret|api-?key|access-?key"
    r"|secret-?key|private-?key))(?:=|\s+))(?P<secret>(?!-)" + _QUOTED_OR_WORD + ")",
    r"(?P<keep>(?<![\w-])(?:-u|--user|--proxy-user)(?:=|\s+)[\"']?[^\s:\"'/]{1,200}:)(?P<secret>[^\s\"'\[/]{1,400})",
    r"(?P<keep>\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;&]{0,200}?\s-p)(?P<secret>[^\s\[-]\S{0,200})",
    r"(?P<keep>\bsshpass\s+-p\s*)(?P<secret>" + _QUOTED_OR_WORD + ")",
    r"(?P<keep>\blogin\b[^\n|;&]{0,200}?\s-p(?:=|\s+))(?P<secret>" + _QUOTED_OR_WORD + ")",
    r"(?P<keep>(?i:(?:secret|access)_key)\s+)(?P<secret>[A-Za-z0-9/+=]{16,})",
    # Prose: only what no word would look like.
    r"(?P<keep>(?i:\b(?:password|passphrase|passcode|token|secret|api key)\s+(?:is|was)\s+)[\"']?)"
    r"(?P<secret>(?=[^\s\"']*\d)(?=[^\s\"']*[A-Za-z])[^\s\"'\[]{4,})",
]

_ASSIGNED = re.compile(
    r"(?P<name>(?:" + _NAMES + r")[A-Za-z0-9_.-]{0,60})"
    r"(?P<sign>[\"']?\s{0,4}(?::=|=>|==?|:)\s{0,4})(?P<secret>" + _QUOTED_OR_WORD + ")",
    re.IGNORECASE,
)

_SECRETS = re.compile("|".join(_WHOLE))
_PLACES = [re.compile(pattern) for pattern in _VALUES]
_HINT = re.compile(
    r"-----BEGIN|sk-|[rsp]k_|whsec_|gh[pousr]_|github_pat_|gl[a-z]{2,3}-|A[KSBC][IC]A|xox|xapp-|hooks\.slack|eyJ|hf_|npm_"
    r"|pypi-|AIza|ya29|SG\.|_v1_|AGE-|\d:|://|[?&]|-p|-u|(?i:auth|bearer|basic|key|token|secret|pass|cookie|cred|_pw|user)"
)
"""What every text holds that could hold a secret; most hold none of it, and are passed on at once."""


def redact(text: str) -> str:
    """The same text without its secrets."""
    if not _HINT.search(text):
        return text
    for _ in range(ROUNDS):
        clean = _once(text)
        if clean == text:
            break
        text = clean
    return text


def _once(text: str) -> str:
    text = _SECRETS.sub(MASK, text)
    for place in _PLACES:
        text = place.sub(_masked, text)
    return _ASSIGNED.sub(_masked_assignment, text)


def _masked(found: re.Match[str]) -> str:
    secret = found["secret"]
    if secret.startswith("$"):
        return found[0]  # a variable's name is no secret, and is what the agent has to know
    return found["keep"] + _in_its_quotes(secret)


def _masked_assignment(found: re.Match[str]) -> str:
    secret = found["secret"]
    bare = secret.strip("\"'")
    if not bare or _HARMLESS.match(bare):
        return found[0]
    if not _CERTAIN.search(found["name"]) and not _looks_secret(found["sign"], secret, bare):
        return found[0]
    return found["name"] + found["sign"] + _in_its_quotes(secret)


def _looks_secret(sign: str, secret: str, bare: str) -> bool:
    """Whether a value beside `token`, `key` or `secret` is one: NAME=value always, prose and code only by its look."""
    if sign == "=":
        return True
    if secret[0] in "\"'":
        return len(bare) >= 6 and " " not in bare
    return len(bare) >= 8 and any(char.isdigit() for char in bare)


def _in_its_quotes(secret: str) -> str:
    quote = secret[0] if secret[0] in "\"'" and len(secret) > 1 and secret[-1] == secret[0] else ""
    return f"{quote}{MASK}{quote}"
