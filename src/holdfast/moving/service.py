"""`holdfast move`: after a project's directory was moved, moves its stored data to the new root."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

from holdfast.agents.registry import transcripts_of
from holdfast.errors import BadInput
from holdfast.identity.project import Root, RootSource, canonical_uri, locate, path_of
from holdfast.moving import queries
from holdfast.store import Store
from holdfast.store.copying import Progress


class Moving:
    """Moves a project's stored data from one directory to another."""

    def __init__(self, store: Store, machine: str) -> None:
        self._store = store
        self._machine = machine

    async def command(self, args: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Move the stored data, after the directory itself was moved."""
        old, new = _path(args, "old"), _path(args, "new")
        if await asyncio.to_thread(old.exists):
            raise BadInput("OLD", "still exists", recovery="Move the directory first, then run `holdfast move`.")
        if not await asyncio.to_thread(new.is_dir):
            raise BadInput("NEW", "is not a directory", recovery="Give the directory that the project is in now.")
        uri = await asyncio.to_thread(canonical_uri, str(old))
        known = await self._store.read(lambda tx: queries.roots_in(tx, uri))
        if not known:
            raise BadInput("OLD", "is not known", recovery="`holdfast saved --all` lists the known projects.")
        moves = {one: await asyncio.to_thread(_moved, one, uri, new) for one in known}
        copied = await self._copy_transcripts(moves)
        changed = await self._store.write(lambda tx: queries.move(tx, moves, copied))
        return {"old": str(old), "new": str(new), "moved": dict(changed), "transcripts": len(copied)}

    async def _copy_transcripts(self, moves: dict[str, Root]) -> dict[str, str]:
        """Copy transcripts to where the agent looks for them when it is started in the new directory."""
        rows = await self._store.read(lambda tx: queries.transcripts(tx, moves, self._machine))
        return await asyncio.to_thread(_copied, rows, moves)


def _path(args: dict[str, Any], name: str) -> Path:
    value = args.get(name)
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise BadInput(name, "must be an absolute path")
    return Path(value)


def _moved(root: str, old: str, new: Path) -> Root:
    inside = path_of(root.replace(old, "file://", 1)) if root != old else None
    return locate(str(new) if inside is None else f"{new}{inside}", RootSource.ARGUMENT)


def _copied(rows: list[dict[str, Any]], moves: dict[str, Root]) -> dict[str, str]:
    copied: dict[str, str] = {}
    for row in rows:
        before, after = path_of(row["root"]), path_of(moves[row["root"]].uri)
        file = Path(row["transcript"]) if row["transcript"] else None
        if file is None or before is None or after is None or file.parent.name != transcripts_of().folder_name(before):
            continue
        there = file.parent.parent / transcripts_of().folder_name(after) / file.name
        if file.is_file() and not there.exists():
            there.parent.mkdir(mode=0o700, exist_ok=True)
            shutil.copy2(file, there)
            beside = file.with_suffix("")
            if beside.is_dir():
                shutil.copytree(beside, there.with_suffix(""), symlinks=True, dirs_exist_ok=True)
        if there.is_file():
            copied[row["session_id"]] = str(there)
    return copied
