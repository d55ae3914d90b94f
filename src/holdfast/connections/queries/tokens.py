"""The SQL of reconnect tokens, functions of a transaction."""

from __future__ import annotations

from dataclasses import fields

from holdfast.connections.model import Token
from holdfast.store import Tx

COLUMNS = ", ".join(field.name for field in fields(Token))

# ruff: noqa: S608 - the only text put into SQL here is the column names above


def add(tx: Tx, token: Token, digest: str) -> None:
    tx.run(
        "INSERT INTO tokens (jti, connection_id, hash, kid, issued_at, expires_at)"
        " VALUES (:jti, :connection, :hash, :kid, :issued_at, :expires_at)",
        jti=token.jti,
        connection=token.connection_id,
        hash=digest,
        kid=token.kid,
        issued_at=token.issued_at,
        expires_at=token.expires_at,
    )


def by_hash(tx: Tx, digest: str) -> Token | None:
    row = tx.one(f"SELECT {COLUMNS} FROM tokens WHERE hash = :hash", hash=digest)
    return Token(**row) if row else None


def by_jti(tx: Tx, jti: str) -> Token | None:
    row = tx.one(f"SELECT {COLUMNS} FROM tokens WHERE jti = :jti", jti=jti)
    return Token(**row) if row else None


def retire(tx: Tx, jti: str, successor: str) -> None:
    """Note that the token was used, and which one replaces it."""
    sql = "UPDATE tokens SET retired_at = :now, successor = :successor WHERE jti = :jti"
    tx.run(sql, now=tx.now(), successor=successor, jti=jti)


def revoke_all(tx: Tx, connection_id: str) -> None:
    sql = "UPDATE tokens SET revoked_at = :now WHERE connection_id = :connection AND revoked_at IS NULL"
    tx.run(sql, now=tx.now(), connection=connection_id)


def forget_expired(tx: Tx, keep_ms: int) -> int:
    """Delete the rows of tokens that expired long ago."""
    return tx.run("DELETE FROM tokens WHERE expires_at < :before", before=tx.now() - keep_ms)
