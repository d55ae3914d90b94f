"""The identity of a managed agent: its process gets a token that only this daemon can make.

An agent ends with the daemon that started it, so the secret needs to outlive neither. What the agent starts is known
by its descent: its guard adopts whatever would leave it.
"""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path

from holdfast.lazy_dataclass import dataclass
from holdfast.process.alive import ancestors, initial_variable
from holdfast.process.guard_process import LOCK_VARIABLE

VARIABLE = "HOLDFAST_MANAGED"
"""The environment variable that carries the token to the agent's relay."""

_SECRET = secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class Managed:
    """The conversation that a managed agent is in, and the team that it works for."""

    conversation: int
    team: str


def token_for(conversation: int, team: str) -> str:
    return f"{conversation}:{team}:{_signature(conversation, team)}"


def read_token(token: str | None) -> Managed | None:
    """Return whom a token names; None if this daemon did not make it."""
    conversation, _, rest = (token or "").partition(":")
    team, _, signature = rest.rpartition(":")
    if not (conversation.isascii() and conversation.isdigit() and len(conversation) <= 18 and signature.isascii()):
        return None
    managed = Managed(int(conversation), team)
    return managed if hmac.compare_digest(signature, _signature(managed.conversation, team)) else None


def runs_under_agent(pid: int, home: Path) -> bool:
    """Return whether a process descends from a managed agent of this data directory; no if the system does not say."""
    locks = (initial_variable(ancestor, LOCK_VARIABLE) for ancestor in ancestors(pid))
    return any(lock is not None and _is_same(Path(lock).parent.parent, home) for lock in locks)


def _is_same(folder: Path, home: Path) -> bool:
    try:
        return folder.samefile(home)
    except OSError:
        return False


def _signature(conversation: int, team: str) -> str:
    return hmac.new(_SECRET, f"{conversation}:{team}".encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:32]
