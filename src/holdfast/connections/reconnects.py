"""Reconnects: a client that comes back with its token gets its connection back, and a new token for the next time."""

from __future__ import annotations

import asyncio
from collections import Counter

from holdfast.connections import tokens
from holdfast.connections.model import (
    Attempt,
    Connection,
    Issued,
    Reason,
    Reconnected,
    Refused,
    Token,
    is_past_half,
    is_repeat,
    judge,
)
from holdfast.connections.queries import audit, connections
from holdfast.connections.queries import tokens as token_queries
from holdfast.connections.queries.audit import Entry
from holdfast.connections.rate_limits import AttemptLimits
from holdfast.connections.signing_keys import SigningRing
from holdfast.errors import Conflict, NotFound
from holdfast.identity.caller import Caller
from holdfast.ids import random_id
from holdfast.store import Store, Tx
from holdfast.store.calls import CallKey, had_no_effect, locked_answer, store_answer

MINUTE_MS = 60_000
SLOWED_S = 0.5


class Reconnects:
    """Issues, verifies and rotates reconnect tokens."""

    def __init__(
        self, store: Store, ring: SigningRing, limits: AttemptLimits, *, expiry_minutes: int, life_ms: int
    ) -> None:
        self._store = store
        self._ring = ring
        self._limits = limits
        self.expiry_ms = min(expiry_minutes * MINUTE_MS, life_ms)
        self._refused: Counter[tuple[str, Attempt]] = Counter()

    async def start(self) -> None:
        await self._ring.start()

    def issue_in(self, tx: Tx, connection_id: str) -> Issued:
        """Issue a token as part of another transaction; earlier ones stay valid."""
        return self._issued(tx, self._new_token(tx, connection_id))

    async def issue(self, connection_id: str, attempt: Attempt) -> Issued:
        """Issue a token for a connection that has not ended; earlier ones stay valid."""

        def write(tx: Tx) -> Issued:
            connection = connections.by_id(tx, connection_id)
            if connection is None:
                raise NotFound("Session not found")
            if connection.ended:
                raise Conflict("Cannot generate token for inactive session")
            audit.write(tx, Entry("token.issue", "ok", connection_id, attempt))
            return self.issue_in(tx, connection_id)

        return await self._store.write(write)

    async def verify(self, session_id: str, text: str, attempt: Attempt) -> tuple[Connection, bool] | Refused:
        """Check a token sent with a call, without using it up. Says also whether to offer a new one."""
        wait = self._limits.wait(session_id, attempt)
        if wait is not None:
            return await self._limited(session_id, attempt, wait)

        def read(tx: Tx) -> tuple[Connection, bool] | Reason:
            claims = tokens.read(text, session_id, self._ring, tx.now())
            if isinstance(claims, Reason):
                return self._of_unread(tx, session_id, text, claims)
            connection = connections.by_id(tx, session_id)
            token = token_queries.by_hash(tx, tokens.digest(text))
            reason = judge(connection, token, tx.now())
            if reason is not None or connection is None or token is None:
                return reason or Reason.TOKEN_MISMATCH
            if token.retired_at is not None and not is_repeat(token, tx.now()):
                return Reason.TOKEN_REUSED
            return connection, is_past_half(token, tx.now())

        found = await self._store.read(read)
        if isinstance(found, Reason):
            return await self._refuse("token.verify", session_id, attempt, found, text)
        return found

    async def reconnect(
        self,
        session_id: str,
        text: str,
        attempt: Attempt,
        caller: Caller | None = None,
        key: CallKey | None = None,
    ) -> Reconnected | Refused:
        """Reconnect by a token, which is used up; returns a new one. `caller` owns the connection from now on."""
        had_no_effect(key)  # unless it is found or stored below
        wait = self._limits.wait(session_id, attempt)
        if wait is not None:
            return await self._limited(session_id, attempt, wait)

        def write(tx: Tx) -> Reconnected | Reason:
            stored_answer = locked_answer(tx, key)
            if stored_answer is not None:
                return self._again(tx, stored_answer["token"])
            claims = tokens.read(text, session_id, self._ring, tx.now())
            if isinstance(claims, Reason):
                return self._of_unread(tx, session_id, text, claims)
            tx.lock(f"tokens:{session_id}")
            connection = connections.by_id(tx, session_id)
            token = token_queries.by_hash(tx, tokens.digest(text))
            reason = judge(connection, token, tx.now())
            if reason is not None or connection is None or token is None:
                return reason or Reason.TOKEN_MISMATCH
            if token.retired_at is None:
                fresh = self._new_token(tx, session_id)
                token_queries.retire(tx, token.jti, fresh.jti)
                count = connections.count_reconnect(tx, session_id)
                tx.emit("connection.reconnected", session_id, {"count": count})
            else:
                successor = token_queries.by_jti(tx, token.successor or "")
                if successor is None or not is_repeat(token, tx.now()):
                    return Reason.TOKEN_REUSED
                fresh, count = successor, connection.reconnect_count
            if caller is not None and caller.identity is not None:
                _hand_over(tx, connection, caller)
            audit.write(tx, Entry("reconnect", "ok", session_id, attempt))
            store_answer(tx, key, {"token": fresh.jti})
            return Reconnected(self._issued(tx, fresh), count, _restored(connection))

        done = await self._store.write(write)
        if isinstance(done, Reason):
            return await self._refuse("reconnect", session_id, attempt, done)
        return done

    def _again(self, tx: Tx, jti: str) -> Reconnected | Reason:
        """Answer a repeated call with the first call's token, rebuilt from its stored id."""
        token = token_queries.by_jti(tx, jti)
        connection = connections.by_id(tx, token.connection_id) if token else None
        reason = judge(connection, token, tx.now())
        if reason is not None or connection is None or token is None:
            return reason or Reason.TOKEN_MISMATCH
        return Reconnected(self._issued(tx, token), connection.reconnect_count, _restored(connection))

    async def revoke(self, connection_id: str, attempt: Attempt) -> bool:
        """End a connection by hand; says whether it existed."""

        def write(tx: Tx) -> bool:
            connection = connections.by_id(tx, connection_id)
            if connection is None:
                return False
            connections.revoke(tx, connection_id)
            token_queries.revoke_all(tx, connection_id)
            audit.write(tx, Entry("revoke", "ok", connection_id, attempt))
            tx.emit("connection.revoked", connection_id)
            return True

        return await self._store.write(write)

    async def flush(self) -> None:
        """Write the attempts beyond the limit to the audit, counted together."""
        while self._refused:
            (session_id, attempt), times = self._refused.popitem()
            entry = Entry("reconnect", Reason.RATE_LIMITED.value, session_id, attempt, times)

            def write(tx: Tx, entry: Entry = entry) -> None:
                audit.write(tx, entry)

            await self._store.write(write)

    async def rotate_signing(self) -> str:
        """Sign with a new key; tokens signed with the old one stay valid until they expire."""
        return await self._ring.rotate(self.expiry_ms)

    async def _limited(self, session_id: str, attempt: Attempt, wait: int) -> Refused:
        """Refuse slowly, without checking the token: a flood over one connection must not keep the daemon busy."""
        if len(self._refused) < 1000:
            self._refused[session_id[:64], attempt] += 1
        await asyncio.sleep(SLOWED_S)
        return Refused(Reason.RATE_LIMITED, wait)

    async def _refuse(
        self, action: str, session_id: str, attempt: Attempt, reason: Reason, verified: str | None = None
    ) -> Refused:
        """Count and audit a failure; a token used a second time revokes all tokens of its connection."""
        self._limits.failed(session_id, attempt)

        def write(tx: Tx) -> Issued | None:
            known = connections.by_id(tx, session_id)
            if reason is Reason.TOKEN_REUSED:
                token_queries.revoke_all(tx, session_id)
                tx.emit("connection.token_reused", session_id)
            audit.write(tx, Entry(action, reason.value, known.id if known else None, attempt))
            if reason is not Reason.TOKEN_EXPIRED or verified is None or known is None:
                return None
            if not self._may_be_renewed(tx, known, verified, attempt):
                return None
            audit.write(tx, Entry("token.issue", "ok", known.id, attempt))
            return self.issue_in(tx, known.id)

        return Refused(reason, issued=await self._store.write(write))

    def _of_unread(self, tx: Tx, session_id: str, text: str, reason: Reason) -> Reason:
        """Return why a token with bad claims is refused; for an ended session that, and not the token's age."""
        if reason is not Reason.TOKEN_EXPIRED or isinstance(tokens.read(text, session_id, self._ring, 0), Reason):
            return reason
        connection = connections.by_id(tx, session_id)
        return Reason.SESSION_ALREADY_DISCONNECTED if connection is not None and connection.ended else reason

    def _may_be_renewed(self, tx: Tx, connection: Connection, text: str, attempt: Attempt) -> bool:
        """Return whether an expired token is its connection's own, sent with the key that the connection belongs to.

        That key may ask for a token at any time; so a client that made no call for a while gets it with the refusal.
        """
        if attempt.principal is None or attempt.principal != connection.principal:
            return False
        if isinstance(tokens.read(text, connection.id, self._ring, 0), Reason):
            return False
        token = token_queries.by_hash(tx, tokens.digest(text))
        return token is not None and token.retired_at is None and judge(connection, token, token.issued_at) is None

    def _new_token(self, tx: Tx, connection_id: str) -> Token:
        now = tx.now() // 1000 * 1000
        token = Token(
            jti=random_id().replace("-", ""),
            connection_id=connection_id,
            kid=self._ring.current.kid,
            issued_at=now,
            expires_at=now + self.expiry_ms,
            retired_at=None,
            successor=None,
            revoked_at=None,
        )
        token_queries.add(tx, token, tokens.digest(tokens.sign(token, self._ring.current)))
        return token

    def _issued(self, tx: Tx, token: Token) -> Issued:
        key = self._ring.find(token.kid)
        if key is None:
            raise Conflict("The key that signed this token no longer exists.", recovery="Ask for a new token.")
        minutes = max(1, round((token.expires_at - tx.now()) / MINUTE_MS))
        return Issued(token.connection_id, tokens.sign(token, key), minutes)


def _hand_over(tx: Tx, connection: Connection, caller: Caller) -> None:
    """Make the caller that presented the token the owner of this connection."""
    if caller.identity is not None and not caller.identity.startswith(connections.BY_HANDLE):
        connections.move_identity(tx, connection.id, caller.identity, caller.agent_session)


def _restored(connection: Connection) -> tuple[str, ...]:
    return tuple(
        text
        for text in (
            f"bound root {connection.bound_root}" if connection.bound_root else None,
            f"reasoning session {connection.reasoning_session}" if connection.reasoning_session else None,
        )
        if text is not None
    )
