"""Browsers that signed in: by a link that works once, or by a key; kept as hashes, with an end, and revocable."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import TYPE_CHECKING

from holdfast.connections.keys import OWNER, Key, Keys, Scope
from holdfast.connections.model import Attempt
from holdfast.connections.queries import audit, browser_sessions
from holdfast.connections.queries.audit import Entry
from holdfast.errors import HoldfastError, NotFound
from holdfast.lazy_dataclass import dataclass
from holdfast.store import Store, Tx

if TYPE_CHECKING:
    from holdfast.connections.results import BrowserSession

LINK_SECONDS = 120
MAX_LINKS = 100
IDLE_MS = 12 * 3_600_000
LIFE_MS = 7 * 24 * 3_600_000
SEEN_EVERY_MS = 60_000
"""How exactly it is stored when a session was last used."""
KEEP_MS = 30 * 24 * 3_600_000
FAILURES_AUDITED = 10
"""Failed sign-ins per minute that are written to the audit: anybody on this machine can try."""


class NotSignedIn(HoldfastError):
    """The link or key opens nothing."""

    code = "E_NOT_SIGNED_IN"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session that a request came with."""

    session: BrowserSession
    csrf: str
    """What every change must be sent with."""

    @property
    def key(self) -> Key:
        """The key that the session stands for."""
        return Key(self.session.key_name, Scope(self.session.scope))

    def may_change(self, csrf: str) -> bool:
        """Return whether this token came from a page of this session."""
        return hmac.compare_digest(self.csrf.encode(), csrf.encode("utf-8", "surrogatepass"))


class BrowserSessions:
    """Sign-in, sign-out and what a browser's cookie stands for."""

    def __init__(self, store: Store, keys: Keys, owner_key: str) -> None:
        """Hashes are made with the owner's key, so that all sessions end when it is replaced."""
        self._store = store
        self._keys = keys
        self._secret = hashlib.sha256(f"browser:{owner_key}".encode()).digest()
        self._links: dict[str, tuple[float, Scope]] = {}
        """The end and the scope of each link by its hash; a restart of the daemon ends them."""
        self._failures: list[float] = []

    def link(self, scope: Scope) -> str:
        """Return the token of a link that signs its first user in as the owner."""
        now = time.monotonic()
        self._links = {one: link for one, link in self._links.items() if link[0] > now}
        if len(self._links) >= MAX_LINKS:
            raise HoldfastError(f"{MAX_LINKS} links are open.", recovery=f"They end within {LINK_SECONDS} s.")
        token = secrets.token_urlsafe(32)
        self._links[self._digest("link", token)] = (now + LINK_SECONDS, scope)
        return token

    async def use_link(self, token: str, attempt: Attempt) -> str:
        """Sign in with a link, which is used up; returns the session's secret."""
        end, scope = self._links.pop(self._digest("link", token), (0.0, Scope.READ))
        if end <= time.monotonic():
            await self._failed(attempt, "link_unknown")
            raise NotSignedIn("This link was used, or is too old.", recovery="Run `holdfast open` again.")
        return await self._begin(Key(OWNER, scope), attempt)

    async def use_key(self, given: str, attempt: Attempt) -> str:
        """Sign in with a key; returns the session's secret."""
        key = await self._keys.check(given)
        if key is None:
            await self._failed(attempt, "key_unknown")
            raise NotSignedIn("This key is not known.", recovery="`holdfast key` prints the owner's.")
        if key.teams is not None:
            await self._failed(_by(key, attempt), "key_limited")
            raise NotSignedIn("This key is limited to teams.", recovery="The dashboard needs a key that is not.")
        return await self._begin(key, attempt)

    async def find(self, secret: str) -> SignedIn | None:
        """Return the session of a cookie, if it is in force, and note that it was used."""
        digest = self._digest("session", secret)
        found = await self._store.read(lambda tx: (browser_sessions.find(tx, digest, OWNER, IDLE_MS), tx.now()))
        session, now = found
        if session is None:
            return None
        if now - session.seen_at > SEEN_EVERY_MS:
            await self._store.write(lambda tx: browser_sessions.touch(tx, session.id))
        return SignedIn(session, self._digest("csrf", secret))

    async def list(self) -> list[BrowserSession]:
        """Return every session that is in force, the last used first."""
        return await self._store.read(lambda tx: browser_sessions.in_force(tx, OWNER, IDLE_MS))

    async def sign_out(self, session_id: str, attempt: Attempt) -> None:
        """End a session at its own wish."""
        await self._end(session_id, "sign_out", attempt)

    async def revoke(self, session_id: str, attempt: Attempt) -> None:
        """End a session by hand; its pages show nothing more."""
        if not await self._end(session_id, "sign_out.revoked", attempt):
            raise NotFound("That browser is not signed in.", recovery="The page Settings lists those that are.")

    async def forget_old(self) -> None:
        """Delete sessions that ended long ago."""
        await self._store.write(lambda tx: browser_sessions.forget_old(tx, KEEP_MS))

    async def _begin(self, key: Key, attempt: Attempt) -> str:
        secret = secrets.token_urlsafe(32)
        digest = self._digest("session", secret)

        def write(tx: Tx) -> None:
            session_id = browser_sessions.begin(tx, digest, key.name, key.scope.value, attempt, LIFE_MS)
            audit.write(tx, Entry("sign_in", "ok", session_id, _by(key, attempt)))

        await self._store.write(write)
        return secret

    async def _end(self, session_id: str, action: str, attempt: Attempt) -> bool:
        def write(tx: Tx) -> bool:
            ended = browser_sessions.end(tx, session_id, attempt.principal or "")
            if ended:
                audit.write(tx, Entry(action, "ok", session_id, attempt))
            return ended

        return await self._store.write(write)

    async def _failed(self, attempt: Attempt, why: str) -> None:
        now = time.monotonic()
        self._failures = [at for at in self._failures if at > now - 60]
        if len(self._failures) < FAILURES_AUDITED:
            self._failures.append(now)
            await self._store.write(lambda tx: audit.write(tx, Entry("sign_in", why, None, attempt)))

    def _digest(self, purpose: str, secret: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{secret}".encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _by(key: Key, attempt: Attempt) -> Attempt:
    """Return the attempt of a browser, now that its key is known."""
    return Attempt(attempt.address, attempt.client, key.name)
