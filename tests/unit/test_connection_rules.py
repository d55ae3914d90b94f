"""The rules of taking up a connection, as tables of cases."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.assembly import MemoryShelf

from holdfast.connections import tokens
from holdfast.connections.model import (
    LOST_REPLY_MS,
    Attempt,
    Connection,
    Reason,
    State,
    Token,
    is_past_half,
    is_repeat,
    judge,
)
from holdfast.connections.rate_limits import PER_SESSION, AttemptLimits
from holdfast.connections.signing_keys import SigningRing
from holdfast.errors import Conflict

NOW = 1_800_000_000_000
MINUTE = 60_000

CONNECTION = Connection(
    id="c1",
    identity="http:m",
    transport="http",
    era="legacy",
    client_name=None,
    client_version=None,
    agent_session=None,
    principal=None,
    root_uri=None,
    bound_root=None,
    reasoning_session=None,
    joined=0,
    state=State.ACTIVE.value,
    reconnect_count=0,
    attached_by=None,
    pid=None,
    created_at=NOW,
    seen_at=NOW,
)
TOKEN = Token("j1", "c1", "k1", NOW, NOW + 15 * MINUTE, None, None, None)


@pytest.mark.parametrize(
    ("connection", "token", "at", "reason"),
    [
        (CONNECTION, TOKEN, NOW, None),
        (replace(CONNECTION, state="idle"), TOKEN, NOW, None),
        (replace(CONNECTION, state="detached"), TOKEN, NOW, None),
        (None, TOKEN, NOW, Reason.SESSION_NOT_FOUND),
        (CONNECTION, None, NOW, Reason.TOKEN_MISMATCH),
        (CONNECTION, replace(TOKEN, connection_id="c2"), NOW, Reason.TOKEN_MISMATCH),
        (CONNECTION, replace(TOKEN, revoked_at=NOW), NOW, Reason.TOKEN_MISMATCH),
        (replace(CONNECTION, state="expired"), TOKEN, NOW, Reason.SESSION_ALREADY_DISCONNECTED),
        (replace(CONNECTION, state="revoked"), TOKEN, NOW, Reason.SESSION_ALREADY_DISCONNECTED),
        (
            replace(CONNECTION, state="revoked"),
            replace(TOKEN, revoked_at=NOW),
            NOW,
            Reason.SESSION_ALREADY_DISCONNECTED,
        ),
        (CONNECTION, TOKEN, NOW + 15 * MINUTE, Reason.TOKEN_EXPIRED),
        (CONNECTION, TOKEN, NOW + 15 * MINUTE - 1, None),
    ],
)
def test_who_may_take_up_a_connection(
    connection: Connection | None, token: Token | None, at: int, reason: Reason | None
) -> None:
    assert judge(connection, token, at) == reason


def test_a_retired_token_is_a_repeat_for_half_a_minute() -> None:
    retired = replace(TOKEN, retired_at=NOW)
    assert is_repeat(retired, NOW + LOST_REPLY_MS)
    assert not is_repeat(retired, NOW + LOST_REPLY_MS + 1)
    assert not is_repeat(TOKEN, NOW)


def test_a_token_is_renewed_after_half_its_life() -> None:
    assert not is_past_half(TOKEN, NOW + 7 * MINUTE)
    assert is_past_half(TOKEN, NOW + 8 * MINUTE)


async def _ring(secret: str | None = None, shelf: MemoryShelf | None = None) -> SigningRing:
    ring = SigningRing(shelf or MemoryShelf(), secret, lambda: NOW)
    await ring.start()
    return ring


def _segments(text: str) -> tuple[dict[str, object], dict[str, object], str]:
    head, body, signature = text.split(".")

    def read(part: str) -> dict[str, object]:
        return dict(json.loads(base64.urlsafe_b64decode(part + "==")))

    return read(head), read(body), signature


def _encode(part: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


@pytest.mark.anyio
async def test_only_an_untouched_token_of_ours_is_read() -> None:
    ring = await _ring()
    key = ring.current
    good = tokens.sign(TOKEN, key)
    assert tokens.read(good, "c1", ring, NOW) == tokens.Claims("c1", "j1")
    assert tokens.sign(TOKEN, key) == good, "the same fields give the same token"
    header, payload, signature = _segments(good)
    assert header["kid"] == key.kid and header["alg"] == "HS256"
    assert set(payload) == {"session_id", "exp", "iat", "jti", "purpose"}
    assert tokens.read(good, "c2", ring, NOW) == Reason.SESSION_ID_MISMATCH
    assert tokens.read(good, "c1", ring, NOW + 15 * MINUTE) == Reason.TOKEN_EXPIRED
    cases = {
        good[:-1]: ("c1", NOW, Reason.INVALID_TOKEN),
        good[:-2] + ("AA" if good[-2:] != "AA" else "BB"): ("c1", NOW, Reason.INVALID_TOKEN),
        f"{_encode({**header, 'alg': 'none'})}.{_encode(payload)}.": ("c1", NOW, Reason.INVALID_TOKEN),
        f"{_encode({**header, 'alg': 'none'})}.{_encode(payload)}.{signature}": ("c1", NOW, Reason.INVALID_TOKEN),
        f"{_encode(header)}.{_encode({**payload, 'exp': 9_999_999_999})}.{signature}": (
            "c1",
            NOW,
            Reason.INVALID_TOKEN,
        ),
        f"{_encode({**header, 'kid': 'other'})}.{_encode(payload)}.{signature}": ("c1", NOW, Reason.INVALID_TOKEN),
        "": ("c1", NOW, Reason.INVALID_TOKEN),
        "a.b.c": ("c1", NOW, Reason.INVALID_TOKEN),
        "x" * 5000: ("c1", NOW, Reason.INVALID_TOKEN),
        "\ud800": ("c1", NOW, Reason.INVALID_TOKEN),
    }
    for text, (session, at, reason) in cases.items():
        assert tokens.read(text, session, ring, at) == reason, text[:60]
    other = jwt.encode({**payload, "purpose": "login"}, key.secret, "HS256", {"kid": key.kid})
    assert tokens.read(other, "c1", ring, NOW) == Reason.INVALID_TOKEN_PURPOSE
    for missing in ("exp", "iat", "jti"):
        short = {name: value for name, value in payload.items() if name != missing}
        text = jwt.encode(short, key.secret, "HS256", {"kid": key.kid})
        assert tokens.read(text, "c1", ring, NOW) == Reason.INVALID_TOKEN


@pytest.mark.anyio
async def test_a_thousand_mutated_tokens_are_refused() -> None:
    ring = await _ring()
    good = tokens.sign(TOKEN, ring.current)
    chance = random.Random(1)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
    for _ in range(1000):
        letters = list(good)
        for _ in range(chance.randint(1, 4)):
            letters[chance.randrange(len(letters) - 1)] = chance.choice(alphabet)
        text = "".join(letters)
        if text != good:
            assert isinstance(tokens.read(text, "c1", ring, NOW), Reason), text


@given(st.text(max_size=200))
def test_no_text_brings_the_reader_down(text: str) -> None:
    ring = SigningRing(MemoryShelf(), "s" * 32, lambda: NOW)
    assert isinstance(tokens.read(text, "c1", ring, NOW), Reason)


@pytest.mark.anyio
async def test_a_rotated_key_is_honoured_until_its_tokens_expired() -> None:
    shelf = MemoryShelf()
    ring = await _ring(shelf=shelf)
    old = tokens.sign(replace(TOKEN, kid=ring.current.kid), ring.current)
    await ring.rotate(15 * MINUTE)
    assert isinstance(tokens.read(old, "c1", ring, NOW), tokens.Claims)
    assert tokens.sign(TOKEN, ring.current) != old
    later = SigningRing(shelf, None, lambda: NOW + 16 * MINUTE)
    await later.start()
    await later.rotate(15 * MINUTE)
    assert tokens.read(old, "c1", later, NOW) == Reason.INVALID_TOKEN


@pytest.mark.anyio
async def test_a_given_secret_signs_and_is_not_rotated_here() -> None:
    ring = await _ring("s" * 32)
    assert ring.current.secret == "s" * 32 and ring.current.kid.startswith("env-")
    with pytest.raises(Conflict, match="MCP_SESSION_SECRET"):
        await ring.rotate(0)


def test_failures_are_limited_per_session_and_key_on_loopback() -> None:
    limits = AttemptLimits()
    mine, theirs = Attempt("127.0.0.1", principal="one"), Attempt("127.0.0.1", principal="two")
    for _ in range(PER_SESSION):
        assert limits.wait("s", mine) is None
        limits.failed("s", mine)
    wait = limits.wait("s", mine)
    assert wait is not None and 1 <= wait <= 60
    assert limits.wait("another", mine) is None
    assert limits.wait("s", theirs) is None


def test_failures_are_limited_per_address_from_elsewhere() -> None:
    limits = AttemptLimits(per_session=100, per_caller=5)
    stranger = Attempt("203.0.113.9")
    for number in range(5):
        limits.failed(f"session-{number}", stranger)
    assert limits.wait("one more", stranger) is not None
    assert limits.wait("one more", Attempt("203.0.113.10")) is None
