"""Archives that were made to harm, or that something happened to: refused, with nothing written."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.archives import Members, rewritten
from tests.contract.archive_world import OTHER_TALK, TALK, Machine, beside, busy_project, play
from tests.contract.conftest import Place

from holdfast.errors import HoldfastError, NotFound
from holdfast.handoff.errors import ArchiveRefused
from holdfast.handoff.tables import TABLES


def _renamed(name: str) -> Callable[[Members], Members]:
    return lambda members: {**members, name: b"x\n"}


def _row(table: str, **values: Any) -> Callable[[Members], Members]:
    def change(members: Members) -> Members:
        member = TABLES[table].member
        first = json.loads(members[member].splitlines()[0]) | values
        return {**members, member: json.dumps(first).encode() + b"\n"}

    return change


HOSTILE: dict[str, Callable[[Members], Members]] = {
    "a way out": _renamed("../../evil.jsonl"),
    "an absolute name": _renamed("/etc/evil.jsonl"),
    "a way out of the transcripts": _renamed(f"transcripts/{TALK}/../../x.jsonl"),
    "a backslash": _renamed("transcripts\\x.jsonl"),
    "a name that is no session": _renamed("transcripts/not-a-uuid.jsonl"),
    "a hidden file": _renamed(f"transcripts/{TALK}/.evil.jsonl"),
    "another table's column": _row("sessions", **{"id) VALUES ('x'); --": "x"}),
    "a number that is a text": _row("sessions", thought_count="4"),
    "a number beyond all numbers": _row("sessions", created_at=2**70),
    "a changed thought": _row("thoughts", content="Something else."),
    "an ask that would be run": _row("asks", status="waiting"),
    "an ask that is being run": _row("asks", status="running"),
    "more values than a line can have": lambda members: {**members, TABLES["sessions"].member: b"[" + b"[]," * 400_000},
    "a status that there is not": _row("bridge_messages", status="gone"),
    "tags that are none": _row("sessions", tags="{"),
    "a thought of nobody": _row("thoughts", session_id="nobody"),
    "a protocol that is none": _row("protocol_runs", definition="{}"),
    "a team that a terminal obeys": _row("bridge_tasks", target="\x1b[2Jshop"),
    "a team that a shell obeys": _row("bridge_updates", target="shop; rm"),
    "a thread that a terminal obeys": _row("conversations", thread="\x1b]0;x"),
    "a run of no day": _row("protocol_runs", day="../../x"),
    "a run of no number": _row("protocol_runs", number=0),
    "a time that no calendar has": _row("bridge_messages", created_at=2**60),
    "a time before all times": _row("sessions", updated_at=-1),
    "a NUL": _row("sessions", title="a\0b"),
    "half a surrogate pair": _row("sessions", title="\ud83d"),
    "a transcript nested too deep": lambda members: {
        **members,
        f"transcripts/{OTHER_TALK}.jsonl": b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
    },
    "a subagent of no conversation": _renamed(f"transcripts/{OTHER_TALK}/subagents/agent-1.jsonl"),
    "no JSON": lambda members: {**members, TABLES["sessions"].member: b"{\n"},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_is_refused_with_nothing_written(what: str, sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        await ours.handoff(tmp_path / "good")
        rewritten(tmp_path / "good", tmp_path / "bad", HOSTILE[what])
        await _refuses(theirs, tmp_path / "bad")

    play(sqlite_place, beside(tmp_path), scenario)


async def _refuses(
    machine: Machine, source: Path, match: str | None = None, kind: type[HoldfastError] = ArchiveRefused
) -> None:
    before = await machine.everything()
    outside = {path for path in machine.folder.parent.rglob("*") if "home" not in path.parts}
    with pytest.raises(kind, match=match):
        await machine.adopt(source)
    assert await machine.everything() == before
    assert {path for path in machine.folder.parent.rglob("*") if "home" not in path.parts} == outside


def test_a_file_that_is_cut_off_changed_linked_or_of_another_version_is_refused(
    sqlite_place: Place, tmp_path: Path
) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await busy_project(ours)
        good, bad = tmp_path / "good", tmp_path / "bad"
        await ours.handoff(good)
        content = good.read_bytes()
        for cut in (0, 1, len(content) // 2, len(content) - 1):
            bad.write_bytes(content[:cut])
            await _refuses(theirs, bad, "cut off|damaged")
        bad.write_text("no archive at all")
        await _refuses(theirs, bad, "not an archive")
        rewritten(good, bad, dict, {"version": 3, "holdfast": "9.9"})
        await _refuses(theirs, bad, "format 3, written by holdfast 9.9")
        rewritten(good, bad, dict, {"members": {}})
        await _refuses(theirs, bad, "manifest")
        wrong = {name: {"size": 0, "sha256": "0"} for name in zipfile.ZipFile(good).namelist() if name.endswith("l")}
        rewritten(good, bad, dict, {"members": wrong})
        await _refuses(theirs, bad, "manifest")
        rewritten(good, bad, dict)
        with zipfile.ZipFile(bad, "a") as file:
            link = zipfile.ZipInfo(f"transcripts/{OTHER_TALK}.jsonl")
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            file.writestr(link, "/etc/passwd")
        await _refuses(theirs, bad, "not a regular file")
        await _refuses(theirs, tmp_path / "missing", "There is no file", NotFound)

    play(sqlite_place, beside(tmp_path), scenario)


def test_a_bomb_is_refused_before_it_is_unpacked(sqlite_place: Place, tmp_path: Path) -> None:
    async def scenario(ours: Machine, theirs: Machine) -> None:
        await ours.handoff(tmp_path / "good")
        name = f"transcripts/{TALK}.jsonl"
        rewritten(tmp_path / "good", tmp_path / "bad", lambda members: {**members, name: bytes(65 * 1024 * 1024)})
        await _refuses(theirs, tmp_path / "bad", "would unpack")

    play(sqlite_place, beside(tmp_path), scenario)
