"""Reconnect tokens over REST: however a token was bent, it opens nothing and breaks nothing."""

from __future__ import annotations

import base64
import json
import random
import secrets
from itertools import product

import jwt
import pytest
from tests.assembly import make_connections
from tests.contract.conftest import Place
from tests.contract.reasoning_world import agent
from tests.rest_in_process import client_of

from holdfast.connections.rate_limits import AttemptLimits
from holdfast.connections.routes import routes

pytestmark = pytest.mark.anyio

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
REASONS = {"invalid_token", "token_expired", "session_id_mismatch", "invalid_token_purpose", "token_mismatch"}


def _flipped(token: str, chance: random.Random) -> str:
    place = chance.randrange(len(token))
    other = chance.choice([char for char in ALPHABET + "." if char != token[place]])
    return token[:place] + other + token[place + 1 :]


def _cut(token: str, chance: random.Random) -> str:
    return token[: chance.randrange(1, len(token))]


def _grown(token: str, chance: random.Random) -> str:
    return token + chance.choice(["=", ".", "A", " ", "\n", "é", "." + token])


def _shuffled(token: str, chance: random.Random) -> str:
    return ".".join(chance.choice([parts for parts in product(token.split("."), repeat=3) if ".".join(parts) != token]))


def _unsigned(token: str, chance: random.Random) -> str:
    header, payload, signature = token.split(".")
    said = json.loads(base64.urlsafe_b64decode(header + "=="))
    said["alg"] = chance.choice(["none", "None", "HS512", "RS256", "", None, 1])
    bent = base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()
    return f"{bent}.{payload}.{chance.choice(['', signature])}"


def _resigned(token: str, chance: random.Random) -> str:
    said = jwt.decode(token, options={"verify_signature": False})
    said[chance.choice(["exp", "purpose", "session_id", "jti", "iat"])] = chance.choice([0, 10**12, "x", None, [], {}])
    kid = chance.choice([jwt.get_unverified_header(token)["kid"], "other", "../../etc/passwd"])
    return jwt.encode(said, secrets.token_hex(32), algorithm="HS256", headers={"kid": kid})


def _random(token: str, chance: random.Random) -> str:
    kind = chance.choice([ALPHABET, ALPHABET + ".", "".join(map(chr, range(1, 0x250))), "\0.🗝{}\"'"])
    return "".join(chance.choices(kind, k=chance.randrange(1, 400)))


WAYS = (_flipped, _cut, _grown, _shuffled, _unsigned, _resigned, _random)


@pytest.mark.parametrize(
    "number", [pytest.param(140, id="small"), pytest.param(1000, id="whole", marks=pytest.mark.long)]
)
async def test_none_of_a_thousand_random_and_mutated_tokens_is_accepted(place: Place, number: int) -> None:
    chance = random.Random(2)
    store = place.open()
    try:
        connections = make_connections(store, limits=AttemptLimits(10 * number, 10 * number))
        await connections.start()
        connection, issued = await connections.meet(agent("one"), tell_token=True)
        assert issued is not None
        seen = set()
        async with client_of(routes(connections)) as client:
            path = f"/api/mcp/sessions/{connection.id}"
            for turn in range(number):
                token = WAYS[turn % len(WAYS)](issued.token, chance)
                assert token != issued.token
                response = await client.post(f"{path}/reconnect", json={"token": token})
                assert response.status_code == 401, (token, response.text)
                seen.add(response.json()["detail"].removeprefix("Reconnection failed: "))
            assert (await client.get(path)).json()["reconnect_count"] == 0
            # The one it all began with was neither used up nor revoked by them.
            assert (await client.post(f"{path}/reconnect", json={"token": issued.token})).status_code == 200
        assert {"invalid_token"} <= seen <= REASONS
    finally:
        await store.close()
