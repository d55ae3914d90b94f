"""A project goes to another machine: by an archive, and without one where both share a PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.installation import Installation, wait_until
from tests.postgres import PostgresServer, fresh_database
from tests.process.agent import Agent
from tests.shared_daemon import Guest

from holdfast.agents.claude.transcripts.folder_name import project_key

TALK = "11111111-1111-4111-8111-111111111111"

Machines = Callable[[str, str | None], Installation]


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """Makes a machine: a home, a configuration directory of Claude Code, perhaps a shared database."""
    made: list[Installation] = []

    def make(name: str, database_url: str | None = None) -> Installation:
        installation = Installation(tmp_path / name / "holdfast")
        config = tmp_path / name / "claude"
        config.mkdir(parents=True)
        installation.settings["CLAUDE_CONFIG_DIR"] = str(config)
        if database_url is not None:
            installation.settings["HOLDFAST_DATABASE_URL"] = database_url
        made.append(installation)
        return installation

    yield make
    for installation in made:
        installation.close()


def checkout(folder: Path) -> Path:
    """The same git project as every other checkout made here."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = git@example.org:dev/shop.git\n')
    return folder


def transcript(machine: Installation, project: Path) -> Path:
    return Path(machine.settings["CLAUDE_CONFIG_DIR"]) / "projects" / project_key(project) / f"{TALK}.jsonl"


def test_a_project_goes_on_at_another_path_on_another_machine(
    shared_embedded: Guest, machines: Machines, tmp_path: Path
) -> None:
    ours, theirs = shared_embedded, machines("b", None)
    ours.settings["CLAUDE_CONFIG_DIR"] = str(tmp_path / "a" / "claude")
    here, there = tmp_path / "work" / "shop", tmp_path / "elsewhere" / "my shop"
    here.mkdir(parents=True)
    there.mkdir(parents=True)
    with Agent(ours, here, session=TALK) as agent:
        session = agent.think("The till jams.")["sessionId"]
        agent.think("It is the drawer.")
    file = transcript(ours, here)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"type": "user", "uuid": "u1", "cwd": str(here)}) + "\n")
    archive = tmp_path / "shop.handoff"

    # The daemon may still hold the agent's connection for a moment after its relay is gone.
    def handed_off() -> bool:
        done = ours.run("handoff", str(here), "-o", str(archive), "--replace")
        assert done.returncode == 0, done.stderr
        assert "1 reasoning sessions with 2 thoughts" in done.stdout and "1 transcripts" in done.stdout
        return "live agent" not in done.stderr

    wait_until(handed_off, "the agent is gone")
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    refused = ours.run("handoff", str(here), "-o", str(archive))
    assert refused.returncode == 1 and "exists already" in refused.stderr

    stranger = theirs.run("adopt", str(archive), "--project", str(there))
    assert stranger.returncode == 1 and not transcript(theirs, there).exists()
    (command,) = re.findall(r"`holdfast (adopt .*)`", stranger.stderr)
    known: list[str] = []
    for expected in ("1 transcripts", "nothing was changed"):
        # As the refusal says it, and after that without a word: the signer is known.
        adopted = theirs.run(*(known or shlex.split(command)))
        known = ["adopt", str(archive), "--project", str(there)]
        assert adopted.returncode == 0, adopted.stderr
        assert expected in adopted.stdout
        assert f"cd '{there}' && claude --resume {TALK}" in adopted.stdout
    assert transcript(theirs, there).read_bytes() == file.read_bytes()
    with Agent(theirs, there, session="another") as agent:
        context = agent.init("load_context")
        assert context["session"]["id"] == session
        assert [thought["thought"] for thought in context["thoughts"]] == ["The till jams.", "It is the drawer."]
    assert theirs.run("verify").returncode == 0


def test_handing_off_and_adopting_say_what_is_wrong(shared_embedded: Guest, tmp_path: Path) -> None:
    machine = shared_embedded
    missing = machine.run("handoff", str(tmp_path / "nowhere"), "-o", str(tmp_path / "x"))
    assert missing.returncode == 1 and "is no directory here" in missing.stderr
    folder = machine.run("handoff", str(tmp_path), "-o", str(tmp_path / "no" / "x"))
    assert folder.returncode == 1 and "does not exist" in folder.stderr
    absent = machine.run("adopt", str(tmp_path / "absent"), "--project", str(tmp_path))
    assert absent.returncode == 1 and "There is no file" in absent.stderr
    (tmp_path / "junk").write_bytes(os.urandom(2000))
    junk = machine.run("adopt", str(tmp_path / "junk"), "--project", str(tmp_path))
    assert junk.returncode == 1 and "Nothing was written" in junk.stderr
    assert not any("Traceback" in done.stderr for done in (missing, folder, absent, junk))


def test_with_one_postgres_the_other_machine_goes_on_without_an_archive(
    machines: Machines, tmp_path: Path, postgres: PostgresServer
) -> None:
    url = fresh_database(postgres)
    ours, theirs = machines("a", url), machines("b", url)
    here, there = checkout(tmp_path / "work" / "shop"), checkout(tmp_path / "elsewhere" / "my-shop")
    with Agent(ours, here, session="a") as agent:
        session = agent.think("The till jams.")["sessionId"]
        with Agent(theirs, there, session="b") as colleague:
            offered = colleague.init("load_context")
            assert offered.get("session", {}).get("id") != session, "a live agent's work is not offered"

    def recovered() -> bool:
        with Agent(theirs, there, session="c") as agent:
            return bool(agent.init("load_context").get("session", {}).get("id") == session)

    wait_until(recovered, "machine A's daemon has let go of the session")
    with Agent(theirs, there, session="d") as agent:
        made = agent.think("It is the drawer.", sessionId=session)
        assert (made["sessionId"], made["thoughtNumber"]) == (session, 2)
