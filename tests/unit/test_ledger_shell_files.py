"""Files that are read and written through the shell are told; a file that may never have been opened is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts import Transcript

from holdfast.briefing.ledger.folding import folded
from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.shell_files import MOST, files_in

CASES = [
    ("cat a.py", ["/p/a.py"], []),
    ("cat a.py /etc/hosts | grep x", ["/p/a.py", "/etc/hosts"], []),
    ("head -n 20 src/a.py && tail -5 src/b.py", ["/p/src/a.py", "/p/src/b.py"], []),
    ("sed -n '1,20p' 'my file.py'", ["/p/my file.py"], []),
    ("sed -n -e 1p a.py", ["/p/a.py"], []),
    ("sed -i 's/a/b/' a.py", [], ["/p/a.py"]),
    ("sed -i.bak -e s/a/b/ a.py b.py", [], ["/p/a.py", "/p/b.py"]),
    ("echo x | tee -a log.txt", [], ["/p/log.txt"]),
    ("cat > new.py <<'EOF'\ncat other.py\nEOF", [], ["/p/new.py"]),
    ("cat >> src/new.py <<EOF\nx\nEOF\n", [], ["/p/src/new.py"]),
    ("cd src && cat a.py", ["/p/src/a.py"], []),
    ("cd $HOME && cat a.py /b.py", ["/b.py"], []),
    ("cat $FILE", [], []),
    ("cat *.py", [], []),
    ("cat -", [], []),
    ("cat /dev/null", [], []),
    ("git log | head -20", [], []),
    ("echo cat a.py", [], []),
    ("ls -l", [], []),
]


@pytest.mark.parametrize(("command", "shown", "written"), CASES)
def test_the_files_of_a_command(command: str, shown: list[str], written: list[str]) -> None:
    named = files_in(command, "/p")
    assert (named.shown, named.written) == (shown, written)


def test_they_count_when_the_command_succeeded() -> None:
    transcript = Transcript("/p")
    transcript.run("Bash", {"command": "cat a.py; sed -i s/a/b/ b.py"})
    transcript.fail("cat gone.py", "Exit code 1\ncat: gone.py: No such file or directory")
    ledger = folded(Ledger("s"), transcript.entries)
    assert [file.path for file in ledger.read] == ["/p/a.py"]
    assert [file.path for file in ledger.modified] == ["/p/b.py"]


PIECES = [
    "cat",
    "head",
    "sed",
    "-i",
    "-n",
    "-e",
    "tee",
    ">",
    "<<",
    "EOF",
    "cd",
    "a.py",
    "/b",
    "$(",
    ")",
    "'",
    '"',
    "`",
    ";",
    "|",
    "&&",
    "\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_command_breaks_it(words: list[str]) -> None:
    named = files_in(" ".join(words), "/p")
    assert len(named.shown) <= MOST
    assert len(named.written) <= MOST
