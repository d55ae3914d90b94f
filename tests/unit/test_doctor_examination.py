"""Checks are run_check at the same time; whatever becomes of one, the others are told, in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import Settings
from holdfast.doctor import examination
from holdfast.doctor.chain import STAGES
from holdfast.doctor.examination import ChainCheck, examine, repaired
from holdfast.doctor.findings import Finding, Mark, fault, note, ok
from holdfast.doctor.surroundings import Surroundings
from holdfast.errors import HoldfastError, NoDaemon


def nobody(name: str, args: dict[str, Any]) -> dict[str, Any]:
    """No daemon."""
    raise NoDaemon("No daemon is running.")


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    """A home in which nothing is."""
    return Surroundings(Settings(home=tmp_path / "home"), {"HOME": str(tmp_path)}, tmp_path, nobody)


def test_findings_come_in_the_order_of_the_links_with_their_names(around: Surroundings) -> None:
    second_began = threading.Event()

    def first(around: Surroundings) -> Iterator[Finding]:
        assert second_began.wait(60)  # at the same time: it could not end before the second began
        yield ok("one")

    def second(around: Surroundings) -> Iterator[Finding]:
        second_began.set()
        yield ok("two")
        yield note("three")

    found = examine([ChainCheck("a", first), ChainCheck("b", second), ChainCheck("c", lambda around: [])], around)
    assert [(one.link, one.text) for one in found] == [("a", "one"), ("b", "two"), ("b", "three")]


def test_a_check_that_fails_is_a_fault_with_its_reason(around: Surroundings) -> None:
    def ours(around: Surroundings) -> Iterator[Finding]:
        raise HoldfastError("It is broken.", recovery="Mend it.")

    def theirs(around: Surroundings) -> Iterator[Finding]:
        yield ok(Path("/gone/away").read_text())

    def nobodys(around: Surroundings) -> Iterator[Finding]:
        yield ok(str([][1]))

    found = examine(
        [
            ChainCheck("a", ours),
            ChainCheck("b", theirs),
            ChainCheck("c", nobodys),
            ChainCheck("d", lambda a: [ok("fine")]),
        ],
        around,
    )
    assert [one.mark for one in found] == [Mark.FAULT, Mark.FAULT, Mark.FAULT, Mark.OK]
    assert (found[0].text, found[0].repair) == ("It is broken.", "Mend it.")
    assert "/gone/away" in found[1].text
    assert "IndexError" in found[2].text


def test_a_check_that_hangs_is_cut_off(around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "EXTRA_SECONDS", 0.0)
    released = threading.Event()

    def hanging(around: Surroundings) -> Iterator[Finding]:
        released.wait()
        yield ok("too late")

    try:
        (found,) = examine([ChainCheck("a", hanging)], replace(around, timeout=0.2))
    finally:
        released.set()
    assert found.mark is Mark.FAULT and "did not finish" in found.text


def test_repairs_are_told_and_one_that_fails_keeps_none_from_the_others() -> None:
    def refuse() -> str:
        raise PermissionError(1, "Operation not permitted")

    findings = [fault("x", "do it", refuse), ok("y"), replace(fault("z", "do it", lambda: "done"), link="z")]
    done = repaired(findings)
    assert [(one.mark, one.repair) for one in done] == [(Mark.FAULT, "do it"), (Mark.OK, None)]
    assert done[1].text == "done" and done[1].link == "z"


def test_no_two_links_have_the_same_name() -> None:
    names = [link.name for stage in STAGES for link in stage]
    assert len(names) == len(set(names))
