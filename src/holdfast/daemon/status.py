"""What `holdfast status` shows: the daemon itself, its background work, and how each room is doing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from holdfast.daemon.readiness import ANSWER_SECONDS, Readiness
from holdfast.errors import StoreError
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.daemon.daemon import Daemon


def daemon_status(daemon: Daemon, app: App, notices: Sequence[str]) -> dict[str, Any]:
    """Return the part of the status that needs no store."""
    web = daemon.web
    return {
        "pid": os.getpid(),
        "version": __version__,
        "home": str(app.settings.home),
        "address": web.address if web else None,
        "http": "starting" if web is None else (web.off or "on"),
        "ready": daemon.is_ready,
        "uptime": round(time.monotonic() - daemon.started, 1),
        "clients": app.transports.clients,
        "relays": app.transports.relays,
        "engine": app.store.engine,
        "started_by": "hand" if daemon.by_hand else "relay",
        "python": sys.version.split()[0],
        "loops": [asdict(loop) for loop in daemon.supervisor.loops],
        "notices": [*daemon.notices, *notices, *(line for one in app.capabilities for line in one.life.notices())],
        "losses": [asdict(notice) for notice in daemon.losses.open()],
    }


async def health(app: App, readiness: Readiness) -> dict[str, Any]:
    """Return how the rooms are doing, or since when the store does not answer."""
    if await readiness.outage() is None:
        with contextlib.suppress(StoreError, TimeoutError):  # it went away between the two
            async with asyncio.timeout(ANSWER_SECONDS):
                found: dict[str, Any] = {}
                for one in app.capabilities:
                    found |= await one.life.health()
                return found
    outage = await readiness.outage()
    return {"outage": None if outage is None else asdict(outage)}
