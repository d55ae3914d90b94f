"""The dashboard behind the real gate, without a daemon."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
from tests.contract.conftest import Place

from holdfast.app import App, build
from holdfast.config import read_settings
from holdfast.connections.browser_sessions import BrowserSessions
from holdfast.connections.keys import Scope
from holdfast.store import Store
from holdfast.wire.http.gate import allowed_hosts, http_app
from holdfast.wire.http.origins import allowed_origins

ADDRESS = "http://127.0.0.1:8181"


@dataclass
class Dashboard:
    """One store with its services, and browsers that look at them."""

    store: Store
    app: App
    http: httpx2.ASGITransport

    @property
    def browsers(self) -> BrowserSessions:
        return self.app.service(BrowserSessions)

    def browser(self) -> httpx2.AsyncClient:
        """A browser that was never here."""
        return httpx2.AsyncClient(transport=self.http, base_url=ADDRESS)

    @asynccontextmanager
    async def signed_in(self, scope: Scope = Scope.ADMIN) -> AsyncIterator[httpx2.AsyncClient]:
        """A browser that used a link."""
        async with self.browser() as browser:
            answer = await browser.get(f"/open/{self.browsers.link(scope)}")
            assert answer.status_code == 200, answer.text
            yield browser


@asynccontextmanager
async def dashboard(place: Place, origins: str = "") -> AsyncIterator[Dashboard]:
    """The dashboard on this store; `origins` as in HOLDFAST_ORIGINS."""
    store = place.open()

    async def detached(identity: str) -> None:
        pass

    try:
        app = build(store, read_settings({}, home=str(place.home)), "this-machine")
        hosts = allowed_hosts("127.0.0.1", "")
        pages = app.pages()
        allowed = allowed_origins(origins)
        served = http_app(app.wire(), app.keys(), hosts, detached, app.routes(), (), None, pages, allowed)
        yield Dashboard(store, app, httpx2.ASGITransport(served))
    finally:
        await store.close()


async def csrf_of(browser: httpx2.AsyncClient) -> str:
    """The token that the browser's pages hold."""
    found = re.search(r'data-csrf="(\w+)"', (await browser.get("/")).text)
    assert found is not None
    return found[1]
