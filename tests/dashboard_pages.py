"""Every page of the dashboard, as the daemon knows them: one list for all tests, so that none is left out."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.app import build
from holdfast.config import read_settings
from holdfast.dashboard.page import Action, Page, Part
from holdfast.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from playwright.sync_api import Page as BrowserPage

ENOUGH = 150
"""Addresses that are looked at to find one of every page."""
UNREACHED: dict[str, str] = {}
"""Pages that no link leads to, with an address of each."""


def patterns() -> tuple[str, ...]:
    """The path of every page; what is in braces differs."""
    return tuple(part.path for part in _parts() if isinstance(part, Page))


def actions() -> tuple[str, ...]:
    """The path of everything that changes something."""
    return (*(part.path for part in _parts() if isinstance(part, Action)), "/sign-out")


@cache
def _parts() -> tuple[Part, ...]:
    with ThreadPoolExecutor(1) as elsewhere:  # Playwright's loop runs in the thread of its tests
        return elsewhere.submit(_build).result()


def _build() -> tuple[Part, ...]:
    with TemporaryDirectory(prefix="holdfast-pages-", dir="/tmp") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        store = SqliteStore.open(home / "holdfast.db")
        app = build(store, read_settings({}, home=str(home)), "this-machine")
        (pages,) = app.pages()
        found = tuple(pages.app._make().parts)  # type: ignore[attr-defined]
        asyncio.run(store.close())
    return found


def fixed() -> tuple[str, ...]:
    """The pages that have one address."""
    return tuple(path for path in patterns() if "{" not in path)


def matches(pattern: str, path: str) -> bool:
    """Whether an address is one of this page."""
    expression = re.sub(r"\\\{[^}]*path\\\}", ".+", re.escape(pattern))
    return re.fullmatch(re.sub(r"\\\{[^}]*\\\}", "[^/]+", expression), path) is not None


def find_pages(page: BrowserPage, address: str, *, files: bool = False) -> dict[str, str]:
    """One address of every page, by its path, found by following links as a reader would; `files` too, if wanted."""
    wanted = {pattern: UNREACHED.get(pattern, pattern) for pattern in patterns() if "{" not in pattern}
    wanted |= UNREACHED
    seen, queue = set(wanted.values()), list(wanted.values())
    while queue and len(seen) < ENOUGH:
        path = queue.pop(0)
        answer = page.request.get(address + path, max_redirects=0)
        if "text/html" not in answer.headers.get("content-type", ""):
            if not files:
                wanted = {pattern: found for pattern, found in wanted.items() if found != path}  # a file to keep
            continue
        for link in re.findall(r'href="(/[^"]*)"', answer.text()):
            target = link.replace("&amp;", "&")
            pattern = next((one for one in patterns() if matches(one, urlsplit(target).path)), None)
            if pattern is not None and pattern not in wanted and target not in seen:
                kind = page.request.get(address + target).headers.get("content-type", "")
                seen.add(target)
                if files or "text/html" in kind:
                    wanted[pattern] = target
                if "text/html" in kind:
                    queue.append(target)
    return wanted
