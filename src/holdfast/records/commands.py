"""Commands of `holdfast backup` and `holdfast verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.capability import Command, Progress
from holdfast.records.service import Records
from holdfast.records.views import backup_view, verification_view


def commands(records: Records) -> list[Command]:
    """Return the commands."""

    async def backup(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        file, replace, anyway = Path(args["file"]), bool(args.get("replace")), bool(args.get("anyway"))
        return backup_view(await records.backup(file, progress, replace=replace, anyway=anyway))

    async def verify(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        return verification_view(await records.verify(progress))

    return [Command("backup", backup), Command("verify", verify, for_agents=True)]
