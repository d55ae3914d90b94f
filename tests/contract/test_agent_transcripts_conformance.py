"""What every agent's transcripts part promises, tried on each agent that has the part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.contract.conftest import Place
from tests.transcripts import Transcript

from holdfast.agents import TranscriptsPart
from holdfast.agents.registry import AGENTS, transcripts_of
from holdfast.agents.transcript_entries import Asked, Called, Entry, Part, Said
from holdfast.agents.transcript_position import CallKind, Position


class Sample(NamedTuple):
    """A transcript in which the user asks "Mend the fence.", `make` fails and the agent says "It is mended."."""

    path: Path
    session_id: str
    more: Callable[[], None]
    """Lets the user ask "And the gate?"."""


def _claude(folder: Path, project: Path) -> Sample:
    transcript = Transcript(project)
    transcript.ask("Mend the fence.")
    transcript.fail("make", "Exit code 2")
    transcript.say("It is mended.")
    path = transcript.write(folder)

    def more() -> None:
        transcript.ask("And the gate?")
        transcript.write(folder)

    return Sample(path, transcript.session_id, more)


SAMPLES = {"claude": _claude}
"""How each agent writes the sample. A new agent adds its own."""


class World:
    """One agent's configuration with one transcript of one project."""

    def __init__(self, name: str, root: Path) -> None:
        self.part: TranscriptsPart = transcripts_of(name)
        self.config = root / "config"
        self.project = root / "project"
        self.project.mkdir()
        self.folder = self.part.folder(self.config) / self.part.folder_name(self.project)
        self.sample = SAMPLES[name](self.folder, self.project)
        self.seen: list[Entry] = []

    def follow(self, since: Position) -> Position:
        read = self.part.follow(self.sample.path, since, self.seen.append, restart=self.seen.clear)
        assert read is not None
        return read.position

    def parts(self, kind: type[Part]) -> list[Part]:
        return [part for entry in self.seen for part in entry.parts if isinstance(part, kind)]


@pytest.fixture(params=[name for name, agent in AGENTS.items() if agent.transcripts is not None])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


def test_a_transcript_is_read_as_neutral_entries(world: World) -> None:
    world.follow(Position())
    assert [part.text for part in world.parts(Asked) if isinstance(part, Asked)] == ["Mend the fence."]
    (ran,) = world.parts(Called)
    assert isinstance(ran, Called) and (ran.kind, ran.command) == (CallKind.RUN, "make")
    assert world.part.kind_of(ran.tool) is CallKind.RUN
    assert [part.text for part in world.parts(Said) if isinstance(part, Said)] == ["It is mended."]
    assert all(entry.cwd == str(world.project) for entry in world.seen)


def test_reading_goes_on_where_it_stopped(world: World) -> None:
    position = world.follow(Position())
    world.seen.clear()
    assert world.follow(position) == position
    assert world.seen == []
    world.sample.more()
    later = world.follow(position)
    assert later.begins_like(position) and later.offset > position.offset
    assert [part.text for part in world.parts(Asked) if isinstance(part, Asked)] == ["And the gate?"]


def test_another_file_in_its_place_is_read_anew(world: World) -> None:
    position = world.follow(Position())
    other = SAMPLES[next(name for name in SAMPLES if transcripts_of(name) is world.part)](
        world.folder.parent / "other", world.project
    )
    world.sample.path.write_bytes(other.path.read_bytes())
    read = world.part.follow(world.sample.path, position, world.seen.append, restart=world.seen.clear)
    assert read is not None and read.anew
    assert len(world.parts(Asked)) == 1


def test_a_file_that_is_not_there_is_no_error(world: World) -> None:
    nowhere = world.folder / "nowhere"
    assert world.part.follow(nowhere, Position(), world.seen.append, restart=world.seen.clear) is None
    assert world.part.follow_subagents(nowhere, {}, world.seen.append, most=5) == {}
    assert world.part.sessions_in(nowhere) == []
    assert world.part.running(nowhere) == frozenset()
    assert world.seen == []


def test_transcripts_are_found_by_their_project(world: World) -> None:
    for folder in (None, world.part.folder_name(world.project)):
        (file,) = world.part.found(world.config, folder)
        assert (file.path, file.session_id) == (world.sample.path, world.sample.session_id)
        assert world.part.directory_of(file, {}) == str(world.project)
    assert world.part.found(world.config, "another") == []
    assert world.part.sessions_in(world.folder) == [world.sample.session_id]
    assert world.part.file_of(world.folder, world.sample.session_id) == world.sample.path
    assert world.part.began_in(world.sample.path) == str(world.project)


def test_what_was_said_is_found_word_for_word_and_once(world: World) -> None:
    batches = list(world.part.batches(world.sample.path, 0))
    spoken = [(one.role, one.text) for batch in batches for one in batch.spoken]
    assert ("user", "Mend the fence.") in spoken and ("assistant", "It is mended.") in spoken
    end, mark = batches[-1].end, batches[-1].mark
    assert world.part.is_same(world.sample.path, mark, end)
    world.sample.more()
    assert world.part.is_same(world.sample.path, mark, end)
    again = [(one.role, one.text) for batch in world.part.batches(world.sample.path, end) for one in batch.spoken]
    assert again == [("user", "And the gate?")]


def test_a_heading_that_arrived_is_seen_and_without_a_transcript_all_count(world: World) -> None:
    headings = {"a": "Mend the fence.", "b": "nobody was told this"}
    assert world.part.reached(str(world.folder / "nowhere"), headings) == {"a", "b"}


@pytest.mark.anyio
async def test_the_stores_copy_is_read_from_its_end(world: World, sqlite_place: Place) -> None:
    store = sqlite_place.open()
    try:
        sample = world.sample
        await world.part.copy_to_store(store, sample.session_id, sample.path)
        last, *earlier = await world.part.kept(store, sample.session_id, None, 100)
        assert [part.text for part in last.entry.parts if isinstance(part, Said)] == ["It is mended."]
        assert [one.place for one in earlier] == sorted((one.place for one in earlier), reverse=True)
        assert await world.part.kept(store, sample.session_id, last.place, 2) == earlier[:2]
        assert await world.part.kept(store, "another", None, 2) == []
    finally:
        await store.close()
