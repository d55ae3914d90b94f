"""Tables fit the terminal, are whole elsewhere, and outside text in them steers nothing."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli import table
from holdfast.cli.table import BELOW, columns_of, show_table

ID = "3f2a91c0-5d1e-4a6b-9c77-0f1e2d3c4b5a"
MESSAGES = [
    ("STATE", "ID", "SENT", "FROM", "TEXT"),
    ("in progress, urgent", ID, "2026-11-18 04:00", "somebody with a long name", "Fix the DNS record of the homelab"),
]
TARGETS = [
    ("TARGET", "PENDING", "IN PROGRESS", "DEAD", "HELD", "LAST SEEN", "SESSION", "TASK"),
    ("homelab", "12", "1", "0", "0", "2026-11-18 04:00", ID, "The DNS record, which is wrong since Monday"),
]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "screen_width", lambda: 80)


def _printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("rows", [MESSAGES, TARGETS], ids=["messages", "targets"])
@pytest.mark.usefixtures("terminal")
def test_a_table_fits_eighty_columns(rows: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]) -> None:
    show_table(rows, whole=("ID", "SENT", "TARGET", "LAST SEEN"))
    lines = _printed(capsys)
    assert max(map(columns_of, lines)) <= 80
    assert rows[1][-1][:20] in "\n".join(lines), "the text is there, beside its row or below it"


@pytest.mark.usefixtures("terminal")
def test_what_is_to_be_copied_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(MESSAGES, whole=("ID", "SENT"))
    lines = _printed(capsys)
    assert ID in lines[1] and lines[2] == f"{BELOW}Fix the DNS record of the homelab"


def test_without_a_terminal_nothing_is_cut_or_coloured(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(MESSAGES)
    lines = _printed(capsys)
    assert len(lines) == 2 and all(cell in lines[1] for cell in MESSAGES[1]) and "\x1b" not in "".join(lines)


def test_colours_are_for_terminals_and_not_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    assert table.coloured("x", table.BOLD) == "x"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert table.coloured("x", table.BOLD) == "\x1b[1mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert table.coloured("x", table.BOLD) == "x"


def test_outside_text_cannot_steer_the_terminal_nor_add_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "evil\x1b[2J\r\nFORGED  row"
    show_table([("A", "B"), (evil, evil)], below=[[evil]])
    lines = _printed(capsys)
    assert len(lines) == 3 and "\x1b" not in "".join(lines) and "\\u001b" in lines[1]


@given(st.lists(st.integers(0, 120), min_size=1, max_size=8), st.integers(20, 200), st.data())
def test_columns_always_have_a_width_and_fit_where_they_can(widths: list[int], room: int, data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=len(widths), max_size=len(widths)))
    fitted = table._fitting(widths, room, keep)
    assert len(fitted) in (len(widths), len(widths) - 1)
    assert all(new == old for new, old, kept in zip(fitted[:-1], widths, keep, strict=False) if kept)
    if sum(widths) + 2 * (len(widths) - 1) <= room:
        assert fitted == widths
