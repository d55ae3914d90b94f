"""What a user wants to do, the first command that one would guess, and that it is answered; earlier names included."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from tests.installation import HOLDFAST, PATIENCE
from tests.shared_daemon import Guest

WANTED = [
    ("see what is unfinished", "", 0, "Nothing is unfinished"),
    ("list what is unfinished", "list", 0, "Nothing is unfinished"),
    ("have it as JSON", "--json", 0, '"looked_at"'),
    ("know where this project stands", "show", 0, "Nothing is known"),
    ("know where another project stands", "show ..", 0, "Nothing is known"),
    ("read the briefing by its earlier name", "resume --json", 0, '"project"'),
    ("go on", "resume", 0, "Nothing is unfinished"),
    ("go on, by another word", "continue --print", 1, "Nothing is unfinished"),
    ("go on in an agent that there is not", "resume --in emacs", 2, "claude"),
    ("find what was said", "find drawer", 1, "holdfast import claude"),
    ("search what was said", "search drawer", 1, "holdfast import claude"),
    ("index what was said", "import claude", 0, "no transcripts"),
    ("connect my agent", "setup claude --dry-run", 0, "This would change"),
    ("connect my agent, by another word", "install claude --dry-run", 0, "This would change"),
    ("know which agents can be connected", "setup", 2, "codex"),
    ("disconnect my agent", "setup claude --remove --dry-run", 0, "not set up"),
    ("uninstall it", "uninstall", 2, "holdfast setup claude --remove"),
    ("know whether it runs", "status", 0, "version"),
    ("know whether it runs, by the group", "daemon status --json", 0, '"running": true'),
    ("know how to start it", "serve --help", 0, "foreground"),
    ("know how to stop it", "help stop", 0, "Stop the daemon"),
    ("know whether it works", "help doctor", 0, "holdfast doctor --fix"),
    ("see it work", "demo --help", 0, "holdfast demo --fast"),
    ("send something to an agent", "send nowhere hello", 1, "unknown target: nowhere"),
    ("see what came back", "inbox", 0, "no targets yet"),
    ("see the messages", "messages --json", 0, '"updates"'),
    ("see the queue by its earlier name", "queue", 0, "no targets yet"),
    ("pull by its earlier name", "pull nowhere", 1, "unknown target"),
    ("ask another project's agent", "ask nowhere why", 1, "nowhere"),
    ("see the teams", "teams list", 0, "no teams yet"),
    ("see what agents want to be allowed", "approve", 0, "No permission requests"),
    ("know that nothing was lost", "verify", 0, "Nothing was lost"),
    ("know it by the group", "admin verify --json", 0, '"ok": true'),
    ("keep everything in a file", "backup ../all.backup", 0, "verified"),
    ("bring it back", "restore ../no.backup", 1, "holdfast stop"),
    ("not be recorded", "pause", 0, "resume-recording"),
    ("be recorded again", "unpause", 0, "Recording is on"),
    ("be recorded again by the earlier name", "resume-recording", 0, "Recording is on"),
    ("remove a project for good", "forget ../nowhere --yes", 1, "nowhere"),
    ("delete a project", "delete .", 2, "holdfast forget"),
    ("read what agents thought", "sessions list", 1, "No sessions"),
    ("see what it was good for", "saved", 0, "Nothing had to be recovered"),
    ("take a project to another machine", "handoff -o ../here.handoff", 0, "Signed by this machine"),
    ("move a project", "move ../old ../new", 1, "NEW"),
    ("dismiss what is done", "dismiss 5f0c9a1e", 1, "5f0c9a1e"),
    ("see what came with an archive", "release --json", 0, '"messages"'),
    ("trust a project's programs", "trust", 0, "nothing to trust"),
    ("see the rules of the work", "protocol show", 0, "PHASE"),
    ("let a program in", "key list", 0, "owner"),
    ("see who came", "audit --limit 1", 0, ""),
    ("see the commands", "--help", 0, "Prove and keep"),
    ("see the commands, by the word", "help", 0, "Prove and keep"),
    ("see all commands", "commands", 0, "admin audit"),
    ("see all commands by the option", "--help --all", 0, "admin audit"),
    ("have help with one", "help find", 0, "holdfast find --scan"),
    ("know the version", "version", 0, "holdfast "),
    ("have the shell complete it", "completion bash", 0, "complete -o default"),
    ("read the manual", "man", 0, ".TH HOLDFAST"),
    ("be forgiven a slip", "statsu", 2, "holdfast status"),
    ("be forgiven an option at the wrong place", "--json status", 2, "after the command"),
]


@pytest.mark.parametrize(("want", "command", "status", "word"), WANTED, ids=[want for want, *_ in WANTED])
def test_the_first_command_that_one_would_guess_is_answered(
    shared_embedded: Guest, tmp_path: Path, want: str, command: str, status: int, word: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    # Other guests of this daemon may have left work open, which is what these tell of.
    own_home = {"HOLDFAST_HOME": str(tmp_path / "home")} if command in ("", "list", "saved") else {}
    told = subprocess.run(
        [str(HOLDFAST), *shlex.split(command)],
        env={**shared_embedded.environment(), "HOME": str(tmp_path), **own_home},
        cwd=project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert told.returncode == status, (want, told)
    assert word in told.stdout + told.stderr and "Traceback" not in told.stderr
