"""What moving offers: the command of `holdfast move`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.briefing.service import Briefings
from holdfast.capability import Capability, Command, Progress
from holdfast.errors import BadInput
from holdfast.files.private import read_or_make
from holdfast.moving import service
from holdfast.store import Store


def capability(store: Store, home: Path, briefings: Briefings) -> Capability:
    """Return the capability of `holdfast move`; `briefings` first reads what agents did until now."""

    async def move(args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        await briefings.catch_up()  # what was not read yet would name its files where they were
        old, new = _path(args, "old"), _path(args, "new")
        moved = await service.move(store, read_or_make(home / "machine"), old, new)
        return {"old": str(old), "new": str(new), "moved": dict(moved.rows), "transcripts": moved.transcripts}

    return Capability(name="moving", commands=lambda: [Command("move", move)])


def _path(args: dict[str, Any], name: str) -> Path:
    value = args.get(name)
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise BadInput(name, "must be an absolute path")
    return Path(value)
