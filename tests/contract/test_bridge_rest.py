"""The bridge over REST: what a phone or a script can send, follow and repair."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.contract.conftest import Place
from tests.rest_in_process import client_of

from holdfast.bridge.model import LEASE_MS, MAX_ATTEMPTS, Outcome
from holdfast.bridge.queries import queue as queries
from holdfast.bridge.queue_changes import QueueChanges
from holdfast.bridge.routes import routes
from holdfast.bridge.service import Bridge
from holdfast.connections.keys import Scope
from holdfast.store import Store, Tx
from holdfast.teams.team import Team

pytestmark = pytest.mark.anyio

TARGETS = {name: Team(name, Path("/nowhere")) for name in ("homelab", "felt")}
MESSAGES = "/api/bridge/messages"


@asynccontextmanager
async def _served(place: Place, scope: Scope | None = Scope.ADMIN) -> AsyncIterator[tuple[httpx2.AsyncClient, Store]]:
    store = place.open()
    try:
        async with client_of(
            routes(Bridge(store, lambda: TARGETS), QueueChanges(store, lambda: TARGETS)), scope
        ) as client:
            yield client, store
    finally:
        await store.close()


async def _sent(client: httpx2.AsyncClient, target: str, message: str, **more: Any) -> dict[str, Any]:
    answer = await client.post(MESSAGES, json={"target": target, "message": message, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def _take_and_give_back(tx: Tx) -> None:
    taken = queries.take(tx, "homelab", "session:x", "call", LEASE_MS)
    assert taken is not None
    queries.give_back(tx, taken)


async def test_what_is_sent_waits_in_its_own_queue_and_a_repetition_is_a_duplicate(place: Place) -> None:
    async with _served(place) as (client, _):
        sent = await _sent(client, "homelab", "Fix the DNS record", id="msg-456", priority="urgent")
        assert sent == {"queued": True, "id": "msg-456", "target": "homelab"}
        again = await _sent(client, "homelab", "Fix the DNS record", id="msg-456")
        assert (again["queued"], again["reason"]) == (False, "duplicate")
        assert (await _sent(client, "nowhere", "x"))["reason"] == "unknown target: nowhere"
        targets = (await client.get("/api/bridge/targets")).json()["targets"]
        assert {name: target["pending"] for name, target in targets.items()} == {"homelab": 1, "felt": 0}
        (message,) = (await client.get(MESSAGES, params={"target": "homelab"})).json()["messages"]
        assert (message["id"], message["status"], message["priority"]) == ("msg-456", "pending", "urgent")
        assert (message["from"], message["source"], message["text"]) == ("the key tester", "rest", "Fix the DNS record")
        assert (await client.get(MESSAGES, params={"target": "felt"})).json() == {"messages": []}


async def test_updates_come_in_pages_by_their_cursor(place: Place) -> None:
    async with _served(place) as (client, store):

        def finish_all(tx: Tx) -> None:
            while (taken := queries.take(tx, "homelab", "session:x", "call", LEASE_MS)) is not None:
                queries.finish(tx, taken, Outcome.DONE, f"did {taken.id}")

        for number in range(3):
            await _sent(client, "homelab", f"n{number}", id=f"m{number}")
        await store.write(finish_all)
        first = (await client.get("/api/bridge/updates", params={"target": "homelab", "limit": 2})).json()
        assert [update["content"] for update in first["updates"]] == ["did m0", "did m1"]
        rest = await client.get("/api/bridge/updates", params={"target": "homelab", "since": first["cursor"]})
        assert [update["message_id"] for update in rest.json()["updates"]] == ["m2"]
        assert (await client.get("/api/bridge/updates", params={"target": "nobody"})).status_code == 404
        bad = await client.get("/api/bridge/updates", params={"target": "homelab", "since": "yesterday"})
        assert bad.status_code == 422 and bad.json()["detail"].startswith("since:")


async def test_a_dead_letter_is_listed_and_waits_again_on_request(place: Place) -> None:
    async with _served(place) as (client, store):
        await _sent(client, "homelab", "poison", id="m1")
        for _ in range(MAX_ATTEMPTS):
            await store.write(_take_and_give_back)
        (dead,) = (await client.get(MESSAGES, params={"status": "dead"})).json()["messages"]
        assert (dead["id"], dead["target"], dead["attempts"]) == ("m1", "homelab", MAX_ATTEMPTS)
        retried = await client.post(f"{MESSAGES}/m1/retry")
        assert retried.json() == {"id": "m1", "target": "homelab", "status": "pending"}
        assert (await client.get(MESSAGES, params={"status": "dead"})).json() == {"messages": []}
        again = await client.post(f"{MESSAGES}/m1/retry")
        assert again.status_code == 400 and "still waiting" in again.json()["detail"]
        assert (await client.post(f"{MESSAGES}/nobody/retry")).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"target": "homelab"}, "message"),
        ({"target": "homelab", "message": "  "}, "message"),
        ({"target": "homelab", "message": "a\0b"}, "message"),
        ({"target": "homelab", "message": "x", "id": "a b"}, "id"),
        ({"target": "homelab", "message": "x", "priority": "soon"}, "priority"),
        ({"target": "homelab", "message": "x", "colour": "red"}, "colour"),
    ],
)
async def test_what_cannot_be_sent_is_refused_by_the_name_of_its_field(
    sqlite_place: Place, body: dict[str, Any], field: str
) -> None:
    async with _served(sqlite_place) as (client, _):
        refused = await client.post(MESSAGES, json=body)
        assert refused.status_code == 422 and refused.json()["detail"].startswith(f"{field}:")
        assert (await client.get(MESSAGES)).json() == {"messages": []}


async def test_a_key_that_may_only_read_sends_and_retries_nothing(sqlite_place: Place) -> None:
    async with _served(sqlite_place, Scope.READ) as (client, _):
        assert (await client.post(MESSAGES, json={"target": "homelab", "message": "x"})).status_code == 403
        assert (await client.post(f"{MESSAGES}/m1/retry")).status_code == 403
        for path in (MESSAGES, "/api/bridge/targets", "/api/bridge/updates?target=homelab"):
            assert (await client.get(path)).status_code == 200
