"""Two copies of one transcript become one: nothing lost, nothing twice, the order of both kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agents.claude.open_elsewhere import opened_by
from holdfast.agents.claude.transcripts.files import TranscriptFiles, read_sidecar, sidecar_of
from holdfast.agents.claude.transcripts.merge import Line, lines_in, lines_of, merge, one_branch

SESSION = "11111111-1111-4111-8111-111111111111"


def lines(names: str, **more: Any) -> list[Line]:
    return lines_of([{"type": "user", "uuid": name, **more} for name in names])


def names(merged: list[Line]) -> str:
    return "".join(line.key.removeprefix("uuid ") for line in merged)


def text(merged: list[Line]) -> str:
    return "".join(f"{line.text}\n" for line in merged)


@pytest.mark.parametrize(
    ("mirror", "local", "merged"),
    [
        ("", "", ""),
        ("ab", "", "ab"),
        ("", "ab", "ab"),
        ("abc", "abc", "abc"),
        ("abcd", "ab", "abcd"),
        ("ab", "abcd", "abcd"),
        ("ac", "abc", "abc"),
        ("abce", "abde", "abcde"),
        ("ba", "ab", "ba"),
    ],
)
def test_whichever_copy_is_ahead_the_other_catches_up(mirror: str, local: str, merged: str) -> None:
    assert names(merge(lines(mirror), lines(local))) == merged


def test_where_both_went_on_the_earlier_continuation_comes_first() -> None:
    early, late = lines("xy", timestamp="2026-01-01T00:00:00Z"), lines("pq", timestamp="2026-01-02T00:00:00Z")
    assert names(merge(lines("a") + late, lines("a") + early)) == "axypq"
    assert names(merge(lines("a") + early, lines("a") + late)) == "axypq"


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans())))
def test_no_line_is_lost_or_doubled_and_both_orders_are_kept(history: list[tuple[int, bool, bool]]) -> None:
    whole = lines_of(
        {"type": "user", "uuid": str(number)} if kind else {"type": "mode"}
        for number, (kind, _, _) in enumerate(history)
    )
    mirror = [line for line, (_, kept, _) in zip(whole, history, strict=True) if kept]
    local = [line for line, (_, _, kept) in zip(whole, history, strict=True) if kept]
    merged = [line.key for line in merge(mirror, local)]
    assert sorted(merged) == sorted({line.key for line in [*mirror, *local]})
    for copy in (mirror, local):
        kept = {line.key for line in copy}
        assert [key for key in merged if key in kept] == [line.key for line in copy]


def test_lines_without_a_uuid_are_told_apart_by_how_often_they_came() -> None:
    once, twice = lines_of([{"type": "mode"}]), lines_of([{"type": "mode"}, {"type": "mode"}])
    assert len(merge(once, twice)) == len(merge(twice, once)) == 2


def test_an_end_that_was_cut_off_is_no_line_and_a_strange_line_stays() -> None:
    found = lines_in('{"type":"user","uuid":"a"}\nnot json\n{"type":"us')
    assert [line.text for line in found] == ['{"type":"user","uuid":"a"}', "not json"]
    assert [line.is_stored for line in found] == [True, False]


def test_what_the_agent_keeps_to_itself_does_not_go_to_the_store() -> None:
    own, said = lines_of([{"type": "api-request"}, {"type": "assistant", "uuid": "a"}])
    assert (own.is_stored, said.is_stored) == (False, True)


def test_a_file_that_is_behind_is_appended_to_and_one_that_was_cut_off_is_mended(tmp_path: Path) -> None:
    files = TranscriptFiles(tmp_path)
    path = files.main_file("-p", SESSION)
    files.write("-p", SESSION, "", lines("ab"))
    inode = path.stat().st_ino
    files.write("-p", SESSION, "", lines("abc"))
    assert (path.read_text(), path.stat().st_ino) == (text(lines("abc")), inode)
    assert path.stat().st_mode & 0o077 == 0

    path.write_text(text(lines("ab")) + '{"type":"user","uu')
    whole = merge(lines("abc"), files.read(SESSION)[""])
    files.write("-p", SESSION, "", whole)
    assert path.read_text() == text(lines("abc"))
    assert [child.name for child in path.parent.iterdir()] == [path.name]


def test_a_subagents_transcript_comes_with_what_is_known_of_it(tmp_path: Path) -> None:
    files = TranscriptFiles(tmp_path)
    files.write("-p", SESSION, "", lines("m"))
    told = lines_of([{"type": "agent_metadata", "agentType": "explore"}])
    files.write("-p", SESSION, "subagents/agent-1", lines("ab") + told)
    folder = tmp_path / "projects" / "-p" / SESSION / "subagents"
    assert json.loads((folder / "agent-1.meta.json").read_text()) == {"agentType": "explore"}
    assert (folder / "agent-1.jsonl").read_text() == text(lines("ab"))
    assert [line.entry for line in files.read(SESSION)["subagents/agent-1"]] == [
        line.entry for line in lines("ab") + told
    ]
    files.delete(SESSION)
    assert not files.known(SESSION)
    assert list((tmp_path / "projects" / "-p").iterdir()) == []


@pytest.mark.parametrize("subpath", ["../x", "/etc/x", "a/../../x", "a\\b", "a\0b"])
def test_a_subpath_from_the_store_never_leads_out_of_the_session(tmp_path: Path, subpath: str) -> None:
    with pytest.raises(ValueError, match="leads out"):
        TranscriptFiles(tmp_path).write("-p", SESSION, subpath, lines("a"))
    assert list(tmp_path.rglob("*.jsonl")) == []


def chain(described: str) -> list[Line]:
    """Lines such as "b<a": a prompt b with a as its parent; upper case answers a tool."""
    entries = []
    for name, _, parent in (one.partition("<") for one in described.split()):
        content = [{"type": "tool_result", "tool_use_id": "t"}] if name.isupper() else "words"
        entries.append({"type": "user", "uuid": name, "parentUuid": parent or None, "message": {"content": content}})
    return lines_of(entries)


@pytest.mark.parametrize(
    ("local", "stored", "in_one"),
    [
        ("a b<a c<b", "abc", "a b<a c<b"),
        ("a b<a c<b d<c", "ab", "a b<a c<b d<c"),
        ("a b<a x<a y<x", "ab", "a b<a x<b y<x"),
        ("a x<a b<a y<x c<b", "abc", "a b<a c<b x<c y<x"),
        ("a b<a X<b y<X z<y C<b d<C", "abCd", "a b<a C<b d<C X<b y<d z<y"),
        ("a b<a x<a y<b", "ab", "a b<a x<b y<x"),
        ("a b<a x", "ab", "a b<a x"),
        ("x y<x", "", "x y<x"),
    ],
    ids=["all known", "went on", "beside", "mixed", "within a turn", "twice beside", "a new beginning", "none known"],
)
def test_what_another_process_added_beside_the_stored_turns_comes_behind_them(
    local: str, stored: str, in_one: str
) -> None:
    known = {f"uuid {name}" for name in stored}
    assert text(one_branch(chain(local), known)) == text(chain(in_one))


@pytest.mark.parametrize(
    ("arguments", "opened"),
    [
        (["claude", "--resume", SESSION], True),
        (["claude", "-r", SESSION], True),
        (["claude", f"--session-id={SESSION}"], True),
        (["vim", f"{SESSION}.jsonl"], False),
        (["python", "-I", "/lib/guard_process.py", "claude", f"--resume={SESSION}"], False),
        (["claude", "--resume", SESSION[:-1] + "2"], False),
    ],
)
def test_a_session_that_is_open_by_hand_is_noticed(tmp_path: Path, arguments: list[str], opened: bool) -> None:
    entry = tmp_path / "99999999"
    entry.mkdir()
    (entry / "cmdline").write_bytes(b"\0".join(part.encode() for part in arguments) + b"\0")
    (tmp_path / "99999998").mkdir()
    assert opened_by(SESSION, processes=tmp_path) == (99999999 if opened else None)


def test_a_session_in_claude_codes_own_list_counts_while_its_process_runs(tmp_path: Path) -> None:
    listed = tmp_path / "sessions"
    listed.mkdir()
    parent = os.getppid()
    (listed / "1.json").write_text("[]")
    (listed / "2.json").write_text(json.dumps({"pid": parent, "sessionId": SESSION, "procStart": "of another one"}))
    assert opened_by(SESSION, tmp_path, processes=tmp_path) is None
    (listed / "3.json").write_text(json.dumps({"pid": parent, "sessionId": SESSION}))
    assert opened_by(SESSION, tmp_path, processes=tmp_path) == parent
    assert opened_by(SESSION, tmp_path, own=parent, processes=tmp_path) is None


def test_of_the_sessions_in_claude_codes_own_list_only_the_one_asked_for_counts(tmp_path: Path) -> None:
    listed = tmp_path / "sessions"
    listed.mkdir()
    parent = os.getppid()
    (listed / "1.json").write_text(f'{{"pid": {parent}, "sessionId": "{SESSION}", cut off')
    (listed / "2.json").write_text(json.dumps({"pid": parent, "sessionId": SESSION[:-1] + "2", "cwd": f"/{SESSION}"}))
    os.mkfifo(listed / "3.json")
    assert opened_by(SESSION, tmp_path, processes=tmp_path) is None


def test_a_pipe_beside_a_transcript_keeps_nobody_waiting(tmp_path: Path) -> None:
    path = tmp_path / "agent-1.jsonl"
    os.mkfifo(sidecar_of(path))
    assert read_sidecar(path) is None
