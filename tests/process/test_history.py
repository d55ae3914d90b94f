"""`holdfast import`, `find`, `saved` and `statusline`, as a person calls them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.installation import Installation, wait_until
from tests.process.agent import Agent
from tests.shared_daemon import Guest

from holdfast.agents.claude.transcripts.folder_name import project_key

TALK = "11111111-1111-4111-8111-111111111111"


def talk(embedded: Installation, project: Path, text: str) -> None:
    config = embedded.home.parent / "claude"
    embedded.settings["CLAUDE_CONFIG_DIR"] = str(config)
    path = config / "projects" / project_key(project) / f"{TALK}.jsonl"
    path.parent.mkdir(parents=True)
    entry = {"type": "user", "cwd": str(project), "timestamp": "2026-01-31T12:00:00Z", "message": {"content": text}}
    path.write_text(json.dumps(entry) + "\n")


def test_a_newcomer_finds_an_old_error_with_the_way_back(embedded: Installation, project: Path) -> None:
    talk(embedded, project, "We saw ECONNREFUSED 127.0.0.1:5432 yesterday")
    nothing = embedded.run("find", "ECONNREFUSED")
    assert nothing.returncode == 1
    assert "holdfast import claude" in nothing.stdout and "--scan" in nothing.stdout
    way_back = f"cd {project} && claude --resume {TALK}"
    scanned = embedded.run("find", "--scan", "ECONNREFUSED 127.0.0.1")
    assert scanned.returncode == 0 and way_back in scanned.stdout, scanned.stderr

    imported = embedded.run("import", "claude", "--project", str(project))
    assert imported.returncode == 0 and "1 passages indexed" in imported.stdout, imported.stderr
    for _ in ("without a daemon", "with one"):
        found = embedded.run("find", "ECONNREFUSED", "127.0.0.1:5432")
        assert found.returncode == 0, found.stderr
        lines = found.stdout.splitlines()
        assert lines[0] == f"{project}  2026-01-31 12:00"
        assert lines[1] == "  user: We saw ECONNREFUSED 127.0.0.1:5432 yesterday"
        assert lines[2] == f"  {way_back}"
        if embedded.daemon() is None:
            embedded.serve()
    absent = embedded.run("find", "unheard-of")
    assert absent.returncode == 1 and "Nothing found that contains all of" in absent.stdout
    wrong = embedded.run("find", "!!!")
    assert wrong.returncode == 1 and "holds no word" in wrong.stderr
    (hit,) = json.loads(embedded.run("find", "--json", "ECONNREFUSED").stdout)
    assert hit["session"] == TALK
    dropped = embedded.run("import", "claude", "--all", "--remove")
    assert dropped.returncode == 0 and "1 transcripts" in dropped.stdout
    assert embedded.run("find", "ECONNREFUSED").returncode == 1


def test_a_project_without_transcripts_is_told_so(embedded: Installation, project: Path) -> None:
    embedded.settings["CLAUDE_CONFIG_DIR"] = str(embedded.home.parent / "claude")
    imported = embedded.run("import", "claude", "--project", str(project))
    assert imported.returncode == 0 and "no transcripts" in imported.stdout


def test_what_was_saved_is_told_also_when_it_is_nothing(embedded: Installation) -> None:
    for flag in ((), ("--week",), ("--all",)):
        saved = embedded.run("saved", *flag)
        assert saved.returncode == 0 and "Nothing had to be recovered" in saved.stdout, saved.stderr
    assert json.loads(embedded.run("saved", "--json").stdout) == {"projects": []}


def test_the_status_line_counts_thoughts_and_is_silent_without_a_daemon(
    embedded: Installation, shared_embedded: Guest, project: Path
) -> None:
    place = {"cwd": str(project), "workspace": {"project_dir": str(project)}}
    told = json.dumps({"session_id": shared_embedded.caller(TALK), **place})
    silent = embedded.run("statusline", stdin=told)
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")
    assert embedded.daemon() is None, "a status line starts no daemon"
    with Agent(shared_embedded, project, session=TALK) as agent:
        agent.think("One.")
        agent.think("Two.")
        # Its client waits a second at most, which may be too little on a loaded machine.
        wait_until(
            lambda: shared_embedded.run("statusline", stdin=told).stdout == "holdfast: 2 thoughts\n",
            "the line is there",
        )
        for odd in ("", "no json", "[]", '{"session_id": 7}'):
            done = shared_embedded.run("statusline", stdin=odd)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), odd


def test_the_status_line_imports_the_standard_library_and_where_the_daemon_is() -> None:
    program = (
        "import sys; bare = set(sys.modules); import holdfast.relay.statusline; import json;"
        "print(json.dumps(sorted(set(sys.modules) - bare)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names} == {
        "holdfast",
        "holdfast.relay.statusline",
        "holdfast.relay",
        "holdfast.relay.place",
    }
    assert not loaded & {"argparse", "asyncio", "pathlib", "subprocess", "logging", "typing"}
