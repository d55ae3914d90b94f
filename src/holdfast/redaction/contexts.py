"""Secrets that are known by what stands around them: commands, headers, URLs, files of known formats, blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.redaction.tokens import Span
from holdfast.redaction.values import CERTAIN, is_code, is_path, is_placeholder, is_strong, is_word, kind_of_name

_V = r"""(?:"(?P<secret>(?:[^"\\\n]|\\.){1,400}+)"|'(?P<single>[^'\n]{1,400}+)'|(?P<bare>[^\s"'|;&<>]{1,400}+))"""
_WORD_OR_QUOTED = _V.replace("<secret>", "<double>")
_REST = r"[^\n|;&]{0,200}?\s"
"""Other arguments of the same command."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A place in which a secret stands."""

    needles: tuple[str, ...]
    """A text without any of these, in lower case, is not searched."""
    pattern: re.Pattern[str]
    strong: bool = False
    """Only what no word would look like is a secret there."""


def _rule(needles: str, pattern: str, *, strong: bool = False) -> Rule:
    return Rule(tuple(needles.split("|")), re.compile(pattern.replace("VALUE", _WORD_OR_QUOTED)), strong)


RULES = (
    # Headers.
    _rule(
        "authorization",
        r"(?i:authorization)\\?[\"']?\s{0,4}[:=,]\s{0,4}\\?[\"']?(?i:(?:bearer|basic|token|digest|negotiate|ssws|apikey|key"
        r"|genie-?key|bot|oauth|hmac|aws4-hmac-sha256|api-?key)[ =]+(?:token=)?[\"']?)(?P<secret>[^\s\"',;\[\\]{3,2000}+)",
    ),
    _rule(
        "authorization",
        r"(?i:authorization)\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?(?P<secret>[^\s\"',;\[\\]{6,2000}+)",
        strong=True,
    ),
    _rule(
        "cookie",
        r"(?i:(?<![\w-])(?:set-)?cookie)\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?(?P<secret>[A-Za-z0-9_.-]{1,80}=[^\r\n\"'\[\\]{1,4000}+)",
    ),
    _rule(
        "bearer|basic",
        r"\b(?i:bearer|basic)\s{1,4}(?P<secret>(?=[A-Za-z._~+/-]{0,400}[\d=])[A-Za-z0-9._~+/-]{12,4000}+={0,2})",
    ),
    # URLs: a password of user:password@host, a token in the user's place.
    _rule("://", r"://[^\s/@:\"'<>]{0,200}+:(?P<secret>[^\s/\"'<>\[]{1,400})(?=@)"),
    _rule("://", r"://(?P<secret>[A-Za-z0-9_-]{20,400})(?=@)"),
    _rule(
        "?|&",
        r"[?&;](?i:[\w.-]{0,30}(?:token|secret|passw(?:or)?d|pwd|pass|signature|api_?key|credential))=(?P<secret>[^\s&\"'#\[<>\\]{3,2000}+)",
    ),
    _rule(
        "?|&",
        r"[?&](?i:sig|key|code|auth|hash|s|t|k)=(?P<secret>(?=[^\s&]{0,30}\d)[^\s&\"'#\[<>\\]{16,2000}+)",
        strong=True,
    ),
    _rule("oracle:thin:", r"(?i:oracle:thin:)\w{1,60}/(?P<secret>[^@\s\"']{1,200}+)@"),
    # Commands.
    _rule(
        "curl|wget|http",
        r"(?<![\w-])(?:-u|--user|--proxy-user)(?:=|\s*)[\"']?[^\s:\"'/]{1,200}+:(?P<secret>[^\s\"'\[/]{1,400}+)",
    ),
    _rule("etcdctl|--user", r"(?<![\w-])--user(?:=|\s+)[\"']?[^\s:\"'/]{1,200}+:(?P<secret>[^\s\"'\[/]{1,400}+)"),
    _rule(
        "http",
        r"\bhttps?\b" + _REST + r"(?:-a|--auth)(?:=|\s+)[\"']?[^\s:\"'/]{1,200}+:(?P<secret>[^\s\"'\[/]{1,400}+)",
    ),
    _rule(
        "curl",
        r"\bcurl\b"
        + _REST
        + r"(?:-b|--cookie)(?:=|\s*)[\"']?(?P<secret>[\w.-]{1,80}=[^\"'\n]{1,2000}?)(?=[\"'\n]|\s{1,40}+(?:-|http)|$)",
    ),
    _rule(
        "mysql|mariadb",
        r"\b(?:mysql|mysqldump|mysqladmin|mysqlsh|mysqlimport|mariadb|mariadb-dump)\b"
        + _REST
        + r"-p(?!\d+:\d)(?=[^\s\[-])VALUE",
    ),
    _rule("mysqladmin", r"\bmysqladmin\b" + _REST + r"password\s+VALUE"),
    _rule("mongo", r"\bmongo(?:sh|dump|restore|export|import)?\b" + _REST + r"-p(?:=|\s*)VALUE"),
    _rule("redis-cli|valkey-cli|keydb-cli", r"(?:redis|valkey|keydb)-cli\b" + _REST + r"-a(?:=|\s*)VALUE"),
    _rule("sshpass", r"\bsshpass\s+(?:-v\s+)?-p\s*VALUE"),
    _rule("login", r"\blogin\b" + _REST + r"-p(?:=|\s*)VALUE"),
    _rule("ldap", r"\bldap(?:search|modify|add|delete|whoami|passwd|compare)\b" + _REST + r"-w\s*VALUE"),
    _rule(
        "smbclient|rpcclient|smbmap|mount|winexe|-u ",
        r"(?<![\w-])(?:-U|--user)(?:=|\s*)[\"']?[\w\\/.-]{1,80}%(?P<secret>[^\s\"']{1,200}+)",
    ),
    _rule(
        "sqlcmd|bcp|mosquitto|ipmitool|zip|tsql|isql|mssql|osql|osmosis|pdftk|pg_",
        r"\b(?:sqlcmd|bcp|mosquitto_pub|mosquitto_sub|ipmitool|zip|unzip|zipcloak|tsql|isql|osql)\b"
        + _REST
        + r"-P\s*VALUE",
    ),
    _rule(
        "7z|rar|cqlsh|nomad|impacket|clickhouse",
        r"\b(?:7z[ar]?|rar|unrar)\b" + _REST + r"-h?p(?P<secret>[^\s\"'-][^\s\"']{2,200}+)",
    ),
    _rule(
        "cqlsh|influx|az |cypher-shell|snowsql|kcadm|oc ",
        r"\b(?:cqlsh|influx|az|cypher-shell|oc)\b" + _REST + r"-p(?:=|\s+)VALUE",
        strong=True,
    ),
    _rule("pass:", r"(?<!\w)pass:(?P<secret>[^\s\"',;&|]{3,200}+)", strong=False),
    _rule("openssl", r"\bopenssl\b" + _REST + r"-[kK]\s+VALUE", strong=True),
    _rule(
        "htpasswd",
        r"\bhtpasswd\b[^\n|;&]{0,100}?\s-\w{0,6}b\w{0,6}\s+(?:-\w+\s+){0,4}[^\s-]\S{0,200}\s+(?:\S{1,80}\s+)?VALUE(?=\s*(?:$|[\n|;&\"']))",
    ),
    _rule("ssh-keygen", r"\bssh-keygen\b" + _REST + r"-[NP]\s*VALUE"),
    _rule("security", r"\bsecurity\b[^\n|;&]{0,40}(?:password|keychain)\b" + _REST + r"-[wp]\s+VALUE", strong=True),
    _rule("lftp", r"\blftp\b" + _REST + r"-u\s+[\"']?[^\s,\"']{1,80},(?P<secret>[^\s\"']{1,200}+)"),
    _rule(
        "sqlplus|impdp|expdp|sqlldr|rman",
        r"\b(?:sqlplus|impdp|expdp|sqlldr|exp|imp|rman)\b[^\n|;&]{0,60}?\s[\"']?\w{1,40}/(?P<secret>[^\s@\"'/]{3,200}+)@",
    ),
    _rule("net use", r"(?i:\bnet use\b)[^\n]{0,160}?\s(?P<secret>[^\s/*\\][^\s]{2,200}+)\s+(?i:/user:)"),
    _rule("/user:", r"(?i:/user:)[^\s]{1,80}\s+(?P<secret>[^\s/][^\s]{2,200}+)", strong=True),
    _rule("/p:|/pass", r"(?<!\S)(?i:/p(?:ass(?:word)?)?):(?P<secret>[^\s\"']{3,200}+)", strong=True),
    _rule(
        "chpasswd",
        r"(?i:echo|printf)\s+(?:-\w+\s+)?[\"']?[\w.-]{1,60}:(?P<secret>[^\s\"'|]{1,200}+)[\"']?\s*\|[^\n|]{0,60}\bchpasswd",
    ),
    _rule(
        "sudo|stdin|login|token|passwd|gpg|kinit|cryptsetup",
        r"(?i:echo|printf|<<<)\s+(?:-\w+\s+)?VALUE\s*\|[^\n|]{0,120}?(?:\bsudo\b[^\n|]{0,30}\s-\w{0,6}S|-stdin\b|--with-token|\bpasswd\b|\bkinit\b"
        r"|passphrase-fd|cryptsetup|secret(?:s)? (?:set|put|create)|secret create)",
    ),
    _rule("vault", r"\bvault\s+(?:login|unwrap|operator unseal)\s+(?:-\S+\s+){0,4}VALUE", strong=True),
    _rule("unseal", r"(?i:unseal key)(?:\s*\d)?\s*[:=]\s*(?P<secret>[A-Za-z0-9+/=]{20,200}+)"),
    _rule(
        "authtoken|auth",
        r"(?i:authtoken|auth-token|auth_token|auth (?:init -t|login --token|token))\s+VALUE",
        strong=True,
    ),
    _rule(
        "cargo|gem|npm|flyctl|heroku|doctl|gh ",
        r"\b(?:cargo|gem|npm|flyctl|fly|doctl|ngrok|netlify|wandb|huggingface-cli|hf)\s+(?:auth\s+)?(?:login|signin|init)\s+(?:--?\w+[ =])?VALUE",
        strong=True,
    ),
    _rule(
        "add_user|change_password|authenticate_user",
        r"\b(?:add_user|change_password|authenticate_user)\s+\S{1,80}\s+VALUE",
    ),
    _rule("nmcli|wpa_passphrase|iwconfig|netsh", r"\bwpa_passphrase\s+\S{1,60}\s+VALUE"),
    _rule("useradd|usermod", r"\buser(?:add|mod)\b" + _REST + r"-p\s+VALUE"),
    _rule("securestring", r"(?i:ConvertTo-SecureString)\s+(?:-String\s+)?VALUE"),
    _rule(
        "config",
        r"\bconfig(?:ure)?\s+set\s+(?:--\S+\s+){0,3}\S{0,80}(?i:key|token|secret|password|auth)\s+VALUE",
        strong=True,
    ),
    _rule(
        "snowsql|psql|impacket|evil-winrm|crackmapexec|netexec",
        r"\b(?:evil-winrm|crackmapexec|netexec|nxc)\b" + _REST + r"-p\s+VALUE",
    ),
    # Files of known formats and protocols.
    _rule("login|machine", r"\b(?:login|machine|default)\s+\S{1,100}\s+password\s+(?P<secret>[^\s\"']{1,200}+)"),
    _rule(
        ":",
        r"(?m)^(?:[\w.*-]{1,100}|\[[\da-f:]{2,40}\]):(?:\d{2,5}|\*):[\w*-]{1,60}:[\w*.-]{1,60}:(?P<secret>[^\s:]{3,200}+)$",
        strong=True,
    ),
    _rule("requirepass|masterauth|auth_pass", r"(?i:\b(?:requirepass|masterauth|auth_pass))\s+VALUE"),
    _rule(
        "auth",
        r"(?m)^(?:\S{1,40}>\s*)?AUTH[ \t]+(?!(?:PLAIN|LOGIN|TLS|SSL)\b)(?:\w{1,40}[ \t]+)?(?P<secret>\S{4,200}+)$",
        strong=True,
    ),
    _rule("auth", r"\bAUTH\s+(?:PLAIN|LOGIN|XOAUTH2)\s+(?P<secret>[A-Za-z0-9+/]{8,2000}+={0,2})"),
    _rule("pass ", r"(?m)^(?:[>C:\s-]{0,6})PASS\s+:?(?P<secret>\S{3,200}+)\s*$", strong=True),
    _rule(
        "identify|nickserv",
        r"(?i:\b(?:identify|nickserv\s+register))[ \t]+(?:\w{1,30}[ \t]+)?(?P<secret>[^\s]{4,200}+)",
        strong=True,
    ),
    _rule(
        "enable |username ",
        r"(?i:\b(?:enable|username\s+\S{1,40}(?:\s+privilege\s+\d+)?)\s+(?:secret|password))\s+(?:\d{1,2}\s+)?(?P<secret>[^\s]{4,200}+)",
        strong=True,
    ),
    _rule(
        "community",
        r"(?i:snmp-server\s+community|rocommunity6?|rwcommunity6?|com2sec\s+\S+\s+\S+)\s+(?P<secret>[^\s]{4,200}+)",
    ),
    _rule("snmp", r"\bsnmp(?:get|walk|set|bulkwalk|next|table)\b" + _REST + r"-c\s*VALUE", strong=True),
    _rule("identified", r"(?i:identified\s+(?:with\s+['\"]?\w{1,40}['\"]?\s+)?(?:by|as)(?:\s+password)?)\s+VALUE"),
    _rule("password", r"(?i:\bpassword)\s*+\(?\s*+'(?P<secret>[^'\n]{3,200}+)'", strong=True),
    _rule(
        "assword",
        r"assword[^\n]{0,40}\n?[^\n]{0,20}\bsend(?:line)?\s*+\(?\s*+(?:--\s*+)?[\"'](?P<secret>[^\"'\\\n]{3,200}+)",
    ),
    _rule("auth", r"\"_?auth\"\s{0,4}:\s{0,4}\"(?P<secret>[A-Za-z0-9+/]{8,2000}+={0,2})\""),
    _rule("_auth", r"\b_auth\s{0,2}=\s{0,2}\"?(?P<secret>[A-Za-z0-9+/]{8,2000}+={0,2})"),
    _rule(
        "phrase|mnemonic|seed",
        r"(?i:seed(?: phrase| words)?|mnemonic|recovery phrase)\\?[\"']?\s{0,3}(?:is|are|:|=)\s{0,3}\\?[\"']?(?P<secret>(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})",
    ),
    _rule('"', r"\"(?:d|k|p|q|dp|dq|qi)\"\s{0,3}:\s{0,3}\"(?P<secret>[A-Za-z0-9_-]{22,800}+)\"", strong=True),
    _rule("value>", r"(?i:password>)\s{0,20}<Value>(?P<secret>[^<>\s]{1,400}+)</"),
    _rule(
        "sess|sid=|xsrf|csrf|remember",
        r"(?<![\w.-])(?i:connect\.sid|phpsessid|jsessionid|asp\.net_sessionid|aspsessionid\w{0,20}|sessionid|[a-z]{2,20}_session|csrftoken|xsrf-token|remember_token)"
        r"=(?P<secret>[A-Za-z0-9_.%+/:-]{12,2000}+)",
        strong=True,
    ),
    _rule("private-lines", r"Private-Lines:\s*\d{1,3}\s+(?P<secret>(?:[A-Za-z0-9+/=]{4,200}+\s{0,3}+){1,60}+)"),
    # Arguments in sources: the second of user and password, the first of a client.
    _rule(
        "credential|auth(|login(|authenticate(|basicauth|usernamepassword|connect(",
        r"(?i:\w{0,30}(?:credentials?|auth|usernamepassword\w{0,20}|login|authenticate|connect))[({]\s{0,4}(?:[\"'][\"'],\s{0,4})?(?:[\"'][^\"'\n]{0,80}[\"']|[\w.]{1,40})\s{0,3},\s{0,4}"
        r"[\"'](?P<secret>[^\"'\n\s]{4,200}+)[\"']",
    ),
    _rule(
        "client(|api(|sdk(|init(|configure(|ai(",
        r"(?i:(?:client\w{0,10}|api|sdk|init|configure|ai))\(\s{0,4}[\"'](?P<secret>(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{20,200}+)[\"']",
    ),
    _rule(
        "code|key",
        r"(?i:\b(?:recovery|backup|rescue|scratch|wiederherstellungs|emergency)[ -]?(?:codes?|keys?))[^\n\d:]{0,30}[:\n]\s{0,4}"
        r"(?P<secret>(?:[\s,;|•*-]{0,6}(?:\d{1,2}[.)]\s{1,2})?(?=[A-Za-z-]{0,30}\d)[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,5}(?![\w-])){1,40}+)",
    ),
    # People's words.
    _rule(
        "pin|code|otp|passcode",
        r"(?i:\b(?:pin|otp|passcode|(?:one-time|verification|security|2fa|mfa|access|login|backup|recovery|bestätigungs)[ -]?(?:code|password|pin)s?))\b"
        r"(?:\s+(?:\w{1,15}\s+){0,3}?(?:is|was|ist|lautet|es|est)|\s{0,2}[:=])\s{0,2}[\"'`]?(?P<secret>\d{4,10}(?![\w.])|\d{3}[ -]\d{3}(?!\w)|[a-z0-9]{4,8}-[a-z0-9]{4,8}(?![\w-]))",
    ),
    _rule(
        "cred|login|log in|logged in|zugangsdaten|sign in|user",
        r"(?i:\b(?:credentials?|creds?|logins?|log(?:ged)? in(?: with| as| using)?|zugangsdaten|sign in(?: with| as)?|user(?:name)?\s?/\s?pass(?:word|wort)?|identifiants|credenciales))"
        r"(?:\s+(?:are|is|for \S{1,40}))?\s{0,2}[:=]?\s{1,2}[\"'`]?[\w.@+-]{2,60}+[\"'`]?\s{0,2}[/:|,]\s{0,2}[\"'`]?(?P<secret>[^\s\"'`,]{4,100}+)",
        strong=True,
    ),
)

_COOKIES = next(rule for rule in RULES if rule.needles == ("cookie",))
_ATTRIBUTES = frozenset({"path", "expires", "max-age", "domain", "samesite", "version", "priority"})


def _is_session(cookies: str) -> bool:
    """Whether one of these cookies lets somebody in: by its name, or because nobody would choose such a value."""
    pairs = [pair.strip().partition("=") for pair in cookies.split(";")]
    given = [(name.lower(), value) for name, _, value in pairs if name.lower() not in _ATTRIBUTES and value]
    return any(
        not is_placeholder(value)
        and (is_strong(value, 6) or any(word in name for word in ("sess", "sid", "auth", "token", "jwt", "login")))
        for name, value in given
    )


_NEEDLES = {
    needle: [number for number, rule in enumerate(RULES) if needle in rule.needles]
    for needle in sorted({needle for rule in RULES for needle in rule.needles})
}

_KEY_BLOCK = re.compile(
    r"-----?-? ?BEGIN [A-Za-z0-9 ]{0,40}?(?:PRIVATE KEY(?: BLOCK)?|Static key V1) ?-----?"
    r"(?P<secret>(?:(?:\s|\\+[nr]|[\"'+,>|#*]){1,60}+(?:[A-Z][A-Za-z-]{2,20}: [^\n\\]{1,100}+|[A-Za-z0-9+/=]{16,}+|=?[A-Za-z0-9+/=]{1,15}+(?=(?:\s|\\+[nr]|[\"'+,]){1,60}-----END)))++"
    r"(?:(?:\s|\\+[nr]|[\"'+,>|#*]){0,60}+-----?-? ?END [A-Za-z0-9 ]{0,60}-----?)?)"
)


def context_spans(text: str, lowered: str) -> Iterator[Span]:
    """Where a text holds secrets by what stands around them."""
    if "BEGIN " in text:
        for found in _KEY_BLOCK.finditer(text):
            yield found.span("secret")
    chosen = {number for needle in [one for one in _NEEDLES if one in lowered] for number in _NEEDLES[needle]}
    for rule in [RULES[number] for number in chosen]:
        for found in rule.pattern.finditer(text):
            group = found.lastgroup or "secret"
            value = found[group].rstrip(".,;:)") if rule.strong else found[group]
            if rule is _COOKIES and not _is_session(value):
                continue
            if value and not is_placeholder(value) and not is_word(value) and (not rule.strong or is_strong(value, 4)):
                start = found.start(group)
                yield start, start + len(value)


_NAMED = (
    # What names the secret and what holds it are written apart.
    re.compile(
        r"<(?P<name>[\w.:-]{2,60}+)(?:\s[^<>\n]{0,200}+)?>\s{0,3}(?:<!\[CDATA\[)?(?P<secret>[^<>\s\]]{1,400}+)(?:\]\]>)?\s{0,3}</"
    ),
    re.compile(
        r"(?:name|key|id)=[\"'](?P<name>[\w.:-]{2,80}+)[\"']\s{1,4}(?:type=[\"']\w+[\"']\s{1,4})?value=[\"'](?P<secret>[^\"'\n]{1,400}+)[\"']"
    ),
    re.compile(
        r"(?:name|key)\\?[\"']?\s{0,3}:\s{0,3}\\?[\"']?(?P<name>[\w.-]{2,80}+)\\?[\"']?,?\s{1,40}\\?[\"']?value\\?[\"']?\s{0,3}:\s{0,3}\\?[\"']?(?P<secret>[^\s\"'\\]{1,400}+)",
        re.IGNORECASE,
    ),
    re.compile(
        r"[\"'](?P<name>[\w.-]{2,60}+)[\"']\s{0,3},\s{0,30}(?P<mark>[\"'])(?P<secret>(?:(?!(?P=mark))[^\n]){1,400}+)(?P=mark)"
    ),
    re.compile(r"(?<![\w.])(?:\w{1,40}\.)?(?P<name>\w{3,60}+)\(\s{0,3}[\"'](?P<secret>[^\"'\n]{4,400}+)[\"']"),
    re.compile(
        r"(?<!\S)(?:ENV|ARG|setx|set -\w{1,4}|SetEnv|config:set|setenv|secret (?:put|set)|env:set|fastcgi_param|param)\s+(?P<name>\w{2,60}+)\s+[\"']?(?P<secret>[^\s\"']{1,400}+)"
    ),
)


_NAMED_NEEDLES = (
    ("</",),
    ("value=",),
    ("value",),
    ("',", '",'),
    ('("', "('"),
    ("env", "arg", "set", "param", "secret "),
)


def named_spans(text: str, lowered: str) -> Iterator[Span]:
    """Where a secret's name and its value stand apart: XML, lists of variables, arguments."""
    for number, pattern in enumerate(_NAMED):
        if not any(needle in lowered for needle in _NAMED_NEEDLES[number]):
            continue
        for found in pattern.finditer(text):
            kind = kind_of_name(found["name"])
            if kind is None:
                continue
            value = found["secret"]
            if is_placeholder(value) or is_word(value) or is_path(value):
                continue
            apart = number in (3, 4) and not (number == 3 and found["name"].isupper())
            if is_strong(value, 5) if kind == CERTAIN else is_strong(value, 8):
                if not (apart and (" " in value or is_code(value))):
                    yield found.span("secret")
            elif kind == CERTAIN and not apart and len(value) >= 4 and " " not in value:
                yield found.span("secret")
