"""Teams, conversations and figures: what the pages show, and what their buttons do."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from typing import Any

import pytest
from tests.contract.conftest import Place
from tests.contract.dashboard_world import Dashboard, dashboard
from tests.contract.teams_pages_world import add_asks, post, teams_dashboard, words
from tests.contract.teams_world import until
from tests.transcripts import BEGAN, Transcript

from holdfast.agents.claude.transcripts.store import TranscriptStore
from holdfast.connections.keys import Scope
from holdfast.dashboard.figures import BOUNDS, period_until
from holdfast.store import Tx
from holdfast.teams.model import AskStatus, ConversationStatus
from holdfast.teams.queries import conversations as queries
from holdfast.times import iso

pytestmark = pytest.mark.anyio

HOUR = 3_600_000
DAY = 24 * HOUR
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202ertl &amp; \"' "


async def test_a_team_is_asked_and_its_answer_shown(place: Place) -> None:
    async with teams_dashboard(place) as made, made.world.signed_in() as browser:
        url, ask = await made.asked(browser, "shop", "Which currencies?")
        await made.answered(ask.id)
        page = (await browser.get(url)).text
        assert "echo 1" in page and "Which currencies?" in page and "$0.00" in words(page)
        assert (await post(browser, f"{url}/ask", question="And which taxes?")).status_code == 303
        (second, _) = (await made.teams.history(None, "shop", None, 5)).asks
        await made.answered(second.id)
        said = words((await browser.get(url)).text)
        assert said.index("Which currencies?") < said.index("And which taxes?"), "the newest stands last"
        table = words((await browser.get("/teams")).text)
        assert "2 asks" in table and "outside → shop" in table


async def test_processes_are_shown_with_memory_and_age(place: Place) -> None:
    async with teams_dashboard(place) as made, made.world.signed_in() as browser:
        _, ask = await made.asked(browser, "shop", "Which currencies?")
        await made.answered(ask.id)
        (process,) = await made.teams.overview.processes()
        assert process.team == "shop" and process.resident_bytes and process.began_at
        page = words((await browser.get("/teams")).text)
        assert re.search(rf"shop idle [\d.]+ MB just now {process.pid}", page), page


async def test_a_permission_is_shown_whole_and_allowed(place: Place) -> None:
    async with teams_dashboard(place) as made, made.world.signed_in() as browser:
        url, ask = await made.asked(browser, "bank", 'permission Bash {"command": "psql -f 42.sql"}')
        (request,) = await _requests(made.teams)
        page = (await browser.get("/teams")).text
        assert "psql -f 42.sql" in page and request.digest in page
        assert "waits until you allow" in words((await browser.get(url)).text)
        assert "none at work, 1 waits for you" in words(page)
        now = words((await browser.get("/")).text)
        assert "1 waits for you" in now and "at work" not in now, "it waits, and does not work"
        wrong = await post(browser, f"/approvals/{request.id}", decision="allow", digest="another")
        assert wrong.status_code == 422
        await post(browser, f"/approvals/{request.id}", decision="allow", digest=request.digest)
        assert "allowed" in str((await made.answered(ask.id)).answer)


async def _requests(teams: Any) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + 30
    while not found and time.monotonic() < deadline:
        found = await teams.permissions.open()
    return found


async def test_a_turn_is_followed_and_cancelled(place: Place) -> None:
    async with teams_dashboard(place) as made, made.world.signed_in() as browser:
        url, ask = await made.asked(browser, "shop", "sleep 60")
        await until(lambda: made.teams._runner.pool.has_process("shop"))
        region = await browser.get(url, headers={"Holdfast-Parts": "turns"})
        assert "at work" in region.text and 'data-every="2"' in region.text and "<h1" not in region.text
        assert (await post(browser, f"/teams/asks/{ask.id}/cancel")).status_code == 303
        assert (await made.answered(ask.id)).status == AskStatus.CANCELLED.value
        assert "Cancelled." in (await browser.get(url)).text


async def test_a_conversation_is_compacted_forked_reset_and_archived(place: Place) -> None:
    async with teams_dashboard(place) as made, made.world.signed_in() as browser:
        url, ask = await made.asked(browser, "shop", "Which currencies?")
        await made.answered(ask.id)
        before = await made.teams.overview.conversation(ask.conversation_id)
        assert (await post(browser, f"{url}/compact")).status_code == 303
        assert (await made.teams.overview.conversation(before.id)).compacted_count == before.message_count
        copied = await post(browser, f"{url}/fork", thread="other")
        copy = await made.teams.overview.conversation(int(copied.headers["location"].rsplit("/", 1)[1]))
        assert copy.thread == "other" and copy.session_id != before.session_id
        assert (await post(browser, f"{url}/reset")).status_code == 303
        after = await made.teams.overview.conversation(before.id)
        assert after.session_id != before.session_id and not after.begun
        for restore, status in (("no", ConversationStatus.ARCHIVED), ("yes", ConversationStatus.ACTIVE)):
            await post(browser, f"{url}/archive", restore=restore)
            assert (await made.teams.overview.conversation(before.id)).status == status.value


async def test_who_may_only_look_sees_no_button_and_no_secret(place: Place) -> None:
    secret = "ghp_" + "x9Kq2LmZ7vRt4WsY1BnC6DfG8HjP3aQe5uTo"
    async with teams_dashboard(place) as made, made.world.signed_in() as owner:
        url, ask = await made.asked(owner, "shop", f"Is {secret} still in use?")
        await made.answered(ask.id)
        key = await made.world.app.keys().create("phone", Scope.READ)
        async with made.world.browser() as reader:
            await reader.post("/sign-in", data={"key": key})
            for path in ("/teams", url, "/figures", f"/teams/asks/{ask.id}/text"):
                page = (await reader.get(path)).text
                assert secret not in page and secret in (await owner.get(url)).text
                assert re.findall(r'<form [^>]*method="post"[^>]*action="([^"]+)"', page) in ([], ["/sign-out"]), path
            assert (await post(reader, f"{url}/reset")).status_code == 403


async def test_cost_that_nobody_reported_is_unknown_and_not_nothing(place: Place) -> None:
    async with teams_dashboard(place, serve=False) as made, made.world.signed_in() as browser:

        def write(tx: Tx) -> None:
            for team, costs in (("shop", [None, None]), ("bank", [420_000, None]), ("docs", [1_500_000])):
                add_asks(tx, queries.begin(tx, "", team, "main").id, team, [{"cost": cost} for cost in costs])

        await made.world.store.write(write)
        page = words((await browser.get("/teams")).text)
        assert "cost unknown" in page and "at least $0.42" in page and "$1.50" in page
        figures = words((await browser.get("/figures?period=day")).text)
        assert "at least $1.92" in figures and "Of 3 turns no cost was reported" in figures
        table = (await browser.get("/figures/pairs.csv?period=day")).text
        rows = {row["To"]: row for row in csv.DictReader(io.StringIO(table))}
        assert float(rows["bank"]["US dollars"]) == 0.42 and rows["bank"]["Turns of unknown cost"] == "1"


async def test_faults_of_teams_json_are_named(place: Place) -> None:
    async with teams_dashboard(place, serve=False) as made, made.world.signed_in() as browser:
        document = json.loads((place.home / "teams.json").read_text())
        document["teams"]["lost"] = {"project": str(place.home / "nowhere"), "agent": "echo"}
        document["teams"]["<b>"] = {}
        (place.home / "teams.json").write_text(json.dumps(document))
        page = (await browser.get("/teams")).text
        assert "nowhere" in page and "&lt;b&gt;" in page and "<b>" not in page


async def test_tool_calls_are_shown_from_the_agents_transcript(place: Place) -> None:
    async with teams_dashboard(place, serve=False) as made, made.world.signed_in() as browser:
        number = await _with_transcript(made.world, place)
        page = (await browser.get(f"/teams/conversations/{number}")).text
        said = words(page)
        assert "make check" in said and "Exit code 2" in said and "failed" in said
        assert "Looking at the fence first." in said and said.count("It is mended.") == 1
        assert page.count('<details class="steps"') == 1


async def _with_transcript(world: Dashboard, place: Place) -> int:
    """A conversation of the docs team with one ask, and the transcript of its agent as the store has it."""
    transcript = Transcript(place.home / "docs")
    transcript.ask("Mend the fence.")
    transcript.say("Looking at the fence first.", stop_reason="tool_use")
    transcript.fail("make check", "Exit code 2")
    transcript.say("It is mended.")

    def write(tx: Tx) -> int:
        made = queries.adopt(tx, "", "docs", "main", transcript.session_id)
        asks = [{"at": BEGAN - DAY, "id": "early"}, {"at": BEGAN, "text": "Mend the fence.", "answer": "It is mended."}]
        add_asks(tx, made.id, "docs", [{**one, "finished": int(str(one["at"])) + 60_000} for one in asks])
        return made.id

    number = await world.store.write(write)
    key = {"project_key": "docs", "session_id": transcript.session_id, "subpath": ""}
    await TranscriptStore(world.store).append(key, transcript.entries)
    return number


async def test_a_long_conversation_is_paged_from_its_end(place: Place) -> None:
    async with teams_dashboard(place, serve=False) as made, made.world.signed_in() as browser:

        def write(tx: Tx) -> int:
            talk = queries.begin(tx, "", "shop", "main")
            add_asks(tx, talk.id, "shop", [{"text": f"question {n}."} for n in range(25)])
            return talk.id

        url = f"/teams/conversations/{await made.world.store.write(write)}"
        seen: list[str] = []
        pages = 0
        while url:
            page = (await browser.get(url)).text
            seen = re.findall(r"question (\d+)\.", page) + seen
            older = re.search(r'href="([^"]+)">Earlier<', page)
            url = older[1].replace("&amp;", "&") if older else ""
            pages += 1
        assert seen == [str(n) for n in range(25)] and pages == 3


async def test_the_list_of_conversations_is_paged_and_filtered(place: Place) -> None:
    async with teams_dashboard(place, serve=False) as made, made.world.signed_in() as browser:

        def write(tx: Tx) -> None:
            for number in range(45):
                queries.begin(tx, "", "shop" if number % 2 else "bank", f"t{number}")

        await made.world.store.write(write)
        for start, count in (("/teams", 45), ("/teams?from=&to=shop", 22)):
            threads, url = set[str](), start
            while url:
                page = (await browser.get(url)).text
                threads |= set(re.findall(r">(t\d+)<", page))
                older = re.search(r'href="([^"]+)">Older conversations', page)
                url = older[1].replace("&amp;", "&") if older else ""
            assert len(threads) == count
        assert (await browser.get("/teams?before=x")).status_code == 422


async def test_notices_are_shown_where_they_were_told(place: Place) -> None:
    async with teams_dashboard(place) as made, made.world.signed_in() as browser:
        await made.world.store.write(lambda tx: queries.add_notice(tx, "bank", "shop", "The rate changes.", DAY))
        url, ask = await made.asked(browser, "shop", "Which currencies?")
        await made.answered(ask.id)
        await made.world.store.write(lambda tx: queries.add_notice(tx, "bank", "shop", "Not yet told.", DAY))
        page = words((await browser.get(url)).text)
        assert "Notice from bank : The rate changes." in page
        assert "delivered with the next turn: Not yet told." in page


async def test_hostile_texts_are_shown_as_text(place: Place) -> None:
    async with teams_dashboard(place, serve=False) as made, made.world.signed_in() as browser:

        def write(tx: Tx) -> int:
            talk = queries.begin(tx, "", "shop", HOSTILE[:30])
            long = HOSTILE + "x" * 1_000_000
            add_asks(tx, talk.id, "shop", [{"text": long, "answer": long, "id": f"h{n}"} for n in range(12)])
            return talk.id

        number = await made.world.store.write(write)
        for path in ("/teams", f"/teams/conversations/{number}", "/figures"):
            answer = await browser.get(path)
            assert answer.status_code == 200 and "<script>alert" not in answer.text and "\x1b" not in answer.text
            assert "\u202e" not in answer.text and len(answer.content) < 150_000, path
        whole = await browser.get("/teams/asks/h3/text")
        assert len(whole.content) > 2_000_000 and whole.headers["content-type"].startswith("text/plain")
        assert whole.headers["content-disposition"].startswith("attachment")


async def test_figures_count_what_happened_in_their_period(place: Place) -> None:
    async with teams_dashboard(place, serve=False) as made, made.world.signed_in() as browser:

        def write(tx: Tx) -> None:
            talk, now = queries.begin(tx, "shop", "bank", "main"), tx.now()
            ages = [0, 2 * HOUR, 3 * DAY, 30 * DAY, 200 * DAY]
            add_asks(tx, talk.id, "bank", [{"at": now - age, "cost": 10_000} for age in ages])
            for number, (age, after) in enumerate(((0, "crash"), (0, "compact"), (20 * DAY, "crash"))):
                tx.run(
                    "INSERT INTO recoveries (root, session_id, occasion, what, at)"
                    " VALUES ('r', :id, :after, :what, :at)",
                    id=f"s{number}",
                    after=after,
                    what='["request", "todos"]',
                    at=now - age,
                )
                tx.run(
                    "INSERT INTO agent_sessions (session_id, root, machine, source, started_at, seen_at, ended_at)"
                    " VALUES (:id, 'r', 'm', 'startup', :began, :at, :at)",
                    id=f"s{number}",
                    began=now - age - 30 * 60_000,
                    at=now - age,
                )
            tx.run(
                "INSERT INTO ledgers (session_id, root, machine, transcript, file_mark, read_to, content, last_at,"
                " updated_at) VALUES ('s0', 'r', 'm', 't', '', 0, :content, :at, :at)",
                content='{"session_id": "s0"}',
                at=now + 60_000,
            )
            for number, (age, status) in enumerate(((0, "done"), (HOUR, "dead"), (2 * DAY, "pending"))):
                tx.run(
                    "INSERT INTO bridge_messages (id, target, seq, text, fingerprint, sender, source, priority, status,"
                    " attempts, created_at, expires_at) VALUES (:id, 'bank', :seq, 'x', 'x', 'me', 'cli', 0, :status,"
                    " 0, :at, :at)",
                    id=f"m{number}",
                    seq=number,
                    status=status,
                    at=now - age,
                )

        await made.world.store.write(write)
        for period, asks, recoveries in (("day", 2, 2), ("week", 3, 2), ("quarter", 4, 3)):
            page = words((await browser.get(f"/figures?period={period}")).text)
            assert f"{asks} asks, {asks} answered, 0 failed." in page, period
            assert f"{recoveries} times an agent got back" in page
            table = (await browser.get(f"/figures/asks.csv?period={period}")).text
            assert sum(int(row["Asked"]) for row in csv.DictReader(io.StringIO(table))) == asks
        assert "3 sent to agents: 1 done, 1 waiting, 1 dead letter." in page
        table = (await browser.get("/figures/messages.csv?period=day")).text
        sent = [(int(row["Sent"]), int(row["Dead letter"])) for row in csv.DictReader(io.StringIO(table))]
        assert [sum(column) for column in zip(*sent, strict=True)] == [2, 1]
        assert (
            "After 1 of the 1 whose transcript is known it went on working." in page
            and "2 after work was cut off" in page
        )
        lived = (await browser.get("/figures/sessions.csv?period=quarter")).text
        assert "10 to 60 min,3" in lived.splitlines()
        assert (await browser.get("/figures/nonsense.csv")).status_code == 404
        assert (await browser.get("/figures?period=year")).status_code == 422


async def test_figures_of_an_unused_store_say_what_to_do(place: Place) -> None:
    async with dashboard(place) as world, world.signed_in() as browser:
        page = (await browser.get("/figures")).text
        assert "Nothing to count in the last week" in page and "holdfast setup claude" in page
        assert "<svg" not in page and (await browser.get("/figures/recall.csv")).text == "Known,In all,Told,Share\n"


async def test_a_conversation_that_is_not_there_is_not_found(place: Place) -> None:
    async with teams_dashboard(place, serve=False) as made, made.world.signed_in() as browser:
        for name in ("7", "x", "-1", "9" * 30):
            assert (await browser.get(f"/teams/conversations/{name}")).status_code == 404


def test_the_steps_of_a_period_end_now() -> None:
    now = 1_795_000_000_000
    for name, count in (("day", 24), ("week", 7), ("quarter", 13)):
        period = period_until(now, name)
        assert len(period.labels) == count
        assert period.begin + (count - 1) * period.step_ms <= now < period.begin + count * period.step_ms
    assert iso(now) and len(BOUNDS) == 6


async def test_pages_are_quick_with_much_in_the_store(sqlite_place: Place) -> None:
    """Far above what a page may take, because the machine of this test may be busy; `bench dashboard` measures."""
    async with teams_dashboard(sqlite_place, serve=False) as made, made.world.signed_in() as browser:

        def write(tx: Tx) -> int:
            now = tx.now()
            for number in range(2_000):
                talk = queries.begin(tx, "", "shop" if number % 2 else "bank", f"t{number}")
                asks = [
                    {"at": now - number * HOUR, "text": "x" * 2_000, "cost": n, "id": f"{number}-{n}"} for n in range(5)
                ]
                add_asks(tx, talk.id, talk.to_team, asks)
            return talk.id

        number = await made.world.store.write(write)
        for path in ("/teams", f"/teams/conversations/{number}", "/figures?period=quarter"):
            await browser.get(path)
            began = time.perf_counter()
            answer = await browser.get(path)
            assert time.perf_counter() - began < 1.0 and len(answer.content) < 150_000, path
