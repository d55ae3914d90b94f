"""Pages of the owner's own: which may call Holdfast from a browser, and for what."""

from __future__ import annotations

import pytest
from tests.contract.conftest import Place
from tests.contract.dashboard_world import dashboard

from holdfast.connections.keys import Scope
from holdfast.errors import BadInput
from holdfast.wire.http.origins import allowed_origins

pytestmark = pytest.mark.anyio

MINE, ALSO_MINE = "http://127.0.0.1:3000", "https://board.example"
READABLE = "access-control-allow-origin"


async def test_only_listed_pages_may_read_answers_and_only_of_rest_and_events(place: Place) -> None:
    async with dashboard(place, f"{MINE}, {ALSO_MINE}/") as world, world.browser() as browser:
        key = {"Authorization": f"Bearer {await world.app.keys().create('page', Scope.ADMIN)}"}
        for origin in (MINE, ALSO_MINE):
            answer = await browser.get("/api/mcp/sessions/active", headers={**key, "Origin": origin})
            assert answer.status_code == 200 and answer.headers[READABLE] == origin
            assert answer.headers["vary"] == "Origin" and "access-control-allow-credentials" not in answer.headers
            refused = await browser.get("/api/mcp/sessions/active", headers={"Origin": origin})
            assert refused.status_code == 401 and refused.headers[READABLE] == origin, "why is said to the page"
            asked = {"Origin": origin, "Access-Control-Request-Method": "GET"}
            preflight = await browser.options("/events", headers=asked)
            assert preflight.status_code == 204 and "Authorization" in preflight.headers["access-control-allow-headers"]
            assert "access-control-allow-credentials" not in preflight.headers
        for path in ("/", "/settings", "/sign-in", "/mcp", "/open/x", "/healthz"):
            for method in ("GET", "POST", "OPTIONS"):
                headers = {"Origin": MINE, "Access-Control-Request-Method": "POST"}
                assert READABLE not in (await browser.request(method, path, headers=headers)).headers, (method, path)
        foreign = await browser.get("/", headers={**key, "Origin": ALSO_MINE})
        assert foreign.status_code == 403, "being listed for REST opens no page"
        for origin in ("http://127.0.0.1:3001", "http://localhost:3000", "https://evil.example", "null"):
            answer = await browser.get("/api/mcp/sessions/active", headers={**key, "Origin": origin})
            assert READABLE not in answer.headers


async def test_a_listed_page_is_not_known_by_the_cookie(place: Place) -> None:
    async with dashboard(place, MINE) as world, world.signed_in() as browser:
        for path in ("/api/mcp/sessions/active", "/events"):
            answer = await browser.get(path, headers={"Origin": MINE, "Sec-Fetch-Site": "same-site"})
            assert answer.status_code == 401, path


async def test_without_the_setting_no_other_page_reads_anything(place: Place) -> None:
    async with dashboard(place) as world, world.browser() as browser:
        key = {"Authorization": f"Bearer {await world.app.keys().create('page', Scope.ADMIN)}"}
        answer = await browser.get("/api/mcp/sessions/active", headers={**key, "Origin": MINE})
        assert answer.status_code == 200 and READABLE not in answer.headers


@pytest.mark.parametrize("text", ["*", "http://*", "127.0.0.1:3000", "http://a/b", "http://u@a", "null", "http://a:x"])
def test_what_no_browser_sends_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadInput, match="HOLDFAST_ORIGINS"):
        allowed_origins(text)
