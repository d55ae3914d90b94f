"""The relay's memory of a conversation, with a daemon that dies at every byte of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.process.fake_daemon import FakeServer, encode

from holdfast.relay.lines import LineSplitter, Overlong
from holdfast.relay.session import MAX_LIVES, RelaySession

Json = dict[str, Any]
Asked = tuple[str, str, str]
Answer = Json

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
PATIENCE = 30.0


def request(id: int | str, method: str, params: Json | None = None) -> Json:
    body: Json = {"method": method, "jsonrpc": "2.0", "id": id}
    return body if params is None else {"params": params, **body}


def call(id: int | str, text: str, meta: Json | None = None) -> Json:
    return request(id, "tools/call", {"name": "remember", "arguments": {"text": text}, "_meta": meta or {}})


LEGACY_CONVERSATION = [
    request(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    request(1, "tools/list"),
    call("1", "alpha", {"claudecode/toolUseId": "toolu_1"}),
    request(2, "resources/subscribe", {"uri": "holdfast://a"}),
    call(3, "beta"),
]
MODERN_CONVERSATION = [
    request("l", "subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": MODERN}),
    request(1, "tools/list", {"_meta": MODERN}),
    call("1", "alpha", MODERN),
    call(3, "beta", MODERN),
]


class Wire:
    """A session and a fake daemon joined in memory; each life may end at an exact byte either way."""

    def __init__(self, find: Callable[[Asked], Answer | None] | None = None) -> None:
        self.session = RelaySession(find=find)
        self.server = FakeServer()
        self.client: list[Json] = []
        self.received = self.sent = 0
        self._client_lines = LineSplitter()

    def connect(self, *, ready: bool = True) -> None:
        self.session.connected(ready=ready)
        self._life = self.server.life()
        self._to_daemon = LineSplitter()
        self._to_relay = LineSplitter()

    def run(self, *, cut_received: int | None = None, cut_sent: int | None = None) -> bool:
        """Move bytes until nothing is left to move; False when the daemon died on the way."""
        while self.session.to_daemon:
            data = bytes(self.session.to_daemon)
            if cut_received is not None:
                data = data[: cut_received - self.received]
            self.received += len(data)
            del self.session.to_daemon[: len(data)]
            replies = b"".join(
                reply for line in self._to_daemon.feed(data) for reply in self._life.answer(json.loads(plain(line)))
            )
            if cut_sent is not None:
                replies = replies[: cut_sent - self.sent]
            self.sent += len(replies)
            for line in self._to_relay.feed(replies):
                self.session.from_daemon(line)
            self.collect()
            if self.received == cut_received or self.sent == cut_sent:
                return False
        return True

    def collect(self) -> list[Json]:
        fresh = [json.loads(plain(line)) for line in self._client_lines.feed(bytes(self.session.to_client))]
        self.session.to_client.clear()
        self.client += fresh
        return fresh

    def write(self, *bodies: Json, now: float = 0.0) -> None:
        for body in bodies:
            self.session.from_client(encode(body)[:-1], now)

    def say(self, body: Json) -> None:
        self.session.from_daemon(encode(body)[:-1])


def plain(line: bytes | Overlong) -> bytes:
    assert isinstance(line, bytes)
    return line


@pytest.fixture
def wire() -> Wire:
    joined = Wire()
    joined.connect()
    return joined


def check_all_answered_once(wire: Wire, conversation: list[Json]) -> None:
    asked = [(type(b["id"]), b["id"]) for b in conversation if "id" in b and b["method"] != "subscriptions/listen"]
    answered = [(type(b["id"]), b["id"]) for b in wire.client if "id" in b]
    assert sorted(answered, key=repr) == sorted(asked, key=repr)
    texts = {b["id"]: b["result"]["content"][0]["text"] for b in wire.client if "content" in b.get("result", {})}
    assert texts == {"1": "alpha", 3: "beta"}
    assert wire.server.effects == {"alpha": 1, "beta": 1}
    acknowledged = [b for b in wire.client if b.get("method") == "notifications/subscriptions/acknowledged"]
    assert len(acknowledged) == sum(1 for b in conversation if b["method"] == "subscriptions/listen")
    for token in ("1", 3):
        steps = [b["params"]["progress"] for b in wire.client if b.get("params", {}).get("progressToken") == token]
        assert steps in ([1, 2], [1, 1, 2], [1, 2, 1, 2])
    assert wire.session.open_calls == 0


TOOLS = {"tools": [{"name": "remember", "inputSchema": {"type": "object"}}]}
"""What the fake daemon lists."""


def as_the_daemon(asked: Asked) -> Answer | None:
    """What the fake daemon answers, known beforehand."""
    method, _, protocol = asked
    if method == "initialize":
        return {"result": {"protocolVersion": protocol, "capabilities": {}, "serverInfo": {}}}
    return {"result": TOOLS if method == "tools/list" else {}}


def otherwise(asked: Asked) -> Answer | None:
    """What the fake daemon would answer if it had other tools."""
    return {"result": {"tools": []}} if asked[0] == "tools/list" else as_the_daemon(asked)


def cuts(conversation: list[Json], direction: str) -> Iterator[int]:
    whole = Wire()
    whole.connect()
    whole.write(*conversation)
    assert whole.run()
    yield from range(1, getattr(whole, direction) + 1)


@pytest.mark.parametrize("conversation", [LEGACY_CONVERSATION, MODERN_CONVERSATION], ids=["legacy", "modern"])
@pytest.mark.parametrize("direction", ["received", "sent"])
@pytest.mark.parametrize("manner", ["pipelined", "one-by-one", "alone-at-first"])
def test_a_daemon_that_dies_at_any_byte_costs_no_answer_and_no_second_effect(
    conversation: list[Json], direction: str, manner: str
) -> None:
    died, alone = 0, manner == "alone-at-first"
    for at in cuts(conversation, direction):
        wire = Wire(as_the_daemon if alone else None)
        if alone:
            wire.session.alone()
            wire.write(*conversation)
            wire.collect()
        wire.connect(ready=not alone)
        cut = {f"cut_{direction}": at}
        for part in [[body] for body in conversation] if manner == "one-by-one" else [conversation]:
            if not alone:
                wire.write(*part)
            if not wire.run(**cut):
                died += 1
                cut = {}
                wire.session.lost(1.0)
                wire.collect()
                wire.connect()
                assert wire.run()
        check_all_answered_once(wire, conversation)
    assert died >= 500


def test_a_new_daemon_is_told_handshake_then_subscriptions_then_the_unanswered_requests(wire: Wire) -> None:
    wire.write(*LEGACY_CONVERSATION, request(8, "test/silence"), request("8", "test/silence"))
    assert wire.run()
    wire.server.seen.clear()
    wire.session.lost(1.0)
    wire.connect()
    assert wire.run()
    assert wire.server.methods() == [
        "initialize",
        "notifications/initialized",
        "resources/subscribe",
        "test/silence",
        "test/silence",
    ]
    assert [body.get("id") for body in wire.server.seen][-2:] == [8, "8"]
    assert wire.server.seen[0]["params"] == LEGACY_CONVERSATION[0]["params"]
    assert wire.server.seen[0]["id"] != 0


def test_an_unanswered_initialize_is_repeated_under_its_own_id() -> None:
    wire = Wire()
    wire.write(*LEGACY_CONVERSATION[:3])
    wire.connect()
    assert wire.run()
    assert [body["id"] for body in wire.client] == [0, 1]
    assert wire.server.methods() == ["initialize", "notifications/initialized", "tools/list"]


def test_a_refused_initialize_is_not_repeated(wire: Wire) -> None:
    wire.write(LEGACY_CONVERSATION[0])
    wire.say({"jsonrpc": "2.0", "id": 0, "error": {"code": -32602, "message": "no"}})
    wire.session.lost(1.0)
    wire.connect()
    assert wire.run()
    assert wire.server.seen == []


def test_a_daemon_that_refuses_the_repeated_handshake_is_reported_and_the_client_not_bothered(wire: Wire) -> None:
    wire.write(*LEGACY_CONVERSATION[:2])
    assert wire.run()
    wire.session.lost(1.0)
    wire.collect()
    wire.connect()
    repeated = json.loads(bytes(wire.session.to_daemon).splitlines()[0])
    wire.say({"jsonrpc": "2.0", "id": repeated["id"], "error": {"code": -32602, "message": "too old"}})
    assert wire.collect() == []
    assert len(wire.session.notes) == 1
    assert "too old" in wire.session.notes[0]


def test_an_ended_subscription_is_not_repeated(wire: Wire) -> None:
    wire.write(*LEGACY_CONVERSATION, request(9, "resources/unsubscribe", {"uri": "holdfast://a"}))
    assert wire.run()
    wire.server.seen.clear()
    wire.session.lost(1.0)
    wire.connect()
    assert wire.run()
    assert wire.server.methods() == ["initialize", "notifications/initialized"]


def test_a_call_carries_the_same_key_when_repeated_and_all_that_the_client_sent(wire: Wire) -> None:
    sent = call(7, "alpha", {"claudecode/toolUseId": "toolu_1", "progressToken": 7})
    sent["params"]["extra"] = {"nested": [1, 2.5, None, "ü"]}
    wire.write(*LEGACY_CONVERSATION[:2], sent)
    first = json.loads(bytes(wire.session.to_daemon).splitlines()[-1])
    wire.session.lost(1.0)
    wire.connect()
    again = json.loads(bytes(wire.session.to_daemon).splitlines()[-1])
    assert first == again
    key = first["params"]["_meta"].pop("holdfast/key")
    assert key.startswith(wire.session.relay + ":")
    assert first == sent


def test_two_calls_never_share_a_key(wire: Wire) -> None:
    wire.write(call(1, "same"), call(2, "same"))
    keys = [json.loads(line)["params"]["_meta"]["holdfast/key"] for line in bytes(wire.session.to_daemon).splitlines()]
    assert len(set(keys)) == 2


@pytest.mark.parametrize("meta", [None, {}, {"a": 1}])
def test_a_call_with_any_valid_meta_gets_a_key(wire: Wire, meta: Json | None) -> None:
    body = request(1, "tools/call", {"name": "x", "_meta": meta})
    wire.write(body)
    sent = json.loads(bytes(wire.session.to_daemon))
    assert sent["params"]["_meta"].keys() == {*(meta or {}), "holdfast/key"}


def test_a_late_answer_to_a_dead_daemons_question_reaches_no_other_daemon(wire: Wire) -> None:
    wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
    (first,) = wire.collect()
    wire.session.lost(1.0)
    wire.connect()
    wire.say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
    cancelled, second = wire.collect()
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == first["id"]
    assert second["id"] != first["id"]
    wire.write({"jsonrpc": "2.0", "id": first["id"], "result": {"roots": ["late"]}})
    assert not wire.session.to_daemon
    wire.write({"jsonrpc": "2.0", "id": second["id"], "result": {"roots": ["fresh"]}})
    assert json.loads(bytes(wire.session.to_daemon)) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"roots": ["fresh"]},
    }
    wire.session.to_daemon.clear()
    wire.write({"jsonrpc": "2.0", "id": second["id"], "result": {"roots": ["twice"]}})
    assert not wire.session.to_daemon


def test_a_question_the_daemon_withdraws_is_withdrawn_under_the_clients_number(wire: Wire) -> None:
    wire.say({"jsonrpc": "2.0", "id": 4, "method": "elicitation/create"})
    wire.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4, "reason": "r"}})
    asked, cancelled = wire.collect()
    assert cancelled["params"] == {"requestId": asked["id"], "reason": "r"}
    wire.write({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    assert not wire.session.to_daemon


def test_a_cancelled_request_is_forgotten_and_its_late_answer_dropped(wire: Wire) -> None:
    wire.write(request(5, "test/silence"))
    wire.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "5"}})
    assert wire.session.open_calls == 1
    wire.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    assert wire.session.open_calls == 0
    sent = [json.loads(line)["method"] for line in bytes(wire.session.to_daemon).splitlines()]
    assert sent == ["test/silence", "notifications/cancelled"]
    wire.say({"jsonrpc": "2.0", "id": 5, "result": {}})
    wire.session.lost(1.0)
    wire.connect()
    assert wire.collect() == []
    assert not wire.session.to_daemon


def test_a_request_cancelled_while_no_daemon_is_there_is_never_sent() -> None:
    wire = Wire()
    wire.write(request(5, "test/silence", {"_meta": MODERN}), request(6, "tools/list", {"_meta": MODERN}))
    wire.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    wire.connect()
    assert wire.run()
    assert wire.server.methods() == ["tools/list"]


def test_a_cancellation_of_something_that_is_no_id_is_ignored(wire: Wire) -> None:
    strange: list[object] = [[], {}, None, True]
    for nonsense in strange:
        wire.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": nonsense}})
    assert not wire.session.to_daemon


def test_an_answer_given_twice_reaches_the_client_once(wire: Wire) -> None:
    wire.write(request(1, "tools/list"))
    for _ in range(2):
        wire.say({"jsonrpc": "2.0", "id": 1, "result": {}})
    wire.say({"jsonrpc": "2.0", "id": "1", "result": {}})
    assert wire.collect() == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


def test_ids_of_different_json_types_are_different_requests(wire: Wire) -> None:
    wire.write(request(1, "tools/list"), request("1", "tools/list"))
    wire.say({"jsonrpc": "2.0", "id": "1", "result": {"which": "text"}})
    assert [body["id"] for body in wire.collect()] == ["1"]
    assert wire.session.open_calls == 1


def test_an_id_still_in_use_is_refused(wire: Wire) -> None:
    wire.write(request(1, "test/silence"), request(1, "tools/list"))
    (refusal,) = wire.collect()
    assert refusal["id"] == 1
    assert refusal["error"]["code"] == -32600


def test_requests_give_up_only_after_waiting_for_a_daemon(wire: Wire) -> None:
    wire.write(request(1, "test/silence"), now=0.0)
    wire.session.expire(1000.0, PATIENCE, "gone")
    assert wire.collect() == []
    wire.session.lost(1000.0)
    wire.write(request(2, "test/silence"), now=1010.0)
    wire.session.expire(1029.9, PATIENCE, "gone")
    assert wire.collect() == []
    assert wire.session.next_expiry(PATIENCE) == 1030.0
    wire.session.expire(1030.0, PATIENCE, "gone")
    (given_up,) = wire.collect()
    assert given_up == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "gone"}}
    wire.connect()
    assert [json.loads(line)["id"] for line in bytes(wire.session.to_daemon).splitlines()] == [2]


def test_a_call_given_up_after_it_reached_a_daemon_says_that_it_may_have_taken_effect(wire: Wire) -> None:
    wire.write(call(1, "sent"))
    wire.session.lost(1.0)
    wire.write(call(2, "never sent"))
    wire.session.give_up("Gone.")
    sent, never_sent = wire.collect()
    assert sent["error"]["message"].startswith("Gone. This call had reached a daemon before")
    assert never_sent["error"]["message"] == "Gone."


def test_a_standing_subscription_stream_outlasts_the_wait_and_any_number_of_daemons(wire: Wire) -> None:
    wire.write(MODERN_CONVERSATION[0])
    assert wire.run()
    assert len(wire.client) == 1
    for life in range(MAX_LIVES + 5):
        wire.session.lost(float(life))
        wire.session.expire(life + PATIENCE, PATIENCE, "gone")
        wire.session.give_up("stopped")
        wire.connect()
        assert wire.run()
    assert len(wire.client) == 1
    assert wire.server.methods() == ["subscriptions/listen"] * (MAX_LIVES + 6)
    assert wire.session.open_calls == 0


def test_a_request_that_kills_every_daemon_is_given_up(wire: Wire) -> None:
    wire.write(request(1, "test/silence"))
    for life in range(MAX_LIVES - 1):
        wire.session.lost(float(life))
        wire.connect()
    assert wire.collect() == []
    wire.session.lost(float(MAX_LIVES))
    (given_up,) = wire.collect()
    assert given_up["error"]["code"] == -32000


def test_an_answer_too_long_to_pass_on_becomes_an_error(wire: Wire) -> None:
    wire.write(request("x", "tools/list"))
    wire.session.from_daemon(Overlong(b'{"jsonrpc":"2.0","id":"x","result":{"a":"', b'aaa"}}', 9_000_000))
    (given_up,) = wire.collect()
    assert given_up["id"] == "x"
    assert "9000000 bytes" in given_up["error"]["message"]


def test_a_line_from_the_daemon_that_is_not_json_rpc_is_noted_and_dropped(wire: Wire) -> None:
    wire.session.from_daemon(b"Traceback (most recent call last):")
    assert wire.collect() == []
    assert len(wire.session.notes) == 1


def test_more_unanswered_bytes_than_may_be_held_are_refused_by_name(wire: Wire) -> None:
    for id in range(5):
        wire.write(request(id, "test/silence", {"text": "x" * 7_000_000}))
    (refusal,) = wire.collect()
    assert refusal["id"] == 4
    assert "33554432" in refusal["error"]["message"]


# -- alone: no daemon serves yet ----------------------------------------------------------------------------------


def starting(find: Callable[[Asked], Answer | None] = as_the_daemon) -> Wire:
    """A relay whose daemon is being started."""
    wire = Wire(find)
    wire.session.alone()
    return wire


def test_alone_the_first_questions_are_answered_and_a_call_waits() -> None:
    wire = starting()
    wire.write(*LEGACY_CONVERSATION[:4], request(5, "ping"))
    assert [(body["id"], "result" in body) for body in wire.collect()] == [(0, True), (1, True), (5, True)]
    assert wire.session.open_calls == 1
    wire.connect()
    assert wire.run()
    assert wire.server.methods() == ["initialize", "notifications/initialized", "tools/list", "tools/call"]
    assert wire.client[3:][-1]["result"]["content"][0]["text"] == "alpha"
    assert wire.server.effects == {"alpha": 1}


def test_what_waited_before_it_was_known_that_no_daemon_serves_is_answered_then() -> None:
    wire = Wire(as_the_daemon)
    wire.write(*LEGACY_CONVERSATION[:3])
    assert wire.collect() == []
    wire.session.alone()
    assert [body["id"] for body in wire.collect()] == [0, 1]


def test_a_daemon_that_is_not_ready_is_told_everything_and_the_client_does_not_wait_for_it() -> None:
    wire = Wire(as_the_daemon)
    wire.connect(ready=False)
    wire.write(*LEGACY_CONVERSATION[:4])
    assert [body["id"] for body in wire.collect()] == [0, 1]
    assert wire.run()
    assert wire.server.methods() == ["initialize", "notifications/initialized", "tools/list", "tools/call"]
    assert [body["id"] for body in wire.client if "id" in body] == [0, 1, "1"]
    assert wire.client[-1]["result"]["content"][0]["text"] == "alpha", "it has shaken hands, so it serves the call"


def test_once_a_daemon_has_spoken_its_answers_are_passed_on() -> None:
    wire = starting(otherwise)
    wire.write(*LEGACY_CONVERSATION[:2])
    wire.connect()
    assert wire.run()
    wire.collect()
    wire.write(request(1, "tools/list"))
    assert wire.run()
    assert wire.client[-1]["result"] == TOOLS


def test_the_same_answer_of_the_daemon_is_not_passed_on_and_announces_nothing() -> None:
    wire = starting()
    wire.write(*LEGACY_CONVERSATION[:3])
    wire.collect()
    wire.connect()
    assert wire.run()
    assert wire.collect() == []
    assert [asked[0] for asked, _ in wire.session.learned] == ["initialize", "tools/list"]


def test_another_list_than_was_told_is_announced_once_and_learned() -> None:
    wire = starting(otherwise)
    wire.write(*LEGACY_CONVERSATION[:3])
    wire.client.clear()
    wire.collect()
    wire.client.clear()
    wire.connect()
    assert wire.run()
    assert wire.client == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
    assert (("tools/list", "legacy", "2025-11-25"), {"result": TOOLS}) in wire.session.learned
    wire.session.lost(1.0)
    wire.connect()
    assert wire.run()
    assert len(wire.client) == 1


def test_another_handshake_than_was_told_announces_every_list() -> None:
    wire = starting(lambda asked: {"result": {"instructions": "of another version"}})
    wire.write(*LEGACY_CONVERSATION[:2])
    wire.collect()
    wire.client.clear()
    wire.connect()
    assert wire.run()
    assert [body["method"] for body in wire.client] == [
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
    ]


def test_a_change_is_not_announced_before_the_client_said_that_it_is_initialized() -> None:
    wire = starting(otherwise)
    wire.write(LEGACY_CONVERSATION[0], LEGACY_CONVERSATION[2])
    wire.collect()
    wire.connect()
    assert wire.run()
    assert wire.collect() == []
    wire.write(LEGACY_CONVERSATION[1])
    assert [body["method"] for body in wire.collect()] == ["notifications/tools/list_changed"]


def test_in_the_modern_era_a_change_is_announced_on_the_stream_that_asked_for_it() -> None:
    wire = starting(otherwise)
    wire.write(MODERN_CONVERSATION[1])
    assert wire.collect()[0]["result"] == {"tools": []}
    wire.connect()
    assert wire.run()
    assert wire.collect() == []
    deaf = request("d", "subscriptions/listen", {"notifications": {"promptsListChanged": True}, "_meta": MODERN})
    wire.write(deaf, MODERN_CONVERSATION[0])
    wire.client.clear()
    assert wire.run()
    announced = [body for body in wire.client if body["method"].endswith("list_changed")]
    meta = {"io.modelcontextprotocol/subscriptionId": "l"}
    assert announced == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}]


@pytest.mark.parametrize(
    "before",
    [
        [request(1, "tools/list")],
        [LEGACY_CONVERSATION[0], request(1, "tools/list", {"cursor": "2"})],
        [LEGACY_CONVERSATION[0], request(1, "tools/list", {"_meta": MODERN})],
        [MODERN_CONVERSATION[1] | {"id": 0}, request(1, "initialize", {"protocolVersion": "2025-11-25"})],
        [MODERN_CONVERSATION[1] | {"id": 0}, request(1, "tools/list")],
        [LEGACY_CONVERSATION[0], request(1, "resources/read", {"uri": "holdfast://briefing"})],
        [LEGACY_CONVERSATION[0], request(1, "tools/list") | {"params": {"_meta": {"x": 1}, "limit": 1}}],
        [request(1, "initialize", {"protocolVersion": 7})],
    ],
    ids=[
        "no-handshake",
        "next-page",
        "other-era",
        "handshake-in-the-modern-era",
        "no-envelope",
        "state",
        "more-parameters",
        "no-version",
    ],
)
def test_what_only_a_daemon_can_answer_waits_for_it(before: list[Json]) -> None:
    wire = starting()
    wire.write(*before)
    assert 1 not in [body["id"] for body in wire.collect()]
    assert wire.session.open_calls == 1


def test_a_client_that_asks_for_the_other_era_without_its_envelope_is_told_there_is_none() -> None:
    error = {"code": -32601, "message": "Method not found", "data": "server/discover"}
    wire = starting(
        lambda asked: {"error": error} if asked == ("server/discover", "legacy", "") else as_the_daemon(asked)
    )
    wire.write(request("d", "server/discover"), *LEGACY_CONVERSATION[:2])
    assert [body.get("error") for body in wire.collect()] == [error, None]
    wire.connect()
    assert wire.run()
    assert wire.server.methods() == ["initialize", "notifications/initialized"]


def test_an_error_is_not_kept_for_the_next_relay() -> None:
    wire = Wire(as_the_daemon)
    wire.connect()
    wire.write(*LEGACY_CONVERSATION[:2])
    assert wire.run()
    wire.write(request(1, "tools/list"))
    wire.session.to_daemon.clear()
    wire.say({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "the disk is full"}})
    assert [asked[0] for asked, _ in wire.session.learned] == ["initialize"]


def test_which_resources_there_are_is_never_kept_because_it_tells_of_thoughts() -> None:
    wire = starting(
        lambda asked: {"result": {"resources": []}} if asked[0] == "resources/list" else as_the_daemon(asked)
    )
    wire.write(*LEGACY_CONVERSATION[:2], request(1, "resources/list"))
    assert [body["id"] for body in wire.collect()] == [0, 1]
    wire.client.clear()
    wire.connect()
    assert wire.run()
    assert [body["method"] for body in wire.client] == ["notifications/resources/list_changed"]
    wire.write(request(2, "resources/list"))
    assert wire.run()
    assert "resources/list" not in [asked[0] for asked, _ in wire.session.learned]


def test_a_daemon_that_was_stopped_is_not_stood_in_for() -> None:
    wire = starting()
    wire.write(*LEGACY_CONVERSATION[:2])
    wire.collect()
    wire.session.give_up("Holdfast was stopped.")
    wire.write(request(1, "tools/list"))
    assert wire.collect() == []


def test_alone_a_client_of_the_modern_era_is_told_that_it_will_hear_of_changes() -> None:
    """Claude Code asks for its tools only after that."""
    wire = starting(otherwise)
    wanted = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["holdfast://a"]}
    wire.write(request("l", "subscriptions/listen", {"notifications": wanted, "_meta": MODERN}), MODERN_CONVERSATION[1])
    acknowledged, listed = wire.collect()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    meta = {"io.modelcontextprotocol/subscriptionId": "l"}
    honored = {"toolsListChanged": True, "resourceSubscriptions": ["holdfast://a"]}
    assert acknowledged["params"] == {"_meta": meta, "notifications": honored}
    assert listed["id"] == 1
    wire.client.clear()
    wire.connect()
    assert wire.run()
    assert wire.server.methods() == ["tools/list", "subscriptions/listen"], "the daemon is told to listen as well"
    assert [body["method"] for body in wire.client] == ["notifications/tools/list_changed"], "and acknowledged once"


@pytest.mark.parametrize("wanted", [None, [], {"somethingNew": True}, {"resourceSubscriptions": "holdfast://a"}])
def test_what_a_relay_does_not_know_how_to_acknowledge_waits_for_the_daemon(wanted: Any) -> None:
    wire = starting()
    wire.write(request("l", "subscriptions/listen", {"notifications": wanted, "_meta": MODERN}))
    assert wire.collect() == []
