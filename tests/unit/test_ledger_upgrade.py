"""A ledger that an earlier version stored goes on where it was."""

from __future__ import annotations

from pathlib import Path

from tests.transcripts import Transcript

from holdfast.agents.registry import transcripts_of
from holdfast.agents.transcript_position import Position
from holdfast.briefing.ledger.model import Call, Ledger
from holdfast.briefing.ledger.queries import Kept
from holdfast.briefing.ledger.service import _caught_up


def test_a_call_that_was_stored_with_its_name_alone_is_still_known_when_its_result_comes(tmp_path: Path) -> None:
    transcript = Transcript()
    transcript.ask("Mend the fence.")
    transcript.run("Edit", {"file_path": "/home/me/project/fence.py"}, "Done.")
    name = next(
        block["id"]
        for entry in transcript.entries
        for block in (entry["message"]["content"] if isinstance(entry["message"]["content"], list) else [])
        if block["type"] == "tool_use"
    )
    path = transcript.write(tmp_path)
    whole, transcripts = path.read_bytes(), transcripts_of()
    path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    begun = _caught_up(transcripts, transcript.session_id, path, None, 0)
    assert begun is not None and [call.id for call in begun.ledger.calls] == [name]

    begun.ledger.calls = [Call(name, "Edit", about="/home/me/project/fence.py")]
    stored = Kept(Ledger.from_json(begun.ledger.to_json()), Position.parse(str(begun.position)))
    path.write_bytes(whole)
    done = _caught_up(transcripts, transcript.session_id, path, stored, 0)
    assert done is not None and [file.path for file in done.ledger.modified] == ["/home/me/project/fence.py"]
