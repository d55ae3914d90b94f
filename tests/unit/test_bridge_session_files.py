"""Session and state files, whatever is in their place: nothing crashes, and nothing is believed that is not said."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bridge.model import MAX_ID, MAX_TASK_FIELD, Work
from holdfast.bridge.session_files import (
    MAX_BYTES,
    SessionFile,
    read_small,
    session_in,
    state_in,
)

SESSION = {
    "id": "0b0e-1",
    "started_at": "2026-03-30T01:15:00.123456",
    "chat_id": "-100200",
    "project": "homelab",
}
STATE = {
    "session_id": "abc-123",
    "current_task": "Fix nexus.mg DNS record",
    "current_task_id": "msg-456",
    "last_completed_step": 2,
    "pending_messages": ["msg-789"],
    "updated_at": "2026-03-30T01:15:00Z",
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*SESSION, *STATE])


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("name", ["id", "session_id"])
def test_the_session_is_found_under_both_spellings(name: str) -> None:
    said = {name: "0b0e-1", **{key: value for key, value in SESSION.items() if key != "id"}}
    expected = SessionFile("0b0e-1", "2026-03-30T01:15:00.123456", "-100200", "homelab")
    assert session_in(encoded(said)) == expected


def test_a_chat_is_the_same_as_a_number_and_as_text() -> None:
    assert session_in(encoded({**SESSION, "chat_id": -100200})) == session_in(encoded(SESSION))


def test_the_seeds_state_file_is_read() -> None:
    assert state_in(encoded(STATE)) == Work("Fix nexus.mg DNS record", "abc-123", "msg-456", "2", ("msg-789",))


def test_a_file_cut_off_anywhere_says_nothing() -> None:
    assert {session_in(encoded(SESSION)[:cut]) for cut in range(len(encoded(SESSION)))} == {None}
    assert {state_in(encoded(STATE)[:cut]) for cut in range(len(encoded(STATE)))} == {None}


@pytest.mark.parametrize(
    "unfit",
    ["", " ", "a b", "a\nb", "a\0b", "\ud800", "x" * (MAX_ID + 1), None, True, 7, [], {}],
    ids=repr,
)
def test_what_cannot_be_an_id_is_none(unfit: object) -> None:
    assert session_in(encoded({"id": unfit})) is None


@pytest.mark.parametrize("unfit", [None, "", "  \n", 3, ["x"], {"a": 1}], ids=repr)
def test_a_state_without_a_task_says_nothing(unfit: object) -> None:
    assert state_in(encoded({**STATE, "current_task": unfit})) is None


def test_a_task_is_cut_at_its_limit_and_loses_what_no_store_takes() -> None:
    found = state_in(encoded({"current_task": "a\0\ud800" + "x" * 5_000}))
    assert found is not None
    assert found.current_task.startswith("a  xxx")
    assert len(found.current_task) == MAX_TASK_FIELD


@given(content=st.binary(max_size=300))
def test_no_bytes_are_mistaken_for_a_session_or_a_task(content: bytes) -> None:
    assert session_in(content) is None or b"id" in content
    assert state_in(content) is None or b"current_task" in content


@given(members=st.dictionaries(NAMES, JSON, max_size=6))
def test_whatever_stands_in_the_fields_what_is_read_can_be_stored(members: dict[str, object]) -> None:
    content = json.dumps(members).encode()
    session, state = session_in(content), state_in(content)
    texts = [] if session is None else [session.id, session.started_at, session.chat_id, session.project]
    if state is not None:
        texts += [state.current_task, state.session_id, state.current_task_id, state.last_completed_step]
        texts += state.pending_messages
    for text in filter(None, texts):
        assert text.encode()
        assert "\0" not in text
        assert len(text) <= MAX_TASK_FIELD


@given(cut=st.integers(0, len(encoded(SESSION))), noise=st.binary(max_size=40))
def test_half_of_one_version_and_half_of_another_is_no_other_session(cut: int, noise: bytes) -> None:
    found = session_in(encoded(SESSION)[:cut] + noise)
    assert found is None or found.id == "0b0e-1"


@pytest.mark.parametrize("depth", [1_000, 30_000])
def test_a_deep_document_is_no_session(depth: int) -> None:
    assert session_in(b"[" * depth) is None
    assert state_in(b'{"current_task":' * (depth // 16)) is None


def test_a_number_of_a_million_digits_is_no_step() -> None:
    content = b'{"current_task": "x", "last_completed_step": ' + b"9" * 60_000 + b"}"
    assert state_in(content) is None or state_in(content) == Work("x")


def test_a_file_is_read_whole_with_the_time_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(b"x" * MAX_BYTES)
    os.utime(path, ns=(0, 1_767_312_000_123_456_789))
    found = read_small(path)
    assert found is not None
    assert (len(found.content), found.at) == (MAX_BYTES, 1_767_312_000_123)


def test_a_huge_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "session"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    assert read_small(path) is None


def test_what_is_no_file_says_nothing_and_holds_nobody_up(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_bytes(encoded(SESSION))
    link, dangling, pipe, folder = (tmp_path / name for name in ("link", "dangling", "pipe", "folder"))
    link.symlink_to(there)
    dangling.symlink_to(tmp_path / "nowhere")
    os.mkfifo(pipe)
    folder.mkdir()
    unreadable = [link, dangling, pipe, folder, tmp_path / "missing", there / "below a file", Path(os.devnull)]
    before = os.listdir("/dev/fd")
    assert [read_small(path) for path in unreadable] == [None] * len(unreadable)
    assert os.listdir("/dev/fd") == before


def test_a_file_that_may_not_be_read_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    assert read_small(tmp_path / "session") is None


@given(content=st.binary(max_size=200), replaced=st.sampled_from(["file", "link", "pipe", "folder", "gone"]))
def test_whatever_takes_the_place_of_a_file_reading_it_never_fails(content: bytes, replaced: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "session")
        path.write_bytes(content)
        assert read_small(path) is not None
        if replaced != "file":
            path.unlink()
        if replaced == "link":
            path.symlink_to(directory)
        elif replaced == "pipe":
            os.mkfifo(path)
        elif replaced == "folder":
            path.mkdir()
        assert (read_small(path) is not None) == (replaced == "file")
