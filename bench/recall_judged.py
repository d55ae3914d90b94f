"""Sessions of which it is known what is true in the end: work that is taken back, mended, moved, finished.

They are transcripts in the form that Claude Code writes, put together from episodes in a fixed random order; each
episode says what it leaves behind. With the outputs of real tools (recall_outputs.py) they hold far more that is over,
or was never so, than what still matters.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.transcripts import Transcript

from bench.recall_outputs import OUTPUTS, Output
from bench.recall_truth import Truth

PROJECT = Path("/home/me/project")
SESSIONS = 16
EPISODES = 10
WITH_OUTPUTS = 6
"""Sessions that hold nothing but the outputs, each its part of them."""
NOUNS = (
    "Fence",
    "Gate",
    "Heron",
    "Tide",
    "Anchor",
    "Beacon",
    "Harbour",
    "Signal",
    "Cable",
    "Rudder",
    "Lantern",
    "Pier",
)
PASSES = "collected 4 items\n\n4 passed in 0.12s"


@dataclass(frozen=True, slots=True)
class Judged:
    """A session and its truth."""

    name: str
    transcript: Transcript
    truth: Truth


class _Work:
    """A session that grows by episodes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - the same work in every run
        self.transcript = Transcript(PROJECT)
        self.truth = Truth()
        self.number = 0

    def begin(self, words: str) -> None:
        """The user asks for the next thing."""
        self.number += 1
        request = f"{self.number}. {words}, and keep it small."
        self.transcript.ask(request)
        self.truth.add("request", request)

    def path(self, name: str) -> str:
        return str(PROJECT / f"src/{name}_{self.number}.py")

    def bash(self, command: str, text: str = "", *, failed: bool = False) -> None:
        self.transcript.run("Bash", {"command": command}, f"Exit code 1\n{text}" if failed else text, error=failed)

    def fails(self, error: str, command: str) -> None:
        """A test run that fails."""
        location = f"tests/test_{self.number}.py"
        text = f"E   {error}: no\n\n{location}:4: {error}\nFAILED {location}::test_it - {error}: no\n1 failed, 3 passed"
        self.bash(command, text, failed=True)

    def error(self) -> str:
        return f"{NOUNS[self.number % len(NOUNS)]}{self.number}Error"


def _edit(work: _Work) -> None:
    work.begin("Change the height")
    work.transcript.read(work.path("height"))
    work.transcript.edit(work.path("height"))
    work.truth.add("modified", work.path("height"))


def _look(work: _Work) -> None:
    work.begin("Explain the post")
    work.transcript.read(work.path("post"), "class PostError(Exception): ...\n# ValueError: never raised")
    work.truth.add("read", work.path("post"))


def _edit_that_fails(work: _Work) -> None:
    work.begin("Rename the wire")
    work.transcript.read(work.path("wire"))
    arguments = {"file_path": work.path("wire"), "old_string": "y", "new_string": "z"}
    work.transcript.run("Edit", arguments, "<tool_use_error>String to replace not found in file.", error=True)
    work.truth.add("read", work.path("wire"))


def _probe(work: _Work) -> None:
    work.begin("Find out how fast it is")
    arguments = {"file_path": work.path("probe"), "content": "x"}
    work.transcript.run("Write", arguments, "File created", toolUseResult={"type": "create"})
    work.bash(f"python {work.path('probe')} > /tmp/probe.txt && cat /tmp/probe.txt", "3 ms")
    work.bash(f"rm {work.path('probe')}")


def _move(work: _Work) -> None:
    work.begin("Move the gate")
    before, after = f"src/gate_{work.number}.py", f"src/door_{work.number}.py"
    work.bash(f"{work.chance.choice(['mv', 'git mv'])} {before} {after}")
    work.truth.add("modified", f"{PROJECT}/{before} (removed)")
    work.truth.add("modified", f"{PROJECT}/{after}")


def _taken_back(work: _Work) -> None:
    work.begin("Try it without the lock")
    work.transcript.read(work.path("lock"))
    work.transcript.edit(work.path("lock"), "locked", "open")
    work.transcript.edit(work.path("lock"), "open", "locked")
    work.truth.add("read", work.path("lock"))


def _written_by_shell(work: _Work) -> None:
    work.begin("Write the settings down")
    names = [f"conf/{name}_{work.number}.toml" for name in ("a", "b", "c")]
    work.bash(f"cat > {names[0]} <<'EOF'\nx = 1\nEOF")
    work.bash(f"cp {names[0]} {names[1]} && perl -pi -e 's/1/2/' {names[1]}")
    work.bash(f"sed -i '' 's/x/w/' {names[2]} 2>&1")
    for name in names:
        work.truth.add("modified", f"{PROJECT}/{name}")


def _removed(work: _Work) -> None:
    work.begin("Throw the old one out")
    work.transcript.read(work.path("old"))
    work.bash(f"git rm -q {work.path('old')}")
    work.truth.add("modified", f"{work.path('old')} (removed)")


def _mended(work: _Work) -> None:
    work.begin("Mend the test")
    test = f"tests/test_{work.number}.py"
    work.fails(work.error(), f"pytest -q {test}")
    work.transcript.edit(work.path("mended"))
    work.truth.add("modified", work.path("mended"))
    passing = [f"pytest -q {test}", "python -m pytest", f"cd {PROJECT} && pytest -x {test} 2>&1 | tail -3"]
    work.bash(work.chance.choice(passing), PASSES)
    # A whole run that passed mends every test that had failed before.
    if work.transcript.entries[-2]["message"]["content"][0]["input"]["command"] == "python -m pytest":
        for kind in ("failed", "errors"):
            for thing in [one for one in work.truth.things[kind] if one.startswith(("pytest ", *NOUNS))]:
                work.truth.drop(kind, thing)


def _not_mended(work: _Work) -> None:
    work.begin("Look why it fails")
    command = f"pytest -q tests/test_{work.number}.py"
    work.fails(work.error(), command)
    work.bash("pytest -q tests/test_other.py", PASSES)
    work.truth.add("errors", work.error())
    work.truth.add("failed", command)


def _nothing_found(work: _Work) -> None:
    work.begin("Is the heron named anywhere")
    work.bash(f"grep -rn heron_{work.number} src", failed=True)


def _reviewed(work: _Work) -> None:
    work.begin("Review the branch")
    for output in work.chance.sample([one for one in OUTPUTS if not one.failed and not one.met], 4):
        _output(work, output)


EPISODES_OF_WORK: tuple[Callable[[_Work], None], ...] = (
    _edit,
    _look,
    _edit_that_fails,
    _probe,
    _move,
    _taken_back,
    _written_by_shell,
    _removed,
    _mended,
    _not_mended,
    _nothing_found,
    _reviewed,
)


def _output(work: _Work, output: Output) -> None:
    if output.tool != "Bash":
        arguments = {"file_path": output.command} if output.tool in ("Read", "Edit") else {"prompt": output.command}
        work.transcript.run(output.tool, arguments, output.text, error=output.failed)
        if output.tool == "Read":
            work.truth.add("read", output.command)
        return
    work.bash(output.command, output.text, failed=output.failed)
    for name in output.met:
        work.truth.add("errors", name)
    if output.fails:
        work.truth.add("failed", output.command)
    for path in output.shown:
        work.truth.add("read", str(PROJECT / path))


def _todos(work: _Work) -> None:
    """A list as it is left: all of it done, or a part."""
    done = work.chance.choice([2, 3, 5])
    texts = [
        f"{verb} the {noun.lower()}" for verb, noun in zip(("Dig", "Fill", "Rake", "Oil", "Paint"), NOUNS, strict=False)
    ]
    todos = [{"content": text, "status": "completed" if at < done else "pending"} for at, text in enumerate(texts)]
    work.transcript.run("TodoWrite", {"todos": [{**todo, "status": "pending"} for todo in todos]})
    work.transcript.run("TodoWrite", {"todos": todos})
    for text in texts[done:]:
        work.truth.add("todos", text)


def judged() -> list[Judged]:
    """All of these sessions."""
    found: list[Judged] = []
    for part in range(WITH_OUTPUTS):
        work = _Work(part)
        work.begin("Look at everything")
        for output in OUTPUTS[part::WITH_OUTPUTS]:
            _output(work, output)
        found.append(Judged(f"outputs {part}", work.transcript, work.truth))
    for seed in range(SESSIONS):
        work = _Work(100 + seed)
        for episode in work.chance.choices(EPISODES_OF_WORK, k=EPISODES):
            episode(work)
            work.transcript.say("That is done.")
        _todos(work)
        found.append(Judged(f"work {seed}", work.transcript, work.truth))
    return found
