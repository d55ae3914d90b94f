"""What moving offers: the command of `holdfast move`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.briefing.service import Briefings
from holdfast.capability import Capability, Command, Progress
from holdfast.files.private import read_or_make
from holdfast.moving.service import Moving
from holdfast.store import Store


def capability(store: Store, home: Path, briefings: Briefings) -> Capability:
    """The command; `briefings` first reads what agents did until now."""

    async def move(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await briefings.catch_up()  # what was not read yet would name its files where they were
        return await Moving(store, read_or_make(home / "machine")).command(args, progress)

    return Capability(name="moving", commands=lambda: [Command("move", move)])
