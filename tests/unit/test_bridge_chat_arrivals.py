"""What comes from a chat: read with suspicion, gated by user id, understood as a command or as work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bridge.chat.arrivals import arrival, may_order, number_of, target_of
from holdfast.bridge.chat.commands import Command, command, pressed, urgency
from holdfast.bridge.chat.urls import guarded
from holdfast.bridge.chat.webhook_out import genuine, signature
from holdfast.bridge.model import Priority
from holdfast.errors import BadInput
from holdfast.teams.team import Chat, Team

UPDATE = ["update_id", "message", "edited_message", "callback_query"]
MESSAGE = ["chat", "id", "from", "text", "caption", "photo", "document", "file_name", "data", "message_id"]
THREAD = ["message_thread_id", "is_topic_message", "reply_to_message"]
KEYS = st.sampled_from([*UPDATE, *MESSAGE, *THREAD])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5))


def update(**message: Any) -> dict[str, Any]:
    base = {"message_id": 5, "chat": {"id": -100}, "from": {"id": 7, "first_name": "Ann"}}
    return {"update_id": 1, "message": {**base, **message}}


def team(name: str, chat: Chat | None) -> Team:
    return Team(name, Path("/nowhere"), chat=chat)


@given(JSON)
def test_whatever_comes_is_read_without_an_error(raw: Any) -> None:
    found = arrival(raw)
    if found is not None:
        assert found.number == number_of(raw)
        target_of(found, {"a": team("a", Chat("-100"))})


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"text": "hello"}, "hello"),
        ({"photo": [{"file_id": "x"}], "caption": "look"}, "[photo]\nlook"),
        ({"voice": {"file_id": "x"}}, "[voice]"),
        ({"document": {"file_name": "a\nb.pdf"}}, "[document: a b.pdf]"),
        ({"animation": {"file_name": "cat.gif"}, "document": {"file_name": "cat.gif"}}, "[animation: cat.gif]"),
    ],
)
def test_attachments_are_named_and_captions_taken(message: dict[str, Any], text: str) -> None:
    found = arrival(update(**message))
    assert found is not None
    assert found.text == text


@pytest.mark.parametrize("message", [{}, {"new_chat_members": [{"id": 1}]}, {"text": "  "}, {"text": "a", "chat": {}}])
def test_what_nobody_wrote_is_no_arrival(message: dict[str, Any]) -> None:
    assert arrival(update(**message)) is None


@pytest.mark.parametrize(
    ("chat", "message", "found"),
    [
        (Chat("-100"), {}, True),
        (Chat("-100", topic=7), {}, False),
        (Chat("-100", topic=7), {"message_thread_id": 7, "is_topic_message": True}, True),
        (Chat("-100"), {"message_thread_id": 7, "is_topic_message": True}, False),
        (Chat("-100"), {"message_thread_id": 7}, True),
        (Chat("-100", topic=1), {}, True),
        (Chat("-1000"), {}, False),
        (Chat("@Group"), {"chat": {"id": -100, "username": "group"}}, True),
        (Chat("@Group"), {}, False),
    ],
)
def test_chat_and_topic_together_are_the_target(chat: Chat, message: dict[str, Any], found: bool) -> None:
    one = arrival(update(text="hi", **message))
    assert one is not None
    assert target_of(one, {"none": team("none", None), "a": team("a", chat)}) == ("a" if found else None)


@pytest.mark.parametrize(
    ("sender", "users", "allowed"),
    [
        ({"id": 7}, (7,), True),
        ({"id": 7}, (8,), False),
        ({"id": 7}, (), False),
        ({"id": -100}, (7,), False),
        (None, (7,), False),
        ({"id": True}, (1,), False),
        ({"id": "7"}, (7,), False),
    ],
)
def test_only_users_on_the_list_may_order(sender: Any, users: tuple[int, ...], allowed: bool) -> None:
    one = arrival(update(text="hi", **{"from": sender}))
    assert one is not None
    assert may_order(one, Chat("-100", allowed_users=users)) is allowed


def test_an_old_button_counts_only_where_the_chat_has_one_target() -> None:
    press = {"id": "p", "from": {"id": 7}, "data": "resume:x", "message": {"chat": {"id": -100}, "date": 0}}
    one = arrival({"update_id": 1, "callback_query": press})
    assert one is not None
    topics = {name: team(name, Chat("-100", topic=topic)) for name, topic in (("a", 5), ("b", 6))}
    assert target_of(one, topics) is None
    assert target_of(one, {"a": topics["a"]}) == "a"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/status", Command("status")),
        ("/STOP@My_Bot the deploy\nnow", Command("stop", "the deploy\nnow", "My_Bot")),
        ("/approve 12-ab ", Command("approve", "12-ab")),
        ("status", None),
        ("/etc/passwd is odd", None),
        ("look at /status", None),
    ],
)
def test_a_command_is_told_from_work(text: str, found: Command | None) -> None:
    assert command(text) == found


@pytest.mark.parametrize(("action", "known"), [("resume:ab", True), ("deny:1", True), ("stop", False), ("", False)])
def test_only_known_buttons_are_commands(action: str, known: bool) -> None:
    assert (pressed(action) is not None) is known


@pytest.mark.parametrize(
    ("text", "priority"),
    [
        ("stop", Priority.STOP),
        (" Stop! Wrong branch", Priority.STOP),
        ("STOP the deploy", Priority.STOP),
        ("stopwatch feature please", Priority.NORMAL),
        ("stop-gap fix", Priority.NORMAL),
        ("don't stop", Priority.NORMAL),
        ("Urgent: the site is down", Priority.URGENT),
        ("urgently look", Priority.NORMAL),
    ],
)
def test_the_first_word_says_how_soon(text: str, priority: Priority) -> None:
    assert urgency(text) is priority


@pytest.mark.parametrize(
    "url", ["https://example.org/x", "http://127.0.0.1:9/x", "http://[::1]:9/", "http://localhost/"]
)
def test_https_and_this_machine_are_good_addresses(url: str) -> None:
    assert guarded("URL", url) == url


@pytest.mark.parametrize(
    "url",
    ["http://example.org", "http://127.0.0.1.example.org/", "ftp://x", "", "https://", "http://[::1", "https://a:x"],
)
def test_an_address_that_could_be_overheard_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="URL"):
        guarded("URL", url)


def test_a_signature_holds_for_its_secret_time_and_body_alone() -> None:
    signed = signature("s" * 16, "100", b"body")
    assert genuine("s" * 16, "100", b"body", signed)
    assert not genuine("t" * 16, "100", b"body", signed)
    assert not genuine("s" * 16, "101", b"body", signed)
    assert not genuine("s" * 16, "100", b"body!", signed)
    assert not genuine("s" * 16, "100", b"body", "sha256=ü\udcff")
