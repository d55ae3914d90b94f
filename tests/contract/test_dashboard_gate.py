"""Who may open the dashboard, and who may change something there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from itertools import product

import httpx2
import pytest
from tests.contract.conftest import Place
from tests.contract.dashboard_world import ADDRESS, Dashboard, csrf_of, dashboard
from tests.dashboard_pages import actions, fixed

from holdfast.connections.browser_sessions import IDLE_MS, LIFE_MS
from holdfast.connections.keys import Scope
from holdfast.dashboard.capability import FIRST_NAMES
from holdfast.store import Tx
from holdfast.store.events import head

pytestmark = pytest.mark.anyio

PAGES = fixed()
"""Every page with a fixed address."""
ACTIONS = tuple(re.sub(r"\{\w+\}", "1", path) for path in actions())
"""An address of everything that changes something."""


@pytest.fixture
async def world(place: Place) -> AsyncIterator[Dashboard]:
    async with dashboard(place) as made:
        yield made


async def test_a_stranger_is_told_how_to_sign_in_and_nothing_else(world: Dashboard) -> None:
    paths = [f"/{first}{rest}" for first in FIRST_NAMES - {"static", "icon"} for rest in ("", "/anything")]
    async with world.browser() as browser:
        for path, method in product(paths, ("GET", "POST", "DELETE")):
            answer = await browser.request(method, path)
            assert answer.status_code in (401, 405) and "holdfast open" in answer.text, (method, path)
            assert "data-csrf" not in answer.text and "set-cookie" not in answer.headers


async def test_a_link_signs_in_once(world: Dashboard) -> None:
    link = f"/open/{world.browsers.link(Scope.ADMIN)}"
    async with world.browser() as first, world.browser() as second:
        cookie = (await first.get(link)).headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert (await first.get("/")).status_code == 200
        again = await second.get(link)
        assert again.status_code == 401 and "was used, or is too old" in again.text
        assert "set-cookie" not in again.headers
        assert (await second.get("/")).status_code == 401


async def test_who_asks_for_a_link_finds_every_page_prepared(world: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await world.app.commands()["dashboard-link"].run({"scope": "admin"}, lambda done, what: None)
    (pages,) = world.app.pages()
    await pages.app._preparing  # type: ignore[attr-defined]
    monkeypatch.setattr("jinja2.Environment.compile", None)  # nothing is compiled any more
    async with world.browser() as browser:
        assert (await browser.get(made["path"])).status_code == 200
        for path in PAGES:
            assert (await browser.get(path)).status_code == 200, path


async def test_a_link_does_not_outlive_its_time(world: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.connections.browser_sessions.LINK_SECONDS", -1)
    async with world.browser() as browser:
        assert (await browser.get(f"/open/{world.browsers.link(Scope.ADMIN)}")).status_code == 401


async def test_the_store_holds_no_secret_of_a_browser(world: Dashboard) -> None:
    async with world.signed_in() as browser:
        (secret,) = browser.cookies.values()
        (row,) = await world.store.read(lambda tx: tx.all("SELECT * FROM browser_sessions"))
        assert secret not in str(row) and await csrf_of(browser) not in str(row)


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_has_a_strict_policy_and_runs_nothing_of_its_own(world: Dashboard, path: str) -> None:
    async with world.signed_in() as browser:
        answer = await browser.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)|https?://", answer.text)


async def test_a_change_needs_the_token_of_its_own_session(world: Dashboard) -> None:
    async with world.signed_in() as one, world.signed_in() as other:
        for token in ("", "x", await csrf_of(other), "\udc80"):
            form = {"csrf": token.encode("utf-8", "surrogatepass").decode("latin-1")}
            assert (await one.post("/sign-out", data=form)).status_code == 403
        assert (await one.get("/")).status_code == 200
        assert (await one.post("/sign-out", data={"csrf": await csrf_of(one)})).status_code == 303
        assert (await one.get("/")).status_code == 401
        assert (await other.get("/")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "http://localhost:8181"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=lambda headers: "-".join(headers.values()),
)
async def test_a_change_comes_from_a_page_of_this_very_port(world: Dashboard, headers: dict[str, str]) -> None:
    async with world.signed_in() as browser:
        form = {"csrf": await csrf_of(browser)}
        assert (await browser.post("/sign-out", data=form, headers=headers)).status_code == 403
        own = {"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}
        assert (await browser.post("/sign-out", data=form, headers=own)).status_code == 303


@pytest.mark.parametrize("path", ACTIONS)
async def test_every_change_is_refused_without_its_token_from_elsewhere_and_to_who_may_only_read(
    world: Dashboard, path: str
) -> None:
    async with world.signed_in() as owner, world.signed_in(Scope.READ) as reader, world.signed_in() as other:
        token, before = await csrf_of(owner), await world.store.read(head)
        refused = [
            await owner.post(path),
            await owner.post(path, data={"csrf": await csrf_of(other)}),
            await owner.post(path, data={"csrf": token}, headers={"Origin": "http://127.0.0.1:3000"}),
            await owner.post(path, data={"csrf": token}, headers={"Sec-Fetch-Site": "cross-site"}),
            *([await reader.post(path, data={"csrf": await csrf_of(reader)})] if path != "/sign-out" else []),
        ]
        assert [answer.status_code for answer in refused] == [403] * len(refused)
        asked = await owner.get(path, params={"csrf": token})
        assert asked.status_code in (404, 405), "a link changes nothing"
        assert await world.store.read(head) == before, "nothing was changed"
        allowed = await owner.post(path, data={"csrf": token})
        assert allowed.status_code != 403, "with its token the change is considered"


async def test_who_may_only_read_sees_the_pages_and_changes_nothing(world: Dashboard) -> None:
    key = await world.app.keys().create("phone", Scope.READ)
    async with world.browser() as reader, world.signed_in() as owner:
        assert (await reader.post("/sign-in", data={"key": key})).status_code == 200
        for path in PAGES:
            page = await reader.get(path)
            assert page.status_code == 200
            assert re.findall(r'<form class="action"[^>]*action="([^"]+)"', page.text) == ["/sign-out"]
        mine, *_ = [one for one in await world.browsers.list() if one.key_name == "owner"]
        form = {"csrf": await csrf_of(reader)}
        assert (await reader.post(f"/settings/browsers/{mine.id}/revoke", data=form)).status_code == 403
        assert (await owner.get("/")).status_code == 200


async def test_a_browser_is_signed_out_with_its_key(world: Dashboard) -> None:
    keys = world.app.keys()
    key = await keys.create("phone", Scope.READ)
    async with world.browser() as browser:
        await browser.post("/sign-in", data={"key": key})
        assert (await browser.get("/")).status_code == 200
        await keys.revoke("phone")
        assert (await browser.get("/")).status_code == 401


async def test_an_unknown_key_and_one_for_teams_do_not_sign_in(world: Dashboard) -> None:
    limited = await world.app.keys().create("team", Scope.ADMIN, ["backend"])
    async with world.browser() as browser:
        for key, why in (("nonsense", "not known"), ("", "not known"), (limited, "limited to teams")):
            answer = await browser.post("/sign-in", data={"key": key})
            assert answer.status_code == 401 and why in answer.text and "set-cookie" not in answer.headers


async def test_a_session_ends_idle_and_at_its_end_and_when_it_is_revoked(place: Place) -> None:
    async with dashboard(place) as world, world.signed_in() as browser, world.signed_in() as other:
        place.shift += IDLE_MS - 60_000
        assert (await browser.get("/")).status_code == 200
        place.shift += IDLE_MS - 60_000
        assert (await browser.get("/")).status_code == 200, "it was used meanwhile"
        assert (await other.get("/")).status_code == 401, "it was not"
        (session,) = await world.browsers.list()
        assert re.search(r">in \d+ \w+</time>", (await browser.get("/settings")).text), "its end is listed"
        form = {"csrf": await csrf_of(browser)}
        revoked = await browser.post(f"/settings/browsers/{session.id}/revoke", data=form)
        assert revoked.status_code == 303
        assert (await browser.get("/")).status_code == 401

        async with world.signed_in() as last:
            for _ in range(LIFE_MS // (IDLE_MS // 2)):
                place.shift += IDLE_MS // 2
                await last.get("/")
            assert (await last.get("/")).status_code == 401, "a session has an end, however often it is used"


async def test_sign_in_and_out_are_in_the_audit(world: Dashboard) -> None:
    async with world.signed_in() as browser:
        await browser.get("/open/nonsense")
        await browser.post("/sign-out", data={"csrf": await csrf_of(browser)})
    lines = await world.app.connections.audit_lines(None, None, 10)
    assert [(line.action, line.outcome, line.principal) for line in reversed(lines)] == [
        ("sign_in", "ok", "owner"),
        ("sign_in", "link_unknown", None),
        ("sign_out", "ok", "owner"),
    ]


async def test_failed_sign_ins_do_not_fill_the_store(world: Dashboard) -> None:
    async with world.browser() as browser:
        for _ in range(30):
            await browser.post("/sign-in", data={"key": "guess"})
    assert len(await world.app.connections.audit_lines(None, None, 100)) == 10


async def test_an_action_leads_back_to_a_page_of_its_own_site(world: Dashboard) -> None:
    for back in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/settings"):
        async with world.signed_in() as browser:
            form = {"csrf": await csrf_of(browser), "back": back}
            (session,) = await world.browsers.list()
            answer = await browser.post(f"/settings/browsers/{session.id}/revoke", data=form)
            assert answer.headers["location"] == ("/settings" if back == "/settings" else "/")


async def test_static_files_are_kept_for_good_under_their_content(world: Dashboard) -> None:
    async with world.signed_in() as browser:
        page = (await browser.get("/")).text
        (script,) = re.findall(r'<script type="module" src="([^"]+)"', page)
    async with world.browser() as stranger:
        answer = await stranger.get(script)
        assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]
        known = {"If-None-Match": answer.headers["etag"]}
        assert (await stranger.get("/static/client.js", headers=known)).status_code == 304
        for name in ("/static/../site.py", "/static/x/client.js", "/static/%2e%2e/site.py", "/static/"):
            assert (await stranger.get(name)).status_code in (404, 401)


async def test_events_are_only_told_to_those_who_are_signed_in(world: Dashboard) -> None:
    async with world.browser() as stranger:
        answer = await stranger.get("/events")
        assert answer.status_code == 401 and "event-stream" not in answer.headers["content-type"]


async def test_a_key_follows_events_and_one_for_teams_or_a_revoked_one_does_not(world: Dashboard) -> None:
    keys = world.app.keys()
    phone = await keys.create("phone", Scope.READ)
    limited = await keys.create("team", Scope.ADMIN, ["backend"])
    async with world.browser() as stranger, world.signed_in() as browser:

        async def status(one: httpx2.AsyncClient, **headers: str) -> int:
            # The stream has no end: whoever may follow it is told that there are too many.
            return (await one.get("/events", headers=headers)).status_code

        for key in ("nonsense", "", limited):
            assert await status(stranger, Authorization=f"Bearer {key}") == 401
            assert await status(browser, Authorization=f"Bearer {key}") == 401, (
                "a key that is no good is not made up for"
            )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("holdfast.dashboard.site.MAX_STREAMS", 0)
            assert await status(stranger, Authorization=f"Bearer {phone}") == 503
            assert await status(browser) == 503
            assert await status(browser, Origin="http://127.0.0.1:3000") == 401, "a cookie is for pages of this port"
            await keys.revoke("phone")
            assert await status(stranger, Authorization=f"Bearer {phone}") == 401


async def test_who_replaces_the_owners_key_signs_every_browser_out(place: Place) -> None:
    async with dashboard(place) as world, world.signed_in() as browser:
        cookies = dict(browser.cookies)
    (place.home / "key").write_text("another-key-that-is-long-enough-to-protect-something-0123456789")
    async with dashboard(place) as world, world.browser() as browser:
        browser.cookies.update(cookies)
        assert (await browser.get("/")).status_code == 401


async def test_old_sessions_are_forgotten(place: Place) -> None:
    async with dashboard(place) as world:
        async with world.signed_in():
            pass
        place.shift += LIFE_MS + 31 * 24 * 3_600_000
        await world.browsers.forget_old()

        def count(tx: Tx) -> int:
            return len(tx.all("SELECT id FROM browser_sessions"))

        assert await world.store.read(count) == 0
