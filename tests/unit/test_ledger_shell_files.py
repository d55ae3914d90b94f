"""Files that are read and written through the shell are told; a file that may never have been opened is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transcripts import Transcript, folded

from holdfast.briefing.ledger.model import Ledger
from holdfast.briefing.ledger.shell_files import MOST, files_in

CASES: list[tuple[str, list[str], list[str], list[str]]] = [
    ("cat a.py", ["/p/a.py"], [], []),
    ("cat a.py /etc/hosts | grep x", ["/p/a.py", "/etc/hosts"], [], []),
    ("head -n 20 src/a.py && tail -5 src/b.py", ["/p/src/a.py", "/p/src/b.py"], [], []),
    ("sed -n '1,20p' 'my file.py'", ["/p/my file.py"], [], []),
    ("sed -n -e 1p a.py", ["/p/a.py"], [], []),
    ("cd src && cat a.py", ["/p/src/a.py"], [], []),
    ("cd $HOME && cat a.py /b.py", ["/b.py"], [], []),
    ("cat $FILE", [], [], []),
    ("cat *.py", [], [], []),
    ("cat -", [], [], []),
    ("cat /dev/null", [], [], []),
    ("git log | head -20", [], [], []),
    ("echo cat a.py", [], [], []),
    ("ls -l", [], [], []),
    # What changes files.
    ("sed -i 's/a/b/' a.py", [], ["/p/a.py"], []),
    ("sed -i.bak -e s/a/b/ a.py b.py", [], ["/p/a.py", "/p/b.py"], []),
    ("sed -Ei 's/a/b/' a.py", [], ["/p/a.py"], []),
    ("sed --in-place=.bak 's/a/b/' a.py", [], ["/p/a.py"], []),
    ("sed -i '' 's/x/w/' f", [], ["/p/f"], []),
    ("sed -i '' -e 's/x/w/' f g", [], ["/p/f", "/p/g"], []),
    ("sed -i .bak 's/x/w/' f", [], ["/p/f"], []),
    ("perl -pi -e 's/x/w/' f", [], ["/p/f"], []),
    ("perl -i.bak -pe 's/x/w/' f g", [], ["/p/f", "/p/g"], []),
    ("perl -0pie 's/x/w/' f", [], ["/p/f"], []),
    ("perl -ne 'print if /x/' f", [], [], []),
    ("perl -MList::Util -e 'print 1' f", [], [], []),
    ("echo x | tee -a log.txt", [], ["/p/log.txt"], []),
    ("echo x > out.txt", [], ["/p/out.txt"], []),
    ("echo x >> out.txt", [], ["/p/out.txt"], []),
    ("echo x >| out.txt", [], ["/p/out.txt"], []),
    ("make &> build.log", [], ["/p/build.log"], []),
    ("make > build.log 2>&1", [], ["/p/build.log"], []),
    ("make 2> errors.log", [], ["/p/errors.log"], []),
    ("> empty.txt", [], ["/p/empty.txt"], []),
    ("(cd src && echo x > a.txt)", [], ["/p/src/a.txt"], []),
    ("(cd src && ls) && echo x > a.txt", [], ["/p/a.txt"], []),
    ("if true; then echo x > a.txt; fi", [], ["/p/a.txt"], []),
    ("python gen.py > src/gen.py && cat src/gen.py", ["/p/src/gen.py"], ["/p/src/gen.py"], []),
    ("cat > new.py <<'EOF'\ncat other.py\nrm -rf src > x\nEOF", [], ["/p/new.py"], []),
    ("cat >> src/new.py <<EOF\nx\nEOF\n", [], ["/p/src/new.py"], []),
    ("cat <<'EOF' > new.py\nx\nEOF", [], ["/p/new.py"], []),
    ("make 2>&1", [], [], []),
    ("make > /dev/null 2>&1", [], [], []),
    ("echo 'a > b'", [], [], []),
    ("make > /tmp/build.log; rm /tmp/build.log", [], [], []),
    ("echo x > $OUT", [], [], []),
    ("mv a.py b.py", [], ["/p/b.py"], ["/p/a.py"]),
    ("mv a.py b.py src/", [], ["/p/src/a.py", "/p/src/b.py"], ["/p/a.py", "/p/b.py"]),
    ("mv a.py src", [], ["/p/src/a.py"], ["/p/a.py"]),
    ("mv -t src a.py", [], ["/p/src/a.py"], ["/p/a.py"]),
    ("git mv a.py b.py", [], ["/p/b.py"], ["/p/a.py"]),
    ("rm a.py b.py", [], [], ["/p/a.py", "/p/b.py"]),
    ("rm -rf -- build", [], [], ["/p/build"]),
    ("rm $FILE", [], [], []),
    ("git rm -q a.py", [], [], ["/p/a.py"]),
    ("git rm --cached a.py", [], [], []),
    ("cp a.py b.py", [], ["/p/b.py"], []),
    ("cp -r a.py src/", [], ["/p/src/a.py"], []),
    ("touch a.py", [], ["/p/a.py"], []),
    ("truncate -s 0 a.log", [], ["/p/a.log"], []),
    ("dd if=/dev/zero of=disk.img bs=1M", [], ["/p/disk.img"], []),
    ("curl -sS https://example.org/a -o a.html", [], ["/p/a.html"], []),
    ("sort -o a.txt a.txt", [], ["/p/a.txt"], []),
    ("black --check a.py", [], [], []),
    ("gofmt -w a.go", [], ["/p/a.go"], []),
    ("gofmt -l a.go", [], [], []),
    ("npx prettier --write a.ts", [], [], []),
]


@pytest.mark.parametrize(("command", "shown", "written", "removed"), CASES)
def test_every_command_that_changes_files_is_told_with_the_files_it_changes(
    command: str, shown: list[str], written: list[str], removed: list[str]
) -> None:
    named = files_in(command, "/p")
    assert (named.shown, named.written, named.removed) == (shown, written, removed)


def test_they_count_when_the_command_succeeded() -> None:
    transcript = Transcript("/p")
    transcript.run("Bash", {"command": "cat a.py; sed -i s/a/b/ b.py"})
    transcript.fail("cat gone.py", "Exit code 1\ncat: gone.py: No such file or directory")
    ledger = folded(Ledger("s"), transcript.entries)
    assert [file.path for file in ledger.read] == ["/p/a.py"]
    assert [file.path for file in ledger.modified] == ["/p/b.py"]


def test_what_was_made_only_to_be_removed_is_not_told() -> None:
    transcript = Transcript("/p")
    transcript.run("Write", {"file_path": "/p/probe.py"}, toolUseResult={"type": "create"})
    transcript.run("Write", {"file_path": "/p/old.py"}, toolUseResult={"type": "update"})
    transcript.read("/p/gone.py")
    transcript.run("Bash", {"command": "python probe.py && rm probe.py old.py gone.py"})
    ledger = folded(Ledger("s"), transcript.entries)
    assert [(file.path, file.removed) for file in ledger.modified] == [("/p/old.py", True), ("/p/gone.py", True)]
    assert ledger.read == []


def test_a_file_that_was_moved_is_told_where_it_is_and_where_it_was() -> None:
    transcript = Transcript("/p")
    transcript.run("Bash", {"command": "git mv a.py b.py"})
    ledger = folded(Ledger("s"), transcript.entries)
    assert [(file.path, file.removed) for file in ledger.modified] == [("/p/a.py", True), ("/p/b.py", False)]


PIECES = [
    "cat",
    "head",
    "sed",
    "-i",
    "-n",
    "-e",
    "tee",
    "mv",
    "rm",
    "git",
    "perl",
    "-pi",
    "--",
    "''",
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
    assert len(named.removed) <= MOST
