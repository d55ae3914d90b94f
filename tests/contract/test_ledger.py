"""Ledgers in the store, on every engine: brought up to date from a growing transcript, found again by project."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.conftest import Place
from tests.transcripts import Transcript, folded

from holdfast.agents.transcript_position import Position
from holdfast.briefing.ledger import queries
from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.on_disk import with_known
from holdfast.briefing.ledger.service import Ledgers
from holdfast.briefing.queries import settling
from holdfast.identity.project import Root, RootSource, canonical_uri
from holdfast.store import Store


def play(place: Place, scenario: Callable[[Ledgers, Store], Awaitable[None]]) -> None:
    async def run() -> None:
        store = place.open()
        try:
            env = {"CLAUDE_CONFIG_DIR": str(place.home / "claude")}
            await scenario(Ledgers(store, "here", env=env), store)
        finally:
            await store.close()

    asyncio.run(run())


async def discovered(ledgers: Ledgers, store: Store, folder: Path, project: Path) -> bool:
    """Whether there was something to read in a folder of transcripts."""
    root = root_of(project)
    found = await ledgers.newest_on_disk([root], folder, thorough=True)
    return await ledgers.catch_up(await store.read(lambda tx: with_known(tx, [root], found)), ())


def root_of(path: Path, key: str | None = None) -> Root:
    return Root(canonical_uri(str(path)), key, RootSource.DIRECTORY)


def worked(project: Path, words: str = "Mend the fence.") -> Transcript:
    transcript = Transcript(project)
    transcript.ask(words)
    transcript.read(f"{project}/a.py")
    transcript.edit(f"{project}/b.py")
    return transcript


def test_a_ledger_grows_with_its_transcript_and_is_what_reading_at_once_gives(place: Place, tmp_path: Path) -> None:
    async def scenario(ledgers: Ledgers, _: Store) -> None:
        transcript, root = worked(tmp_path), root_of(tmp_path)
        transcript.fail("make", "Exit code 2\nHeronError: no heron")
        transcript.say("Mended.")
        path = tmp_path / f"{transcript.session_id}.jsonl"
        whole = b"".join(transcript.lines)
        for end in range(0, len(whole) + 300, 300):
            path.write_bytes(whole[:end])
            await ledgers.bring_up_to_date(transcript.session_id, path, root)
        expected = folded(Ledger(transcript.session_id), transcript.entries)
        assert await ledgers.of(transcript.session_id) == expected
        assert await ledgers.bring_up_to_date(transcript.session_id, path, root) == expected

    play(place, scenario)


def test_a_transcript_that_was_replaced_is_read_anew(place: Place, tmp_path: Path) -> None:
    async def scenario(ledgers: Ledgers, _: Store) -> None:
        first, root = worked(tmp_path), root_of(tmp_path)
        path = first.write(tmp_path)
        await ledgers.bring_up_to_date(first.session_id, path, root)
        second = worked(tmp_path, "Sink the ship.")
        path.write_bytes(b"".join(second.lines))
        ledger = await ledgers.bring_up_to_date(first.session_id, path, root)
        assert ledger is not None
        assert (ledger.first_request, ledger.turns, ledger.session_id) == ("Sink the ship.", 1, first.session_id)

    play(place, scenario)


def test_a_transcript_that_is_gone_leaves_what_was_known(place: Place, tmp_path: Path) -> None:
    async def scenario(ledgers: Ledgers, _: Store) -> None:
        transcript, root = worked(tmp_path), root_of(tmp_path)
        path = transcript.write(tmp_path)
        known = await ledgers.bring_up_to_date(transcript.session_id, path, root)
        path.unlink()
        assert await ledgers.bring_up_to_date(transcript.session_id, path, root) == known
        assert await ledgers.bring_up_to_date("unknown", path, root) is None

    play(place, scenario)


def test_readings_at_the_same_time_leave_one_whole_ledger(place: Place, tmp_path: Path) -> None:
    async def scenario(ledgers: Ledgers, _: Store) -> None:
        transcript, root = worked(tmp_path), root_of(tmp_path)
        path = transcript.write(tmp_path)
        for number in range(20):
            transcript.ask(f"Request {number}")
            transcript.edit(f"{tmp_path}/{number}.py")
            with path.open("ab") as file:
                file.write(b"".join(transcript.lines[-3:]))
            await asyncio.gather(
                *(ledgers.bring_up_to_date(transcript.session_id, path, root) for _ in range(4)),
            )
        assert await ledgers.of(transcript.session_id) == folded(Ledger(transcript.session_id), transcript.entries)

    play(place, scenario)


def test_a_reading_that_comes_late_does_not_undo_a_later_one(place: Place, tmp_path: Path) -> None:
    async def scenario(ledgers: Ledgers, store: Store) -> None:
        transcript = worked(tmp_path)
        early = folded(Ledger(transcript.session_id), transcript.entries)
        transcript.ask("And the gate.")
        later = folded(Ledger(transcript.session_id), transcript.entries)
        where = queries.TranscriptLocation(root_of(tmp_path), "here", "t.jsonl")
        begun, short, long = Position(), Position(900, "256.head.a"), Position(1_200, "256.head.b")

        async def keep(ledger: Ledger, position: Position) -> bool:
            return await store.write(lambda tx: queries.keep(tx, ledger, position, begun, where))

        assert await keep(later, long)
        assert not await keep(early, short)
        assert await ledgers.of(transcript.session_id) == later
        assert await keep(early, Position(900, "256.another.a")), "another file has taken its place"

    play(place, scenario)


def test_the_latest_sessions_of_a_project_are_found_wherever_they_were(place: Place, tmp_path: Path) -> None:
    async def scenario(ledgers: Ledgers, store: Store) -> None:
        async def found(root: Root, limit: int = 5) -> list[str]:
            return await store.read(lambda tx: settling.latest(tx, [root], limit))

        here, there, other = (root_of(tmp_path / name, key) for name, key in (("a", "k"), ("b", "k"), ("c", None)))
        ids = []
        for number, root in enumerate((here, there, other, here)):
            transcript = worked(tmp_path, f"Request {number}")
            for entry in transcript.entries:
                entry["timestamp"] = f"2026-01-0{number + 1}T00:00:00.000Z"
            await ledgers.bring_up_to_date(transcript.session_id, transcript.write(tmp_path), root)
            ids.append(transcript.session_id)
        assert await found(here) == [ids[3], ids[1], ids[0]]
        assert await found(here, limit=2) == [ids[3], ids[1]]
        assert await found(replace(here, key=None)) == [ids[3], ids[0]]
        assert await found(other) == [ids[2]]

    play(place, scenario)


def test_sessions_that_no_hook_told_of_are_discovered(place: Place, tmp_path: Path) -> None:
    async def scenario(ledgers: Ledgers, store: Store) -> None:
        project, folder = tmp_path / "project", tmp_path / "folder"
        project.mkdir()
        mine, told, elsewhere = worked(project), worked(project), worked(tmp_path)
        for transcript in (mine, told, elsewhere):
            transcript.write(folder)
        (folder / "not a session.jsonl").write_bytes(b"".join(mine.lines))
        (folder / "empty.jsonl").touch()
        await store.write(
            lambda tx: tx.run(
                "INSERT INTO agent_sessions (session_id, root, machine, source, started_at, seen_at)"
                " VALUES (:id, 'r', 'm', 'startup', 0, 0)",
                id=told.session_id,
            )
        )
        assert await discovered(ledgers, store, folder, project)
        assert not await discovered(ledgers, store, folder, project)
        assert await ledgers.of(told.session_id) is None and await ledgers.of(elsewhere.session_id) is None
        ledger = await ledgers.of(mine.session_id)
        assert ledger is not None
        assert ledger.first_request == "Mend the fence."
        mine.ask("And the gate?")
        mine.write(folder)
        assert await discovered(ledgers, store, folder, project)
        assert not await discovered(ledgers, store, tmp_path / "missing", project)

    play(place, scenario)


def test_what_subagents_did_is_read_from_their_own_files(place: Place, tmp_path: Path) -> None:
    async def scenario(ledgers: Ledgers, _: Store) -> None:
        transcript, root = worked(tmp_path), root_of(tmp_path)
        path = transcript.write(tmp_path)
        side = Transcript(tmp_path)
        side.ask("Cut the wire.")
        side.edit("/wire.py")
        beside = path.with_suffix("") / "subagents"
        beside.mkdir(parents=True)
        (beside / "agent-a1.jsonl").write_bytes(b"".join(side.lines))
        for _again in range(2):
            ledger = await ledgers.bring_up_to_date(transcript.session_id, path, root)
            assert ledger is not None
            assert [(file.path, file.times) for file in ledger.modified] == [(f"{tmp_path}/b.py", 1), ("/wire.py", 1)]
            assert (ledger.first_request, ledger.turns) == ("Mend the fence.", 1)
        side.edit("/post.py")
        (beside / "agent-a1.jsonl").write_bytes(b"".join(side.lines))
        ledger = await ledgers.bring_up_to_date(transcript.session_id, path, root)
        assert ledger is not None
        assert ledger.modified[-1].path == "/post.py"

    play(place, scenario)


@pytest.mark.parametrize("session_id", ["", "../../etc/passwd", "a/b", "x" * 129, "a b", "a\0"])
def test_an_id_that_is_none_names_nothing(place: Place, tmp_path: Path, session_id: str) -> None:
    async def scenario(ledgers: Ledgers, _: Store) -> None:
        path = worked(tmp_path).write(tmp_path)
        assert await ledgers.bring_up_to_date(session_id, path, root_of(tmp_path)) is None
        assert await ledgers.of(session_id) is None

    play(place, scenario)
