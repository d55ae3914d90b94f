"""A handoff takes little memory, however much was mirrored into the store."""

from __future__ import annotations

import os
import tracemalloc
from functools import partial
from pathlib import Path

import pytest
from tests.contract.archive_world import TALK, Machine, beside, play
from tests.contract.conftest import Place

from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.store import Tx

MEGABYTE = 1024 * 1024
AT_PEAK = 25 * MEGABYTE
"""What a few lines that are read together take, with the copies of reading and writing JSON."""


@pytest.mark.parametrize("size", [32, pytest.param(200, marks=pytest.mark.long)])
def test_a_handoff_does_not_hold_a_mirrored_transcript_in_memory(place: Place, tmp_path: Path, size: int) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await _mirrored(ours, size)
        tracemalloc.start()
        try:
            report = await ours.handoff(tmp_path / "archive")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert report["counts"]["transcripts"] == 1 and report["warnings"] == []
        assert peak < AT_PEAK, f"{peak / MEGABYTE:.0f} MB of {size} MB were in memory at once"
        await theirs.adopt(tmp_path / "archive")
        assert theirs.transcript().stat().st_size > size * MEGABYTE

    play(place, beside(tmp_path), scenario)


async def _mirrored(machine: Machine, megabytes: int) -> None:
    """A conversation of so much text, in lines of a megabyte and of a few bytes."""

    def write(tx: Tx, number: int) -> None:
        for name, text in ((f"{number}", os.urandom(MEGABYTE // 2).hex()), (f"{number}-short", "x")):
            tx.run(
                "INSERT INTO transcript_lines (project_key, session_id, subpath, uuid, entry, at)"
                " VALUES (:project, :session, '', :uuid, :entry, 1)",
                project=project_key(machine.project),
                session=TALK,
                uuid=name,
                entry=f'{{"uuid":"{name}","text":"{text}"}}',
            )

    for number in range(megabytes):
        await machine.world.store.write(partial(write, number=number))
