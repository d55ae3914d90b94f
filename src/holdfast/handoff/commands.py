"""What `holdfast handoff`, `adopt` and `release` ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.bridge.views import held_view
from holdfast.capability import Command, Progress
from holdfast.errors import BadInput
from holdfast.handoff.service import Handoff
from holdfast.handoff.views import adopted_view, written_view


def commands(service: Handoff) -> list[Command]:
    async def handoff(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        file, config, replace = _path(args, "file"), _path(args, "config"), bool(args.get("replace"))
        return written_view(await service.write(str(args.get("project")), file, config, progress, replace=replace))

    async def adopt(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        signer = None if args.get("signer") is None else str(args["signer"])
        return adopted_view(
            await service.adopt(
                _path(args, "file"),
                str(args.get("project")),
                _path(args, "config"),
                progress,
                signer=signer,
                unsigned=args.get("unsigned") is True,
            )
        )

    async def held(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        target = args.get("target")
        return held_view(await service.held(None if target is None else str(target)))

    async def release(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        target, ids, drop = str(args.get("target")), list(map(str, args.get("ids", ()))), args.get("drop") is True
        await service.release(target, ids, drop=drop)
        return {"target": target, "ids": ids, "dropped": drop}

    return [Command("handoff", handoff), Command("adopt", adopt), Command("held", held), Command("release", release)]


def _path(args: dict[str, Any], name: str) -> Path:
    value = args.get(name)
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise BadInput(name, "must be an absolute path")
    return Path(value)
