"""The detector's figures: how many secrets it finds, how often it is wrong, and that its time grows with the text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.secrets import Planted, families, held_out, looked_at, planted, unseen

from holdfast.redaction import found, masked

ROOT = Path(__file__).parents[2]
KNOWN = planted("known.json")
RECALL = 0.97
FALSE_PER_THOUSAND = 1.0


def is_hidden(one: Planted) -> bool:
    return one.secret not in masked(one.text)


def recall(corpus: list[Planted]) -> float:
    return sum(map(is_hidden, corpus)) / len(corpus)


@pytest.mark.parametrize("one", KNOWN, ids=lambda one: one.kind)
def test_a_secret_of_a_known_kind_is_masked(one: Planted) -> None:
    assert is_hidden(one), masked(one.text)


@pytest.mark.parametrize("one", KNOWN, ids=lambda one: one.kind)
def test_a_secret_is_masked_in_the_middle_of_a_long_text(one: Planted) -> None:
    assert one.secret not in masked(f"We looked into it.\n{one.text}\nThen all was well, and line 12 passed.\n")


def test_of_all_kinds_of_secrets_at_least_97_of_100_are_masked() -> None:
    """The held-out kinds were written by somebody else: 0.933 at first sight, 0.967 and 0.989 after two rounds that saw
    only the names of the kinds that were missed. Each secret of a text with several counts here for itself.
    """
    others, _ = held_out()
    assert len({one.kind for one in KNOWN + others}) >= 150
    assert recall(KNOWN + others) >= RECALL
    assert recall(others) >= RECALL


def test_of_kinds_that_nobody_showed_to_the_rules_nearly_all_are_masked() -> None:
    """One hundred kinds by somebody else, 0.96 at first sight: whoever mends a rule by them must have another written.

    With as many kinds that are known they make the figure that is promised.
    """
    others, clean = unseen()
    missed = {one.kind for one in others if not is_hidden(one)}
    kinds = {one.kind for one in others}
    known = {one.kind for one in KNOWN if is_hidden(one)}
    assert len(kinds) == 100 and len(missed) <= 4, "only their number is told, so that nobody mends by name"
    assert (len(kinds - missed) + min(100, len(known))) / 200 >= RECALL
    assert sum(bool(found(line)) for line in clean) * 1_000 / len(clean) <= FALSE_PER_THOUSAND


def test_exams_that_the_rules_were_mended_with_are_passed() -> None:
    """Two exams of 100 kinds each: 0.73 and 0.87 at first sight. Each miss was followed into its family."""
    planted_here, clean = looked_at()
    assert len({one.kind for one in planted_here}) == 200
    assert recall(planted_here) >= RECALL
    alarms = [line for line in clean if found(line)]
    assert len(alarms) * 1_000 / len(clean) <= FALSE_PER_THOUSAND, alarms


def test_the_families_that_the_rules_were_made_with_are_masked() -> None:
    """Written with the rules at hand: 0.85, 0.78 and 0.80 of three lots at first sight. They prove nothing new.

    The fourth lot has siblings of what the exams missed: 0.78, 0.69, 0.69 and 0.75 of its parts at first sight; of its
    lines those are kept that are found today.
    """
    planted_here, clean = families()
    assert len({one.kind for one in planted_here}) >= 900
    assert [(one.kind, one.secret) for one in planted_here if not is_hidden(one)] == []
    assert [line for line in clean if found(line)] == []


def test_real_work_is_left_as_it_is() -> None:
    """The repository itself: sources, documentation and what was written about it."""
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/*.py"), *ROOT.glob("*.md")]
    lines = [line for file in files if "redaction" not in str(file) for line in file.read_text().splitlines()]
    lines += held_out()[1]
    alarms = [line for line in lines if found(line)]
    assert len(lines) > 20_000
    assert len(alarms) * 1_000 / len(lines) <= FALSE_PER_THOUSAND, alarms


HOSTILE = [
    "a",
    "password",
    "password ",
    "password=",
    "pass=$",
    "-",
    "://",
    "://a:",
    "x=",
    "sk-a",
    "sk-ant-",
    '="',
    "&",
    "?key=",
    "_",
    "mysql ",
    "mysql -p",
    "eyJaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA\n",
    "<password>",
    "password is the ",
    "echo a |",
    "curl -b ",
    "a:1:b:c:",
    "name: password ",
    '"a", ',
    "login a ",
    "Cookie: a=",
    "Authorization: Bearer ",
    "--password ",
    "-Pass ",
    "A1b2",
    "0123456789abcdef",
    "hooks.slack.com/services/",
    "machine a password ",
    "seed: abc abc ",
    "net use ",
    "\\",
    '\\"',
    "[redacted]",
    "İ",
    "密码：",
    "Set-Cookie: ",
    ".atlasv1.",
    "8Q~",
    "(",
    "htpasswd -b a ",
    "$2b$",
    "AKIA",
    "Br1dge-Over ",
    "root:Br1dge9 ",
    "pin 1 ",
    "cat key\n",
    "4111 1111 ",
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        best = float("inf")
        for _ in range(2):
            begun = time.process_time()
            masked(text)
            best = min(best, time.process_time() - begun)
        return best

    small, large = seconds(4_000), seconds(32_000)
    assert large <= 0.05 or large <= 8 * small * 3, f"{small:.3f} s for 4 kB, {large:.3f} s for 32 kB"
