"""Commands of `holdfast open`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.capability import Command, Progress
from holdfast.connections.browser_sessions import LINK_SECONDS, BrowserSessions
from holdfast.connections.keys import Scope


def commands(browsers: BrowserSessions, prepare: Callable[[], None]) -> list[Command]:
    """Return the command that makes a link; `prepare` makes the pages ready for who opens it."""

    async def link(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        prepare()
        return {"path": f"/open/{browsers.link(Scope(args['scope']))}", "seconds": LINK_SECONDS}

    return [Command("dashboard-link", link)]
