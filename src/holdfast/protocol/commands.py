"""Commands of `holdfast trust` and `holdfast protocol`."""

from __future__ import annotations

from typing import Any

from holdfast.capability import Command, Progress
from holdfast.identity.root_argument import root_argument
from holdfast.protocol.service import Protocols
from holdfast.protocol.views import worktree_view


def commands(protocols: Protocols) -> list[Command]:
    """Return the commands, each answered with JSON."""

    async def trust(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await root_argument(args.get("root"))
        await protocols.trust(root.uri, str(args["digest"]), str(args.get("agent_digest") or ""))
        return {"root": root.uri, "trusted": True}

    async def untrust(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await root_argument(args.get("root"))
        return {"root": root.uri, "was_trusted": await protocols.untrust(root.uri)}

    async def trusted(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        root = await root_argument(args.get("root"))
        digest, agent_digest = await protocols.trusted(root.uri)
        return {"root": root.uri, "digest": digest, "agent_digest": agent_digest}

    async def validate(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        validation = await protocols.validation(str(args["root"]), before_commit=bool(args.get("pre_commit")))
        return worktree_view(validation)

    async def open_gates(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await protocols.settle_gates(all_open=True)
        return {}

    return [
        Command("trust", trust),
        Command("untrust", untrust),
        Command("trusted", trusted, for_agents=True),
        Command("protocol-validate", validate, for_agents=True),
        Command("protocol-open-gates", open_gates),
    ]
