"""Find: one search over thoughts, conversations, messages and runs."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.conftest import Place
from tests.contract.dashboard_world import Dashboard, dashboard
from tests.contract.reasoning_world import agent

from holdfast.bridge.model import Priority
from holdfast.bridge.queries import queue as queue_queries
from holdfast.connections.keys import Scope
from holdfast.history.service import History
from holdfast.protocol import definition
from holdfast.protocol import queries as protocol_queries
from holdfast.protocol.protocols import SIMPLE
from holdfast.protocol.runs import Run
from holdfast.reasoning import session_browser
from holdfast.reasoning.model import Draft
from holdfast.reasoning.queries import search as search_queries
from holdfast.reasoning.service import Reasoning
from holdfast.reasoning.session_browser import NOT_INDEXED
from holdfast.store import Tx
from holdfast.teams.queries import conversations

pytestmark = pytest.mark.anyio

SECRET = "sk-ant-api03-" + "Ab3dEf6hIj9kLm2nOp5q" * 4 + "-xYzAA"


@pytest.fixture
async def world(place: Place, tmp_path: Path) -> AsyncIterator[Dashboard]:
    """Every kind of thing, each with the word `ledgerish` in it."""
    place.home.mkdir(parents=True, exist_ok=True)
    project = tmp_path / "shop"
    project.mkdir()
    teams = {"shop": {"project": str(project), "delivery": "hook"}}
    (place.home / "teams.json").write_text(json.dumps({"teams": teams}))
    async with dashboard(place) as made:
        started = await made.app.service(Reasoning).start_new(agent("a"), "A ledgerish matter")
        assert started is not None
        for text in ("nothing here", f"why is it Ledgerish?\nthe key is {SECRET}\nbye", "<b>ledgerish</b> &amp; Über"):
            await made.app.service(Reasoning).think(agent("a"), Draft(text, True), started.session.id)
        await made.store.write(lambda tx: put(tx, project))
        await remember(made, tmp_path, project)
        yield made


def put(tx: Tx, project: Path) -> None:
    conversation = conversations.begin(tx, "", "shop", "main")
    conversations.add_ask(tx, conversation.id, "shop", "Is 100% of it ledgerish_x?", "[]", None)
    for number, text in enumerate(("Say ledgerish things, bitte ÜBER alles", "something else")):
        queue_queries.enqueue(
            tx,
            "shop",
            text,
            message_id=f"m{number}",
            priority=Priority.NORMAL,
            sender="owner",
            source="cli",
            ttl_ms=60_000,
            reply_to=None,
        )
    run = Run(0, "", project.as_uri(), project.as_uri(), "simple", definition.dumps(SIMPLE), "Make it less ledgerish")
    protocol_queries.begin(tx, run, ())


async def remember(world: Dashboard, place: Path, project: Path) -> None:
    """An imported conversation."""
    folder = place / "claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project))
    folder.mkdir(parents=True)
    said = {"role": "user", "content": "please be ledgerish"}
    line = {"type": "user", "message": said, "timestamp": "2026-01-01T10:00:00.000Z", "cwd": str(project)}
    (folder / "11111111-1111-4111-8111-111111111111.jsonl").write_text(json.dumps(line) + "\n")
    done = await world.app.service(History).import_transcripts(place / "claude", None, lambda part, what: None)
    assert done.passages == 1


def found(page: str) -> list[tuple[str, str]]:
    """Each hit's address and its line."""
    return re.findall(
        r'<li data-key="[^"]+">.*?(?:<a href="([^"]+)">.*?)?<p><bdi class="outside">(.*?)</bdi></p>', page, re.S
    )


async def test_every_kind_is_found_with_its_line_marked_and_linked(world: Dashboard) -> None:
    async with world.signed_in() as browser:
        page = (await browser.get("/find?q=ledgerish")).text
        assert re.findall(r'class="found" data-key="([^"]+)"', page) == [
            "Thoughts",
            "Conversations",
            "Messages",
            "Protocol runs",
        ]
        lines = {line: url for url, line in found(page)}
        assert list(lines) == [
            "A <mark>ledgerish</mark> matter",
            "&lt;b&gt;<mark>ledgerish</mark>&lt;/b&gt; &amp;amp; Über",
            "why is it <mark>Ledgerish</mark>?",
            "Is 100% of it <mark>ledgerish</mark>_x?",
            "please be <mark>ledgerish</mark>",
            "Say <mark>ledgerish</mark> things, bitte ÜBER alles",
            "Make it less <mark>ledgerish</mark>",
        ]
        urls = list(lines.values())
        assert re.fullmatch(r"/sessions/[\w-]+", urls[0]) and re.fullmatch(r"/sessions/[\w-]+\?t=3", urls[1])
        assert urls[3].startswith("/teams/conversations/")
        assert [url.partition("#")[2] for url in urls[4:6]] == ["sessions", "queues"]
        assert all(url.startswith("/projects/") for url in urls[4:])
        assert "Make it less ledgerish" in (await browser.get(urls[6])).text and "/runs/" in urls[6]
        assert "7 results" in page


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("ledgerish nothing", 0),
        ("ledg", 6),
        ("über", 2),
        ("100%", 1),
        ("h_x", 1),
        ("%", 0),
        ('"less ledgerish"', 1),
        ("less ledgerish", 1),
        ("bitte ledgerish", 1),
        ("' OR 1=1 --", 0),
        ("ledgerish AND OR NEAR", 0),
        ("\0", 0),
        ("!!!", 0),
        ("", 0),
    ],
)
async def test_what_is_looked_for_is_text(world: Dashboard, query: str, lines: int) -> None:
    async with world.signed_in() as browser:
        answer = await browser.get("/find", params={"q": query})
        assert answer.status_code == 200
        assert len(found(answer.text)) == lines, found(answer.text)


async def test_while_one_types_only_the_results_are_sent(world: Dashboard) -> None:
    async with world.signed_in() as browser:
        part = (await browser.get("/find?q=ledgerish", headers={"Holdfast-Parts": "results"})).text
        assert 'id="results"' in part and "<mark>" in part and "<html" not in part and "<form" not in part
        none = (await browser.get("/find?q=absent", headers={"Holdfast-Parts": "results"})).text
        assert "No results" in none
        for odd in ("x" * 5_000, "a " * 300, "a." * 90, "\u202e<script>", "%00", "%ed%a0%80", "(" * 50, "[a-z]+\\"):
            answer = await browser.get("/find", params={"q": odd})
            assert answer.status_code in (200, 414) and "<script>" not in answer.text.replace("<script type", "")
            assert "\u202e" not in answer.text


async def test_who_does_not_own_the_store_finds_no_secret(world: Dashboard) -> None:
    key = await world.app.keys().create("phone", Scope.READ)
    async with world.signed_in() as owner, world.browser() as reader:
        await reader.post("/sign-in", data={"key": key})
        assert SECRET in (await owner.get("/find?q=the+key+ledgerish")).text
        masked = await reader.get("/find?q=the+key+ledgerish")
        assert "<mark>the</mark> <mark>key</mark>" in masked.text and SECRET[20:40] not in masked.text
        for guess in ("Ab3dEf6hIj9kLm2nOp5q", "ledgerish Ab3dEf6h", SECRET):
            assert found((await owner.get("/find", params={"q": guess})).text), guess
            assert not found((await reader.get("/find", params={"q": guess})).text), f"{guess} can be guessed"


async def test_a_search_finds_the_same_before_and_after_thoughts_are_indexed(world: Dashboard) -> None:
    browser = world.app.service(Reasoning).browser
    queries = ("ledgerish", "ledgeris", "led", '"why is it"', "uber", "ÜBER", "why bye", "ledgerish zebra", "kein")
    before = [await browser.search_lately(query) for query in queries]
    await browser.index()
    assert [await browser.search_lately(query) for query in queries] == before
    assert [len(found.thoughts) for found in before] == [2, 2, 2, 1, 1, 1, 1, 0, 0]


async def test_what_is_not_indexed_is_found_however_much_it_is(world: Dashboard) -> None:
    reasoning = world.app.service(Reasoning)
    started = await reasoning.start_new(agent("b"), "Überprüfung")
    assert started is not None
    for number in range(45):
        await reasoning.think(agent("b"), Draft(f"quokka {number}", True), started.session.id)
    found = await reasoning.browser.search_lately("quokka", 8)
    assert [thought.content for _, thought in found.thoughts] == [f"quokka {number}" for number in range(44, 36, -1)]
    assert [one.title for one in (await reasoning.browser.search_lately("uberpruf")).sessions] == ["Überprüfung"]
    assert [one.title for one in (await reasoning.browser.search_lately("LEDGERISH matter")).sessions] == [
        "A ledgerish matter"
    ]


async def test_a_search_waits_for_no_long_indexing_and_says_what_it_did_not_search(
    world: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restore or a salvage, which index everything anew."""
    monkeypatch.setattr(session_browser, "WAIT_FOR_INDEX", 0.0)
    monkeypatch.setattr(search_queries, "INDEXED_AT_ONCE", 10)
    reasoning = world.app.service(Reasoning)
    started = await reasoning.start_new(agent("b"), "Many")
    assert started is not None
    for number in range(60):
        await reasoning.think(agent("b"), Draft(f"quokka {number}", True), started.session.id)
    async with world.signed_in() as owner:
        assert NOT_INDEXED in (await owner.get("/find?q=quokka")).text
        page = await reasoning.browser.search(None, "quokka", everywhere=True)
        assert page.advice == NOT_INDEXED and page.thoughts
        page = await reasoning.browser.search(None, "59", everywhere=True)
        assert page.advice is not None and page.advice.startswith(f"{NOT_INDEXED} No session here")
        await reasoning.browser.index()
        assert NOT_INDEXED not in (await owner.get("/find?q=quokka")).text
        assert (await reasoning.browser.search(None, "59", everywhere=True)).advice is None
