"""Work that no hook saw: found on the disk at every start and every question, in one project and in all of them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.contract.briefing_world import World, world
from tests.contract.conftest import Place
from tests.repository import Repository
from tests.transcripts import Transcript

from holdfast.agents.claude.transcripts.folder_name import project_key
from holdfast.briefing.queries import agent_sessions
from holdfast.briefing.views import unfinished_view
from holdfast.capability.briefing import Audience
from holdfast.identity.project import Root, RootSource, locate
from holdfast.process.alive import mark_of
from holdfast.reasoning.queries import projects as project_queries
from holdfast.teams.model import framed
from holdfast.teams.queries import conversations

pytestmark = pytest.mark.anyio


def crashed(one: World, words: str, project: Path | None = None, *, days_ago: float = 0) -> Transcript:
    """A session without any hook that was cut off in its first turn."""
    project = project or one.project
    transcript = Transcript(project)
    transcript.ask(words)
    transcript.read(f"{project}/a.py")
    path = transcript.write(one.folder.parent / project_key(project))
    now = one.store_clock() / 1000 - days_ago * 86_400
    os.utime(path, (now, now))
    return transcript


async def asked(one: World, project: Path | None = None) -> str:
    """What a person is told who asks."""
    root = locate(str(project or one.project), RootSource.ARGUMENT)
    return (await one.briefings.on_request(Audience(root, None))).text


async def unfinished(one: World, only: Path | None = None, limit: int = 20) -> dict[str, Any]:
    root = None if only is None else locate(str(only), RootSource.ARGUMENT)
    return unfinished_view(await one.briefings.unfinished(root, limit), one.briefings.config)


async def test_who_asks_first_is_told_what_a_hook_would_tell(place: Place) -> None:
    async with world(place) as one:
        old = crashed(one, "Mend the fence.")
        text = await asked(one)
        assert "Mend the fence." in text and f"claude --resume {old.session_id}" in text
        assert "not on this machine" not in text
        lines = (await one.agent().starts()).splitlines()[1:]
        assert lines and set(lines) <= set(text.splitlines())
        assert f"claude --resume {old.session_id}" in await asked(one)


async def test_a_newer_crash_is_found_although_others_are_known(place: Place) -> None:
    async with world(place) as one:
        known = one.agent()
        known.asked("Paint the gate.")
        await known.starts()
        await known.hook("SessionEnd", reason="other")
        for words in ("Mend the fence.", "Oil the hinges."):
            crashed(one, words)
            assert words in await one.agent().starts()
            assert words in await asked(one)


async def test_a_conversation_that_no_hook_saw_is_read_on_when_it_is_continued(place: Place) -> None:
    async with world(place) as one:
        old = crashed(one, "Mend the fence.")
        old.say("It is mended.")
        old.write(one.folder)
        assert "no end" not in await asked(one)
        old.ask("And the gate?")
        old.write(one.folder)
        assert "And the gate?" in await one.agent().starts()


async def test_a_session_that_ended_and_went_on_without_hooks_is_read_on(place: Place) -> None:
    async with world(place) as one:
        old = one.agent()
        old.asked("Mend the fence.")
        await old.starts()
        old.said("It is mended.")
        await old.hook("SessionEnd", reason="other")
        one.past(3_600_000)
        old.asked("And the gate?")
        later = one.store_clock() / 1000
        os.utime(old.transcript, (later, later))
        assert "And the gate?" in await asked(one)


async def test_a_session_that_runs_without_hooks_is_nobody_elses_to_continue(place: Place) -> None:
    async with world(place) as one:
        old = crashed(one, "Mend the fence.")
        listed = one.folder.parent.parent / "sessions" / "1.json"
        listed.parent.mkdir()
        process = {"pid": os.getpid(), "procStart": mark_of(os.getpid()), "sessionId": old.session_id}
        listed.write_text(json.dumps(process))
        assert "Mend the fence." not in await one.agent().starts()
        assert (await unfinished(one))["work"] == []
        listed.unlink()
        assert "Mend the fence." in await one.agent().starts()


async def test_the_conversation_of_a_team_is_no_persons_work(place: Place) -> None:
    async with world(place) as one:
        in_table, spoken_to = crashed(one, "Asked by a team."), crashed(one, framed("shop", "main", "Asked too.", ()))
        await one.store.write(lambda tx: conversations.adopt(tx, "shop", "api", "main", in_table.session_id))
        text = await one.agent().starts() + await asked(one)
        assert in_table.session_id not in text and spoken_to.session_id not in text
        assert (await unfinished(one))["work"] == []


async def test_projects_with_the_same_folder_are_kept_apart(place: Place) -> None:
    async with world(place) as one:
        mine, other = place.home / "a.b", place.home / "a-b"
        for project in (mine, other):
            project.mkdir()
            crashed(one, f"Work in {project.name}.", project)
        assert "Work in a.b." in await asked(one, mine) and "Work in a-b." not in await asked(one, mine)
        assert "Work in a-b." in await asked(one, other) and "Work in a.b." not in await asked(one, other)
        assert [work["project"] for work in (await unfinished(one, mine))["work"]] == [str(mine)]
        assert {work["project"] for work in (await unfinished(one))["work"]} == {str(mine), str(other)}


async def test_what_was_begun_at_the_top_of_a_checkout_is_found_below_it(place: Place) -> None:
    async with world(place) as one:
        top = Repository(place.home / "checkout").path
        (top / "src").mkdir()
        crashed(one, "Mend the fence.", top)
        assert "Mend the fence." in await asked(one, top / "src")
        assert [work["project"] for work in (await unfinished(one))["work"]] == [str(top)]


async def test_paused_and_forgotten_projects_are_left_alone(place: Place) -> None:
    async with world(place) as one:
        crashed(one, "Mend the fence.")
        await one.store.write(lambda tx: project_queries.set_paused(tx, one.root, tx.now()))
        assert await one.agent().starts() == "" and await asked(one) == ""
        assert (await unfinished(one))["work"] == []
        await one.store.write(lambda tx: project_queries.set_paused(tx, one.root, None))
        assert len((await unfinished(one))["work"]) == 1
        one.past(1_000)
        await one.store.write(lambda tx: agent_sessions.forget(tx, one.root))
        assert await one.agent().starts() == "" and await asked(one) == ""
        assert (await unfinished(one))["work"] == []


async def test_every_project_on_this_machine_is_told_newest_first_in_a_fixed_shape(place: Place) -> None:
    async with world(place) as one:
        shop, gone, long_ago = (place.home / name for name in ("shop", "gone", "long ago"))
        for project in (shop, gone, long_ago):
            project.mkdir()
        transcript = Transcript(shop)
        transcript.ask("Sell the fence.\nThe key is sk-ant-api03-" + "a1B2" * 20 + "\n" + "and more " * 40)
        todos = [{"content": f"Step {number}", "status": "pending"} for number in range(3)]
        todos[0]["status"] = "completed"
        transcript.run("TodoWrite", {"todos": todos})
        path = transcript.write(one.folder.parent / project_key(shop))
        os.utime(path)
        crashed(one, "Of long ago.", long_ago, days_ago=40)
        crashed(one, "In a directory that is gone.", gone)
        shutil.rmtree(gone)
        seen = one.agent()
        seen.asked("Seen by a hook.")
        await seen.starts()
        answer = await unfinished(one)
        by_hook, sold = answer["work"]
        assert answer | {"work": []} == {
            "work": [],
            "looked_at": {"projects": 2, "sessions": answer["looked_at"]["sessions"]},
            "more": 0,
            "gone": 1,
            "left_out": 0,
        }
        asked_for = sold.pop("asked")
        assert asked_for.startswith("Sell the fence. The key is ") and len(asked_for) <= 200
        assert "a1B2a1B2" not in asked_for
        assert sold == {
            "project": str(shop),
            "agent": "claude",
            "session": transcript.session_id,
            "left": "cut off in the middle of a turn, 2 of 3 steps open",
            "cut_off": True,
            "last_at": transcript.entries[-1]["timestamp"],
            "directory": str(shop),
            "resume": ["claude", "--resume", transcript.session_id],
            "resumable": True,
        }
        assert (by_hook["project"], by_hook["session"]) == (str(one.project), seen.id)
        first = await unfinished(one, limit=1)
        assert len(first["work"]) == 1 and first["more"] == 1


async def test_files_that_are_not_committed_count_until_they_are(place: Place) -> None:
    async with world(place) as one:
        repository = Repository(place.home / "checkout")
        (repository.path / "north.txt").write_text("posts")
        transcript = Transcript(repository.path)
        transcript.ask("Mend the fence.")
        transcript.edit(f"{repository.path}/north.txt")
        transcript.say("It is mended.")
        transcript.write(one.folder.parent / project_key(repository.path))
        (work,) = (await unfinished(one, repository.path))["work"]
        assert (work["left"], work["cut_off"]) == ("1 file not committed", False)
        repository.commit("Mend the fence")
        assert (await unfinished(one, repository.path))["work"] == []


async def test_another_configuration_is_named_in_the_command(place: Place) -> None:
    async with world(place) as one:
        other = place.home / "other claude"
        transcript = Transcript(one.project)
        transcript.ask("Mend the fence.")
        transcript.write(other / "projects" / project_key(one.project))
        assert (await unfinished(one))["work"] == []
        found = await one.briefings.unfinished(None, 20, config=other)
        here = ["claude", "--resume", transcript.session_id]
        assert unfinished_view(found, other)["work"][0]["resume"] == here
        elsewhere = unfinished_view(found, one.briefings.config)["work"][0]["resume"]
        assert elsewhere == ["env", f"CLAUDE_CONFIG_DIR={other}", *here]


async def test_other_machines_work_is_not_listed_as_this_ones(postgres_place: Place) -> None:
    async with world(postgres_place) as one:
        crashed(one, "Mend the fence.")
        assert len((await unfinished(one))["work"]) == 1
    async with world(postgres_place, machine="there") as other:
        assert "Mend the fence." in await asked(other)
        assert (await unfinished(other))["work"] == []


async def test_a_start_among_a_thousand_transcripts_looks_at_few_of_them(sqlite_place: Place) -> None:
    async with world(sqlite_place) as one:
        for number in range(1_000):
            crashed(one, f"Work {number}.", days_ago=1 + number / 1_000)
        disk = one.briefings._ledgers.on_disk
        root: list[Root] = [one.root]
        assert len(disk.newest(root, None).found) == 30
        looked_at: list[Path] = []
        stat = Path.stat

        def counted(path: Path, **named: Any) -> os.stat_result:
            looked_at.append(path)
            return stat(path, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "stat", counted)
            new = crashed(one, "Newer than all.")
            found = disk.newest(root, None).found
        assert found[0].session_id == new.session_id and len(looked_at) < 60
        resumed = one.folder / f"{sorted(os.listdir(one.folder))[0]}"
        os.utime(resumed)
        assert resumed in [item.path for item in disk.newest_thoroughly(root, None).found[:2]]
