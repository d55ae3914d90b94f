"""Commands of `holdfast backup` and `holdfast verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.capability import Command, Progress
from holdfast.records.service import Records


def commands(records: Records) -> list[Command]:
    """What the command line asks for."""

    async def backup(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        file, replace, anyway = Path(args["file"]), bool(args.get("replace")), bool(args.get("anyway"))
        return await records.backup(file, progress, replace=replace, anyway=anyway)

    async def verify(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return await records.verify(progress)

    return [Command("backup", backup), Command("verify", verify, for_agents=True)]
