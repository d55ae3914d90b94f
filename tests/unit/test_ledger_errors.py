"""Errors met are told, and only these: a name of an error that stands in a text is none."""

from __future__ import annotations

import re

import pytest
from bench.recall_outputs import OUTPUTS, Output
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts import Transcript, folded

from holdfast.briefing.ledger.error_forms import errors_in
from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.runs import mends, run_of

PASSES = "5 passed in 0.10s"
FAILS = "Exit code 1\nE   KeyError: 'heron'\nFAILED tests/a.py::test_a - KeyError: 'heron'\n1 failed, 4 passed in 0.10s"


def played(output: Output) -> Ledger:
    transcript = Transcript("/p")
    arguments = {"command": output.command} if output.tool == "Bash" else {"file_path": output.command}
    text = f"Exit code 1\n{output.text}" if output.failed and output.tool == "Bash" else output.text
    transcript.run(output.tool, arguments, text, error=output.failed)
    return folded(Ledger("s"), transcript.entries)


@pytest.mark.parametrize("output", OUTPUTS, ids=[one.name for one in OUTPUTS])
def test_of_what_tools_print_the_errors_that_were_met_are_told_and_no_others(output: Output) -> None:
    ledger = played(output)
    assert {error.name for error in ledger.errors} == output.met
    assert [one.command for one in ledger.failed] == (
        [output.command] if output.fails and output.tool == "Bash" else []
    )


def test_the_outputs_name_many_errors_that_were_not_met() -> None:
    named = [name for one in OUTPUTS for name in set(re.findall(r"\b[A-Z]\w+(?:Error|Exception)\b", one.text))]
    met = [name for one in OUTPUTS for name in one.met]
    assert len(named) > 3 * len(met) > 60


@pytest.mark.parametrize(
    ("failing", "passing", "text", "mended"),
    [
        ("pytest -q", "pytest -q", PASSES, True),
        ("pytest -q tests/a.py", "cd /p && .venv/bin/python -m pytest", PASSES, True),
        ("pytest", "pytest -x 2>&1 | tail -3", PASSES, True),
        ("pytest", "pytest 2>&1 | tail -3", FAILS, False),
        ("pytest", "pytest 2>&1 | head -3", "collecting …", False),
        ("pytest", "pytest tests/b.py", PASSES, False),
        ("pytest -k heron", "pytest -k gate", PASSES, False),
        ("pytest", "pytest || true", FAILS, False),
        ("npm test", "npm run build", "", False),
        ("make test", "make", "", False),
        ("go test ./gate", "go test ./...", "ok  \texample.org/fence/gate\t0.002s", True),
        ("cargo build && cargo test", "cargo test", "test result: ok. 3 passed; 0 failed", True),
        ("python app.py", "python other.py", "", False),
        ("uv run pytest", "pytest", PASSES, True),
        ("CI=1 npx jest a.test.ts", "npx jest", "Tests:       12 passed, 12 total", True),
    ],
)
def test_an_error_is_told_until_a_run_that_covers_it_passes(
    failing: str, passing: str, text: str, mended: bool
) -> None:
    transcript = Transcript("/p")
    transcript.fail(failing, FAILS)
    transcript.run("Bash", {"command": passing}, text)
    ledger = folded(Ledger("s"), transcript.entries)
    assert ([one.name for one in ledger.errors] == []) is mended
    assert any(one.command == failing and one.mended for one in ledger.failed) is mended


def test_a_run_whose_failure_a_pipe_hides_is_told_as_failed() -> None:
    transcript = Transcript("/p")
    transcript.run("Bash", {"command": "pytest 2>&1 | tail -3"}, FAILS.removeprefix("Exit code 1\n"))
    transcript.run("Bash", {"command": "grep -rn FAILED . | head"}, "docs/a.md:1: 1 failed, 2 passed")
    commit = "git commit -m \"$(cat <<'EOF'\nMend 2 failing tests\nEOF\n)\""
    transcript.run("Bash", {"command": commit}, "[main 3f78685] Mend 2 failing tests\n 1 file changed")
    (failure,) = folded(Ledger("s"), transcript.entries).failed
    assert (failure.command, failure.error) == ("pytest 2>&1 | tail -3", "KeyError")


def test_a_search_that_finds_nothing_has_not_failed() -> None:
    transcript = Transcript("/p")
    transcript.fail("grep -rn heron src", "Exit code 1")
    transcript.fail("grep -rn heron sr", "Exit code 2\ngrep: sr: No such file or directory")
    assert [one.command for one in folded(Ledger("s"), transcript.entries).failed] == ["grep -rn heron sr"]


def test_an_error_of_another_tool_is_told_until_that_passes() -> None:
    transcript = Transcript("/p")
    call = {"file_path": "/p/a.py"}
    transcript.run("mcp__editor__edit_file", call, "Error executing tool: LockedError: a.py is open", error=True)
    assert [one.name for one in folded(Ledger("s"), transcript.entries).errors] == ["LockedError"]
    transcript.run("mcp__editor__edit_file", call)
    assert folded(Ledger("s"), transcript.entries).errors == []


PIECES = [
    "Error",
    "KeyError",
    ": x",
    "E   ",
    "FAILED ",
    " - ",
    "Traceback (most recent call last)",
    "\n",
    "    ",
    "at ",
    "1 failed",
    "ok ",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20), st.booleans())
def test_no_output_breaks_it(pieces: list[str], failed: bool) -> None:
    text = "".join(pieces)
    assert all(name in text for name in errors_in(text, failed=failed))


@given(
    st.lists(
        st.sampled_from(["pytest", "-q", "a.py", "|", "&&", "env", "timeout", "uv", "run", "'", "git", ";"]), max_size=9
    )
)
def test_no_command_breaks_the_reading_of_runs(words: list[str]) -> None:
    run = run_of(" ".join(words))
    assert all(mends(key, key) for key in run.keys)
