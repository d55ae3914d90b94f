"""Commands of `holdfast key`."""

from __future__ import annotations

from typing import Any

from holdfast.capability import Command, Progress
from holdfast.connections.keys import Keys, Scope
from holdfast.connections.service import Connections
from holdfast.connections.views import key_view


def commands(connections: Connections, keys: Keys) -> list[Command]:
    async def create(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        created = await keys.create(args["name"], Scope(args["scope"]), args.get("teams"))
        return {"name": args["name"], "key": created}

    async def every(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"keys": [key_view(key) for key in await keys.list()]}

    async def revoke(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await keys.revoke(args["name"])
        return {"name": args["name"]}

    async def rotate(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return {"kid": await connections.reconnects.rotate_signing()}

    return [
        Command("key-create", create),
        Command("key-list", every),
        Command("key-revoke", revoke),
        Command("key-rotate-signing", rotate),
    ]
