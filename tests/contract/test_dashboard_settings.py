"""Settings: connections, tools, audit, keys, and the settings in force."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
from tests.contract.conftest import Place
from tests.contract.dashboard_world import Dashboard, csrf_of, dashboard

from holdfast.config import Settings
from holdfast.connections.keys import Scope
from holdfast.connections.model import Attempt, Connection, State, ToolCall
from holdfast.connections.queries import audit, usage
from holdfast.dashboard.pages.settings import browser_name
from holdfast.dashboard.settings_in_force import LISTED, settings_in_force
from holdfast.identity.caller import Caller, Era, Transport
from holdfast.store import Tx

pytestmark = pytest.mark.anyio

HIDING = (
    "session_secret",
    "telegram_token",
    "telegram_webhook_secret",
    "webhook_secret",
    "database_url",
    "telegram_api",
    "telegram_webhook",
    "webhook_url",
)
"""Settings that hold a secret, or may."""
HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e\ud83d"


@pytest.fixture
async def world(place: Place) -> AsyncIterator[Dashboard]:
    async with dashboard(place) as made:
        yield made


async def meet(world: Dashboard, name: str, *, live: bool = False, identity: str | None = None) -> Connection:
    """A caller that made its first call."""
    caller = Caller(
        Transport.RELAY, Era.MODERN, identity or f"caller:{name}", live=live, client_name=name, client_version="1.0"
    )
    return (await world.app.connections.meet(caller, tell_token=False))[0]


async def test_connections_are_listed_paged_and_revoked(place: Place) -> None:
    async with dashboard(place) as world, world.signed_in() as browser:
        for number in range(60):
            place.shift += 1_000
            await meet(world, f"client-{number}")
        connected = await meet(world, "here-now", live=True)
        page = (await browser.get("/settings/connections")).text
        assert page.index("here-now") < page.index('id="others"') < page.index("client-59")
        seen = re.findall(r"client-\d+", page)
        (older,) = re.findall(r'rel="next" href="([^"]+)"', page)
        rest = (await browser.get(older)).text
        seen += re.findall(r"client-\d+", rest)
        assert seen == [f"client-{number}" for number in reversed(range(60))] and "here-now" not in rest

        await world.app.connections.reconnects.start()
        token = await world.app.connections.renew_token(connected.id)
        form = {"csrf": await csrf_of(browser), "back": "/settings/connections"}
        done = await browser.post(f"/settings/connections/{connected.id}/revoke", data=form)
        assert done.status_code == 303 and done.headers["location"] == "/settings/connections"
        found = await world.app.connections.get(connected.id)
        assert found is not None and found.state == State.REVOKED
        refused = await world.app.connections.reconnects.reconnect(connected.id, token.token, Attempt("test"))
        assert "already_disconnected" in str(refused)
        assert (await browser.post("/settings/connections/nothing/revoke", data=form)).status_code == 404
        assert (await browser.get("/settings/connections?before=x")).status_code == 422


async def test_half_and_95_of_100_calls_are_within_the_times_shown(world: Dashboard) -> None:
    def write(tx: Tx) -> None:
        for number in range(1, 101):
            outcome = "error" if number > 97 else "ok"
            usage.add(tx, ToolCall(None, "thought", tx.now(), number * 1_000, outcome))
        usage.add(tx, ToolCall(None, "init", tx.now(), 7_000, "ok"))

    await world.store.write(write)
    thought, init = await world.app.connections.latencies(1_000)
    assert (thought.tool, thought.calls, thought.errors) == ("thought", 100, 3)
    assert (thought.p50_us, thought.p95_us, thought.max_us) == (50_000, 95_000, 100_000)
    assert (init.calls, init.p50_us, init.p95_us) == (1, 7_000, 7_000)
    (newest,) = await world.app.connections.latencies(1)
    assert newest.tool == "init", "the newest calls are looked at, however many there were"
    async with world.signed_in() as browser:
        page = (await browser.get("/settings/tools")).text
        assert "95.0 ms" in page and "50.0 ms" in page


async def test_the_audit_is_paged_and_can_be_of_one_connection(world: Dashboard) -> None:
    one = await meet(world, "one")

    def write(tx: Tx) -> None:
        for number in range(120):
            who = Attempt("127.0.0.1", HOSTILE.encode("utf-8", "replace").decode(), f"key-{number}")
            audit.write(tx, audit.Entry("reconnect", "ok", one.id if number == 3 else None, who))

    await world.store.write(write)
    async with world.signed_in() as browser:
        seen: list[str] = []
        url: str | None = "/settings/audit"
        while url is not None:
            page = (await browser.get(url)).text
            assert "<script>alert" not in page and "\x1b" not in page
            seen += re.findall(r"key-\d+", page)
            following = re.findall(r'rel="next" href="([^"]+)"', page)
            url = following[0].replace("&amp;", "&") if following else None
        assert seen == [f"key-{number}" for number in reversed(range(120))]
        of_one = (await browser.get(f"/settings/audit?connection={one.id}")).text
        assert re.findall(r"key-\d+", of_one) == ["key-3"]


async def test_a_key_is_listed_without_its_secret_and_revoked(world: Dashboard) -> None:
    keys = world.app.keys()
    secret = await keys.create("phone", Scope.READ)
    await keys.create("ci", Scope.ADMIN, ["backend"])
    async with world.signed_in() as browser:
        page = (await browser.get("/settings")).text
        assert "phone" in page and 'data-label="Scope">read<' in page and "backend" in page and secret not in page
        form = {"csrf": await csrf_of(browser)}
        assert (await browser.post("/settings/keys/phone/revoke", data=form)).status_code == 303
        assert await keys.check(secret) is None
        assert (await browser.post("/settings/keys/phone/revoke", data=form)).status_code == 404
        assert "1 key was revoked earlier" in (await browser.get("/settings")).text


def test_every_setting_is_listed_and_no_secret_is_shown() -> None:
    assert {field.name for field in fields(Settings)} == set(LISTED)
    secret = "not-to-be-shown"  # noqa: S105
    hiding = {
        name: f"https://user:{secret}@host.example:81/{secret}?t={secret}" if "url" in name or "api" in name else secret
        for name in HIDING
    }
    shown = {one.name: one.value for one in settings_in_force(replace(Settings(Path("/home/me")), **hiding))}  # type: ignore[arg-type]
    assert secret not in str(shown)
    assert shown["HOLDFAST_WEBHOOK_URL"] == "https://host.example:81"
    assert shown["HOLDFAST_AUTO_RESUME"] == "2 hours" and "15 minutes" in shown.values()


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36", "Chrome 140 on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36 Edg/140.0", "Edge 140 on Windows"),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:143.0) Gecko/20100101 Firefox/143.0",
            "Firefox 143 on macOS",
        ),
        ("The other browser", "The other browser"),
        (None, "unknown"),
    ],
)
def test_browsers_are_called_what_people_call_them(client: str | None, name: str) -> None:
    assert browser_name(client) == name
