"""A transcript is read from where reading ended, whole lines only, and nothing in the file can break that."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts import Transcript

from holdfast.agents.claude.transcripts import reader as reading
from holdfast.agents.claude.transcripts.entries import Entry
from holdfast.agents.claude.transcripts.reader import first_cwd, read_new
from holdfast.agents.transcript_position import Position


class Reader:
    """Reads one file again and again, and keeps what it was handed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = Position()
        self.seen: list[Entry] = []
        self.restarts = 0

    def read(self) -> bool:
        """Read what is new; whether there is a file."""

        def restart() -> None:
            self.seen.clear()
            self.restarts += 1

        found = read_new(self.path, self.position, self.seen.append, restart=restart)
        if found is not None:
            self.position = Position.parse(str(found.position))
        return found is not None

    @property
    def numbers(self) -> list[int]:
        return [entry["n"] for entry in self.seen]


def lines(*numbers: int, pad: int = 0) -> bytes:
    return b"".join(json.dumps({"n": number, "pad": "x" * pad}).encode() + b"\n" for number in numbers)


def test_each_line_is_handed_over_once(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "t.jsonl")
    assert not reader.read()
    for number in range(5):
        with reader.path.open("ab") as file:
            file.write(lines(number))
        reader.read()
        reader.read()
    assert (reader.numbers, reader.restarts) == ([0, 1, 2, 3, 4], 1)


def test_a_line_that_is_still_being_written_waits_for_its_end(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "t.jsonl")
    whole = lines(1, 2)
    reader.path.write_bytes(whole[:-5])
    reader.read()
    assert reader.numbers == [1]
    reader.path.write_bytes(whole)
    reader.read()
    assert (reader.numbers, reader.restarts) == ([1, 2], 1)


@pytest.mark.parametrize("after", [lines(7), lines(7, 8, 9, 10, 11), lines(1, 2, 9), b""])
def test_a_file_that_was_replaced_or_shrank_is_read_anew(tmp_path: Path, after: bytes) -> None:
    reader = Reader(tmp_path / "t.jsonl")
    reader.path.write_bytes(lines(1, 2, 3))
    reader.read()
    reader.path.write_bytes(after)
    reader.read()
    assert reader.numbers == [json.loads(line)["n"] for line in after.splitlines()]
    assert reader.restarts == 2


def test_a_copy_elsewhere_is_the_same_transcript(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "t.jsonl")
    reader.path.write_bytes(lines(1, 2))
    reader.read()
    reader.path = tmp_path / "copy.jsonl"
    reader.path.write_bytes(lines(1, 2, 3))
    reader.read()
    assert (reader.numbers, reader.restarts) == ([1, 2, 3], 1)


def test_garbage_between_lines_is_passed_over(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "t.jsonl")
    garbage = b'\n{"n": \n[1]\n"x"\n\xff\xfe\n' + b"[" * 100_000 + b"\n\0\0\n"
    reader.path.write_bytes(lines(1) + garbage + lines(2))
    reader.read()
    assert reader.numbers == [1, 2]


def test_of_a_very_large_file_the_beginning_and_the_end_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "WINDOW", 4_000)
    monkeypatch.setattr(reading, "HEAD", 1_000)
    reader = Reader(tmp_path / "t.jsonl")
    reader.path.write_bytes(lines(*range(200), pad=50))
    reader.read()
    assert reader.numbers[:3] == [0, 1, 2]
    assert reader.numbers[-3:] == [197, 198, 199]
    assert 60 < len(reader.numbers) < 90
    with reader.path.open("ab") as file:
        file.write(lines(200))
    reader.read()
    assert (reader.numbers[-1], reader.restarts) == (200, 1)


def test_a_line_that_is_too_long_is_passed_over_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE", 1_000)
    monkeypatch.setattr(reading, "PIECE", 300)
    reader = Reader(tmp_path / "t.jsonl")
    reader.path.write_bytes(lines(1) + lines(2, pad=5_000) + lines(3))
    reader.read()
    assert reader.numbers == [1, 3]


@pytest.mark.timeout(30)
def test_nothing_but_a_regular_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("pipe", "link", "endless", ".", "missing", "nul\0"):
        assert not Reader(tmp_path / name).read(), name


def test_the_directory_in_which_a_session_began_is_found(tmp_path: Path) -> None:
    transcript = Transcript("/home/me/fence")
    transcript.ask("Mend it.")
    transcript.cwd = "/elsewhere"
    transcript.ask("And that.")
    assert first_cwd(transcript.write(tmp_path)) == "/home/me/fence"
    assert first_cwd(tmp_path / "missing") is None


@pytest.mark.parametrize("text", ["", "x", "-1/2.a.b", "9", "/", "1e3/x"])
def test_a_position_that_makes_no_sense_is_no_reason_to_fail(tmp_path: Path, text: str) -> None:
    reader = Reader(tmp_path / "t.jsonl")
    reader.path.write_bytes(lines(1))
    reader.position = Position.parse(text)
    reader.read()
    assert reader.numbers == [1]


@given(cuts=st.lists(st.integers(0, 2_000), max_size=8), piece=st.integers(1, 400))
def test_however_a_file_grows_it_is_read_as_at_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], piece: int
) -> None:
    whole = b"".join(lines(number, pad=number * 3) for number in range(40))
    reader = Reader(tmp_path_factory.mktemp("grows") / "t.jsonl")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "PIECE", piece)
        for cut in [*sorted(cuts), len(whole)]:
            reader.path.write_bytes(whole[:cut])
            reader.read()
    assert reader.numbers == list(range(40))
