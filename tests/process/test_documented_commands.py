"""Every command that README and docs show is run here, or named with the test that runs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.documented_commands import ROOT, Documented, blocks_with, documented
from tests.installation import HOLDFAST, PATIENCE, Installation, run_at_terminal
from tests.process.agent import Agent
from tests.repository import Repository
from tests.transcripts import Transcript

from holdfast.agents.registry import transcripts_of

SAID = "connect ECONNREFUSED 127.0.0.1:5432: error text"


class Newcomer:
    """Somebody at home: projects, teams, and an agent that was cut off; the commands run in ~/work/shop."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.holdfast = Installation(home / ".holdfast")
        path = f"{HOLDFAST.parent}{os.pathsep}{os.environ['PATH']}"
        self.holdfast.settings |= {"HOME": str(home), "PATH": path, "MAKEFLAGS": ""}
        self.holdfast.daemon_command = ["make", "--silent", "-C", str(ROOT), "serve", f"VENV={self._environment()}"]
        for name in ("work/shop", "src/shop", "old/project", "new/project"):
            Repository(home / name, {"README.md": "# A shop\n"})
        for name in ("shop/backend", "shop/frontend", "homelab", "counter"):
            (home / name).mkdir(parents=True)
        self.session = self._cut_off(home / "work" / "shop")

    def _environment(self) -> Path:
        """The environment of these tests, as `make` would have built it."""
        environment = self.home / "venv"
        environment.mkdir()
        (environment / "bin").symlink_to(HOLDFAST.parent)
        (environment / "serve.stamp").touch()
        return environment

    def _cut_off(self, project: Path) -> str:
        transcript = Transcript(project)
        transcript.ask("Mend the till.")
        transcript.fail("make", f"Exit code 2\nError: {SAID}")
        config = transcripts_of().folder(self.home / ".claude")
        self.transcripts = config / transcripts_of().folder_name(project)
        return transcript.write(self.transcripts).stem

    def begin(self) -> None:
        """Have a daemon that knows of the agent, teams, reasoning and an index."""
        self.holdfast.serve()
        self.run("holdfast hook SessionStart", stdin=self.started())
        for name in ("work/shop", "old/project"):
            with Agent(self.holdfast, self.home / name, session="thinker") as agent:
                agent.think("The till sticks.")
        self.run("holdfast import claude --all")
        self.run("holdfast teams add counter --project ~/counter")
        self.without_turns()

    def without_turns(self) -> None:
        """See that no message costs a turn: there is no model here."""
        file = self.home / ".holdfast" / "teams.json"
        if file.exists():
            written = json.loads(file.read_text())
            for team in written["teams"].values():
                team["delivery"] = "hook"
            file.write_text(json.dumps(written))

    def run(
        self, command: str, *, cwd: str = "~/work/shop", at_terminal: bool = False, stdin: str = ""
    ) -> tuple[int, str]:
        """Run a line in a shell, as a document has it; its exit status and what it shows."""
        line = ["/bin/sh", "-c", f"cd {cwd} && {command}"]
        if at_terminal:
            done = run_at_terminal(line, self.holdfast.environment())
        else:
            done = subprocess.run(
                line, env=self.holdfast.environment(), input=stdin, capture_output=True, text=True, timeout=2 * PATIENCE
            )
        return done.returncode, done.stdout + done.stderr

    def waiting(self) -> str:
        """A target, and the id of a message that waits there."""
        message = uuid.uuid4().hex[:8]
        self.run(f"holdfast send homelab hello --id {message}")
        return f"homelab {message}"

    def moved(self) -> str:
        """Where a project was, and where it is now."""
        before, after = self.home / f"before-{uuid.uuid4().hex[:8]}", self.home / f"after-{uuid.uuid4().hex[:8]}"
        before.mkdir()
        with Agent(self.holdfast, before, session="mover") as agent:
            agent.think("Here.")
        before.rename(after)
        return f"{before} {after}"

    def archive(self) -> str:
        """A project in a file."""
        self.run("holdfast handoff -o ~/a.handoff --replace")
        return "~/a.handoff --project ~/src/shop"

    def backup(self) -> str:
        """A backup, and a home that is empty."""
        file, other = self.home / f"{uuid.uuid4().hex}.backup", self.home / uuid.uuid4().hex
        self.run(f"holdfast backup {file}")
        return f"{file} --mine --home {other}"

    def started(self) -> str:
        """What an agent gives its session-start hook."""
        session, project = str(uuid.uuid4()), self.home / "work" / "shop"
        transcript = self.transcripts / f"{session}.jsonl"
        payload = {"session_id": session, "cwd": str(project), "transcript_path": str(transcript)}
        return json.dumps({**payload, "source": "startup"})


@dataclass(frozen=True)
class Run:
    """How a command is run: what stands in the place of its placeholders, and how it ends."""

    arguments: str | Callable[[Newcomer], str] = ""
    status: int = 0
    at_terminal: bool = False
    stdin: str | Callable[[Newcomer], str] = ""


PATTERNS: dict[str, Run] = {
    "": Run(),
    "acknowledge-loss": Run(),
    "adopt": Run(Newcomer.archive),
    "approve": Run(),
    "audit": Run("--limit 1"),
    "backup": Run(lambda newcomer: f"~/{uuid.uuid4().hex}.backup"),
    "bridge chat": Run("homelab 12345 --user 12345"),
    "bridge init": Run("~/homelab"),
    "cancel": Run(Newcomer.waiting),
    "completion": Run("bash"),
    "demo": Run("--list"),
    "dismiss": Run(lambda newcomer: newcomer.session[:8]),
    "find": Run("till"),
    "forget": Run("~/old/project --yes", status=1),  # forgotten before: README's own line did it
    "handoff": Run("-o ~/b.handoff --replace"),
    "hook": Run("SessionStart", stdin=Newcomer.started),
    "import claude": Run("--all"),
    "inbox": Run("homelab"),
    "key create": Run(lambda newcomer: uuid.uuid4().hex),
    "key list": Run("--json"),
    "key revoke": Run(lambda newcomer: newcomer.run("holdfast key create gone")[1] and "gone"),
    "list": Run(),
    "man": Run(),
    "mcp": Run(),
    "move": Run(Newcomer.moved),
    "open": Run("--print"),
    "pause": Run(),
    "protocol check": Run(),
    "protocol init": Run("--dry-run"),
    "protocol show": Run(),
    "protocol validate": Run(status=2),  # no session is running
    "pull": Run("homelab"),
    "queue": Run("homelab"),
    "release": Run(),
    "restore": Run(Newcomer.backup),
    "resume": Run("--json"),
    "resume-recording": Run(),
    "saved": Run("--all"),
    "send": Run("homelab hello"),
    "sessions export": Run(),
    "sessions list": Run(),
    "sessions search": Run("till"),
    "sessions show": Run(),
    "setup claude": Run("--dry-run"),
    "setup codex": Run("--yes"),
    "setup cursor": Run("--yes"),
    "setup gemini": Run("--yes"),
    "setup opencode": Run("--yes"),
    "setup vscode": Run("--yes"),
    "show": Run("--json"),
    "status": Run("--json"),
    "statusline": Run(stdin="{}"),
    "teams add": Run("another --project ~/src/shop"),
    "teams check": Run(),
    "teams found": Run(),
    "teams history": Run(),
    "teams list": Run("--json"),
    "teams remove": Run(lambda newcomer: newcomer.run("holdfast teams add away --project ~/new/project")[1] and "away"),
    "teams reset": Run("homelab", status=1),  # nobody has asked it yet
    "teams stats": Run(),
    "teams status": Run(),
    "trust": Run("--revoke"),
    "verify": Run(),
}
"""By the command's name without its group, for what has placeholders."""

LITERAL: dict[str, Run] = {
    "holdfast approve": Run(),
    "holdfast bridge": Run(status=2),
    "holdfast forget ~/old/project": Run(at_terminal=True),
    "holdfast import": Run(status=2),
    "holdfast project": Run(status=2),
    "holdfast admin": Run(status=2),
    "holdfast daemon": Run(status=2),
    "holdfast protocol": Run(status=2),
    "holdfast send": Run(status=2),
    "holdfast setup": Run(status=2),
    "holdfast statusline": Run(stdin="{}"),
    "holdfast teams confirm": Run(at_terminal=True),
    "holdfast trust": Run(at_terminal=True),
    **{
        f"holdfast setup {agent}": Run(at_terminal=True)
        for agent in ("codex", "gemini", "opencode", "cursor", "vscode")
    },
}
"""What is run as it stands, but at a terminal, with an input or to another end than 0."""

CWD = {"docs/archive.md": "~"}
"""Where the commands of a document are run, if not in the project."""

NEWCOMER = "tests/agents/test_newcomer.py"
PACKAGING = "tests/process/test_packaging.py"
CURL = "tests/process/test_documented_commands.py"  # its last test
ELSEWHERE: dict[str, str] = {
    "uv tool ": PACKAGING,
    "pipx ": PACKAGING,
    "pip ": PACKAGING,
    "git clone ": NEWCOMER,
    "git pull && make install": PACKAGING,
    "make install": NEWCOMER,
    "make uninstall": NEWCOMER,
    "make install EXTRAS=postgres,claude,telegram": "tests/agents/test_newcomer_phone.py",
    "make serve": "tests/process/test_documented_commands.py",  # by which the newcomer's daemon is started
    "make test": "tests/process/test_documented_commands.py",  # which runs in it
    "claude mcp ": "tests/agents/test_setup_claude.py",
    "claude plugin ": "tests/agents/test_setup_claude.py",
    "cd ~/shop/frontend && claude ": NEWCOMER,
    "holdfast setup claude": NEWCOMER,
    "holdfast setup claude --yes --allow all": NEWCOMER,
    'holdfast teams add backend --project ~/shop/backend --description "The API; knows its endpoints"': NEWCOMER,
    "holdfast teams history backend --from frontend": NEWCOMER,
    'holdfast teams ask backend "Which endpoints are there?"': NEWCOMER,
    "HOLDFAST_TELEGRAM_TOKEN=123456:AB… holdfast serve": "tests/agents/test_newcomer_phone.py",
    'gate="$(git rev-parse ': "tests/process/test_commit_gate.py",
    "KEY=$(holdfast key)": CURL,
    "SESSION_ID=$(curl ": CURL,
    "TOKEN=$(curl ": CURL,
    "curl ": CURL,
    "holdfast demo": "tests/process/test_demo.py",
    "holdfast demo cut-off": "tests/process/test_demo.py",
    "holdfast demo cut-off --fast": "tests/process/test_demo.py",
    "holdfast demo killed --fast": "tests/process/test_demo.py",
    "holdfast doctor": "tests/process/test_doctor.py",
    "bridge fork": "tests/process/test_bridge_hooks.py",
    "bridge wait": "tests/process/test_bridge_hooks.py",
    "deny": "tests/agents/test_teams_trouble.py",
    "doctor": "tests/process/test_doctor.py",
    "retry": "tests/process/test_bridge_commands.py",
    "serve": "tests/process/test_daemon.py",
    "stop": "tests/process/test_daemon.py",
    "tail": "tests/process/test_bridge_commands.py",
    "teams adopt": "tests/agents/test_teams_keeping.py",
    "teams ask": "tests/process/test_team_commands.py",
    "teams cancel": "tests/process/test_team_commands.py",
    "teams wait": "tests/process/test_team_commands.py",
}
"""What another test runs: it installs, needs a model or a chat, or goes on until Ctrl-C.

By the whole text, by its beginning (with a space at the end), or by the command's name."""
RUN_HERE = re.compile(r"(cd \S+ && )?holdfast\b")
"""Nothing else is run: a document may also say how to remove things."""


def elsewhere(one: Documented) -> str | None:
    """The test that runs a command, if this is not it."""
    if one.text in ELSEWHERE:
        return ELSEWHERE[one.text]
    if one.name in ELSEWHERE and (one.is_pattern or one.text == one.spelled):
        return ELSEWHERE[one.name]
    return next((test for key, test in ELSEWHERE.items() if key.endswith(" ") and one.text.startswith(key)), None)


HERE = [one for one in documented() if elsewhere(one) is None]


@pytest.mark.parametrize("test", sorted(set(ELSEWHERE.values())))
def test_the_tests_that_run_other_commands_exist(test: str) -> None:
    assert (ROOT / test).exists()


def test_every_command_is_run_here_or_elsewhere() -> None:
    unknown = [one for one in HERE if not RUN_HERE.match(one.text) or (one.is_pattern and one.name not in PATTERNS)]
    assert unknown == [], "add them to PATTERNS, or to ELSEWHERE with the test that runs them"


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    newcomer = Newcomer(tmp_path_factory.mktemp("home"))
    try:
        newcomer.begin()
        yield newcomer
    finally:
        newcomer.holdfast.close()


def test_every_command_in_readme_and_docs_does_what_it_is_shown_for(newcomer: Newcomer) -> None:
    once: dict[tuple[bool, str], Documented] = {}
    for one in (one for one in HERE if RUN_HERE.match(one.text)):
        once.setdefault((one.where in CWD, one.spelled if one.is_pattern else one.text), one)
    wrong = [said for one in once.values() if (said := _tried(newcomer, one))]
    assert not wrong, "\n\n".join(wrong)


def _tried(newcomer: Newcomer, one: Documented) -> str | None:
    """Run a command; return what is wrong, if anything is."""
    how = PATTERNS[str(one.name)] if one.is_pattern else LITERAL.get(one.text, Run())
    arguments = how.arguments if isinstance(how.arguments, str) else how.arguments(newcomer)
    command = f"{one.spelled} {arguments}".strip() if one.is_pattern else one.text
    stdin = how.stdin if isinstance(how.stdin, str) else how.stdin(newcomer)
    newcomer.without_turns()
    cwd = CWD.get(one.where, "~/work/shop")
    status, shown = newcomer.run(command, cwd=cwd, at_terminal=how.at_terminal, stdin=stdin)
    fine = status == how.status and "Traceback" not in shown and "internal error" not in shown
    return None if fine else f"{one.where}: `{command}` ended with {status} instead of {how.status}: {shown[-600:]}"


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq, as the documents do")
@pytest.mark.parametrize("document", blocks_with("curl"))
def test_what_documents_show_with_curl_is_answered(newcomer: Newcomer, document: str) -> None:
    (newcomer.home / ".curlrc").write_text("fail\n")
    block = blocks_with("curl")[document].replace("http://localhost:8181", newcomer.holdfast.address())
    with Agent(newcomer.holdfast, newcomer.home / "work" / "shop", session="caller") as agent:
        agent.think("I am connected.")
        status, shown = newcomer.run(f"set -e; {block.replace('homelab', 'counter')}")
    assert status == 0, shown
