"""Recognises technical values that are not secrets: versions, measures, names in code. Pure, no I/O."""

from __future__ import annotations

import re

from holdfast.redaction.tokens import is_random
from holdfast.redaction.values import is_dense

_TECHNICAL = re.compile(
    r"(?i)(?:sha|utf|base|oauth|ipv|md|http|v|rfc|p|argon|pbkdf|python|ed|rs|es|hs|ps|aes|x|level|step|phase|line|test|case|type|item|issue|pr|py|s|w|i|k|n|u|f"
    r"|node|java|php|vue|es|ruby|go|ubuntu|debian|windows|win|ios|android|chrome|postgres|mysql|redis|h|q|rev|day|week|round|part|chapter|section|option|arg"
    r"|ecma|arm|amd|lib|log|db|web|app|user|host|server|port|id|scram-sha|hmac|hmac-sha|rsa|ecdsa|ec|curve|x509v|tls|tlsv|ssl|sslv|saml|ntlm|ntlmv|smb|scrypt|bcrypt|crypt)"
    r"[-_]?\d{1,5}(?:[-_.]\w{1,8})?\Z|\d+(?:\.\d+)*(?:st|nd|rd|th|ms|s|kb|mb|gb|k|m|h|d|x|%|px|min)?\Z|[A-Z]{1,5}-\d{1,5}\Z|#\d+\Z|\d{4}-\d\d-\d\d\S*\Z|\d+[-–/]\w+\Z"
    r"|[\w.]+[(\[]\S*\Z|--?\w\S*\Z|[0-9a-f]{7,10}\Z|(?-i:[A-Z]+\d*(?:[-_./][A-Z0-9]+)+\Z)|[A-Z][+#]{1,2}\Z|[^()]*\([^()]*\Z|[^{}]*\{[^{}]*\Z|//\S*\Z"
    r"|[@/\w-]{1,60}@[~^]?\d+\.[\w.-]*\Z|[\w.-]{1,60}:\d{1,6}\Z|\d{1,2}:\d\d(?::\d\d)?\S{0,6}\Z|[\w-]{1,60}\.[a-z]{1,5}(?::\d+){1,2}\Z"
)
"""Method names, versions, measures, identifiers and the like: they contain digits and are not secrets."""
SNAKE = re.compile(r"(?i)(?>[a-z_]+_)[a-z0-9]++(?:_[a-z0-9]++)*+\Z|[a-z_]++\d(?:_[a-z0-9]++)++\Z|[A-Za-z]+[=:/]\S*\Z")
"""Names in code, options and paths."""


def is_technical(value: str) -> bool:
    """Return whether a value is a technical name or number, and no secret."""
    return bool(_TECHNICAL.match(value)) or (
        bool(SNAKE.match(value))
        and not is_random(value)
        and not is_dense(value)
        and (value.islower() or value.isupper() or not value[-1:].isdigit())
    )
