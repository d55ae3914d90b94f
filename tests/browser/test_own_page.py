"""A page of a user's own, served elsewhere, that uses the client module; and many tabs that share one stream."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect
from tests.browser.conftest import Opens, no_reload, sign_in_link
from tests.installation import Installation
from tests.process.agent import Agent

PAGE = """<!doctype html><title>My page</title><script type="module">
import { holdfast } from "%(address)s/static/client.js";
const { getReconnectToken, reconnectSession, followEvents } = holdfast({ key: "%(key)s" });
window.told = [];
window.states = [];
followEvents({ onEvent: (event) => told.push(event.kind), onState: (state) => states.push(state) });
Object.assign(window, { getReconnectToken, reconnectSession });
window.ready = true;
</script>"""


@pytest.fixture
def holdfast(embedded: Installation) -> Installation:
    """A daemon that can be killed and comes back at the same port; not started yet."""
    embedded.settings["HOLDFAST_PORT"] = "0"
    return embedded


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder that a server of the user's own serves, and its address."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def serve(holdfast: Installation, **settings: str) -> None:
    """Start the daemon; from now on at the same port."""
    holdfast.settings |= settings
    holdfast.serve()
    holdfast.settings["HOLDFAST_PORT"] = holdfast.address().rpartition(":")[2]


def test_a_page_of_ones_own_has_its_session_back_after_the_daemon_was_killed(
    holdfast: Installation, chromium: Browser, own_site: tuple[Path, str], tmp_path: Path
) -> None:
    folder, origin = own_site
    serve(holdfast, HOLDFAST_ORIGINS=origin)
    with Agent(holdfast, tmp_path, session="mine") as agent:
        agent.call("thought", thought="Mine.", nextThoughtNeeded=True, thoughtNumber=1, totalThoughts=2)
    (folder / "index.html").write_text(PAGE % {"address": holdfast.address(), "key": holdfast.key()})
    page = chromium.new_page()
    page.goto(f"{origin}/index.html")
    page.wait_for_function("window.ready && states.includes('connected')")
    asks = "([url, key]) => fetch(url, {headers: {Authorization: `Bearer ${key}`}}).then((answer) => answer.json())"
    sessions = page.evaluate(asks, [f"{holdfast.address()}/api/mcp/sessions/active", holdfast.key()])
    session = sessions["sessions"][0]["session_id"]
    given = page.evaluate("(id) => getReconnectToken(id)", session)
    assert given.keys() == {"session_id", "reconnect_token", "expires_in_minutes"}
    assert (given["session_id"], given["expires_in_minutes"]) == (session, 15)

    killed = holdfast.kill_daemon()
    page.wait_for_function("states.at(-1) === 'lost'")
    holdfast.serve(another_than=killed)
    page.wait_for_function("states.at(-1) === 'connected'")
    taken = page.evaluate("([id, token]) => reconnectSession(id, token)", [session, given["reconnect_token"]])
    assert (taken["success"], taken["session_id"], taken["message"]) == (True, session, "Session reconnected")
    page.wait_for_function("told.includes('connection.reconnected')")
    found = json.loads(holdfast.run("audit", "--json").stdout)[0]
    assert (found["action"], found["outcome"]) == ("reconnect", "ok")

    refused = "([id, token]) => reconnectSession(id, token).catch((error) => [error.status, error.message])"
    assert page.evaluate(refused, [session, "nonsense"]) == [401, "Reconnection failed: invalid_token"]
    page.close()


def test_a_page_that_is_not_listed_reads_nothing_not_even_with_the_key(
    holdfast: Installation, chromium: Browser, own_site: tuple[Path, str]
) -> None:
    folder, origin = own_site
    serve(holdfast)
    (folder / "index.html").write_text("<!doctype html><title>Other</title>")
    context = chromium.new_context()
    page = context.new_page()
    page.goto(sign_in_link(holdfast))  # the browser has the cookie too: it belongs to every port of this host
    page.wait_for_url(f"{holdfast.address()}/")
    page.goto(f"{origin}/index.html")
    asks = "([url, options]) => fetch(url, options).then(() => 'read', () => 'refused')"
    for path in ("/api/mcp/sessions/active", "/events", "/", "/settings"):
        for options in (
            {"headers": {"Authorization": f"Bearer {holdfast.key()}"}},
            {"credentials": "include"},
            {"credentials": "include", "method": "POST", "body": "{}"},
        ):
            assert page.evaluate(asks, [holdfast.address() + path, options]) == "refused", (path, options)
    context.close()


def test_eight_tabs_share_one_stream_and_go_on_when_the_first_is_closed(holdfast: Installation, opens: Opens) -> None:
    serve(holdfast)
    first = opens(holdfast, "/settings")
    followers: set[Page] = set()

    def note(request: Request) -> None:
        if urlsplit(request.url).path == "/events":
            followers.add(request.frame.page)

    first.context.on("request", note)
    tabs = [first, *(first.context.new_page() for _ in range(7))]
    for tab in tabs[1:]:
        tab.goto(f"{holdfast.address()}/settings")
        expect(tab.get_by_role("heading", name="Keys")).to_be_visible()
    assert followers <= {first}, "only the first tab follows the log"

    def all_see(some: list[Page], name: str) -> None:
        for tab in some:
            with no_reload(tab):
                expect(tab.locator("#keys").get_by_role("row").filter(has_text=name)).to_have_count(1)

    assert holdfast.run("key", "create", "phone").returncode == 0
    all_see(tabs, "phone")
    first.close()
    assert holdfast.run("key", "create", "laptop").returncode == 0
    all_see(tabs[1:], "laptop")
    assert len(followers - {first}) == 1, "one other tab went on"

    tabs[1].locator("#keys").get_by_role("row").filter(has_text="phone").get_by_role("button").press("Enter")
    for tab in tabs[1:]:
        expect(tab.locator("#keys").get_by_role("row").filter(has_text="phone")).to_have_count(0)
    lines = holdfast.run("key", "list").stdout.splitlines()
    assert ["revoked" in line for line in lines if "phone" in line or "laptop" in line] == [True, False], lines
