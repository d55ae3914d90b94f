"""Reconnect tokens: JWTs signed with HS256, of which only the hash is kept."""

from __future__ import annotations

import hashlib

from holdfast.connections.model import Reason, Token
from holdfast.connections.signing_keys import SigningKey, SigningRing
from holdfast.lazy_dataclass import dataclass

ALGORITHM = "HS256"
PURPOSE = "session_reconnect"
MAX_LENGTH = 4096


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a token whose signature is valid."""

    session_id: str
    jti: str


def sign(token: Token, key: SigningKey) -> str:
    """Sign a token; the same fields always give the same text, so that an answer can be repeated."""
    import jwt  # imported late, here and below, because a hook waits for the daemon's start

    payload = {
        "session_id": token.connection_id,
        "iat": token.issued_at // 1000,
        "exp": token.expires_at // 1000,
        "jti": token.jti,
        "purpose": PURPOSE,
    }
    return jwt.encode(payload, key.secret, algorithm=ALGORITHM, headers={"kid": key.kid})


def claimed_session(text: str) -> str:
    """Return the session that a token claims to be for, unverified; empty if it names none."""
    import jwt

    if len(text) > MAX_LENGTH:
        return ""
    try:
        claimed = jwt.decode(text, options={"verify_signature": False}).get("session_id")
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        return ""
    return claimed if isinstance(claimed, str) and claimed.isprintable() else ""


def read(text: str, session_id: str, ring: SigningRing, now: int) -> Claims | Reason:
    """Verify a token; returns its claims or the reason against it. Time is the store's, so it is checked here."""
    import jwt

    if len(text) > MAX_LENGTH:
        return Reason.INVALID_TOKEN
    try:
        key = ring.find(jwt.get_unverified_header(text).get("kid"))
        if key is None:
            return Reason.INVALID_TOKEN
        payload = jwt.decode(
            text,
            key.secret,
            algorithms=[ALGORITHM],
            options={"verify_exp": False, "verify_iat": False, "require": ["exp", "iat", "jti"]},
        )
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        return Reason.INVALID_TOKEN
    expires, jti = payload["exp"], payload["jti"]
    if not isinstance(expires, int) or not isinstance(jti, str):
        return Reason.INVALID_TOKEN
    if expires * 1000 <= now:
        return Reason.TOKEN_EXPIRED
    if payload.get("session_id") != session_id:
        return Reason.SESSION_ID_MISMATCH
    if payload.get("purpose") != PURPOSE:
        return Reason.INVALID_TOKEN_PURPOSE
    return Claims(session_id, jti)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
