"""A played agent's transcript says what a real one's would, to everybody who reads transcripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.agents.claude.transcripts.neutral import entry_of
from holdfast.agents.registry import AGENTS
from holdfast.agents.transcript_entries import (
    Answered,
    Asked,
    Called,
    Part,
    QueueChange,
    Queued,
    Said,
    TodoItem,
    TodosWritten,
)
from holdfast.agents.transcript_position import CallKind

REHEARSALS = {name: agent.rehearsal for name, agent in AGENTS.items() if agent.rehearsal is not None}
PARTS: tuple[Part, ...] = (
    Asked("Mend the fence."),
    Said("I look first.", ends_turn=False),
    TodosWritten((TodoItem("north side", "in_progress"), TodoItem("south side", "pending"))),
    Called("1", "Read", CallKind.READ, path="/fence/north.txt"),
    Answered("1", "three boards", failed=False),
    Called("2", "Edit", CallKind.CHANGE, path="/fence/north.txt", replaced=("three", "four")),
    Called("3", "Write", CallKind.CHANGE, path="/fence/new.txt"),
    Called("4", "Bash", CallKind.RUN, command="make nails"),
    Answered("4", "Exit code 2\nno rule", failed=True),
    Said("It is mended.", ends_turn=True),
)


@pytest.mark.parametrize("name", REHEARSALS)
def test_what_a_played_agent_writes_is_read_back_as_what_it_did(name: str, tmp_path: Path) -> None:
    transcript = tmp_path / "folder" / "00000000-0000-4000-8000-000000000001.jsonl"
    write = REHEARSALS[name](transcript, tmp_path)
    for part in PARTS:
        write(part)
    entries = [entry_of(json.loads(line)) for line in transcript.read_text().splitlines()]
    read = [part for entry in entries for part in entry.parts]
    assert [part for part in read if not _is_of_todos(part)] == list(PARTS)
    assert all(entry.cwd == str(tmp_path) and entry.at for entry in entries)


def _is_of_todos(part: Part) -> bool:
    """The call that writes todos, and its result."""
    return isinstance(part, Called | Answered) and len(part.call_id) > 1


def test_a_played_agent_writes_nothing_that_it_cannot_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Queued"):
        REHEARSALS["claude"](tmp_path / "a.jsonl", tmp_path)(Queued(QueueChange.ADDED, "more"))
