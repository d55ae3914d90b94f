"""`holdfast move`: after a project's directory was moved, moves its stored data to the new root."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from holdfast.agents.registry import transcripts_of
from holdfast.errors import BadInput
from holdfast.identity.project import RootSource, canonical_uri, locate, path_of
from holdfast.moving import queries
from holdfast.moving.model import Move, Moved, Transcript
from holdfast.store import Store


async def move(store: Store, machine: str, old: Path, new: Path) -> Moved:
    """Move a project's stored data, after its directory was moved."""
    if await asyncio.to_thread(old.exists):
        raise BadInput("OLD", "still exists", recovery="Move the directory first, then run `holdfast move`.")
    if not await asyncio.to_thread(new.is_dir):
        raise BadInput("NEW", "is not a directory", recovery="Give the directory that the project is in now.")
    uri = await asyncio.to_thread(canonical_uri, str(old))
    known = await store.read(lambda tx: queries.roots_in(tx, uri))
    if not known:
        raise BadInput("OLD", "is not known", recovery="`holdfast saved --all` lists the known projects.")
    moves = [await asyncio.to_thread(_move, root, uri, new) for root in known]
    transcripts = await store.read(lambda tx: queries.transcripts(tx, known, machine))
    copied = await asyncio.to_thread(_copy, transcripts, moves)
    return Moved(await store.write(lambda tx: queries.move(tx, moves, copied)), len(copied))


def _move(root: str, old: str, new: Path) -> Move:
    inside = path_of(root.replace(old, "file://", 1)) if root != old else None
    return Move(root, locate(str(new) if inside is None else f"{new}{inside}", RootSource.ARGUMENT))


def _copy(transcripts: list[Transcript], moves: list[Move]) -> list[Transcript]:
    """Copy transcripts to where the agent looks for them when it is started in the new directory."""
    new_roots = {one.old: one.new.uri for one in moves}
    copied: list[Transcript] = []
    for one in transcripts:
        before, after = path_of(one.root), path_of(new_roots[one.root])
        there = transcripts_of().copy_moved(one.path, before, after) if before and after else None
        if there is not None:
            copied.append(replace(one, path=there))
    return copied
