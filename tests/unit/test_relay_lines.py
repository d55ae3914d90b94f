"""Lines: the splitter holds no more than it may, and each line that cannot be served is answered by its id."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.relay.ends import members
from holdfast.relay.lines import (
    INVALID_REQUEST,
    MAX_BATCH_ERRORS,
    MAX_LINE,
    PARSE_ERROR,
    LineSplitter,
    Message,
    Overlong,
    Unreadable,
    read_line,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("id"), inner, max_size=4),
    max_leaves=12,
)
IDS = st.integers() | st.text()


def replies(line: bytes | Overlong) -> list[dict[str, Any]]:
    outcome = read_line(line)
    assert isinstance(outcome, Unreadable)
    return [json.loads(reply) for reply in outcome.replies]


def only_reply(line: bytes | Overlong) -> tuple[Any, int, str]:
    (reply,) = replies(line)
    assert reply["jsonrpc"] == "2.0"
    return reply["id"], reply["error"]["code"], reply["error"]["message"]


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b""))), st.data())
def test_lines_come_out_whole_however_the_stream_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    out: list[bytes | Overlong] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        out += splitter.feed(stream[:size])
        stream = stream[size:]
    assert out == lines
    assert splitter.finish() == []


@given(st.binary(max_size=60), st.integers(1, 30), st.integers(1, 7))
def test_a_line_is_overlong_exactly_when_it_has_more_bytes_than_the_limit(data: bytes, limit: int, step: int) -> None:
    splitter = LineSplitter(limit)
    out = [line for at in range(0, len(data), step) for line in splitter.feed(data[at : at + step])]
    out += splitter.finish()
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert [line.size if isinstance(line, Overlong) else len(line) for line in out] == [len(line) for line in expected]
    assert [isinstance(line, Overlong) for line in out] == [len(line) > limit for line in expected]


def test_a_last_line_without_a_newline_is_a_line() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntwo") == [b"one"]
    assert splitter.finish() == [b"two"]
    assert splitter.finish() == []


def test_a_hundred_megabytes_without_a_newline_are_not_held() -> None:
    splitter = LineSplitter()
    piece = b"x" * 65536
    tracemalloc.start()
    try:
        assert splitter.feed(b'{"jsonrpc":"2.0","method":"tools/call","params":{"a":"') == []
        for _ in range(1600):
            assert splitter.feed(piece) == []
        (line,) = splitter.feed(b'"},"id":77}\n')
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MAX_LINE
    id, code, message = only_reply(line)
    assert (id, code) == (77, INVALID_REQUEST)
    assert str(MAX_LINE) in message
    assert splitter.feed(b"next\n") == [b"next"]


@given(IDS, VALUES, st.permutations(["jsonrpc", "id", "method", "params"]), st.booleans())
def test_the_ends_of_any_request_show_its_own_id_and_never_a_nested_one(
    id: int | str, nested: object, order: list[str], spaced: bool
) -> None:
    filler = [nested, "x" * 300, {"id": "nested"}]
    parts = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"id": "nested", "a": filler}}
    body = {name: parts[name] for name in order}
    text = json.dumps(body, ensure_ascii=False, separators=None if spaced else (",", ":")).encode()
    assert members(text, b"") == {"id": id, "method": None}
    assert members(b"", text) == {"id": id, "method": None}
    for cut in (1, 20, 100):
        seen = members(text[:cut], text[-cut:])
        assert seen.get("id", id) in (id, None)
    assert members(text[:-1], b"").get("id", id) in (id, None)


@given(IDS, VALUES)
def test_an_id_last_in_an_overlong_line_is_found(id: int | str, nested: object) -> None:
    head = json.dumps({"method": "tools/call", "params": {"id": "nested", "a": [nested, {"id": 1}]}}).encode()
    line = head[:-1] + b',"jsonrpc":"2.0","id":' + json.dumps(id).encode() + b"}"
    tail_start = line.rindex(b',"jsonrpc"') - 1
    assert members(line[:5], line[tail_start:]).get("id") == id


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (b'{"jsonrpc":"2.0","id":4,"result":{"a":"xxx', b'xxx"}}'),
        (b'{"id":"x","jsonrpc":"2.0","error":{"code":1,"message":"xxx', b'xxx"}}'),
        (b'{"result":{"a":"xxx', b'xxx"},"jsonrpc":"2.0","id":4}'),
    ],
)
def test_an_overlong_response_is_dropped(head: bytes, tail: bytes) -> None:
    assert replies(Overlong(head, tail, MAX_LINE + 1)) == []


@given(VALUES, IDS)
def test_a_readable_request_is_read_as_sent(params: object, id: int | str) -> None:
    body = {"jsonrpc": "2.0", "id": id, "method": "m", "params": {"v": params}}
    line = json.dumps(body).encode()
    message = read_line(line + b"\r")
    assert isinstance(message, Message)
    assert message.line == line
    assert message.body == body
    assert type(message.id) is type(id)


@given(st.binary(max_size=200))
def test_no_bytes_at_all_break_the_reader(line: bytes) -> None:
    outcome = read_line(line.replace(b"\n", b""))
    if isinstance(outcome, Unreadable):
        for reply in outcome.replies:
            assert json.loads(reply)["error"]["code"] in (PARSE_ERROR, INVALID_REQUEST)


DEEP = b"[" * 101 + b"]" * 101
ABYSS = b"[" * 100_000 + b"]" * 100_000

BROKEN = {
    "not JSON": (b"hello", None, PARSE_ERROR),
    "a word after the id": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{oops}}', 7, PARSE_ERROR),
    "the id after the fault": (
        b'{"method":"m","params":{"a":NaN},"jsonrpc":"2.0","id":"z"}',
        "z",
        PARSE_ERROR,
    ),
    "Infinity": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":-Infinity}}', 7, PARSE_ERROR),
    "a number no double holds": (
        b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1e999}}',
        7,
        PARSE_ERROR,
    ),
    "a number too long": (
        b'{"jsonrpc":"2.0","id":7,"method":"m","params":[' + b"9" * 5000 + b"]}",
        7,
        PARSE_ERROR,
    ),
    "invalid UTF-8": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"\xff"}}', 7, PARSE_ERROR),
    "a lone surrogate": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"\\ud800"}}', 7, PARSE_ERROR),
    "a lone surrogate as name": (
        b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"\\uDFFF":1}}',
        7,
        PARSE_ERROR,
    ),
    "a lone surrogate as id": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}', None, PARSE_ERROR),
    "a NUL outside strings": (b'{"jsonrpc":"2.0","id":7,\x00"method":"m"}', 7, PARSE_ERROR),
    "a NUL in a string": (b'{"jsonrpc":"2.0","id":7,"method":"m\x00"}', 7, PARSE_ERROR),
    "101 levels": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":' + DEEP + b"}}", 7, PARSE_ERROR),
    "100,000 levels": (b'{"method":"m","params":{"a":' + ABYSS + b'},"id":7}', 7, PARSE_ERROR),
    "a nested id only": (b'{"jsonrpc":"2.0","params":{"id":9,"a":}', None, PARSE_ERROR),
    "an id in a string": (b'{"jsonrpc":"2.0","params":"\\"id\\":9,",', None, PARSE_ERROR),
    "a bare number": (b"5", None, INVALID_REQUEST),
    "no jsonrpc": (b'{"id":7,"method":"m"}', 7, INVALID_REQUEST),
    "jsonrpc 1.0": (b'{"jsonrpc":"1.0","id":7,"method":"m"}', 7, INVALID_REQUEST),
    "null as id": (b'{"jsonrpc":"2.0","id":null,"method":"m"}', None, INVALID_REQUEST),
    "true as id": (b'{"jsonrpc":"2.0","id":true,"method":"m"}', None, INVALID_REQUEST),
    "a fraction as id": (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', 1.5, INVALID_REQUEST),
    "an object as id": (b'{"jsonrpc":"2.0","id":{},"method":"m"}', None, INVALID_REQUEST),
    "a number as method": (b'{"jsonrpc":"2.0","id":7,"method":4}', 7, INVALID_REQUEST),
    "a list as params": (b'{"jsonrpc":"2.0","id":7,"method":"m","params":[]}', 7, INVALID_REQUEST),
    "neither request nor response": (b'{"jsonrpc":"2.0","id":7}', 7, INVALID_REQUEST),
    "an empty batch": (b"[]", None, INVALID_REQUEST),
    "a batch of nothing": (b'[1,{"jsonrpc":"2.0","method":"n"}]', None, INVALID_REQUEST),
}


@pytest.mark.parametrize(("line", "id", "code"), BROKEN.values(), ids=BROKEN.keys())
def test_a_line_no_server_would_answer_is_answered_with_its_own_id(line: bytes, id: Any, code: int) -> None:
    answered, with_code, message = only_reply(line)
    assert (type(answered), answered) == (type(id), id)
    assert with_code == code
    assert message.endswith(".")


def test_exactly_a_hundred_levels_are_read() -> None:
    inner = b"[" * 98 + b"]" * 98
    assert isinstance(read_line(b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":' + inner + b"}}"), Message)


def test_each_request_of_a_batch_is_answered() -> None:
    requests: list[dict[str, Any]] = [{"id": 1, "method": "a"}, {"method": "n"}, {"id": "1", "method": "b"}]
    batch = json.dumps([{"jsonrpc": "2.0", **body} for body in requests]).encode()
    assert [reply["id"] for reply in replies(batch)] == [1, "1"]


def test_a_huge_batch_gets_a_bounded_number_of_answers() -> None:
    batch = json.dumps([{"id": id, "method": "m"} for id in range(MAX_BATCH_ERRORS + 5)]).encode()
    assert len(replies(batch)) == MAX_BATCH_ERRORS


@pytest.mark.parametrize("line", [b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud800"}}', b'{"id":1,"error":{}}'])
def test_a_response_that_cannot_be_read_is_not_answered(line: bytes) -> None:
    assert replies(line) == []


@pytest.mark.parametrize("line", [b"", b"  ", b"\r"])
def test_a_blank_line_is_nothing(line: bytes) -> None:
    assert read_line(line) is None


@pytest.mark.parametrize("text", [r'"\ud83d\ude00"', '"😀"', r'"\\ud800"'])
def test_whole_characters_outside_the_basic_plane_are_read(text: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{text}}}}}'.encode()
    assert isinstance(read_line(line), Message)
