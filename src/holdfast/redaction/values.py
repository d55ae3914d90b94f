"""Decides whether a value is a secret, and whether a name is that of a secret. Pure, no I/O."""

from __future__ import annotations

import itertools
import re
from functools import lru_cache

from holdfast.redaction.mask import MASK

_PLACEHOLDER = re.compile(
    r"\$(?!\d?[A-Za-z0-9]*[!@#%^&*])[\w({]|\$\$|%[\w.-]{1,80}+%?\Z|%\(|\{\{|\{[\w.:!\[\]'\"-]{0,80}\}|<[^<>]{0,200}>?|\[redacted\]"
    r"|\[[\w .…-]{1,60}\]\Z|[xX]{3,}|[*•·#?_.-]+\Z|\*{3,}|…|\.{3}|@[A-Za-z{(]|!(?:Ref|Sub|vault)\b|#\{|\\[nrt]?\Z|~?\.{0,2}/[\w.-]|[A-Za-z]:\\"
    r"|(?i:your|my|the|some|a|an|insert|enter|put|replace|test|fake|dummy|sample|example|new|old|real)?[ _-]?(?i:your|api|access|secret|auth|private"
    r"|placeholder|example|change|replace|redacted|hidden|masked|omitted|removed|dummy|fake|todo|fixme|tbd|token|key|password|passwd|pass|pwd)"
    r"(?:[ _-](?i:me|it|this|here|api|key|token|secret|password|passwd|value|with|your|own|goes|in|id|access|string|for|is|hash|text|file|name))*[.!…>]*\Z"
    r"|(?i:changeme|redacted|hidden|masked|removed|censored|secrets?\.[a-z_.]+|env[.:(\[]|vault:|op://|arn:|file:|ssm:|[a-z][a-z+.-]{1,12}://|None|process\.env|os\.)"
)
"""Placeholders for a secret: a variable, a template, stars, a reference to where it is stored."""
_BLANKED = re.compile(
    r"[*•●…]{4}|[xX]{6}|\.{3}|(?i:(?<![a-z])(?:your|placeholder|change-?_?me|redacted|dummy|replace-?_?me|insert)(?![a-z]))"
)
"""Signs of an example value that only shows the format."""
_PATTERN = re.compile(r"\\[wdsSDWbAZ]|\(\?[:P=!<]|\[(?:\^|[\w]-[\w])|[\])][+*{?]|\.[*+]")
"""Signs of a regular expression."""
_COLOUR = re.compile(r"(?:(?:bg|border|bold|italic|noinherit|underline):?\s?){0,4}#[0-9a-fA-F]{3,8}\Z")
_WORD = re.compile(
    r"(?i:true|false|null|none|nil|undefined|required|optional|missing|invalid|expired|valid|unknown|empty|unset|yes|no|on|off|auto|default"
    r"|str|string|int|integer|bytes|bool|boolean|any|object|number|float|text|secret|secretstr|char|varchar|void|self|cls|this|and|or|not|if|is"
    r"|in|for|from|to|with|was|are|the|a|an|option|flag|flags|argument|parameter|value|field|file|prompt|protected|protection|policy|reset|manager"
    r"|change|hash|hashing|hashes|authentication|auth|based|must|should|can|may|will|has|have|when|that|which|on|at|of|by|as|it|its|them|instead"
    r"|then|here|there|only|again|twice|once|never|always|store|stores|rotation|count|counts|usage|limit|budget|stdin|clear|set|get|read)\b"
)
"""Words that describe secrets, and types."""
_CALL = re.compile(r"(?:await |new |lambda\b|not )|[A-Za-z_][\w.:]*+(?:\(|\[|\?\.|->|::)|&|\*|-?\d{1,5}(?![\w.-])")
"""Beginnings of code that computes a value: a call, an index, a pointer, a small number."""
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z_]*[0-9]?(?:\.[A-Za-z_]\w*)*[!?]?\Z")
"""A name in code, without digits except one at its end."""
_PATH = re.compile(
    r"(?:~|\.{1,2}|/[\w.-]+)?(?:/[\w.@-]+){1,}/?\Z|[\w-]+\.(?:py|ts|js|md|json|ya?ml|toml|txt|pem|key|env|go|rs|sh|sql|lock|cfg|ini|html|csv|log)\Z"
)


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_WORDS = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+")
_PASSWORD = _words(
    "password passwords passwd passwort passwörter kennwort passphrase passcode pass pwd pw psw passwrd userpass "
    "storepass keypass dbpass contraseña contrasena contrasenya clave mdp motdepasse senha palavrapasse hasło "
    "haslo wachtwoord пароль пароля parola lösenord losenord şifre sifre salasana heslo adgangskode passord "
    "jelszó jelszo 密码 密碼 口令 パスワード 비밀번호 parole slaptažodis лозинка κωδικός mật rootpw requirepass masterauth "
    "psk pgpassword rootpassword adminpassword userpassword mysqlpassword dbpassword bindpw rootpass sshpass "
    "lösenordet losenordet adgangskoden passordet salasanan passwörtern passorde contrasinal pasahitza "
    "पासवर्ड sandi รหัสผ่าน รหัส лозинку паролем пароли parolă sifreniz şifreniz şifresi jelszava passwordhash "
    "keystorepassword truststorepassword smtppassword ftppassword emailpassword authpass becomepass"
)
_SECRET = _words(
    "secret secrets token authtoken accesstoken refreshtoken apitoken apikey apikeys credential credentials "
    "creds cred secretkey accesskey privatekey jwt bearer webhook otp totp pat dsn sas geheimnis geheim jeton "
    "segredo secreto sekret секрет токен 密钥 令牌 clientsecret mnemonic authkey secretaccesskey encryptionkey "
    "signingkey masterkey sharedkey accountkey hmac psk seedphrase community presharedkey bottoken idtoken "
    "sessiontoken bearertoken usertoken webhooksecret appsecret apisecret consumersecret fernet chiave "
    "servicekey deploykey licensekey sessionkey rootkey keymaterial apihash sastoken xapikey appkey appid instrumentationkey"
)
_KEY_BEFORE = _words(
    "api access secret private signing encryption encrypt account master shared auth app license service deploy "
    "session cookie jwt hmac aes webhook subscription storage consumer client root admin recovery write ingest "
    "decryption validation spend crypto app application base preshared pre instrumentation routing integration project bot user "
    "server functions function read org organization fernet ssh gpg pgp tls ssl wallet seed provisioning join "
    "registration enrollment activation agent cluster node tunnel vpn wifi wireguard device backup sealed unseal "
    "kms hsm sdk publish publishing upload security product token hook edge legacy personal team"
)
_NOT_ITSELF = _words(
    "count counts limit limits length len size file files path paths name names type types url uri endpoint id "
    "ids field fields policy min max ttl expiry expires expiration expired age store stores budget usage used "
    "format pattern regex prefix suffix hint label title manager provider service class error errors exception "
    "valid validator required reset changed check strength rotation algorithm alg kind index column table at in "
    "per total estimate row rows address host port user username login method mode status state enabled disabled "
    "dir directory folder arn ref version number stdin env var set list map cost price rate number input output "
    "prompt cached left ratio encoding interval seconds minutes days ms timeout time source sources scope scopes "
    "header page cursor test tests case cases spans form forms text bytes word words line lines encryption protected "
    "needed generator generate helper view visible icon placeholder button link html css template message msg "
    "expire expiring refreshed last created updated issued issuer audience callback handler func function factory "
    "middleware interface protocol model schema dto request response result results parser parse lexer stream "
    "match matches confirmation mismatch attempts attempt tries history complexity requirements requirement rule "
    "rules score meter toggle show hide visibility ok sha md crc checksum fingerprint verified verify verification "
    "plugin module package lib library client clients backend storage cache keyring vault key_name kid"
)
_WEAK_LAST = _words("key keys auth salt pin code session sid cookie signature sig seed connection")

NAME_WORDS = _PASSWORD | _SECRET | _WEAK_LAST
"""In lower case, the name of a secret contains one of these."""
_ABOUT_SECRETS = _words(
    "ask no prompt require requires reset forgot forget use enable disable skip show has is needs need allow without "
    "hide toggle validate check verify test should can will was get fetch load read"
)
"""Before the name of a secret: a verb or a question about it, so that the name is not that of the secret."""
_NO_KEY_TOKENS = _words(
    "next page continuation pagination sync bos eos pad unk mask stop special per cls sep first last resume cursor change cancellation stream design skip watch upload_id list"
)
"""Before `token`: a position in a list, or a piece of text."""
_OPEN_KEYS = _words(
    "cache primary foreign public sort partition query object dict lookup group row bucket sorting unique natural idempotency "
    "websocket socket composite candidate host known authorized index storage_ map hash shard routing_ react"
)
_OF_PATTERNS = _words(
    "hex unreserved uri url word line file path name ipv ls zone host regex glob sub match num number id"
)
_TRAILING = _words(
    "data value base prod production dev development staging live test old new current primary secondary b raw "
    "plain plaintext"
)
"""Words after the one that counts."""

_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")
_SIGN = re.compile(r"[!@#$%^&*+=~?](?=.)|[!@#$%^&*]\Z")
_MAIL = re.compile(r"[\w.+-]{1,80}@[\w-]{1,60}\.[A-Za-z][\w.-]{0,60}\Z")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
MAX_WORD_CHARS = 64
MAX_SEARCHED_CHARS = 200
"""Characters of a value that are searched for signs of a placeholder."""

CERTAIN, LIKELY, WEAK = "certain", "likely", "weak"


@lru_cache(maxsize=4096)
def kind_of_name(name: str) -> str | None:
    """Return how certainly the value of such a name is a secret; None if it is not."""
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and words[-1] in _TRAILING:
        words.pop()
    if not words or words[-1] in _NOT_ITSELF or (len(words) > 1 and words[0] in _ABOUT_SECRETS and not name.isupper()):
        return None
    if words[-1] in ("tokens", "pass") and len(words) > 1 and words[-1] == "tokens":
        return None
    if words[-1] == "token" and len(words) > 1 and words[-2] in _NO_KEY_TOKENS:
        return None
    if words[-1] in ("key", "keys") and len(words) > 1 and words[-2] in _OPEN_KEYS:
        return None
    joined = "".join(words)
    if words[-1] == "pat" and len(words) > 1 and words[-2] in _OF_PATTERNS:
        return None
    if joined in ("pwd", "oldpwd"):
        return LIKELY
    if any(word in _PASSWORD for word in words[-2:]) or joined.endswith(
        (
            "password",
            "passwd",
            "passwort",
            "passphrase",
            "storepass",
            "keypass",
            "smbpass",
            "userpass",
            "dbpass",
            "authpass",
            "setpw",
            "rootpw",
            "supw",
        )
    ):
        return CERTAIN
    if any(word in _SECRET for word in words[-3:]) or joined in _SECRET:
        return LIKELY
    if words[-1] in ("key", "keys") and len(words) > 1 and (words[-2] in _KEY_BEFORE):
        return LIKELY
    if any(word in _SECRET or word in _PASSWORD for word in words) and (words[-1] in _WEAK_LAST or words[-1] == "hash"):
        return LIKELY
    if words[-1] == "salt" and name.isupper():
        return LIKELY
    return WEAK if words[-1] in _WEAK_LAST else None


def is_placeholder(value: str) -> bool:
    """Return whether a value is only a placeholder for a secret."""
    if (
        value.startswith((",", ")", "(", "%s", "%d", "%r", " "))
        or value in "$%{"
        or value.endswith(("…", "..."))
        or MASK in value
    ):
        return True
    return any((_PLACEHOLDER.match(value), _BLANKED.search(value, 0, MAX_SEARCHED_CHARS), _COLOUR.match(value)))


def is_blanked(value: str) -> bool:
    """Return whether a token's characters were replaced by stars or the like."""
    return _BLANKED.search(value, 0, MAX_SEARCHED_CHARS) is not None


def is_code(value: str) -> bool:
    """Return whether an unquoted value is code: a name, a call, a type or a small number."""
    return bool(_CALL.match(value) or _IDENTIFIER.match(value))


def is_pattern(value: str) -> bool:
    """Return whether a value is a regular expression."""
    return _PATTERN.search(value) is not None


def is_path(value: str) -> bool:
    """Return whether a value is a file path."""
    return _PATH.match(value) is not None


def is_word(value: str) -> bool:
    """Return whether a value is a word that describes secrets, or a type."""
    match = _WORD.match(value)
    return match is not None and match.end() == len(value.rstrip(".,;:!?)"))


def is_strong(value: str, shortest: int = 5) -> bool:
    """Return whether no word, name or number would look like this value."""
    if len(value) < shortest or is_path(value):
        return False
    if _LETTER.search(value) is None or value.rstrip("!?.…").isalpha() or _MAIL.match(value):
        return _has_case_changes(value)
    if _DIGIT.search(value) or _SIGN.search(value):
        return True
    return _has_case_changes(value)


def _has_case_changes(value: str) -> bool:
    if len(value) > MAX_WORD_CHARS or not value.isalpha():
        return False
    changes = sum(one.isupper() != other.isupper() for one, other in itertools.pairwise(value))
    return changes >= 6 and changes >= len(value) // 2


def is_mixed(value: str) -> bool:
    """Return whether a value has letters and digits, and a sign or both cases, and is not a name."""
    from holdfast.redaction.technical import is_technical

    letters = [char for char in value if char.isalpha()]
    has_both = any(map(str.isupper, letters)) and any(map(str.islower, letters))
    if len(letters) < 3 or not any(map(str.isdigit, value)) or not (has_both or _SIGN.search(value)):
        return False
    return not (is_technical(value) or is_code(value) or is_path(value) or is_pattern(value) or is_uuid(value))


def is_uuid(value: str) -> bool:
    """Return whether a value is a UUID."""
    return _UUID.match(value) is not None


def is_name_of_secret(value: str) -> bool:
    """Return whether a value is a name in code that refers to a secret, and not a secret itself."""
    if kind_of_name(value) is None or is_strong(value, 4):
        return False
    words = _WORDS.findall(value)
    return len(words) == 1 or len(words[-1]) > 3 or "_" in value or "." in value


def is_dense(value: str) -> bool:
    """Return whether a value is long with digits throughout, as only generated ones are."""
    if len(value) < 16 or " " in value:
        return False
    digits = sum(char.isdigit() for char in value)
    return digits >= 3 and digits >= len(value) // 16 and len(set(value)) >= 8
