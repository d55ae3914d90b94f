"""Every page of the dashboard, as the daemon knows them: one list for all tests, so that none is left out."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.app import build
from holdfast.config import read_settings
from holdfast.dashboard.page import Page
from holdfast.store.sqlite import SqliteStore


@cache
def patterns() -> tuple[str, ...]:
    """The path of every page; what is in braces differs."""
    with ThreadPoolExecutor(1) as elsewhere:  # Playwright's loop runs in the thread of its tests
        return elsewhere.submit(_patterns).result()


def _patterns() -> tuple[str, ...]:
    with TemporaryDirectory(prefix="holdfast-pages-", dir="/tmp") as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        store = SqliteStore.open(home / "holdfast.db")
        app = build(store, read_settings({}, home=str(home)), "this-machine")
        (pages,) = app.pages()
        found = [part.path for part in pages.app._make().parts if isinstance(part, Page)]  # type: ignore[attr-defined]
        asyncio.run(store.close())
    return tuple(found)


def fixed() -> tuple[str, ...]:
    """The pages that have one address."""
    return tuple(path for path in patterns() if "{" not in path)


def matches(pattern: str, path: str) -> bool:
    """Whether an address is one of this page."""
    expression = re.sub(r"\\\{[^}]*path\\\}", ".+", re.escape(pattern))
    return re.fullmatch(re.sub(r"\\\{[^}]*\\\}", "[^/]+", expression), path) is not None
