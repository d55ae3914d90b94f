"""Commands of `holdfast open`."""

from __future__ import annotations

from typing import Any

from holdfast.capability import Command, Progress
from holdfast.connections.browser_sessions import LINK_SECONDS, BrowserSessions
from holdfast.connections.keys import Scope


def commands(browsers: BrowserSessions) -> list[Command]:
    async def link(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"path": f"/open/{browsers.link(Scope(args['scope']))}", "seconds": LINK_SECONDS}

    return [Command("dashboard-link", link)]
